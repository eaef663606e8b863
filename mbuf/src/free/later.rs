//! External storage whose last reference has been given up, and whose owner is still to be told.
//!
//! Owners are let go when all else is done: the caller's slots are empty, what can go back to pools has
//! gone back, and this thread's caches are in their place. So an owner's destructor may free and
//! allocate as it likes, and may unwind.

use crate::external::RecordPtr;

/// Records to be destroyed, linked through themselves: nothing is allocated for it. Dropping it
/// destroys them.
pub(crate) struct Later(Option<RecordPtr>);

impl Later {
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self(None)
    }

    /// Adds a record.
    ///
    /// # Safety
    /// Its last reference has been given up by the caller.
    pub(crate) unsafe fn push(&mut self, record: RecordPtr) {
        // SAFETY: by contract it is ours alone.
        unsafe { *record.next() = self.0.replace(record) };
    }

    fn pop(&mut self) -> Option<RecordPtr> {
        let record = self.0?;
        // SAFETY: pushed, so ours alone.
        self.0 = unsafe { record.next().take() };
        Some(record)
    }

    #[cold]
    #[inline(never)]
    fn run(&mut self) {
        let rest = Rest(self);
        rest.0.destroy_all();
    }

    fn destroy_all(&mut self) {
        while let Some(record) = self.pop() {
            // SAFETY: ours alone, and no longer in the list.
            unsafe { record.destroy(self) };
        }
    }
}

impl Drop for Later {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.is_some() {
            self.run();
        }
    }
}

/// Goes on with the others when an owner unwinds, as dropping a `Vec` does.
struct Rest<'a>(&'a mut Later);

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        self.0.destroy_all();
    }
}
