//! The cache of one worker in one pool: an array used as a stack.
//!
//! Both fast paths test one number: a get `n <= len`, a put `len + n <= limit`. A cache that is
//! *taken* (open for in-place writes, or its owner is talking to the backend) shows `len` and `limit`
//! 0, so that nested calls fall through to the cold path without a further test.

use crate::stats::Counters;
use crate::sync::{AtomicU32, Ordering};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// One worker's cache. Alone on its cache lines: other threads read `len` only to count.
#[repr(C, align(128))]
pub(crate) struct Slot {
    len: AtomicU32,
    limit: AtomicU32,
    base: NonNull<NonNull<u8>>,
    pub(crate) counters: Counters,
    /// Lets the model checker see whether two threads ever own the slot at once.
    #[cfg(loom)]
    owner: loom::cell::UnsafeCell<()>,
}

/// The content of a taken cache.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) base: NonNull<NonNull<u8>>,
    pub(crate) len: usize,
    pub(crate) limit: usize,
}

impl Slot {
    /// An empty cache for `limit` pointers at `base`.
    pub(crate) fn new(base: NonNull<NonNull<u8>>, limit: u32) -> Self {
        Self {
            len: AtomicU32::new(0),
            limit: AtomicU32::new(limit),
            base,
            counters: Counters::default(),
            #[cfg(loom)]
            owner: loom::cell::UnsafeCell::new(()),
        }
    }

    #[inline(always)]
    fn touch(&self) {
        #[cfg(loom)]
        self.owner.with_mut(|_| ());
    }

    /// The array.
    pub(crate) fn base(&self) -> NonNull<NonNull<u8>> {
        self.base
    }

    /// Objects in it; anybody may ask. 0 while it is taken.
    pub(crate) fn cached(&self) -> usize {
        self.len.load(Ordering::Relaxed) as usize
    }

    /// Pops the newest object.
    ///
    /// # Safety
    /// The calling thread owns the slot's worker id.
    #[inline(always)]
    pub(crate) unsafe fn pop(&self) -> Option<NonNull<u8>> {
        let len = self.len.load(Ordering::Relaxed);
        if len == 0 {
            return None;
        }
        self.touch();
        // SAFETY: entries below `len` were written by an owner of the slot; owners follow each
        // other with a happens-before edge (worker ids change hands by release and acquire).
        let obj = unsafe { self.base.add(len as usize - 1).read() };
        self.len.store(len - 1, Ordering::Relaxed);
        Some(obj)
    }

    /// Pushes one object if there is room.
    ///
    /// # Safety
    /// The calling thread owns the slot's worker id; the object is the slot's pool's, and given up.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, obj: NonNull<u8>) -> bool {
        let len = self.len.load(Ordering::Relaxed);
        if len >= self.limit.load(Ordering::Relaxed) {
            return false;
        }
        self.touch();
        // SAFETY: `limit` entries are allocated at `base` and `len < limit`; only the owner writes.
        unsafe { self.base.add(len as usize).write(obj) };
        self.len.store(len + 1, Ordering::Relaxed);
        true
    }

    /// Pops `out.len()` objects, newest first, if there are as many.
    ///
    /// # Safety
    /// As for [`Self::pop`].
    #[inline(always)]
    pub(crate) unsafe fn pop_bulk(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> bool {
        let len = self.cached();
        if out.len() > len {
            return false;
        }
        self.touch();
        let rest = len - out.len();
        // SAFETY: as in `pop`, for the entries from `rest` to `len`.
        unsafe { copy_newest_first(self.base.add(rest), out) };
        self.len.store(rest as u32, Ordering::Relaxed);
        true
    }

    /// Pushes all objects if there is room for all.
    ///
    /// # Safety
    /// As for [`Self::push`].
    #[inline(always)]
    pub(crate) unsafe fn push_bulk(&self, objs: &[NonNull<u8>]) -> bool {
        let len = self.cached();
        let limit = self.limit.load(Ordering::Relaxed) as usize;
        if objs.len() > limit - len {
            return false;
        }
        self.touch();
        // SAFETY: `len + n <= limit` entries are allocated at `base`; the caller's slice is not
        // part of the array, which nobody else can name.
        unsafe {
            self.base
                .add(len)
                .copy_from_nonoverlapping(NonNull::from(objs).cast(), objs.len());
        }
        self.len.store((len + objs.len()) as u32, Ordering::Relaxed);
        true
    }

    /// Takes the content out; `None` if somebody further up this thread's stack has it.
    ///
    /// # Safety
    /// The calling thread owns the slot's worker id.
    #[inline(always)]
    pub(crate) unsafe fn take(&self) -> Option<Taken> {
        let limit = self.limit.load(Ordering::Relaxed) as usize;
        if limit == 0 {
            return None;
        }
        self.touch();
        let len = self.cached();
        self.len.store(0, Ordering::Relaxed);
        self.limit.store(0, Ordering::Relaxed);
        Some(Taken {
            base: self.base,
            len,
            limit,
        })
    }

    /// Puts the content back.
    ///
    /// # Safety
    /// The calling thread owns the slot's worker id and took the content; the first `len` entries
    /// are written, and `limit` is what `take` said.
    #[inline(always)]
    pub(crate) unsafe fn restore(&self, len: usize, limit: usize) {
        self.touch();
        self.len.store(len as u32, Ordering::Relaxed);
        self.limit.store(limit as u32, Ordering::Relaxed);
    }
}

impl Taken {
    /// Written entries `from..to`.
    ///
    /// # Safety
    /// They are written, and stay as they are while the slice lives.
    pub(crate) unsafe fn slice<'a>(&self, from: usize, to: usize) -> &'a [NonNull<u8>] {
        // SAFETY: within the array, as the caller promises.
        unsafe { std::slice::from_raw_parts(self.base.add(from).as_ptr(), to - from) }
    }

    /// Room for the first `n` entries.
    ///
    /// # Safety
    /// `n <= limit`, and nobody else uses the array while the slice lives.
    pub(crate) unsafe fn room<'a>(&self, n: usize) -> &'a mut [MaybeUninit<NonNull<u8>>] {
        // SAFETY: `limit` entries are allocated; `MaybeUninit` asks for no content.
        unsafe { std::slice::from_raw_parts_mut(self.base.cast().as_ptr(), n) }
    }
}

/// Copies `out.len()` entries that start at `from`, the last one first.
///
/// # Safety
/// So many entries are written at `from`, and `out` does not overlap them.
#[inline(always)]
pub(crate) unsafe fn copy_newest_first(
    from: NonNull<NonNull<u8>>,
    out: &mut [MaybeUninit<NonNull<u8>>],
) {
    let n = out.len();
    for (i, slot) in out.iter_mut().enumerate() {
        // SAFETY: `i < n`.
        slot.write(unsafe { from.add(n - 1 - i).read() });
    }
}
