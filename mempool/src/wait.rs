//! Waiting for objects: a get with a deadline.
//!
//! All waiters of a process sleep in one place, under one lock, whatever pool they wait for: so who
//! wakes them need not touch a pool that may be gone. While a pool has waiters its caches are out
//! of use, so that what is put goes to the backend and wakes them; but not what goes into a cache that
//! was open, or found, before (a cursor, a near cache), or into a caller's own.
//!
//! No wake is lost. A waiter counts itself in (see [`Units`](crate::units::Units)), then reads the
//! number of wakes, then looks into the backend, and sleeps only if that number is the same. A put
//! whose release came before the waiter was counted is in the backend when the waiter looks. One
//! that came after raises the number, either before the waiter read it (then what was put is seen)
//! or after (then it does not sleep, or is woken).

use crate::error::Exhausted;
use crate::inner::Inner;
use crate::pool_ref::PoolRef;
use crate::sync::{Condvar, Mutex};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::time::Instant;

struct Place {
    wakes: Mutex<u64>,
    changed: Condvar,
}

#[cfg(not(loom))]
fn place() -> &'static Place {
    static PLACE: Place = Place {
        wakes: Mutex::new(0),
        changed: Condvar::new(),
    };
    &PLACE
}
#[cfg(loom)]
fn place() -> &'static Place {
    loom::lazy_static! {
        static ref PLACE: Place = Place {
            wakes: Mutex::new(0),
            changed: Condvar::new(),
        };
    }
    &PLACE
}

/// Makes all waiters look again.
#[cold]
#[inline(never)]
pub(crate) fn wake_all() {
    let place = place();
    *place.wakes.lock() += 1;
    place.changed.notify_all();
}

/// Counted in as a waiter of a pool.
struct Waiting<'a>(&'a Inner);

impl<'a> Waiting<'a> {
    fn new(inner: &'a Inner) -> Self {
        inner.gate.enter();
        inner.units.0.enter();
        if let Some(budget) = &inner.budget {
            budget.enter();
        }
        Self(inner)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(budget) = &self.0.budget {
            budget.leave();
        }
        self.0.units.0.leave();
        self.0.gate.leave();
    }
}

impl PoolRef {
    /// Fills `out`, waiting for objects until `deadline`, for ever without one.
    ///
    /// # Safety
    /// A handle keeps the pool alive during the call.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn get_bulk_until(
        self,
        out: &mut [MaybeUninit<NonNull<u8>>],
        deadline: Option<Instant>,
    ) -> Result<(), Exhausted> {
        // SAFETY: the pool lives.
        unsafe {
            let mut result = self.try_get_bulk(out);
            if result.is_err() {
                result = self.wait_for_bulk(out, deadline);
            }
            self.got(out, result, self.own_counters())?;
            self.on_got(out);
        }
        Ok(())
    }

    /// # Safety
    /// A handle keeps the pool alive during the call.
    unsafe fn wait_for_bulk(
        self,
        out: &mut [MaybeUninit<NonNull<u8>>],
        deadline: Option<Instant>,
    ) -> Result<(), Exhausted> {
        // SAFETY: the pool lives.
        let inner = unsafe { self.inner() };
        let waiting = Waiting::new(inner);
        loop {
            let seen = *place().wakes.lock();
            // SAFETY: the pool lives.
            match unsafe { self.try_get_bulk(out) } {
                Err(exhausted) if exhausted.asked <= inner.capacity => {
                    if !sleep(seen, deadline) {
                        drop(waiting);
                        return Err(exhausted);
                    }
                }
                done => return done,
            }
        }
    }
}

/// Sleeps until something was given back since `seen`, anywhere; whether that happened in time.
fn sleep(seen: u64, deadline: Option<Instant>) -> bool {
    if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
        return false;
    }
    let place = place();
    let mut wakes = place.wakes.lock();
    while *wakes == seen {
        match deadline {
            None => place.changed.wait(&mut wakes),
            Some(deadline) => {
                if place.changed.wait_until(&mut wakes, deadline).timed_out() {
                    return *wakes != seen;
                }
            }
        }
    }
    true
}
