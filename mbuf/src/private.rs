//! The private area: bytes of a pool's own choice between an mbuf's header and its room, for named
//! fields ([`FieldRegistry`](crate::FieldRegistry)) and tags.
//!
//! ```text
//!  header │ flags 8 │ tag ids 4 │ used 2 │ units 2 │ fields ....... │ ....... tags ◄─│ room
//! ```
//!
//! It is cleared when it is first written after an allocation, which therefore need not touch it,
//! and reads as zeros before. Nothing in it needs to be freed, so that an mbuf with tags goes back to its
//! pool as fast as any.

use crate::error::CreateError;
use crate::handle::Mbuf;
use crate::header::{Fields, HEADER_LEN, HeaderPtr, RoomStart, SegFlags};
use crate::packet::Packet;
use std::ptr::NonNull;

/// Bytes that fields and tags take at most, each.
const MAX: usize = 1024;

/// Both are a multiple of it, bytes.
const UNIT: usize = 8;

/// What an area that was not written reads as.
static ZEROS: [u8; MAX] = [0; MAX];

/// How much room each mbuf of a pool has for named fields and for tags, in bytes.
///
/// Unless both are 0, 16 bytes come on top.
#[doc(alias = "priv_size")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PrivateArea {
    /// For named fields; a multiple of 8, at most 1024.
    pub fields: usize,
    /// For tags, of which each takes 4 bytes besides its data; a multiple of 8, at most 1024.
    pub tags: usize,
}

impl PrivateArea {
    /// Bytes between header and room: what was asked for and the 16 on top, rounded up to a multiple of
    /// 16.
    pub fn len(self) -> usize {
        match self.fields.saturating_add(self.tags) {
            0 => 0,
            room => match room.checked_next_multiple_of(RoomStart::UNIT) {
                Some(room) => room.saturating_add(HEAD_LEN),
                None => usize::MAX,
            },
        }
    }

    /// True when there is neither room for fields nor for tags.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    pub(crate) fn check(self) -> Result<(), CreateError> {
        for asked in [self.fields, self.tags] {
            if asked % UNIT != 0 || asked > MAX {
                return Err(CreateError::Private { asked, max: MAX });
            }
        }
        Ok(())
    }

    /// Writes the area of a new element.
    ///
    /// # Safety
    /// The element has a header and so many bytes behind it, and is the caller's alone.
    pub(crate) unsafe fn write_new(self, element: NonNull<u8>) {
        if self.is_empty() {
            return;
        }
        let head = Head {
            flags: 0,
            tag_ids: 0,
            tags_used: 0,
            fields_units: (self.fields / UNIT) as u8,
            tags_units: (self.tags / UNIT) as u8,
        };
        // SAFETY: by contract; headers are a multiple of 64 bytes long and elements aligned to 64.
        unsafe {
            let area = element.add(HEADER_LEN);
            area.write_bytes(0, self.len());
            area.cast::<Head>().write(head);
        }
    }
}

/// The start of the area.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Head {
    /// The registered flags.
    pub flags: u64,
    /// Bit `id % 32` is set for each tag's id.
    pub tag_ids: u32,
    /// Bytes of tags, at the end of the area.
    pub tags_used: u16,
    /// Room for fields behind this head, and for tags behind those, in units of 8 bytes. Written when
    /// the pool is made, and never again.
    fields_units: u8,
    tags_units: u8,
}

const HEAD_LEN: usize = size_of::<Head>();
const _: () = assert!(HEAD_LEN == 16 && HEADER_LEN.is_multiple_of(align_of::<Head>()));

/// The largest area can be said, and leaves the room where its start can be said.
const _: RoomStart = RoomStart::at(HEADER_LEN + HEAD_LEN + 2 * MAX);
const _: () = assert!(MAX / UNIT <= u8::MAX as usize);

/// The area of a packet's first segment, for reading.
pub(crate) struct Private<'a> {
    pub flags: u64,
    pub tag_ids: u32,
    pub fields: &'a [u8],
    /// Those that are there, newest first.
    pub tags: &'a [u8],
}

/// The area of a packet's first segment, for writing.
pub(crate) struct PrivateMut<'a> {
    pub head: &'a mut Head,
    pub fields: &'a mut [u8],
    /// All room for tags; the last `head.tags_used` bytes are tags, newest first.
    pub tags: &'a mut [u8],
}

