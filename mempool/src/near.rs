//! This thread's cache of a pool, found once and remembered for a few puts.

use crate::cache::Slot;
use crate::checked::CHECKED;
use crate::pool_ref::PoolRef;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Where this thread's cache of a pool is, so that puts by turns to several pools need not look it
/// up each time. Unlike a [`PutCursor`](crate::PutCursor) it takes nothing: it need not be closed,
/// and other calls go on as ever.
#[derive(Clone, Copy)]
pub struct NearCache {
    slot: NonNull<Slot>,
    #[cfg(any(debug_assertions, feature = "checked", asan))]
    pool: PoolRef,
    /// The cache is this thread's.
    not_send: PhantomData<*mut ()>,
}

impl PoolRef {
    /// Finds this thread's cache; `None` when it has none here, or not yet.
    ///
    /// # Safety
    /// The pool lives during the call.
    #[inline(always)]
    pub unsafe fn near_cache(self) -> Option<NearCache> {
        // SAFETY: the pool lives.
        unsafe { self.own_slot() }.map(|slot| NearCache {
            slot: NonNull::from(slot),
            #[cfg(any(debug_assertions, feature = "checked", asan))]
            pool: self,
            not_send: PhantomData,
        })
    }

    /// Puts one object back if this thread's cache has room for it; no call is made either way.
    ///
    /// # Safety
    /// As for [`put`](Self::put); the object is given up if the answer is true.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn try_put(self, obj: NonNull<u8>) -> bool {
        // SAFETY: the object keeps the pool alive; the slot is ours.
        unsafe {
            let Some(slot) = self.own_slot() else {
                return false;
            };
            if CHECKED && slot.has_room() {
                self.on_put(&[obj]);
            }
            slot.push(obj)
        }
    }
}

impl NearCache {
    /// Puts one object back if there is room for it.
    ///
    /// # Safety
    /// `obj` is an object of the pool whose cache this is, which the caller owns and gives up if
    /// the answer is true; it need not have been out when the cache was found. No thread-local of
    /// the thread was dropped since then (that is, this is not kept in one).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn try_push(self, obj: NonNull<u8>) -> bool {
        // SAFETY: the object, which is out, keeps the pool and its slots alive; the slot is this
        // thread's as long as it keeps its worker id, which goes with one of its thread-locals.
        unsafe {
            #[cfg(any(debug_assertions, feature = "checked", asan))]
            if self.slot.as_ref().has_room() {
                self.pool.on_put(&[obj]);
            }
            self.slot.as_ref().push(obj)
        }
    }
}
