//! Backing memory: one range, the pool's own or brought by the caller.

#[cfg(not(all(target_os = "linux", not(miri), not(loom))))]
#[path = "arena/heap.rs"]
mod own;
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
#[path = "arena/mapped.rs"]
mod own;

use std::any::Any;
use std::io;
use std::ptr::NonNull;

/// Where the memory of a pool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryKind {
    /// Reserved 2 MB pages.
    HugePages,
    /// Ordinary memory, aligned to 2 MB, for which the kernel was asked for transparent huge pages.
    TransparentHugePages,
    /// Ordinary pages, mapped for the pool alone.
    Pages,
    /// The global allocator.
    Heap,
    /// Brought by the caller: [`Builder::region`](crate::Builder::region).
    Region,
}

/// A range of memory, given back on drop.
pub(crate) struct Arena {
    base: NonNull<u8>,
    kind: MemoryKind,
    _origin: Origin,
}

/// What gives the range back when it is dropped.
enum Origin {
    Own { _block: own::Block },
    Brought { _owner: Box<dyn Any + Send + Sync> },
}

impl Arena {
    /// `len` zeroed bytes, aligned to `align` (a power of two).
    pub(crate) fn new(len: usize, align: usize, huge: bool, prefault: bool) -> io::Result<Self> {
        let (block, base, kind) = own::Block::new(len, align, huge, prefault)?;
        Ok(Self {
            base,
            kind,
            _origin: Origin::Own { _block: block },
        })
    }

    /// Memory at `base` that is there until `owner` is dropped.
    pub(crate) fn brought(base: NonNull<u8>, owner: Box<dyn Any + Send + Sync>) -> Self {
        Self {
            base,
            kind: MemoryKind::Region,
            _origin: Origin::Brought { _owner: owner },
        }
    }

    /// First byte. Objects are derived from this pointer by offset.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn kind(&self) -> MemoryKind {
        self.kind
    }
}
