//! The synchronisation types that the crate uses: the real ones, or those of the model checker.

#[cfg(not(loom))]
mod real {
    pub(crate) use parking_lot::{Condvar, Mutex};
    use std::mem::MaybeUninit;
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

    /// Copies `values` into `cells`, in one piece.
    ///
    /// # Safety
    /// There are as many of both, and nobody else uses the cells meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn write_cells<T: Copy>(cells: &[UnsafeCell<MaybeUninit<T>>], values: &[T]) {
        debug_assert_eq!(cells.len(), values.len());
        let to = cells.as_ptr().cast::<T>().cast_mut();
        // SAFETY: a cell is laid out as its content, may be written through a shared reference,
        // and is the caller's alone; hence `values`, which is borrowed, is no part of the cells.
        unsafe { to.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
    }

    /// Copies `cells` into `out`, in one piece.
    ///
    /// # Safety
    /// There are as many of both, and nobody writes the cells meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn read_cells<T: Copy>(
        cells: &[UnsafeCell<MaybeUninit<T>>],
        out: &mut [MaybeUninit<T>],
    ) {
        debug_assert_eq!(cells.len(), out.len());
        // SAFETY: a cell is laid out as its content; `out` is borrowed exclusively.
        unsafe {
            out.as_mut_ptr()
                .copy_from_nonoverlapping(cells.as_ptr().cast(), out.len());
        }
    }
}

#[cfg(loom)]
mod real {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use loom::thread::yield_now;
    use std::mem::MaybeUninit;

    /// A spin in a model is only useful if another thread moves.
    pub(crate) fn spin_hint() {
        loom::thread::yield_now();
    }

    /// Copies `values` into `cells`, each watched.
    ///
    /// # Safety
    /// There are as many of both, and nobody else uses the cells meanwhile.
    pub(crate) unsafe fn write_cells<T: Copy>(cells: &[UnsafeCell<MaybeUninit<T>>], values: &[T]) {
        assert_eq!(cells.len(), values.len());
        for (cell, &value) in cells.iter().zip(values) {
            // SAFETY: as the caller promises.
            cell.with_mut(|cell| unsafe { (*cell).write(value) });
        }
    }

    /// Copies `cells` into `out`, each watched.
    ///
    /// # Safety
    /// There are as many of both, and nobody writes the cells meanwhile.
    pub(crate) unsafe fn read_cells<T: Copy>(
        cells: &[UnsafeCell<MaybeUninit<T>>],
        out: &mut [MaybeUninit<T>],
    ) {
        assert_eq!(cells.len(), out.len());
        for (cell, out) in cells.iter().zip(out) {
            // SAFETY: as the caller promises.
            *out = cell.with(|cell| unsafe { *cell });
        }
    }

    /// The model's mutex with `parking_lot`'s interface.
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(self.0.lock().ok())
        }
    }

    /// Empty only while a condition variable has it.
    pub(crate) struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

    impl<T> std::ops::Deref for MutexGuard<'_, T> {
        type Target = T;
        fn deref(&self) -> &T {
            self.0.as_ref().expect("models do not panic under a lock")
        }
    }

    impl<T> std::ops::DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_mut().expect("models do not panic under a lock")
        }
    }

    /// The model's condition variable with `parking_lot`'s interface. Time does not pass in models.
    pub(crate) struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self(loom::sync::Condvar::new())
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }

        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let held = guard.0.take().expect("the lock is held");
            guard.0 = self.0.wait(held).ok();
        }

        pub(crate) fn wait_until<T>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            _deadline: std::time::Instant,
        ) -> Waited {
            self.wait(guard);
            Waited
        }
    }

    pub(crate) struct Waited;

    impl Waited {
        pub(crate) fn timed_out(&self) -> bool {
            false
        }
    }
}

pub(crate) use real::*;

/// Keeps a value alone on its pair of cache lines (adjacent lines are fetched together).
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);
