//! Giving guards back in runs, from where they lie.

use crate::typed::Pooled;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

/// Gives values back to their pools: each run of one pool's in one put, from the array itself.
///
/// If a put unwinds, its run is lost, the others are given back, and the first panic goes on.
///
/// # Safety
/// All are written; the caller gives them up and does not read them again.
#[inline]
pub(super) unsafe fn put_back<T: Send + 'static>(values: &mut [MaybeUninit<Pooled<T>>]) {
    // SAFETY: written, and never dropped as guards: `Runs` gives up their objects instead.
    let guards = unsafe { values.assume_init_ref() };
    let mut runs = Runs { rest: guards };
    while runs.put_next() {}
}

/// Guards that are still to be given back.
struct Runs<'a, T: Send + 'static> {
    rest: &'a [Pooled<T>],
}

impl<T: Send + 'static> Runs<'_, T> {
    /// Gives the first run back, unless there is none.
    #[inline]
    fn put_next(&mut self) -> bool {
        let Some(first) = self.rest.first() else {
            return false;
        };
        let pool = first.pool_ref();
        let same = |guard: &&Pooled<T>| guard.pool_ref() == pool;
        let n = 1 + self.rest[1..].iter().take_while(same).count();
        let (run, rest) = self.rest.split_at(n);
        // Before the put: what unwinds is not given back twice.
        self.rest = rest;
        // SAFETY: a guard is laid out as the address of its object.
        let objs = unsafe { std::slice::from_raw_parts(run.as_ptr().cast::<NonNull<u8>>(), n) };
        // SAFETY: objects of this pool, each owned by its guard, which is given up.
        unsafe { pool.put_bulk(objs) };
        true
    }
}

impl<T: Send + 'static> Drop for Runs<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if !self.rest.is_empty() {
            self.put_rest();
        }
    }
}

impl<T: Send + 'static> Runs<'_, T> {
    /// After a panic, which goes on: further ones are swallowed.
    #[cold]
    #[inline(never)]
    fn put_rest(&mut self) {
        while !self.rest.is_empty() {
            let _ = catch_unwind(AssertUnwindSafe(|| self.put_next()));
        }
    }
}
