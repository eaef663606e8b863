//! Taking objects: the cache first, then the backend, half a cache at a time.
//!
//! After DPDK's cache algorithm of release 26.07: what the cache has is handed out first, the newest
//! of it if that is enough (in the order in which they were put, where DPDK reverses it); the rest comes with a refill of half a cache when it is at most that, and straight from the
//! backend otherwise. A request that fails leaves the cache as it was.

use crate::budget::Budget;
use crate::cache::{Slot, Taken, copy_out};
use crate::error::Exhausted;
use crate::pool_ref::PoolRef;
use crate::stats::{Counters, Writers};
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
        // SAFETY: as the caller promises.
        unsafe {
            let result = self.try_get_bulk(out);
            self.got(out, result, self.own_counters())
        }
    }

    /// As [`get_bulk_slow`](Self::get_bulk_slow), and nobody is told how it went.
    ///
    /// # Safety
    /// The pool lives during the call.
    pub(crate) unsafe fn try_get_bulk(
        self,
        out: &mut [MaybeUninit<NonNull<u8>>],
    ) -> Result<(), Exhausted> {
        if out.is_empty() {
            return Ok(());
        }
        worker::current_or_register();
        // SAFETY: the pool lives; the slot is ours.
        let own = unsafe {
            if self.inner().gate.is_suspended() {
                self.give_back_cache();
            }
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
                        .map_err(|available| self.exhausted(out.len(), available, 0))
                }
            }
        }
    }

    /// What follows from how a get went: a count in `counters`, a recall of other threads' caches if
    /// they would have been enough, callbacks.
    ///
    /// # Safety
    /// The pool lives during the call, and `result` is about objects in `out`.
    pub(crate) unsafe fn got(
        self,
        out: &[MaybeUninit<NonNull<u8>>],
        result: Result<(), Exhausted>,
        (counters, writers): (&Counters, Writers),
    ) -> Result<(), Exhausted> {
        // SAFETY: as the caller promises.
        let inner = unsafe { self.inner() };
        match &result {
            Ok(()) => {
                if inner.gate.is_suspended() {
                    inner.gate.served(out.len());
                }
                if let Some(alarms) = &inner.alarms {
                    let unwinding = GiveBack(self, out);
                    alarms.after_get(inner, out.len());
                    std::mem::forget(unwinding);
                }
            }
            Err(exhausted) => {
                counters.failed(writers);
                if exhausted.over_budget {
                    inner.budget.iter().for_each(Budget::count_refused);
                }
                let within_reach = exhausted.available + exhausted.cached_elsewhere;
                if exhausted.cached_elsewhere > 0 && within_reach >= exhausted.asked {
                    inner.gate.recall(exhausted.asked);
                }
                if let Some(alarms) = &inner.alarms {
                    alarms.after_failure(exhausted);
                }
            }
        }
        result
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
        slot.counters.missed(Writers::Owner);
        // SAFETY, for all of the function: entries below `len` are written; the array has `limit`
        // entries, and is ours while the slot is taken; whatever is restored was written.
        if asked <= len {
            // SAFETY: see above.
            unsafe {
                copy_out(base.add(len - asked), out);
                slot.restore(len - asked, limit);
            }
            return Ok(());
        }
        let (hot, cold) = out.split_at_mut(len);
        // SAFETY: see above; `refill` and `backend_get` are asked by the slot's owner.
        let result = unsafe {
            copy_out(base, hot);
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
                // was handed out.
                for (index, obj) in hot.iter().enumerate() {
                    // SAFETY: `hot` has `len` written entries.
                    unsafe { base.add(index).write(obj.assume_init()) };
                }
                // SAFETY: the cache is as it was.
                unsafe {
                    slot.restore(len, limit);
                    Err(self.exhausted(asked, available + len, len))
                }
            }
        }
    }

    /// Takes half a cache from the backend into the array, and fills `rest` from it: says how many
    /// entries are left. Fails if none would be, or the backend has less.
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
        // Where nothing would be left in it, the way through the cache is one copy too many.
        let Some(left @ 1..) = half.checked_sub(rest.len()) else {
            return Err(0);
        };
        // SAFETY: the array has room for `half`, and after success so many entries are written.
        unsafe {
            self.backend_get(taken.room(half), &slot.counters, Writers::Owner)?;
            copy_out(taken.base.add(left), rest);
        }
        Ok(left)
    }

    /// # Safety
    /// The pool lives.
    #[cold]
    pub(crate) unsafe fn exhausted(self, asked: usize, available: usize, own: usize) -> Exhausted {
        // SAFETY: as the caller promises.
        let inner = unsafe { self.inner() };
        Exhausted {
            asked,
            available,
            cached_elsewhere: inner.cached().saturating_sub(own),
            over_budget: inner.allowance() < asked - own.min(asked),
        }
    }
}

/// Objects that a callback which unwinds would otherwise lose.
struct GiveBack<'a>(PoolRef, &'a [MaybeUninit<NonNull<u8>>]);

impl Drop for GiveBack<'_> {
    fn drop(&mut self) {
        // SAFETY: all were written by the get that succeeded, and nobody has seen them.
        unsafe {
            self.0
                .backend_put(&*(&raw const *self.1 as *const [NonNull<u8>]))
        };
    }
}
