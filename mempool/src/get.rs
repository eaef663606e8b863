//! Taking objects: the cache first, then the backend, half a cache at a time.
//!
//! After DPDK's cache algorithm of release 26.07: what the cache has is handed out newest first;
//! the rest comes with a refill of half a cache when it is at most that, and straight from the
//! backend otherwise. A request that fails leaves the cache as it was.

use crate::cache::{Slot, Taken, copy_newest_first};
use crate::error::Exhausted;
use crate::pool_ref::PoolRef;
use crate::stats::Writers;
use crate::worker;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

impl PoolRef {
    /// One object, when the cache has none.
    ///
    /// # Safety
    /// The pool lives during the call.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn get_slow(self) -> Result<NonNull<u8>, Exhausted> {
        let mut out = [MaybeUninit::uninit()];
        // SAFETY: as the caller promises; written after success.
        unsafe {
            self.get_bulk_slow(&mut out)?;
            Ok(out[0].assume_init())
        }
    }

    /// Some objects, when the cache has not as many.
    ///
    /// # Safety
    /// The pool lives during the call.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn get_bulk_slow(
        self,
        out: &mut [MaybeUninit<NonNull<u8>>],
    ) -> Result<(), Exhausted> {
        if out.is_empty() {
            return Ok(());
        }
        worker::current_or_register();
        // SAFETY: the pool lives; the slot is ours.
        let own = unsafe {
            self.own_slot()
                .and_then(|slot| slot.take().map(|taken| (slot, taken)))
        };
        // SAFETY: the pool lives; the slot was just taken.
        unsafe {
            match own {
                Some((slot, taken)) => self.get_with_cache(slot, taken, out),
                None => {
                    let (counters, writers) = self.own_counters();
                    self.backend_get(out, counters, writers)
                        .map_err(|available| {
                            counters.failed(writers);
                            self.exhausted(out.len(), available, 0)
                        })
                }
            }
        }
    }

    /// # Safety
    /// The pool lives, and `taken` is what was taken from `slot` by this thread.
    pub(crate) unsafe fn get_with_cache(
        self,
        slot: &Slot,
        taken: Taken,
        out: &mut [MaybeUninit<NonNull<u8>>],
    ) -> Result<(), Exhausted> {
        let Taken { base, len, limit } = taken;
        let asked = out.len();
        // SAFETY, for all of the function: entries below `len` are written; the array has `limit`
        // entries, and is ours while the slot is taken; whatever is restored was written.
        if asked <= len {
            // SAFETY: see above.
            unsafe {
                copy_newest_first(base.add(len - asked), out);
                slot.restore(len - asked, limit);
            }
            return Ok(());
        }
        let (hot, cold) = out.split_at_mut(len);
        // SAFETY: see above; `refill` and `backend_get` are asked by the slot's owner.
        let result = unsafe {
            copy_newest_first(base, hot);
            self.refill(slot, &taken, cold).or_else(|_| {
                self.backend_get(cold, &slot.counters, Writers::Owner)
                    .map(|()| 0)
            })
        };
        match result {
            Ok(left) => {
                // SAFETY: the entries below `left` are written.
                unsafe { slot.restore(left, limit) };
                Ok(())
            }
            Err(available) => {
                // A refill that failed half-way may have written into the array: write back what
                // was handed out, the oldest being last in `hot`.
                for (index, obj) in hot.iter().rev().enumerate() {
                    // SAFETY: `hot` has `len` written entries.
                    unsafe { base.add(index).write(obj.assume_init()) };
                }
                slot.counters.failed(Writers::Owner);
                // SAFETY: the cache is as it was.
                unsafe {
                    slot.restore(len, limit);
                    Err(self.exhausted(asked, available + len, len))
                }
            }
        }
    }

    /// Takes half a cache from the backend into the array, and fills `rest` from it: says how many
    /// entries are left. Fails if `rest` is more than that, or the backend has less.
    ///
    /// # Safety
    /// The pool lives, and `taken` is what was taken from `slot` by this thread.
    pub(crate) unsafe fn refill(
        self,
        slot: &Slot,
        taken: &Taken,
        rest: &mut [MaybeUninit<NonNull<u8>>],
    ) -> Result<usize, usize> {
        let half = taken.limit / 2;
        let left = half.checked_sub(rest.len()).ok_or(0_usize)?;
        // SAFETY: the array has room for `half`, and after success so many entries are written.
        unsafe {
            self.backend_get(taken.room(half), &slot.counters, Writers::Owner)?;
            copy_newest_first(taken.base.add(left), rest);
        }
        Ok(left)
    }

    /// # Safety
    /// The pool lives.
    #[cold]
    pub(crate) unsafe fn exhausted(self, asked: usize, available: usize, own: usize) -> Exhausted {
        // SAFETY: as the caller promises.
        let cached = unsafe { self.inner() }.cached();
        Exhausted {
            asked,
            available,
            cached_elsewhere: cached.saturating_sub(own),
        }
    }
}
