//! A pool's own memory on Linux: a private mapping, from huge pages if asked for and to be had.
//!
//! Ordinary mappings stand between pages without access. What runs past an end faults, and the
//! kernel does not join the mapping with a neighbour, so that what it says of it (`smaps`) is said
//! of the pool alone. Reserved huge pages are reserved when they are mapped, so that a later touch
//! finds them: never with `MAP_NORESERVE`.

use super::MemoryKind;
use rustix::io::Errno;
use rustix::mm::{self, Advice, MapFlags, MprotectFlags, ProtFlags};
use std::io;
use std::ptr::NonNull;

/// The smallest page of any supported machine: mappings are at least so aligned.
const SMALL_PAGE: usize = 4096;
/// Bytes without access on each side: a multiple of every machine's ordinary page.
const GUARD: usize = 64 << 10;
const HUGE_PAGE: usize = 2 << 20;

/// A mapping, given back on drop.
pub(super) struct Block {
    start: NonNull<u8>,
    len: usize,
}

impl Block {
    /// Maps `len` zeroed bytes, aligned to `align` (a power of two).
    pub(super) fn new(
        len: usize,
        align: usize,
        huge: bool,
        prefault: bool,
    ) -> io::Result<(Self, NonNull<u8>, MemoryKind)> {
        if !huge {
            let (block, base) = Self::guarded(len, align)?;
            if prefault {
                populate(base, len, SMALL_PAGE)?;
            }
            return Ok((block, base, MemoryKind::Pages));
        }
        let len = len
            .checked_next_multiple_of(HUGE_PAGE)
            .ok_or(io::ErrorKind::OutOfMemory)?;
        if align <= HUGE_PAGE
            && let Ok((block, base)) = Self::reserved(len, prefault)
        {
            return Ok((block, base, MemoryKind::HugePages));
        }
        let (block, base) = Self::guarded(len, align.max(HUGE_PAGE))?;
        // SAFETY: the range lies within our own mapping; the advice changes no content.
        let advised = unsafe { mm::madvise(base.as_ptr().cast(), len, Advice::LinuxHugepage) };
        if prefault {
            populate(base, len, SMALL_PAGE)?;
        }
        let kind = match advised {
            Ok(()) => MemoryKind::TransparentHugePages,
            Err(_) => MemoryKind::Pages,
        };
        Ok((block, base, kind))
    }

    /// `len` bytes, a multiple of [`HUGE_PAGE`], of reserved huge pages.
    fn reserved(len: usize, prefault: bool) -> rustix::io::Result<(Self, NonNull<u8>)> {
        let flags = MapFlags::HUGETLB | MapFlags::HUGE_2MB;
        let block = Self::map(len, ProtFlags::READ | ProtFlags::WRITE, flags)?;
        let base = block.start;
        if prefault {
            // A control group or a node may have fewer pages than are reserved: an error here, not
            // a signal.
            populate(base, len, HUGE_PAGE)?;
        }
        Ok((block, base))
    }

    /// `len` bytes of ordinary pages between two guards.
    fn guarded(len: usize, align: usize) -> rustix::io::Result<(Self, NonNull<u8>)> {
        let slack = if align > SMALL_PAGE { align } else { 0 };
        let total = len
            .checked_next_multiple_of(GUARD)
            .and_then(|len| len.checked_add(slack + 2 * GUARD))
            .ok_or(Errno::NOMEM)?;
        let block = Self::map(total, ProtFlags::empty(), MapFlags::empty())?;
        // SAFETY: the first guard lies within the mapping.
        let first = unsafe { block.start.add(GUARD) };
        let shift = if slack == 0 {
            0
        } else {
            first.align_offset(align)
        };
        // SAFETY: `shift` is below `align` = `slack`, so `len` bytes and a guard remain behind it.
        let base = unsafe { first.add(shift) };
        let access = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: whole pages of our own mapping, which nobody uses yet; `base` is aligned to a page
        // as the mapping's start and the guard are.
        unsafe { mm::mprotect(base.as_ptr().cast(), len, access) }?;
        Ok((block, base))
    }

    fn map(len: usize, access: ProtFlags, flags: MapFlags) -> rustix::io::Result<Self> {
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory
        // that anybody knows of.
        let start = unsafe {
            mm::mmap_anonymous(std::ptr::null_mut(), len, access, MapFlags::PRIVATE | flags)
        }?;
        let start = NonNull::new(start.cast::<u8>()).ok_or(Errno::NOMEM)?;
        Ok(Self { start, len })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped; the owner of the arena has no use for it any more.
        let unmapped = unsafe { mm::munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "a whole mapping can always be unmapped");
    }
}

/// Brings in the pages of a fresh, writable range, or says why they are not to be had.
fn populate(base: NonNull<u8>, len: usize, page: usize) -> rustix::io::Result<()> {
    // SAFETY: the range lies within our own mapping; the advice changes no content.
    match unsafe { mm::madvise(base.as_ptr().cast(), len, Advice::LinuxPopulateWrite) } {
        // A kernel that does not know the advice.
        Err(Errno::INVAL) => {
            for offset in (0..len).step_by(page) {
                // SAFETY: within the range, which nobody else has yet.
                unsafe { base.add(offset).write_volatile(0) };
            }
            Ok(())
        }
        populated => populated,
    }
}
