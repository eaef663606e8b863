//! A bounded multi-producer multi-consumer ring with reservation.
//!
//! Each side has a *head* (reserved up to here) and a *tail* (done up to here). A thread reserves its
//! range by moving the head with a compare-and-swap, copies, waits until the ranges before its own
//! are done, and moves the tail. Both counters run freely and are as wide as an address: on 64-bit
//! machines they do not wrap, so a stalled thread cannot mistake a later lap for its own.
//!
//! Orderings. A head is read with acquire and moved with acquire and release, so whoever reads a
//! head also sees the opposite tail that its writer saw. The free count `size + tail - head` can then
//! not underflow, whatever the thread did before (a producer that was a consumer, say). It exceeds
//! the size if the head is stale by the time the tail is read, but then the compare-and-swap fails.
//!
//! Why a put always finds room: a pool has C <= size objects. Let a thread hold k of them and read
//! the producers' head H, that is, H objects were put so far. All gets of objects that were put again
//! below H, and those of the k, happened before this read, and number at least H + k - C; the
//! consumers' tail that the thread reads next counts at least these. So `size + tail - head >= k`.

use super::Backend;
use crate::sync::{AtomicUsize, Ordering, Padded, UnsafeCell, spin_hint, yield_now};
use std::collections::TryReserveError;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// How often a waiting thread looks before it lets others run.
const SPINS: u32 = 64;

/// A first-in first-out ring that any number of threads may use. Never locks, but a thread that is
/// stopped between reservation and completion holds up the others of its side.
#[doc(alias = "rte_ring")]
pub struct Ring {
    slots: Box<[UnsafeCell<MaybeUninit<NonNull<u8>>>]>,
    producers: Padded<Side>,
    consumers: Padded<Side>,
}

struct Side {
    head: AtomicUsize,
    tail: AtomicUsize,
}

// SAFETY: slots are only accessed by whoever reserved them; the pointers in them are only carried.
unsafe impl Send for Ring {}
// SAFETY: as above: reservations are disjoint, and tails pass slots on with release and acquire.
unsafe impl Sync for Ring {}

impl Ring {
    /// An empty ring with room for at least `room` objects: the next power of two.
    ///
    /// # Panics
    /// If that power of two does not fit into the address space.
    pub fn new(room: usize) -> Self {
        let size = room.checked_next_power_of_two();
        let size = size.expect("a ring of so many slots exceeds the address space");
        Self::over(Vec::with_capacity(size), size)
    }

    /// As [`new`](Self::new), but lack of memory is an error.
    pub(crate) fn try_new(room: usize) -> Result<Self, TryReserveError> {
        let size = room.next_power_of_two();
        let mut slots = Vec::new();
        slots.try_reserve_exact(size)?;
        Ok(Self::over(slots, size))
    }

    fn over(mut slots: Vec<Slot>, size: usize) -> Self {
        slots.extend((0..size).map(|_| UnsafeCell::new(MaybeUninit::uninit())));
        let side = || {
            Padded(Side {
                head: AtomicUsize::new(0),
                tail: AtomicUsize::new(0),
            })
        };
        Self {
            slots: slots.into_boxed_slice(),
            producers: side(),
            consumers: side(),
        }
    }

    /// The slots of positions `at..at + n`, in two pieces.
    fn range(&self, at: usize, n: usize) -> (&[Slot], &[Slot]) {
        let start = at & (self.slots.len() - 1);
        let first = n.min(self.slots.len() - start);
        (&self.slots[start..start + first], &self.slots[..n - first])
    }
}

type Slot = UnsafeCell<MaybeUninit<NonNull<u8>>>;

impl Side {
    /// Reserves `n` positions when `enough(head)` says that they are there.
    ///
    /// `enough` returns how many there are, having read the other side's tail *after* our head.
    fn reserve(&self, n: usize, there: impl Fn(usize) -> usize) -> Result<usize, usize> {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let count = there(head);
            if count < n {
                return Err(count);
            }
            match self.head.compare_exchange_weak(
                head,
                head.wrapping_add(n),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Ok(head),
                Err(now) => head = now,
            }
        }
    }

    /// Publishes the reservation `at..at + n` once all before it are.
    fn complete(&self, at: usize, n: usize) {
        let mut spins = 0;
        // Acquire: the release below then also passes on what the earlier ones did.
        while self.tail.load(Ordering::Acquire) != at {
            if spins < SPINS {
                spins += 1;
                spin_hint();
            } else {
                yield_now();
            }
        }
        self.tail.store(at.wrapping_add(n), Ordering::Release);
    }
}

// SAFETY: a slot is written by the one producer that reserved its position and read by the one
// consumer that did, after the producers' tail passed it. Nothing between reservation and
// completion can unwind.
unsafe impl Backend for Ring {
    /// # Panics
    /// If there is no room: somebody put what they did not get.
    fn put_bulk(&self, objs: &[NonNull<u8>]) {
        let size = self.slots.len();
        // Wrapping: a head that is stale may be behind the tail.
        let room = |head: usize| {
            let tail = self.consumers.0.tail.load(Ordering::Acquire);
            size.wrapping_add(tail).wrapping_sub(head)
        };
        let Ok(at) = self.producers.0.reserve(objs.len(), room) else {
            overfull(size, objs.len());
        };
        let (first, second) = self.range(at, objs.len());
        let (early, late) = objs.split_at(first.len());
        for (slots, objs) in [(first, early), (second, late)] {
            for (slot, &obj) in slots.iter().zip(objs) {
                slot.with_mut(|slot| {
                    // SAFETY: reserved by us, and no consumer reads it before our tail store.
                    unsafe { (*slot).write(obj) };
                });
            }
        }
        self.producers.0.complete(at, objs.len());
    }

    fn get_bulk(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), usize> {
        let filled = |head: usize| {
            self.producers
                .0
                .tail
                .load(Ordering::Acquire)
                .wrapping_sub(head)
        };
        let at = self.consumers.0.reserve(out.len(), filled)?;
        let (first, second) = self.range(at, out.len());
        let n = out.len();
        let (early, late) = out.split_at_mut(first.len());
        for (slots, out) in [(first, early), (second, late)] {
            for (slot, out) in slots.iter().zip(out) {
                // SAFETY: reserved by us, written before the producers' tail passed it, and not
                // written again before our tail store.
                *out = slot.with(|slot| unsafe { *slot });
            }
        }
        self.consumers.0.complete(at, n);
        Ok(())
    }

    fn len(&self) -> usize {
        // The consumers' tail first: the producers' is at least as far by then.
        let taken = self.consumers.0.tail.load(Ordering::Acquire);
        let put = self.producers.0.tail.load(Ordering::Acquire);
        put.wrapping_sub(taken).min(self.slots.len())
    }

    fn room(&self) -> usize {
        self.slots.len()
    }
}

/// A put without room. Only a caller that broke the contract of an `unsafe` put gets here.
#[cold]
#[inline(never)]
pub(super) fn overfull(room: usize, n: usize) -> ! {
    panic!(
        "{n} more objects put than fit into a pool's backend of {room}: a double put, or objects of \
         another pool; debug assertions, or mempool's feature `checked`, show where"
    )
}
