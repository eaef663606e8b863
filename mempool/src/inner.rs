//! The shared part of a pool, and when it goes away.
//!
//! `refs` counts one unit while there are handles, and one for each object that is not in the backend
//! (held by somebody, or cached). It changes once per exchange with the backend, not per object. Who
//! takes the last unit frees everything; nobody touches the pool without owning a unit or borrowing
//! from someone who does.

use crate::arena::Arena;
use crate::backend::AnyBackend;
use crate::cache::Slot;
use crate::pool::PoolRef;
use crate::registry;
use crate::stats::{Counters, PoolStats, Writers};
use crate::sync::{AtomicUsize, Ordering, Padded};
use crate::worker;
use std::any::Any;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// What all users of a pool share. The fast paths read the first two fields only.
#[repr(C, align(128))]
pub(crate) struct Inner {
    /// Bytes of the table of slots that are in use: 0 without caches, and when the pool is closed.
    pub(crate) cached_end: AtomicUsize,
    /// The table of slots, one per worker id.
    pub(crate) slots: NonNull<Slot>,
    /// Bytes of the table of slots.
    pub(crate) slots_end: usize,
    pub(crate) cache_size: usize,
    pub(crate) base: NonNull<u8>,
    pub(crate) stride: usize,
    pub(crate) object_size: usize,
    pub(crate) capacity: usize,
    pub(crate) backend: AnyBackend,
    /// Calls of threads without an id.
    pub(crate) counters: Counters,
    pub(crate) name: Box<str>,
    pub(crate) private: Option<Box<dyn Any + Send + Sync>>,
    pub(crate) arena: Arena,
    /// What the slots' arrays lie in; only kept for its drop.
    pub(crate) _arrays: Option<Arena>,
    /// Run on each constructed object before the arena goes.
    pub(crate) drop_object: Option<unsafe fn(NonNull<u8>)>,
    pub(crate) constructed: AtomicUsize,
    pub(crate) refs: Padded<AtomicUsize>,
    pub(crate) handles: AtomicUsize,
}

impl Drop for Inner {
    fn drop(&mut self) {
        let count = self.slots_end / size_of::<Slot>();
        // SAFETY: made from a boxed slice of so many slots when the pool was built.
        drop(unsafe {
            Box::from_raw(std::ptr::slice_from_raw_parts_mut(
                self.slots.as_ptr(),
                count,
            ))
        });
    }
}

impl Inner {
    /// Objects that are not in the backend: held or cached. The caller owns a handle's unit.
    fn away(&self) -> usize {
        self.refs.0.load(Ordering::Acquire).saturating_sub(1)
    }

    /// Slots that any thread may have used.
    fn used_slots(&self) -> impl Iterator<Item = &Slot> {
        let count = self.slots_end.min(worker::offsets_end()) / size_of::<Slot>();
        // SAFETY: the table has `slots_end` bytes; slots are only changed through atomics.
        (0..count).map(|index| unsafe { self.slots.add(index).as_ref() })
    }

    /// Objects in caches.
    pub(crate) fn cached(&self) -> usize {
        self.used_slots().map(Slot::cached).sum()
    }

    /// Objects that somebody holds.
    pub(crate) fn in_use(&self) -> usize {
        self.away().saturating_sub(self.cached()).min(self.capacity)
    }

    pub(crate) fn stats(&self) -> PoolStats {
        let cached = self.cached();
        let mut stats = PoolStats {
            capacity: self.capacity,
            in_use: self.away().saturating_sub(cached).min(self.capacity),
            cached,
            ..PoolStats::default()
        };
        self.counters.add_to(&mut stats);
        for slot in self.used_slots() {
            slot.counters.add_to(&mut stats);
        }
        stats
    }
}

impl PoolRef {
    /// The shared part.
    ///
    /// # Safety
    /// The pool lives for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn inner<'a>(self) -> &'a Inner {
        // SAFETY: as the caller promises. All that changes in it is atomic.
        unsafe { self.0.as_ref() }
    }

    /// This thread's slot, if it has one and the pool is open.
    ///
    /// # Safety
    /// The pool lives.
    #[inline(always)]
    pub(crate) unsafe fn own_slot<'a>(self) -> Option<&'a Slot> {
        // SAFETY: as the caller promises.
        let inner = unsafe { self.inner() };
        let offset = worker::current();
        if offset < inner.cached_end.load(Ordering::Relaxed) {
            // SAFETY: `cached_end` is at most the size of the table, and offsets are multiples of
            // a slot's size.
            Some(unsafe { inner.slots.byte_add(offset).as_ref() })
        } else {
            None
        }
    }

    /// The slot at `offset`, open pool or not.
    ///
    /// # Safety
    /// The pool lives.
    pub(crate) unsafe fn slot_at<'a>(self, offset: usize) -> Option<&'a Slot> {
        // SAFETY: as the caller promises.
        let inner = unsafe { self.inner() };
        // SAFETY: within the table; see `own_slot`.
        (offset < inner.slots_end).then(|| unsafe { inner.slots.byte_add(offset).as_ref() })
    }

    /// Objects cached in the slot at `offset`.
    ///
    /// # Safety
    /// The pool lives.
    pub(crate) unsafe fn cached_at(self, offset: usize) -> usize {
        // SAFETY: as the caller promises.
        unsafe { self.slot_at(offset) }.map_or(0, Slot::cached)
    }

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
            self.inner().backend.put_bulk(objs);
            self.release(objs.len());
        }
    }

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
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use memoffset::{offset_of, span_of};

    const LINE: usize = 64;

    #[test]
    fn what_fast_paths_read_lies_in_one_line() {
        assert_eq!(align_of::<Inner>() % LINE, 0);
        assert_eq!(offset_of!(Inner, cached_end), 0);
        assert!(span_of!(Inner, ..slots_end).end <= LINE);
        // What changes with every exchange does not share that line.
        assert!(offset_of!(Inner, refs) >= 2 * LINE);
        assert_eq!(offset_of!(Inner, refs) % (2 * LINE), 0);
    }

    #[test]
    fn a_slot_is_a_pair_of_lines_of_its_own() {
        assert_eq!(
            (size_of::<Slot>(), align_of::<Slot>()),
            (2 * LINE, 2 * LINE)
        );
    }
}
