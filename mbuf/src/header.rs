//! The header: two cache lines in front of the inline room. Freeing reads the first only.

use crate::cluster::StoragePtr;
use crate::offload::TxOffload;
use crate::word::{self, FreeWord};
use bitflags::bitflags;
use mempool::PoolRef;
use std::ptr::NonNull;

/// Bytes of header in front of the private area and the inline room.
pub(crate) const HEADER_LEN: usize = 128;

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
    /// Bytes in the packet; exact in the first segment of an [`Mbuf`](crate::Mbuf).
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
    /// Start of the mbuf's own room, from the start of the header; [`PINNED`] when the room is not
    /// in the element.
    pub room_off: u16,
    pub flags: SegFlags,
}

/// In place of an offset: the room is where line 1 says.
pub(crate) const PINNED: u16 = u16::MAX;

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
    /// Line 1. Valid while `fields.flags` says so.
    pub offload: TxOffload,
    /// One word that the stack never reads.
    pub user: u64,
    pub home: Home,
}

/// The address of a header of an element that is out of its pool, or is being created.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct HeaderPtr(pub NonNull<Header>);

impl HeaderPtr {
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
    use std::mem::{offset_of, size_of};
    assert!(size_of::<Header>() == HEADER_LEN);
    assert!(offset_of!(Header, word) == 0);
    assert!(offset_of!(Header, fields) == 8);
    assert!(size_of::<Fields>() == 56, "word and fields fill line 0");
    assert!(offset_of!(Header, offload) == 64);
    assert!(size_of::<Option<HeaderPtr>>() == 8);
};

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use memoffset::{offset_of, span_of};

    #[test]
    fn dpdk_b1_header_is_two_cache_lines() {
        assert_eq!(std::mem::size_of::<Header>(), 2 * 64);
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
