//! One pool's thread cache, open for in-place writes: what `direct` frees into.

use crate::header::HeaderPtr;
use crate::word::resting_of;
use mempool::{PutCursor, RawPool};
use std::ptr::NonNull;

/// Mbufs that are not many enough for [`Lane::is_large`], however small the cache is.
const LARGE: usize = 128;

/// The open cache of the first packet's pool.
pub(super) struct Lane {
    cursor: PutCursor,
    /// The free word of an mbuf that may be put there as it stands.
    rests: u64,
    /// Keeps the pool alive where nothing in its cache does: another owner may free a packet's
    /// last reference, and with it the pool, while the cache is open.
    keep: Option<RawPool>,
}

/// Where the next pointers go. A copy of what the cursor says, to be kept in registers.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    at: *mut NonNull<u8>,
    pub room: usize,
    pub rests: u64,
}

impl Spot {
    /// Writes an mbuf's pointer.
    ///
    /// # Safety
    /// There is room, and the caller owns the mbuf, whose word is [`rests`](Self::rests).
    #[inline(always)]
    pub(super) unsafe fn push(&mut self, mbuf: HeaderPtr) {
        // SAFETY: by contract.
        unsafe {
            self.at.write(mbuf.0.cast());
            self.at = self.at.add(1);
        }
        self.room -= 1;
    }

    /// Writes a group's pointers as they stand.
    ///
    /// # Safety
    /// As for [`push`](Self::push), for each slot of the group; none is `None`.
    #[inline(always)]
    pub(super) unsafe fn push_group<const N: usize>(&mut self, group: &[Option<HeaderPtr>; N]) {
        // SAFETY: by contract; `Some(HeaderPtr)` and `NonNull<u8>` have the same layout.
        unsafe {
            self.at.cast::<[Option<HeaderPtr>; N]>().write(*group);
            self.at = self.at.add(N);
        }
        self.room -= N;
    }
}

impl Lane {
    /// Opens the lane for `head`'s pool.
    ///
    /// # Safety
    /// The caller owns a reference of `head`, and gives up no reference before
    /// [`hold`](Self::hold) has said yes.
    #[inline(always)]
    pub(super) unsafe fn open(head: HeaderPtr) -> Self {
        // SAFETY: `head` keeps its pool alive; later, what is cached does, or the handle.
        unsafe {
            Self {
                rests: resting_of(head.word().load()),
                cursor: head.fields().pool.open_put(),
                keep: None,
            }
        }
    }

    /// Sees to it that the pool stays while its cache is open; false when this thread has no
    /// cache there, and nothing must be freed through this lane.
    #[inline(always)]
    pub(super) fn hold(&mut self) -> bool {
        !self.cursor.is_empty() || self.hold_handle()
    }

    #[cold]
    #[inline(never)]
    fn hold_handle(&mut self) -> bool {
        if self.cursor.is_cached() {
            // SAFETY: by the promise to `open` its head is still referenced.
            self.keep = unsafe { self.cursor.pool().handle() };
        }
        self.keep.is_some()
    }

    /// The free word of an mbuf that may be put here as it stands.
    pub(super) fn rests(&self) -> u64 {
        self.rests
    }

    /// Lends the spot.
    #[inline(always)]
    pub(super) fn spot(&mut self) -> Spot {
        Spot {
            room: self.cursor.room(),
            at: self.cursor.spare_at(),
            rests: self.rests,
        }
    }

    /// Takes the spot back.
    ///
    /// # Safety
    /// It was lent last, and advanced as its contract says.
    #[inline(always)]
    pub(super) unsafe fn settle(&mut self, spot: Spot) {
        // SAFETY: so many were written since.
        unsafe { self.cursor.advance(self.cursor.room() - spot.room) };
    }

    /// Pointers that can be pushed before the cache is full.
    #[inline(always)]
    pub(super) fn room(&self) -> usize {
        self.cursor.room()
    }

    /// Makes room for `n` more by pushing the oldest half of the cache out; false if that is not enough.
    /// The spot is settled.
    pub(super) fn make_room(&mut self, n: usize) -> bool {
        self.cursor.spare(n).is_some()
    }

    /// Whether so many mbufs are better put past a full cache than through it: half a cache or more, if
    /// that is enough for copying them three times to show.
    pub(super) fn is_large(&self, mbufs: usize) -> bool {
        mbufs >= LARGE.max(self.cursor.capacity() / 2)
    }

    /// Puts mbufs past the cache. The spot is settled.
    ///
    /// # Safety
    /// The caller owns the mbufs, which rest and are of the lane's pool.
    pub(super) unsafe fn pass(&mut self, mbufs: &[NonNull<u8>]) {
        // SAFETY: by contract.
        unsafe { self.cursor.pass_slice(mbufs) };
    }

    /// Puts an mbuf of any pool. The spot is settled.
    ///
    /// # Safety
    /// The caller owns the mbuf, which rests with the word `resting`.
    #[inline(never)]
    pub(super) unsafe fn put(&mut self, mbuf: HeaderPtr, resting: u64) {
        // SAFETY: by contract. The pool whose cache is open is put to through its cursor.
        unsafe {
            if resting == self.rests {
                self.cursor.push(mbuf.0.cast());
            } else {
                mbuf.fields().pool.put(mbuf.0.cast());
            }
        }
    }
}
