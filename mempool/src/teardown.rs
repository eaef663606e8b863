//! How a pool ends: units are given up, and the last one frees everything.

use crate::pool_ref::PoolRef;
use crate::registry;
use crate::sync::Ordering;
use crate::units::{Released, Units};
use crate::{wait, worker};

impl PoolRef {
    /// Gives up `units`; the last unit frees the pool.
    ///
    /// # Safety
    /// The caller owns the units, and does not touch the pool afterwards on their account.
    #[inline]
    pub(crate) unsafe fn release(self, units: usize) {
        if units == 0 {
            return;
        }
        // SAFETY: the units keep the pool alive until they are subtracted; after that it is only
        // touched if they were the last, when nobody else has access.
        unsafe {
            match Units::release(&raw const (*self.0.as_ptr()).units.0, units) {
                Released::Some => {}
                Released::Awaited => wait::wake_all(),
                Released::Last => self.free(),
            }
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
            let units = inner.units.0.get();
            debug_assert_eq!(units, 0);
            inner.checks.unpoison(inner);
            let mut ending = Ending {
                pool: self,
                left: inner.constructed.load(Ordering::Relaxed),
            };
            ending.drop_objects();
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
            inner.gate.close();
            self.flush_at(worker::current());
            self.release(1);
        }
    }
}

/// A pool that nobody has access to any more. If the drop of an object unwinds, the others are
/// dropped nevertheless, and all memory goes back; if a second one does, the process ends.
struct Ending {
    pool: PoolRef,
    left: usize,
}

impl Ending {
    fn drop_objects(&mut self) {
        // SAFETY: the pool is ours alone, and so many objects are constructed; each is dropped once.
        unsafe {
            let inner = self.pool.inner();
            let Some(drop_object) = inner.drop_object else {
                return;
            };
            while self.left > 0 {
                self.left -= 1;
                drop_object(inner.base.add(self.left * inner.stride));
            }
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.drop_objects();
        // SAFETY: made from a box, and ours alone.
        drop(unsafe { Box::from_raw(self.pool.0.as_ptr()) });
    }
}
