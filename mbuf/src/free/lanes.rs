//! Two pools' thread caches, open for in-place writes at once: what `direct` frees into.

use crate::cluster::ClusterPtr;
use crate::header::HeaderPtr;
use crate::word::resting_of;
use mempool::{PoolRef, PutCursor, RawPool};
use std::ptr::NonNull;

/// One in so many objects of another pool has the second lane opened for its pool; the others are
/// put one by one, which costs less than opening and closing a lane for a few.
const WORTH_OPENING: u32 = 8;

/// The pool of the first packet, and the latest other one. Two are enough for mbufs with clusters
/// of one class and for packets of two pools by turns; with more, the second lane changes hands.
pub(super) struct Lanes {
    first: Lane,
    second: Option<Lane>,
    /// Objects that came for neither lane.
    strangers: u32,
    /// Keeps the first pool alive where nothing in its cache does: another owner may free a
    /// packet's last reference, and with it the pool, while the cache is open.
    keep: Option<RawPool>,
}

struct Lane {
    cursor: PutCursor,
    /// The free word of an mbuf that may be put here as it stands; 0 for a pool of clusters.
    resting: u64,
}

/// Where the next pointers go. A copy of what the cursors say, to be kept in registers.
#[derive(Clone, Copy)]
pub(super) struct Spots {
    pub first: *mut NonNull<u8>,
    pub second: *mut NonNull<u8>,
    /// How many pointers may be written, to either of them.
    pub room: usize,
    /// The free word of an mbuf that may be put to the first lane as it stands.
    pub first_rests: u64,
    /// The same for the second lane; 0, which no word is, when no mbuf belongs there.
    pub second_rests: u64,
}

impl Spots {
    /// Whether mbufs that rest with this word go to one of the two lanes.
    #[inline(always)]
    pub(super) fn lend_to(&self, resting: u64) -> bool {
        resting == self.first_rests || resting == self.second_rests
    }

    /// Writes an mbuf whose word is `word` to its lane; false when it has none, or no room.
    ///
    /// # Safety
    /// The caller owns the mbuf, and gives it up if the answer is true.
    #[inline(always)]
    pub(super) unsafe fn push(&mut self, mbuf: HeaderPtr, word: u64) -> bool {
        if self.room == 0 {
            return false;
        }
        // SAFETY: there is room, and the word says that the mbuf rests and is of that pool.
        unsafe {
            if word == self.first_rests {
                self.first.write(mbuf.0.cast());
                self.first = self.first.add(1);
            } else if word == self.second_rests {
                self.second.write(mbuf.0.cast());
                self.second = self.second.add(1);
            } else {
                return false;
            }
        }
        self.room -= 1;
        true
    }
}

impl Lanes {
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
                first: Lane {
                    resting: resting_of(head.word().load()),
                    cursor: head.fields().pool.open_put(),
                },
                second: None,
                strangers: 0,
                keep: None,
            }
        }
    }

    /// Sees to it that the first pool stays while its cache is open; false when this thread has
    /// no cache there, and nothing must be freed through these lanes.
    #[inline(always)]
    pub(super) fn hold(&mut self) -> bool {
        !self.first.cursor.is_empty() || self.hold_handle()
    }

    #[cold]
    #[inline(never)]
    fn hold_handle(&mut self) -> bool {
        let cursor = &self.first.cursor;
        if cursor.is_cached() {
            // SAFETY: by the promise to `open` its head is still referenced.
            self.keep = unsafe { cursor.pool().handle() };
        }
        self.keep.is_some()
    }

    #[inline(always)]
    pub(super) fn spots(&mut self) -> Spots {
        let first = &mut self.first;
        let mut spots = Spots {
            room: first.cursor.room(),
            first: first.cursor.spare_at(),
            second: NonNull::dangling().as_ptr(),
            first_rests: first.resting,
            second_rests: 0,
        };
        if let Some(second) = &mut self.second
            && second.cursor.is_cached()
        {
            spots.room = spots.room.min(second.cursor.room());
            spots.second = second.cursor.spare_at();
            spots.second_rests = second.resting;
        }
        spots
    }

    /// Says what has been written at the spots since they were lent.
    ///
    /// # Safety
    /// They were lent by `spots` last, and advanced by pushing only.
    #[inline(always)]
    pub(super) unsafe fn settle(&mut self, spots: Spots) {
        // SAFETY: by contract, so many were written.
        unsafe {
            let cursor = &mut self.first.cursor;
            cursor.advance(spots.first.offset_from_unsigned(cursor.spare_at()));
            if spots.second_rests != 0
                && let Some(second) = &mut self.second
            {
                let cursor = &mut second.cursor;
                cursor.advance(spots.second.offset_from_unsigned(cursor.spare_at()));
            }
        }
    }

    /// Puts a cluster that nobody refers to any more. The spots are settled.
    ///
    /// # Safety
    /// The caller owns the cluster.
    #[inline(never)]
    pub(super) unsafe fn put_cluster(&mut self, cluster: ClusterPtr) {
        // SAFETY: by contract.
        unsafe { self.put_object(cluster.get().pool, 0, cluster.object()) }
    }

    /// Puts an mbuf that the spots did not take. The spots are settled.
    ///
    /// # Safety
    /// The caller owns the mbuf, which rests with the word `resting`.
    #[inline(never)]
    pub(super) unsafe fn put(&mut self, mbuf: HeaderPtr, resting: u64) {
        // SAFETY: by contract.
        unsafe { self.put_object(mbuf.fields().pool, resting, mbuf.0.cast()) }
    }

    /// Counts an mbuf of a pool that no lane is open for; true when it is worth opening one.
    #[inline(always)]
    pub(super) fn worth_opening(&mut self) -> bool {
        self.strangers += 1;
        self.strangers.is_multiple_of(WORTH_OPENING)
    }

    /// # Safety
    /// The caller owns `object`, which rests and is of `pool`; mbufs of that pool rest with the
    /// word `resting`.
    #[inline(always)]
    unsafe fn put_object(&mut self, pool: PoolRef, resting: u64, object: NonNull<u8>) {
        // SAFETY: by contract. What is pushed keeps the second lane's pool alive. A pool is never
        // open twice: it is not the first, and the former second is closed before.
        unsafe {
            if pool == self.first.cursor.pool() {
                return self.first.cursor.push(object);
            }
            if let Some(second) = &mut self.second
                && second.cursor.pool() == pool
            {
                return second.cursor.push(object);
            }
            self.second = None;
            let mut cursor = pool.open_put();
            cursor.push(object);
            self.second = Some(Lane { cursor, resting });
        }
    }
}
