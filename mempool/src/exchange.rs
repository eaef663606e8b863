//! Exchanges with the backend: whatever a cache, or a thread without one, takes and gives.

use crate::pool_ref::PoolRef;
use crate::stats::{Counters, Writers};
use crate::sync::Ordering;
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
                self.inner().backend.put_bulk(taken.slice(0, taken.len));
                slot.counters.put(taken.len, Writers::Owner);
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

    /// Takes from the backend.
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
        inner.backend.get_bulk(out)?;
        // Relaxed: the caller's own unit keeps the pool; a count taken later cannot be missed.
        inner.refs.0.fetch_add(out.len(), Ordering::Relaxed);
        counters.got(out.len(), writers);
        Ok(())
    }

    /// Gives to the backend, without a cache. The pool may be freed by that.
    ///
    /// # Safety
    /// `objs` are objects of this pool that the caller owns and gives up.
    pub(crate) unsafe fn backend_put(self, objs: &[NonNull<u8>]) {
        // SAFETY: the objects keep the pool alive until they are released.
        unsafe {
            let (counters, writers) = self.own_counters();
            counters.put(objs.len(), writers);
            self.backend_put_counted(objs);
        }
    }

    /// As [`backend_put`](Self::backend_put), which the caller counted.
    ///
    /// # Safety
    /// As for [`backend_put`](Self::backend_put).
    pub(crate) unsafe fn backend_put_counted(self, objs: &[NonNull<u8>]) {
        // SAFETY: the objects keep the pool alive until they are released.
        unsafe {
            self.inner().backend.put_bulk(objs);
            self.release(objs.len());
        }
    }
}
