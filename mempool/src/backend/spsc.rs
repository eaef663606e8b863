//! A ring for one taker and one giver at a time: loads and stores only.
//!
//! Each side counts what it *did* (put, or got) in a counter that only it writes, on its own lines,
//! beside its latest view of the other side's counter. As long as that view says that there is
//! enough, a call reads nothing that the other side writes; when it does not, the view is renewed
//! by one acquire load. Counters run freely; a counter modulo the size is a slot.
//!
//! Orderings. A side moves its counter with release after it is done with the slots, and reads the
//! other's with acquire before it touches them: the slots that the giver filled are visible to
//! the taker, and those that the taker emptied are left by it before the giver writes them again.
//! Threads that follow each other on one side see each other's state because whoever made the ring
//! promised so.

use super::Backend;
use super::ring::overfull;
use crate::sync::{AtomicU32, AtomicUsize, Ordering, Padded, UnsafeCell, read_cells, write_cells};
use std::collections::TryReserveError;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// A first-in first-out ring that one thread at a time gives to, and one at a time takes from: a
/// bulk call is at most two copies and one store. A pool gets one by
/// [`Builder::spsc_backend`](crate::Builder::spsc_backend).
///
/// Builds with debug assertions panic when a second thread is on a side at the same time, before
/// it did anything; other builds do not look.
///
/// ```
/// use mempool::backend::{Backend, SpscRing};
/// use std::ptr::NonNull;
///
/// // SAFETY: used by this thread alone.
/// let ring = unsafe { SpscRing::new(4) };
/// let objects = [NonNull::from(&1u8), NonNull::from(&2)];
/// ring.put_bulk(&objects);
/// assert_eq!(ring.try_put_bulk(&[objects[0]; 3]), Err(2));
/// assert_eq!(ring.len(), 2);
/// ```
#[doc(alias = "rte_ring")]
#[doc(alias = "RING_F_SP_ENQ")]
#[doc(alias = "RING_F_SC_DEQ")]
pub struct SpscRing {
    slots: Box<[Slot]>,
    giver: Padded<Side>,
    taker: Padded<Side>,
}

type Slot = UnsafeCell<MaybeUninit<NonNull<u8>>>;

/// What one side writes; the other reads `done` only.
struct Side {
    /// Objects put (by the giver) or got (by the taker) so far.
    done: AtomicUsize,
    /// The other side's `done`, as last seen.
    seen: UnsafeCell<usize>,
    /// 1 while a thread is here. Only with debug assertions.
    busy: AtomicU32,
}

/// A thread's stay on a side.
struct Stay<'a>(&'a Side);

// SAFETY: the pointers in it are only carried; whose they are is the pool's business.
unsafe impl Send for SpscRing {}
// SAFETY: `seen` and the slots between the counters belong to one side, and whoever made the ring
// promised that each side has one user at a time, one after the other; see the head of the file.
unsafe impl Sync for SpscRing {}

impl Side {
    fn new(done: usize) -> Self {
        Self {
            done: AtomicUsize::new(done),
            seen: UnsafeCell::new(done),
            busy: AtomicU32::new(0),
        }
    }

    /// Relaxed: it shall see overlaps, not hide a missing order from race detectors.
    #[inline(always)]
    fn enter(&self) -> Stay<'_> {
        if cfg!(debug_assertions) && self.busy.swap(1, Ordering::Relaxed) != 0 {
            not_alone();
        }
        Stay(self)
    }
}

impl Drop for Stay<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            self.0.busy.store(0, Ordering::Relaxed);
        }
    }
}

impl Stay<'_> {
    /// This side's counter and how many objects (or free slots) there are, `n` if so many are to be
    /// had: `count` says it from this counter and the other's.
    #[inline(always)]
    fn look(
        &self,
        other: &Side,
        n: usize,
        count: impl Fn(usize, usize) -> usize,
    ) -> (usize, usize) {
        let done = self.0.done.load(Ordering::Relaxed);
        // SAFETY: this side's own, and we are alone here, as was promised.
        let there = count(done, self.0.seen.with(|seen| unsafe { *seen }));
        if n <= there {
            return (done, there);
        }
        let now = other.done.load(Ordering::Acquire);
        // SAFETY: as above.
        self.0.seen.with_mut(|seen| unsafe { *seen = now });
        (done, count(done, now))
    }

    /// Says that `n` more are done.
    #[inline(always)]
    fn advance(&self, done: usize, n: usize) {
        self.0.done.store(done.wrapping_add(n), Ordering::Release);
    }
}

impl SpscRing {
    /// An empty ring with room for at least `room` objects: the next power of two.
    ///
    /// # Panics
    /// If that power of two does not fit into the address space.
    ///
    /// # Safety
    /// At any one time at most one thread puts into the ring and at most one gets from it, and of two
    /// threads that put (or that get) one after the other, what the first did happens before what
    /// the second does. [`len`](Backend::len) and [`room`](Backend::room) are for everybody.
    pub unsafe fn new(room: usize) -> Self {
        let size = room.checked_next_power_of_two();
        let size = size.expect("a ring of so many slots exceeds the address space");
        Self::over(Vec::with_capacity(size), size, 0)
    }

    /// As [`new`](Self::new), but lack of memory is an error.
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    pub(crate) unsafe fn try_new(room: usize) -> Result<Self, TryReserveError> {
        let size = room.next_power_of_two();
        let mut slots = Vec::new();
        slots.try_reserve_exact(size)?;
        Ok(Self::over(slots, size, 0))
    }

