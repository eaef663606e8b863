//! Backing memory: one zeroed range, from huge pages if asked for and to be had.

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
}

/// A zeroed range of memory, given back on drop.
pub(crate) struct Arena {
    base: NonNull<u8>,
    kind: MemoryKind,
    origin: Origin,
}

/// How to give the range back.
enum Origin {
    #[cfg(all(target_os = "linux", not(miri), not(loom)))]
    Mapping { start: NonNull<u8>, len: usize },
    #[cfg(not(all(target_os = "linux", not(miri), not(loom))))]
    Heap(std::alloc::Layout),
}

impl Arena {
    /// First byte. Objects are derived from this pointer by offset.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn kind(&self) -> MemoryKind {
        self.kind
    }
}

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
mod mapped {
    use super::{Arena, MemoryKind, NonNull, Origin, io};
    use rustix::mm::{self, Advice, MapFlags, ProtFlags};

    /// The smallest page of any supported machine: mappings are at least so aligned.
    const SMALL_PAGE: usize = 4096;
    const HUGE_PAGE: usize = 2 << 20;

    impl Arena {
        /// Maps `len` zeroed bytes, aligned to `align` (a power of two).
        pub(crate) fn new(
            len: usize,
            align: usize,
            huge: bool,
            prefault: bool,
        ) -> io::Result<Self> {
            let arena = if huge {
                Self::huge(len, align)?
            } else {
                Self::map(len, align, MapFlags::empty(), MemoryKind::Pages)?
            };
            if prefault {
                for offset in (0..len).step_by(SMALL_PAGE) {
                    // SAFETY: within the mapping, which is fresh and writable; nobody else has it yet.
                    unsafe { arena.base.add(offset).write_volatile(0) };
                }
            }
            Ok(arena)
        }

        fn huge(len: usize, align: usize) -> io::Result<Self> {
            let rounded = len
                .checked_next_multiple_of(HUGE_PAGE)
                .ok_or(io::ErrorKind::OutOfMemory)?;
            let reserved = MapFlags::HUGETLB | MapFlags::HUGE_2MB;
            if align <= HUGE_PAGE
                && let Ok(arena) = Self::map(rounded, 1, reserved, MemoryKind::HugePages)
            {
                return Ok(arena);
            }
            let mut arena = Self::map(
                rounded,
                align.max(HUGE_PAGE),
                MapFlags::empty(),
                MemoryKind::Pages,
            )?;
            // SAFETY: the range lies within our own mapping; the advice changes no content.
            let advised =
                unsafe { mm::madvise(arena.base.as_ptr().cast(), rounded, Advice::LinuxHugepage) };
            if advised.is_ok() {
                arena.kind = MemoryKind::TransparentHugePages;
            }
            Ok(arena)
        }

        fn map(len: usize, align: usize, flags: MapFlags, kind: MemoryKind) -> io::Result<Self> {
            let slack = if align > SMALL_PAGE { align } else { 0 };
            let total = len.checked_add(slack).ok_or(io::ErrorKind::OutOfMemory)?;
            // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no
            // memory that anybody knows of.
            let start = unsafe {
                mm::mmap_anonymous(
                    std::ptr::null_mut(),
                    total,
                    ProtFlags::READ | ProtFlags::WRITE,
                    MapFlags::PRIVATE | flags,
                )
            }?;
            let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
            let shift = if slack == 0 {
                0
            } else {
                start.align_offset(align)
            };
            // SAFETY: `shift` is below `align` = `slack`, so `len` bytes remain behind it.
            let base = unsafe { start.add(shift) };
            Ok(Self {
                base,
                kind,
                origin: Origin::Mapping { start, len: total },
            })
        }
    }

    impl Drop for Arena {
        fn drop(&mut self) {
            let Origin::Mapping { start, len } = self.origin;
            // SAFETY: exactly what was mapped; the owner of the arena has no use for it any more.
            let unmapped = unsafe { mm::munmap(start.as_ptr().cast(), len) };
            debug_assert!(unmapped.is_ok(), "a whole mapping can always be unmapped");
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri), not(loom))))]
mod heap {
    use super::{Arena, MemoryKind, NonNull, Origin, io};
    use std::alloc::{Layout, alloc_zeroed, dealloc};

    impl Arena {
        /// Allocates `len` zeroed bytes, aligned to `align` (a power of two).
        pub(crate) fn new(
            len: usize,
            align: usize,
            _huge: bool,
            _prefault: bool,
        ) -> io::Result<Self> {
            let layout = Layout::from_size_align(len.max(1), align.max(128))
                .map_err(|_| io::ErrorKind::OutOfMemory)?;
            // SAFETY: the size is not zero.
            let base =
                NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(io::ErrorKind::OutOfMemory)?;
            Ok(Self {
                base,
                kind: MemoryKind::Heap,
                origin: Origin::Heap(layout),
            })
        }
    }

    impl Drop for Arena {
        fn drop(&mut self) {
            let Origin::Heap(layout) = self.origin;
            // SAFETY: allocated with this layout in `new`.
            unsafe { dealloc(self.base.as_ptr(), layout) };
        }
    }
}
