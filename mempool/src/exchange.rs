//! Exchanges with the backend: whatever a cache, or a thread without one, takes and gives.

use crate::budget::Budget;
use crate::inner::Inner;
use crate::pool_ref::PoolRef;
use crate::stats::{Counters, Writers};
use crate::worker;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

impl PoolRef {
    /// Gives what the slot at `offset` caches to the backend. The pool may be freed by that.
    ///
    /// # Safety
    /// The pool lives until the objects are in the backend, and this thread owns the slot.
    pub(crate) unsafe fn flush_at(self, offset: usize) {
        // SAFETY: the pool lives; the slot is ours.
        let Some((slot, taken)) = (unsafe {
            self.slot_at(offset)
                .and_then(|slot| slot.take().map(|taken| (slot, taken)))
        }) else {
            return;
        };
        // SAFETY: the entries are written, and nobody else uses the array of a taken slot. The slot
        // is restored before the units are released, after which nothing is touched any more.
        unsafe {
            if taken.len > 0 {
                self.give(taken.slice(0, taken.len), &slot.counters, Writers::Owner);
            }
            slot.restore(0, taken.limit);
            self.release(taken.len);
        }
    }

    /// Where this thread counts: in its slot, without a locked instruction, if it has an id.
    ///
    /// # Safety
    /// The pool lives.
    pub(crate) unsafe fn own_counters<'a>(self) -> (&'a Counters, Writers) {
        // SAFETY: as the caller promises.
        match unsafe { self.slot_at(worker::current()) } {
            Some(slot) => (&slot.counters, Writers::Owner),
            // SAFETY: as the caller promises.
            None => (unsafe { &self.inner().counters }, Writers::Many),
        }
    }

    /// Takes from the backend, within the budget.
    ///
    /// # Safety
    /// The pool lives during the call.
    pub(crate) unsafe fn backend_get(
        self,
        out: &mut [MaybeUninit<NonNull<u8>>],
        counters: &Counters,
        writers: Writers,
    ) -> Result<(), usize> {
        // SAFETY: as the caller promises.
        let inner = unsafe { self.inner() };
        let charged = inner.charge(out.len())?;
        inner.backend.get_bulk(out)?;
        std::mem::forget(charged);
        inner.units.0.add(out.len());
        counters.got(out.len(), writers);
        Ok(())
    }

    /// Gives to the backend; the units are still to be released.
    ///
    /// # Safety
    /// `objs` are objects of this pool that the caller owns and gives up, but for their units, which
    /// keep the pool alive.
    pub(crate) unsafe fn give(self, objs: &[NonNull<u8>], counters: &Counters, writers: Writers) {
        // SAFETY: as the caller promises.
        let inner = unsafe { self.inner() };
        inner.backend.put_bulk(objs);
        inner.credit(objs.len());
        counters.put(objs.len(), writers);
    }

    /// Gives to the backend, without a cache. The pool may be freed by that.
    ///
    /// # Safety
    /// `objs` are objects of this pool that the caller owns and gives up.
    pub(crate) unsafe fn backend_put(self, objs: &[NonNull<u8>]) {
        // SAFETY: the objects keep the pool alive until they are released.
        unsafe {
            let (counters, writers) = self.own_counters();
            self.give(objs, counters, writers);
            self.release(objs.len());
        }
    }
}

impl Inner {
    /// Charges the budget, if there is one, for `n` objects; or says how many could be had.
    ///
    /// Nothing is charged for what is not there, as a charge that is taken back wakes all waiters.
    #[inline]
    fn charge(&self, n: usize) -> Result<Option<Charged<'_>>, usize> {
        let Some(budget) = &self.budget else {
            return Ok(None);
        };
        let there = self.backend.len();
        let bytes = self.bytes_of(n);
        if there < n || !budget.charge(bytes) {
            return Err(there.min(self.allowance()));
        }
        Ok(Some(Charged(budget, bytes)))
    }

    #[inline]
    fn credit(&self, n: usize) {
        if let Some(budget) = &self.budget {
            budget.credit(self.bytes_of(n));
        }
    }

    fn bytes_of(&self, n: usize) -> u64 {
        (n as u64).saturating_mul(self.stride as u64)
    }

    /// Objects that the budget leaves to this pool.
    pub(crate) fn allowance(&self) -> usize {
        let Some(budget) = &self.budget else {
            return usize::MAX;
        };
        (budget.left() / self.stride as u64) as usize
    }
}

/// A charge that is taken back if the get fails, or unwinds.
struct Charged<'a>(&'a Budget, u64);

impl Drop for Charged<'_> {
    fn drop(&mut self) {
        self.0.credit(self.1);
    }
}
