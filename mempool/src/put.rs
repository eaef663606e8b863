//! Giving objects back: into the cache, or the oldest half of it to the backend first.
//!
//! After DPDK's cache algorithm of release 26.07: what does not fit pushes the *oldest* half out if it is
//! at most half a cache, and goes straight to the backend otherwise. A cache may hold exactly its size.

use crate::cache::{Slot, Taken};
use crate::pool_ref::PoolRef;
use crate::stats::Writers;
use crate::worker;
use std::ptr::NonNull;

/// A put of exactly half a cache, if that is so many, goes straight to the backend when it does not
/// fit: passing it through the cache takes three copies for one, and took 1.05 times as long as a pool
/// without caches where one thread takes bursts of 256 and another puts them back.
const LARGE: usize = 128;

impl PoolRef {
    /// One object, when the cache has no room.
    ///
    /// # Safety
    /// As for [`PoolRef::put`].
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn put_slow(self, obj: NonNull<u8>) {
        // SAFETY: as the caller promises.
        unsafe { self.put_bulk_slow(&[obj]) };
    }

    /// Some objects, when the cache has no room for all.
    ///
    /// # Safety
    /// As for [`PoolRef::put_bulk`].
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn put_bulk_slow(self, objs: &[NonNull<u8>]) {
        if objs.is_empty() {
            return;
        }
        // SAFETY: the objects, which are out, keep the pool alive until they are in the backend, and
        // afterwards nothing is touched. The slot at our own offset is ours.
        unsafe {
            let gate = &self.inner().gate;
            if gate.end() == 0 {
                if gate.is_suspended() {
                    self.give_back_cache();
                }
                return self.backend_put(objs);
            }
            let offset = worker::current_or_register();
            match self
                .slot_at(offset)
                .and_then(|slot| slot.take().map(|taken| (slot, taken)))
            {
                Some((slot, taken)) => self.put_with_cache(slot.into(), taken, objs),
                None => self.backend_put(objs),
            }
        }
    }

    /// # Safety
    /// As for [`PoolRef::put_bulk`]; `taken` is what was taken from `slot` by this thread.
    pub(crate) unsafe fn put_with_cache(
        self,
        slot: NonNull<Slot>,
        taken: Taken,
        objs: &[NonNull<u8>],
    ) {
        // A pointer, not a reference: an argument must stay valid during the call, but the last
        // object that goes to the backend frees the pool, slots included.
        let Taken { base, len, limit } = taken;
        // SAFETY: the slot was taken by us.
        unsafe { slot.as_ref() }.counters.missed(Writers::Owner);
        let half = limit / 2;
        let fits = objs.len() <= limit - len;
        // SAFETY: the array has `limit` entries, of which `len` are written, and is ours while the
        // slot is taken. With the half gone there is room: `len - half + n <= limit` as `n <= half`.
        unsafe {
            if !fits && (objs.len() > half || objs.len() == half && half >= LARGE) {
                slot.as_ref().restore(len, limit);
                self.give(objs, &slot.as_ref().counters, Writers::Owner);
                return self.release(objs.len());
            }
            let kept = if fits {
                len
            } else {
                self.flush_oldest(slot.as_ref(), taken, half)
            };
            base.add(kept)
                .copy_from_nonoverlapping(NonNull::from(objs).cast(), objs.len());
            slot.as_ref().restore(kept + objs.len(), limit);
            if !fits {
                // Not the last units: what was just cached counts.
                self.release(half);
            }
        }
    }

    /// Gives the oldest `half` to the backend, moves the others down, and says how many they are.
    /// The units of the half are still to be released.
    ///
    /// # Safety
    /// `taken` is what was taken from `slot` by this thread; `0 < half <= len`.
    pub(crate) unsafe fn flush_oldest(self, slot: &Slot, taken: Taken, half: usize) -> usize {
        let kept = taken.len - half;
        // SAFETY: entries below `len` are written and ours while the slot is taken.
        unsafe {
            self.give(taken.slice(0, half), &slot.counters, Writers::Owner);
            taken.base.copy_from(taken.base.add(half), kept);
        }
        kept
    }
}
