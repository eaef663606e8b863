//! Storage that is wiped before it goes back.

use crate::copy::pieces;
use crate::handle::Mbuf;
use crate::header::{HeaderPtr, SegFlags};
use crate::packet::Packet;
use crate::private;
use crate::segment::{RawSegmentMut, Segment};
use crate::word::WIPE;
use std::ptr::NonNull;

/// Zeroes memory in a way that is not left out, though nobody reads it afterwards.
///
/// # Safety
/// The bytes are the caller's to write.
#[cold]
#[inline(never)]
pub(crate) unsafe fn bytes(data: NonNull<u8>, len: usize) {
    let mut at = 0;
    // SAFETY: all writes are within the bytes, and aligned.
    unsafe {
        while at < len {
            let here = data.add(at);
            if here.cast::<u64>().is_aligned() && len - at >= 8 {
                here.cast::<u64>().write_volatile(0);
                at += 8;
            } else {
                here.write_volatile(0);
                at += 1;
            }
        }
    }
}

/// Zeroes the mbuf's own room, and what is private to it.
///
/// # Safety
/// The caller owns the mbuf.
pub(crate) unsafe fn room(mbuf: HeaderPtr) {
    // SAFETY: by contract.
    unsafe {
        let home = mbuf.home();
        bytes(home.room, home.header.max(home.plain) as usize);
        if let Some((content, len)) = private::content(mbuf) {
            bytes(content, len);
        }
    }
}

/// Whether the packet itself, and not only another sharer, has asked for this segment: where its bytes
/// go, the wish goes.
pub(crate) fn asked_of(seg: Segment<'_>) -> bool {
    // SAFETY: the handle that is borrowed holds the segment.
    unsafe { seg.ptr().word() }.load() & WIPE != 0
}

/// [`asked_of`] any segment that holds some of `[offset, offset + len)`.
pub(crate) fn asked(packet: &Mbuf, offset: usize, len: usize) -> bool {
    pieces(packet.segments(), offset, len).any(|piece| asked_of(piece.seg))
}

impl RawSegmentMut<'_> {
    /// Asks that this segment be wiped; false when its bytes are in memory that nobody may write.
    pub(crate) fn ask_wipe(&mut self) -> bool {
        let seg = self.view();
        // SAFETY: the segment is mutably borrowed, so that nobody else writes the word, and holds its
        // storage.
        unsafe {
            let word = seg.ptr().word();
            word.set(word.load() | WIPE);
            let Some(storage) = seg.counted() else {
                return true;
            };
            storage.count().ask_wipe();
        }
        !seg.fields().flags.contains(SegFlags::READ_ONLY)
    }
}

impl Mbuf {
    /// Asks that all storage of the packet be wiped before it can be used again: whole rooms, fields
    /// and tags when the mbufs go back to their pool, clusters and external memory when their last holder lets go,
    /// whoever that is. The wish of one holder cannot be taken back by another.
    ///
    /// It holds for segments that the packet has now, for storage that they are given later, and for
    /// segments to which an edit moves their bytes, fields or tags. Byte copies of the packet are packets of their own
    /// and have no such wish, and what is written to a new segment has none either.
    ///
    /// Returns false when a segment's bytes are in external memory that nobody may write, and which
    /// is therefore left as it is; the others are marked all the same.
    ///
    /// ```
    /// use mbuf::{BufferSet, Packet};
    /// let set = BufferSet::standard(64, 8)?;
    /// let mut key = set.header_with(2000)?;
    /// key.append(6)?.copy_from_slice(b"secret");
    /// assert!(key.wipe_on_free());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "M_ZEROIZE")]
    pub fn wipe_on_free(&mut self) -> bool {
        let mut all = true;
        self.for_each_segment(|mut seg| {
            all &= seg.ask_wipe();
            true
        });
        all
    }
}
