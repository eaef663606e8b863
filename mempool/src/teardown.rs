//! How a pool ends: units are given up, and the last one frees everything.

use crate::pool_ref::PoolRef;
use crate::registry;
use crate::sync::Ordering;
use crate::worker;

impl PoolRef {
    /// Gives up `units`; the last unit frees the pool.
    ///
    /// # Safety
    /// The caller owns the units, and does not touch the pool afterwards on their account.
    #[inline]
    pub(crate) unsafe fn release(self, units: usize) {
        let refs = {
            // SAFETY: the units keep the pool alive until they are subtracted. No reference to the
            // whole is held across the subtraction: another thread may free it right after.
            unsafe { &raw const (*self.0.as_ptr()).refs.0 }
        };
        if units == 0 {
            return;
        }
        // SAFETY: as above.
        if unsafe { (*refs).fetch_sub(units, Ordering::Release) } == units {
            // SAFETY: these were the last units: nobody else has access.
            unsafe { self.free() };
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn free(self) {
        registry::remove(self);
        // SAFETY: the caller gave up the last unit, so this is the only access. The acquire load
        // (a load, so that race detectors see it) orders it after all releases.
        unsafe {
            let inner = self.inner();
            let units = inner.refs.0.load(Ordering::Acquire);
            debug_assert_eq!(units, 0);
            if let Some(drop_object) = inner.drop_object {
                for index in (0..inner.constructed.load(Ordering::Relaxed)).rev() {
                    drop_object(inner.base.add(index * inner.stride));
                }
            }
            drop(Box::from_raw(self.0.as_ptr()));
        }
    }

    /// Closes the pool: gives up the unit that the handles shared.
    ///
    /// # Safety
    /// The caller dropped the last handle.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn close(self) {
        // SAFETY: the unit keeps the pool alive until it is released, and nothing is touched then.
        unsafe {
            let inner = self.inner();
            // What users of other handles did happened before what follows.
            inner.handles.load(Ordering::Acquire);
            inner.cached_end.store(0, Ordering::Relaxed);
            self.flush_at(worker::current());
            self.release(1);
        }
    }
}
