//! The units that keep a pool alive, and the waiters among their owners, in one word.
//!
//! There is one unit while there are handles, and one for each object that is not in the backend.
//! A thread that waits for objects is counted in the same word, above the units: whoever gives
//! objects back learns from the very subtraction that releases them whether somebody must be woken,
//! and need not touch the pool any more for that.

use crate::sync::{AtomicU64, Ordering};

/// One waiter. There are fewer objects, by far, than this counts.
const WAITER: u64 = 1 << 40;
const UNITS: u64 = WAITER - 1;

/// The count, and how high it was.
pub(crate) struct Units {
    count: AtomicU64,
    high_water: AtomicU64,
}

/// What a release found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Released {
    /// Others have units, and nobody waits.
    Some,
    /// Somebody waits for objects.
    Awaited,
    /// Those were the last units: the pool is the releaser's to free.
    Last,
}

impl Units {
    /// One unit, the handles'.
    pub(crate) fn one() -> Self {
        Self {
            count: AtomicU64::new(1),
            high_water: AtomicU64::new(0),
        }
    }

    /// Units at this moment; what their releases did is visible to the caller.
    pub(crate) fn get(&self) -> usize {
        (self.count.load(Ordering::Acquire) & UNITS) as usize
    }

    /// Objects out of the backend at this moment, if the handles have their unit.
    pub(crate) fn away(&self) -> usize {
        self.get().saturating_sub(1)
    }

    /// Most objects that were ever out of the backend at a time.
    pub(crate) fn high_water(&self) -> usize {
        self.high_water.load(Ordering::Relaxed) as usize
    }

    /// Adds units for `n` objects that were taken from the backend, and says how many are out.
    /// The caller owns a unit.
    pub(crate) fn add(&self, n: usize) -> usize {
        // Relaxed: the caller's own unit keeps the pool; a count taken later cannot be missed.
        let before = self.count.fetch_add(n as u64, Ordering::Relaxed) & UNITS;
        let away = before - 1 + n as u64;
        if away > self.high_water.load(Ordering::Relaxed) {
            self.high_water.fetch_max(away, Ordering::Relaxed);
        }
        away as usize
    }

    /// Gives up `n > 0` units.
    ///
    /// # Safety
    /// `this` is valid until the subtraction, which the caller's units see to; it may be freed by
    /// another thread right after.
    pub(crate) unsafe fn release(this: *const Self, n: usize) -> Released {
        // SAFETY: as the caller promises. No reference to the whole is held across the subtraction.
        let before = unsafe { (*this).count.fetch_sub(n as u64, Ordering::Release) };
        match before {
            _ if before == n as u64 => Released::Last,
            WAITER.. => Released::Awaited,
            _ => Released::Some,
        }
    }

    /// Counts a waiter in. Whoever released before is seen (acquire); whoever releases later sees
    /// the waiter.
    pub(crate) fn enter(&self) {
        self.count.fetch_add(WAITER, Ordering::AcqRel);
    }

    /// Counts a waiter out.
    pub(crate) fn leave(&self) {
        self.count.fetch_sub(WAITER, Ordering::Release);
    }
}
