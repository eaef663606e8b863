//! The shared part of a pool, and when it goes away.
//!
//! `units` counts one while there are handles, and one for each object that is not in the backend
//! (held by somebody, or cached). It changes once per exchange with the backend, not per object. Who
//! takes the last unit frees everything; nobody touches the pool without owning a unit or borrowing
//! from someone who does.

use crate::alarm::Alarms;
use crate::arena::Arena;
use crate::backend::AnyBackend;
use crate::budget::Budget;
use crate::cache::Slot;
use crate::checked::Checks;
use crate::pool_ref::PoolRef;
use crate::stats::{Counters, PoolStats, WorkerStats};
use crate::suspend::Gate;
use crate::sync::{AtomicUsize, Padded};
use crate::units::Units;
use crate::worker;
use std::any::Any;
use std::ptr::NonNull;

/// What all users of a pool share. The fast paths read the first two fields only.
#[repr(C, align(128))]
pub(crate) struct Inner {
    /// Which slots are in use.
    pub(crate) gate: Gate,
    /// The table of slots, one per worker id.
    pub(crate) slots: NonNull<Slot>,
    /// Bytes of the table of slots.
    pub(crate) slots_end: usize,
    pub(crate) cache_size: usize,
    pub(crate) base: NonNull<u8>,
    pub(crate) stride: usize,
    pub(crate) object_size: usize,
    pub(crate) align: usize,
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
    pub(crate) budget: Option<Budget>,
    pub(crate) alarms: Option<Box<Alarms>>,
    pub(crate) checks: Checks,
    pub(crate) units: Padded<Units>,
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
        self.units
            .0
            .away()
            .saturating_sub(self.cached())
            .min(self.capacity)
    }

    /// What each worker id did that any thread ever had.
    pub(crate) fn worker_stats(&self) -> impl Iterator<Item = WorkerStats> {
        let read = |(id, slot): (usize, &Slot)| slot.counters.read(id, slot.cached(), slot.hits());
        self.used_slots().enumerate().map(read)
    }

    pub(crate) fn stats(&self) -> PoolStats {
        let mut stats = PoolStats {
            capacity: self.capacity,
            // A put is in the backend before its units are released: for a moment both count it.
            high_water: self.units.0.high_water().min(self.capacity),
            ..PoolStats::default()
        };
        // Calls without a cache first.
        stats.add(&self.counters.read(0, 0, 0));
        for worker in self.worker_stats() {
            stats.add(&worker);
        }
        let away = self.units.0.away();
        stats.in_use = away.saturating_sub(stats.cached).min(self.capacity);
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
        if offset < inner.gate.end() {
            // SAFETY: the gate's end is at most the size of the table, and offsets are multiples of
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
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use memoffset::{offset_of, span_of};

    const LINE: usize = 64;

    #[test]
    fn what_fast_paths_read_lies_in_one_line() {
        assert_eq!(align_of::<Inner>() % LINE, 0);
        assert_eq!(offset_of!(Inner, gate), 0);
        assert!(span_of!(Inner, ..slots_end).end <= LINE);
        // What changes with every exchange does not share that line.
        assert!(offset_of!(Inner, units) >= 2 * LINE);
        assert_eq!(offset_of!(Inner, units) % (2 * LINE), 0);
    }

    #[test]
    fn a_slot_is_a_pair_of_lines_of_its_own() {
        assert_eq!(
            (size_of::<Slot>(), align_of::<Slot>()),
            (2 * LINE, 2 * LINE)
        );
    }
}
