//! The synchronisation types that the crate uses: the real ones, or those of the model checker.

#[cfg(not(loom))]
mod real {
    pub(crate) use parking_lot::Mutex;
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use std::thread::yield_now;

    /// Tells the processor that this is a spin loop.
    #[inline(always)]
    pub(crate) fn spin_hint() {
        std::hint::spin_loop();
    }

    /// `std`'s cell with the model checker's interface.
    #[repr(transparent)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

#[cfg(loom)]
mod real {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use loom::thread::yield_now;

    /// A spin in a model is only useful if another thread moves.
    pub(crate) fn spin_hint() {
        loom::thread::yield_now();
    }

    /// The model's mutex with `parking_lot`'s interface.
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("models do not panic under a lock")
        }
    }
}

pub(crate) use real::*;

/// Keeps a value alone on its pair of cache lines (adjacent lines are fetched together).
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);
