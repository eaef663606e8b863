//! The header: two cache lines in front of the inline room. Freeing reads the first only.

use crate::cluster::StoragePtr;
use crate::history::History;
use crate::offload::TxOffload;
use crate::word::{self, FreeWord};
use bitflags::bitflags;
use mempool::PoolRef;
use std::ptr::NonNull;

/// Bytes of header in front of the private area and the inline room: two lines, and in checked
/// mode a third if line 1 has no room for the history.
pub(crate) const HEADER_LEN: usize = size_of::<Header>();

bitflags! {
    /// Marks of one segment.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub(crate) struct SegFlags: u16 {
        /// May head a packet; in a BSD buffer set its inline room is smaller.
        const HEADER = 1;
        /// The offload requests in line 1 are valid.
        const OFFLOAD = 1 << 1;
        /// The user word in line 1 is valid.
        const USER = 1 << 2;
        /// The storage is external; set exactly while the word says `EXTERN`.
        const EXTERNAL = 1 << 3;
        /// The storage is never writable, shared or not.
        const READ_ONLY = 1 << 4;
        /// The bytes are a socket address.
        const ADDRESS = 1 << 5;
        /// The bytes are control messages.
        const CONTROL = 1 << 6;
        /// The sender's record ends with this segment.
        const EOR = 1 << 7;
        /// What the receiving device said is valid.
        const RECEIVED = 1 << 8;
        /// The VLAN tag is valid.
        const VLAN = 1 << 9;
        /// The timestamp is valid.
        const TIMESTAMP = 1 << 10;
        /// The flow is valid.
        const FLOW = 1 << 11;
        /// The flow is a device's hash.
        const HASHED = 1 << 12;
        /// The priority is valid.
        const PRIORITY = 1 << 13;
        /// The private area has been cleared since the mbuf was allocated.
        const PRIVATE = 1 << 14;
        /// The last segment of a record with another one behind it; meaningful in a chain only.
        const RECORD_END = 1 << 15;
    }
}

/// What line 0 holds behind the free word. Written in one go when an mbuf is allocated, from the
/// pool's template; not restored when it is freed.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Fields {
    /// Next segment; meaningful only while the word says `NEXT`, null otherwise.
    pub next: Option<HeaderPtr>,
    /// Where the element goes back to.
    pub pool: PoolRef,
    /// The cluster or external record; `Some` exactly while the word says `CLUSTER` or `EXTERN`.
    pub storage: Option<StoragePtr>,
    /// Bytes in the packet; exact in the first segment of an [`Mbuf`](crate::Mbuf). In a
    /// [`Chain`](crate::Chain), each segment's own: the position of its first byte.
    pub pkt_len: usize,
    /// Start of the data, from the start of the storage.
    pub off: u32,
    /// Bytes of data in this segment.
    pub len: u32,
    /// Bytes of storage: the cluster's size or the inline room's limit.
    pub capacity: u32,
    /// Segments in the packet; exact in the first segment of an [`Mbuf`](crate::Mbuf).
    pub nsegs: u32,
    /// What a socket buffer is charged for this segment.
    pub charge: u32,
    /// Where the mbuf's own room begins.
    pub room: RoomStart,
    /// How many sockets have passed the segment on.
    pub hops: u8,
    pub flags: SegFlags,
}

/// Where an mbuf's own room begins: so many times 16 bytes behind the start of the header, or where
/// line 1 says.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct RoomStart(u8);

impl RoomStart {
    /// What the room begins at a multiple of, bytes.
    pub(crate) const UNIT: usize = 16;

    /// Not in the element.
    pub(crate) const PINNED: Self = Self(u8::MAX);

    /// So far behind the start of the header: a multiple of the unit, less than 255 of them.
    pub(crate) const fn at(offset: usize) -> Self {
        assert!(offset.is_multiple_of(Self::UNIT) && offset / Self::UNIT < u8::MAX as usize);
        Self((offset / Self::UNIT) as u8)
    }