    /// `done` is where the counters start.
    fn over(mut slots: Vec<Slot>, size: usize, done: usize) -> Self {
        slots.extend((0..size).map(|_| UnsafeCell::new(MaybeUninit::uninit())));
        Self {
            slots: slots.into_boxed_slice(),
            giver: Padded(Side::new(done)),
            taker: Padded(Side::new(done)),
        }
    }

    /// The slots of positions `at..at + n`, in two pieces.
    fn range(&self, at: usize, n: usize) -> (&[Slot], &[Slot]) {
        let start = at & (self.slots.len() - 1);
        let first = n.min(self.slots.len() - start);
        (&self.slots[start..start + first], &self.slots[..n - first])
    }

    /// Takes in `objs`, or none of them.
    ///
    /// # Errors
    /// The number of free slots, when it is less than `objs.len()`. Nothing changed then.
    ///
    /// # Panics
    /// With debug assertions, if another thread is putting.
    #[doc(alias = "rte_ring_sp_enqueue_bulk")]
    #[inline]
    pub fn try_put_bulk(&self, objs: &[NonNull<u8>]) -> Result<(), usize> {
        let size = self.slots.len();
        let n = objs.len();
        let giver = self.giver.0.enter();
        let free = |put: usize, got: usize| size - put.wrapping_sub(got);
        let (at, there) = giver.look(&self.taker.0, n, free);
        if n > there {
            return Err(there);
        }
        let (first, second) = self.range(at, n);
        let (early, late) = objs.split_at(first.len());
        // SAFETY: free slots are the giver's until it moves its counter, and we are the giver.
        unsafe {
            write_cells(first, early);
            write_cells(second, late);
        }
        giver.advance(at, n);
        Ok(())
    }
}

// SAFETY: a slot is written by the giver while it is free and read by the taker while it is filled,
// once each time around; release and acquire of the counters pass it on in both directions. Nothing
// between look and advance can unwind.
unsafe impl Backend for SpscRing {
    /// # Panics
    /// If there is no room: somebody put what they did not get. With debug assertions, also if
    /// another thread is putting.
    #[inline]
    fn put_bulk(&self, objs: &[NonNull<u8>]) {
        if self.try_put_bulk(objs).is_err() {
            overfull(self.slots.len(), objs.len());
        }
    }

    /// # Panics
    /// With debug assertions, if another thread is getting.
    #[doc(alias = "rte_ring_sc_dequeue_bulk")]
    #[inline]
    fn get_bulk(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), usize> {
        let n = out.len();
        let taker = self.taker.0.enter();
        let filled = |got: usize, put: usize| put.wrapping_sub(got);
        let (at, there) = taker.look(&self.giver.0, n, filled);
        if n > there {
            return Err(there);
        }
        let (first, second) = self.range(at, n);
        let (early, late) = out.split_at_mut(first.len());
        // SAFETY: filled slots are the taker's until it moves its counter, and we are the taker.
        unsafe {
            read_cells(first, early);
            read_cells(second, late);
        }
        taker.advance(at, n);
        Ok(())
    }

    fn len(&self) -> usize {
        // The taker's first: the giver's is at least as far by then.
        let got = self.taker.0.done.load(Ordering::Acquire);
        let put = self.giver.0.done.load(Ordering::Acquire);
        put.wrapping_sub(got).min(self.slots.len())
    }

    fn room(&self) -> usize {
        self.slots.len()
    }
}

/// Two threads on one side: whoever made the ring broke the promise.
#[cold]
#[inline(never)]
fn not_alone() -> ! {
    panic!("two threads at once on one side of a single-producer single-consumer ring")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn objects<const N: usize>(bytes: &[u8; N]) -> [NonNull<u8>; N] {
        bytes.each_ref().map(NonNull::from)
    }

    #[test]
    fn counters_may_wrap() {
        let ring = SpscRing::over(Vec::new(), 4, usize::MAX - 4);
        let bytes = [0; 3];
        let objs = objects(&bytes);
        for _ in 0..5 {
            ring.put_bulk(&objs);
            assert_eq!((ring.len(), ring.try_put_bulk(&objs)), (3, Err(1)));
            let mut out = [MaybeUninit::uninit(); 3];
            assert_eq!(ring.get_bulk(&mut out), Ok(()));
            // SAFETY: written after success.
            assert_eq!(out.map(|obj| unsafe { obj.assume_init() }), objs);
            assert_eq!(ring.get_bulk(&mut out), Err(0));
        }
    }

    #[test]
    #[cfg(debug_assertions)]
    fn a_second_thread_on_a_side_is_told_before_it_does_anything() {
        let ring = SpscRing::over(Vec::new(), 4, 0);
        let objs = [NonNull::from(&1)];
        ring.put_bulk(&objs);
        let get = || ring.get_bulk(&mut [MaybeUninit::uninit()]);
        let giving = ring.giver.0.enter();
        assert!(catch_unwind(AssertUnwindSafe(|| ring.put_bulk(&objs))).is_err());
        assert_eq!(ring.len(), 1);
        assert_eq!(get(), Ok(()), "the other side goes on");
        drop(giving);
        ring.put_bulk(&objs);
        let taking = ring.taker.0.enter();
        assert!(catch_unwind(AssertUnwindSafe(get)).is_err());
        drop(taking);
        assert_eq!((ring.len(), get()), (1, Ok(())));
    }

    #[test]
    fn sides_are_on_lines_of_their_own() {
        let ring = SpscRing::over(Vec::new(), 4, 0);
        let [giver, taker] = [&ring.giver, &ring.taker].map(|side| (&raw const *side).addr());
        assert!(giver.abs_diff(taker) >= 128 && giver % 128 == 0 && taker % 128 == 0);
    }
}