/// Bytes of area behind the header.
fn len_of(fields: &Fields) -> usize {
    let offset = fields.room.offset();
    offset.map_or(0, |offset| offset.saturating_sub(HEADER_LEN))
}

/// Fields and tags, to be wiped: where, and how many bytes.
///
/// # Safety
/// The caller owns the element.
pub(crate) unsafe fn content(ptr: HeaderPtr) -> Option<(NonNull<u8>, usize)> {
    // SAFETY: by contract; the area is in the element.
    unsafe {
        let (head, fields, tags) = parts(ptr)?;
        Some((head.cast::<u8>().add(HEAD_LEN), fields + tags))
    }
}

/// Start of the area, bytes for fields and for tags; `None` when there is no area.
///
/// # Safety
/// The caller holds a reference to the element.
unsafe fn parts(ptr: HeaderPtr) -> Option<(NonNull<Head>, usize, usize)> {
    // SAFETY: the area lies between header and room, and was written when the pool was made.
    unsafe {
        let room = len_of(ptr.fields()).checked_sub(HEAD_LEN)?;
        let head = ptr.0.cast::<u8>().add(HEADER_LEN).cast::<Head>();
        let units = |units: u8| units as usize * UNIT;
        let fields = units((*head.as_ptr()).fields_units).min(room);
        let tags = units((*head.as_ptr()).tags_units).min(room - fields);
        Some((head, fields, tags))
    }
}

/// What `packet`'s private area says; `None` when it has none.
pub(crate) fn view<P: Packet + ?Sized>(packet: &P) -> Option<Private<'_>> {
    let ptr = packet.raw().0;
    // SAFETY: the packet is borrowed, which keeps writers away; the area is initialised memory of
    // that length in the same element.
    unsafe {
        let (head, fields, tags) = parts(ptr)?;
        if !ptr.fields().flags.contains(SegFlags::PRIVATE) {
            return Some(Private {
                flags: 0,
                tag_ids: 0,
                fields: &ZEROS[..fields],
                tags: &[],
            });
        }
        let Head {
            flags,
            tag_ids,
            tags_used,
            ..
        } = head.read();
        let used = (tags_used as usize).min(tags);
        let start = head.cast::<u8>().add(HEAD_LEN);
        let end = start.add(fields + tags - used);
        Some(Private {
            flags,
            tag_ids,
            fields: std::slice::from_raw_parts(start.as_ptr(), fields),
            tags: std::slice::from_raw_parts(end.as_ptr(), used),
        })
    }
}

/// The private area of `m`, cleared if nothing was written to it yet; `None` when it has none.
pub(crate) fn view_mut(m: &mut Mbuf) -> Option<PrivateMut<'_>> {
    let ptr = m.ptr();
    // SAFETY: exclusive and mutably borrowed; the three parts are disjoint, initialised, and in
    // the same element.
    unsafe {
        let (head, fields, tags) = parts(ptr)?;
        let start = head.cast::<u8>().add(HEAD_LEN);
        let view = PrivateMut {
            head: &mut *head.as_ptr(),
            fields: std::slice::from_raw_parts_mut(start.as_ptr(), fields),
            tags: std::slice::from_raw_parts_mut(start.add(fields).as_ptr(), tags),
        };
        let flags = &mut ptr.fields_mut().flags;
        if !flags.contains(SegFlags::PRIVATE) {
            flags.insert(SegFlags::PRIVATE);
            view.head.flags = 0;
            view.head.tag_ids = 0;
            view.head.tags_used = 0;
            view.fields.fill(0);
        }
        Some(view)
    }
}

/// Writes the fields and registered flags of `from` to `to`, as far as its area reaches.
pub(crate) fn copy_fields<P: Packet + ?Sized>(to: &mut Mbuf, from: &P) {
    if let (Some(theirs), Some(ours)) = (view(from), view_mut(to)) {
        let n = ours.fields.len().min(theirs.fields.len());
        let (both, rest) = ours.fields.split_at_mut(n);
        both.copy_from_slice(&theirs.fields[..n]);
        rest.fill(0);
        ours.head.flags = theirs.flags;
    }
}

impl Mbuf {
    /// The bytes for named fields of the first segment; none when its pool has no room for fields.
    /// They are zeros until they are written after an allocation.
    #[doc(alias = "rte_mbuf_to_priv")]
    pub fn private_mut(&mut self) -> &mut [u8] {
        match view_mut(self) {
            Some(area) => area.fields,
            None => &mut [],
        }
    }
}
