//! What external storage can be made of.

use crate::external::External;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;

impl External {
    /// `len` bytes at `data`, read-only; `free` is called when the last reference is gone.
    ///
    /// # Safety
    /// The bytes are initialised, and until `free` is called they stay where they are, may be read
    /// from any thread, and are not written by anybody.
    pub unsafe fn from_raw_parts(
        data: NonNull<u8>,
        len: usize,
        free: impl FnOnce() + Send + 'static,
    ) -> Self {
        // SAFETY: by contract.
        unsafe { Self::place(data, len, false, OnDrop(Some(free))).0 }
    }

    /// `len` bytes at `data`, writable while there is one reference; `free` is called when the last one
    /// is gone.
    ///
    /// # Safety
    /// The bytes are initialised, and until `free` is called they stay where they are and nobody
    /// else reads or writes them.
    #[doc(alias = "M_EXTWR")]
    pub unsafe fn from_raw_parts_mut(
        data: NonNull<u8>,
        len: usize,
        free: impl FnOnce() + Send + 'static,
    ) -> Self {
        // SAFETY: by contract.
        unsafe { Self::place(data, len, true, OnDrop(Some(free))).0 }
    }
}

/// Calls when it is dropped.
struct OnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call();
        }
    }
}

/// A vector without the claim, which a `Vec` has, that its bytes are reached through it alone.
pub(crate) struct RawVec {
    data: NonNull<u8>,
    len: usize,
    capacity: usize,
}

// SAFETY: it is a vector of bytes.
unsafe impl Send for RawVec {}

impl RawVec {
    /// The vector, and its bytes.
    pub(crate) fn new(bytes: Vec<u8>) -> (Self, NonNull<[u8]>) {
        let mut bytes = ManuallyDrop::new(bytes);
        let (len, capacity) = (bytes.len(), bytes.capacity());
        // SAFETY: a vector's pointer is never null.
        let data = unsafe { NonNull::new_unchecked(bytes.as_mut_ptr()) };
        let raw = Self {
            data,
            len,
            capacity,
        };
        (raw, NonNull::slice_from_raw_parts(data, len))
    }
}

impl Drop for RawVec {
    fn drop(&mut self) {
        // SAFETY: taken from a vector, once.
        drop(unsafe { Vec::from_raw_parts(self.data.as_ptr(), self.len, self.capacity) });
    }
}

impl From<Vec<u8>> for External {
    /// Writable; the vector's bytes, not its spare capacity.
    fn from(bytes: Vec<u8>) -> Self {
        let (owner, bytes) = RawVec::new(bytes);
        // SAFETY: the vector's own bytes, which nobody else has.
        unsafe { Self::place(bytes.cast(), bytes.len(), true, owner).0 }
    }
}

impl From<Box<[u8]>> for External {
    /// Writable.
    fn from(bytes: Box<[u8]>) -> Self {
        Vec::from(bytes).into()
    }
}

impl From<Arc<[u8]>> for External {
    /// Read-only.
    fn from(bytes: Arc<[u8]>) -> Self {
        Self::from_owner(bytes)
    }
}

impl From<&'static [u8]> for External {
    /// Read-only.
    fn from(bytes: &'static [u8]) -> Self {
        Self::from_owner(bytes)
    }
}
