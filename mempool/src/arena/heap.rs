//! A pool's own memory where the crate maps none: from the global allocator.

use super::MemoryKind;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::ptr::NonNull;

/// An allocation, given back on drop.
pub(super) struct Block {
    base: NonNull<u8>,
    layout: Layout,
}

impl Block {
    /// Allocates `len` zeroed bytes, aligned to `align` (a power of two).
    pub(super) fn new(
        len: usize,
        align: usize,
        _huge: bool,
        _prefault: bool,
    ) -> io::Result<(Self, NonNull<u8>, MemoryKind)> {
        let layout = Layout::from_size_align(len.max(1), align.max(128))
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        // SAFETY: the size is not zero.
        let base =
            NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok((Self { base, layout }, base, MemoryKind::Heap))
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `new`.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}