    /// From the start of the header; `None` when it is not in the element.
    #[inline(always)]
    pub(crate) const fn offset(self) -> Option<usize> {
        match self {
            Self(u8::MAX) => None,
            Self(units) => Some(units as usize * Self::UNIT),
        }
    }
}

/// The mbuf's own room. Written when the pool is made, and never again.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Home {
    pub room: NonNull<u8>,
    /// Bytes of it that a header mbuf uses.
    pub header: u32,
    /// Bytes of it that a plain mbuf uses.
    pub plain: u32,
}

#[repr(C, align(64))]
pub(crate) struct Header {
    pub word: FreeWord,
    pub fields: Fields,
    /// Line 1.
    pub meta: Meta,
    pub home: Home,
    /// Empty unless in checked mode.
    pub history: History,
}

/// What line 1 says of the packet; each part valid while its flag in `Fields::flags` is set, so
/// that allocation need not touch it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Meta {
    pub offload: TxOffload,
    pub vlan: u16,
    pub port: u16,
    pub queue: u16,
    /// One word that the stack never reads.
    pub user: u64,
    pub timestamp: u64,
    /// The packet behind this one; valid only while the packet is in a list.
    pub next_packet: Option<HeaderPtr>,
    pub flow: u32,
    pub packet_type: u16,
    /// Checksum states: IP in the low half, TCP or UDP in the high one.
    pub checksums: u8,
    pub priority: u8,
}

impl Header {
    /// A header with nothing said in line 1.
    pub(crate) fn new(word: u64, fields: Fields, home: Home) -> Self {
        Self {
            word: FreeWord::new(word),
            fields,
            meta: Meta {
                offload: TxOffload::default(),
                vlan: 0,
                port: 0,
                queue: 0,
                user: 0,
                timestamp: 0,
                next_packet: None,
                flow: 0,
                packet_type: 0,
                checksums: 0,
                priority: 0,
            },
            home,
            history: History::new(),
        }
    }
}

/// The address of a header of an element that is out of its pool, or is being created.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct HeaderPtr(pub NonNull<Header>);

impl HeaderPtr {
    /// Where line 0 and line 1 are, to be asked for and not to be accessed.
    #[inline(always)]
    pub(crate) fn lines(self) -> [*const u8; 2] {
        let start = self.0.as_ptr().cast_const().cast::<u8>();
        [
            start,
            start.wrapping_add(std::mem::offset_of!(Header, meta)),
        ]
    }

    /// The free word.
    ///
    /// # Safety
    /// The element is out of its pool for all of `'a`, or `'a` is over before it is taken again.
    #[inline(always)]
    pub(crate) unsafe fn word<'a>(self) -> &'a FreeWord {
        // SAFETY: a header was written at creation and elements are never unmapped while one is
        // out; the word is only ever accessed as an atomic.
        unsafe { &(*self.0.as_ptr()).word }
    }

    /// The fields, for reading.
    ///
    /// # Safety
    /// The caller holds a reference to this element, and nobody writes its fields during `'a`.
    #[inline(always)]
    pub(crate) unsafe fn fields<'a>(self) -> &'a Fields {
        // SAFETY: see above; fields and word are disjoint.
        unsafe { &(*self.0.as_ptr()).fields }
    }

    /// The mbuf's own room.
    ///
    /// # Safety
    /// The caller holds a reference to this element.
    #[inline(always)]
    pub(crate) unsafe fn home(self) -> Home {
        // SAFETY: written at creation only; read as a place, so that nothing else is referred to.
        unsafe { (*self.0.as_ptr()).home }
    }

    /// The fields, for writing.
    ///
    /// # Safety
    /// The caller is the only one with access to this element during `'a`.
    #[inline(always)]
    pub(crate) unsafe fn fields_mut<'a>(self) -> &'a mut Fields {
        // SAFETY: see above; fields and word are disjoint.
        unsafe { &mut (*self.0.as_ptr()).fields }
    }

    /// Line 1, for reading.
    ///
    /// # Safety
    /// As for [`fields`](Self::fields).
    #[inline(always)]
    pub(crate) unsafe fn meta<'a>(self) -> &'a Meta {
        // SAFETY: see above; word, fields and line 1 are disjoint.
        unsafe { &(*self.0.as_ptr()).meta }
    }

    /// Line 1, for writing.
    ///
    /// # Safety
    /// As for [`fields_mut`](Self::fields_mut).
    #[inline(always)]
    pub(crate) unsafe fn meta_mut<'a>(self) -> &'a mut Meta {
        // SAFETY: see above; word, fields and line 1 are disjoint.
        unsafe { &mut (*self.0.as_ptr()).meta }
    }

    /// What has happened to the element.
    ///
    /// # Safety
    /// As for [`word`](Self::word).
    #[inline(always)]
    pub(crate) unsafe fn history<'a>(self) -> &'a History {
        // SAFETY: see above; the history is only ever accessed as an atomic.
        unsafe { &(*self.0.as_ptr()).history }
    }

    /// Takes the element off its successor: the word no longer says `NEXT`.
    ///
    /// # Safety
    /// The caller owns the segment and what follows it exclusively; the successor, if any, is the
    /// caller's to keep.
    #[inline]
    pub(crate) unsafe fn unlink(self) -> Option<HeaderPtr> {
        // SAFETY: exclusive by contract.
        unsafe {
            let word = self.word();
            word.set(word.load() & !word::NEXT);
            self.fields_mut().next.take()
        }
    }

    /// Makes `next` the successor.
    ///
    /// # Safety
    /// The caller owns both exclusively, `self` has no successor, and `next` is the start of a
    /// chain that does not contain `self`; it belongs to `self` from here on.
    #[inline]
    pub(crate) unsafe fn link(self, next: HeaderPtr) {
        // SAFETY: exclusive by contract.
        unsafe {
            self.fields_mut().next = Some(next);
            let word = self.word();
            word.set(word.load() | word::NEXT);
        }
    }
}

#[cfg(not(loom))]
const _: () = {
    use std::mem::offset_of;
    assert!(HEADER_LEN == 128 || (mempool::CHECKED && HEADER_LEN == 192));
    assert!(offset_of!(Header, word) == 0);
    assert!(offset_of!(Header, fields) == 8);
    assert!(size_of::<Fields>() == 56, "word and fields fill line 0");
    assert!(offset_of!(Header, meta) == 64);
    assert!(offset_of!(Header, history) >= 64 + size_of::<Meta>());
    assert!(size_of::<Meta>() == 48);
    assert!(offset_of!(Meta, vlan) == 10);
    assert!(offset_of!(Meta, port) == 12);
    assert!(offset_of!(Meta, queue) == 14);
    assert!(offset_of!(Meta, user) == 16);
    assert!(offset_of!(Meta, timestamp) == 24);
    assert!(offset_of!(Meta, next_packet) == 32);
    assert!(offset_of!(Meta, flow) == 40);
    assert!(offset_of!(Meta, packet_type) == 44);
    assert!(offset_of!(Meta, checksums) == 46);
    assert!(offset_of!(Meta, priority) == 47);
    assert!(size_of::<Option<HeaderPtr>>() == 8);
};

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use memoffset::{offset_of, span_of};

    #[test]
    fn dpdk_b1_header_is_two_cache_lines() {
        // In checked mode the history may take another.
        const { assert!(HEADER_LEN == 2 * 64 || mempool::CHECKED) };
        assert!(span_of!(Header, meta).end <= 2 * 64);
        assert_eq!(std::mem::align_of::<Header>(), 64);
    }

    #[test]
    fn all_that_freeing_reads_is_in_the_first_line() {
        assert_eq!(span_of!(Header, word), 0..8);
        for at in [
            offset_of!(Fields, next),
            offset_of!(Fields, pool),
            offset_of!(Fields, storage),
        ] {
            assert!(offset_of!(Header, fields) + at < 64);
        }
    }
}
