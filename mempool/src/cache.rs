//! The cache of one worker in one pool: an array used as a stack.
//!
//! Both fast paths test one number: a get `n <= len`, a put `len + n <= limit`. A cache that is
//! *taken* (open for in-place writes, or its owner is talking to the backend) shows `len` and `limit`
//! 0, so that nested calls fall through to the cold path without a further test.
//!
//! The word that holds `len` also counts the calls that the cache served alone: both change with one
//! addition and one store, so that the count is free.

use crate::stats::Counters;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// Bits of a slot's word that hold `len`, from the lowest; calls are counted above.
const LEN_BITS: u32 = 16;
const LEN_MASK: u64 = (1 << LEN_BITS) - 1;
const CALL: u64 = 1 << LEN_BITS;

/// One worker's cache. Alone on its cache lines: other threads read the word only to count.
#[repr(C, align(128))]
pub(crate) struct Slot {
    word: AtomicU64,
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
            word: AtomicU64::new(0),
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
    #[inline(always)]
    pub(crate) fn cached(&self) -> usize {
        len_of(self.word.load(Ordering::Relaxed))
    }

    /// Gets and puts that the cache served without the backend.
    pub(crate) fn hits(&self) -> u64 {
        self.word.load(Ordering::Relaxed) >> LEN_BITS
    }

    /// Pops the newest object.
    ///
    /// # Safety
    /// The calling thread owns the slot's worker id.
    #[inline(always)]
    pub(crate) unsafe fn pop(&self) -> Option<NonNull<u8>> {
        let word = self.word.load(Ordering::Relaxed);
        let len = len_of(word);
        if len == 0 {
            return None;
        }
        self.touch();
        // SAFETY: entries below `len` were written by an owner of the slot; owners follow each
        // other with a happens-before edge (worker ids change hands by release and acquire).
        let obj = unsafe { self.base.add(len - 1).read() };
        self.served(word, CALL - 1);
        Some(obj)
    }

    /// Pushes one object if there is room.
    ///
    /// # Safety
    /// The calling thread owns the slot's worker id; the object is the slot's pool's, and given up.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, obj: NonNull<u8>) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        let len = len_of(word);
        if len >= self.limit.load(Ordering::Relaxed) as usize {
            return false;
        }
        self.touch();
        // SAFETY: `limit` entries are allocated at `base` and `len < limit`; only the owner writes.
        unsafe { self.base.add(len).write(obj) };
        self.served(word, CALL + 1);
        true
    }

    /// Pops the newest `out.len()` objects, in the order in which they were put, if there are as many.
    ///
    /// In that order it is one plain copy; reversed, it took 1.5 to 1.8 times as long as that, and what
    /// was put next 1.5 to 2.6 times (its wide loads met narrow stores that were still under way).
    ///
    /// # Safety
    /// As for [`Self::pop`].
    #[inline(always)]
    pub(crate) unsafe fn pop_bulk(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        let len = len_of(word);
        if out.len() > len {
            return false;
        }
        self.touch();
        // First, so that nothing need be kept across the copy; nobody looks in between.
        self.served(word, CALL - out.len() as u64);
        // SAFETY: as in `pop`, for the newest `out.len()` entries.
        unsafe { copy_out(self.base.add(len - out.len()), out) };
        true
    }

    /// Whether [`push`](Self::push) would succeed now, asked by the owner.
    pub(crate) fn has_room(&self) -> bool {
        self.cached() < self.limit.load(Ordering::Relaxed) as usize
    }

    /// Pushes all objects if there is room for all.
    ///
    /// # Safety
    /// As for [`Self::push`].
    #[inline(always)]
    pub(crate) unsafe fn push_bulk(&self, objs: &[NonNull<u8>]) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        let len = len_of(word);
        let limit = self.limit.load(Ordering::Relaxed) as usize;
        if objs.len() > limit - len {
            return false;
        }
        self.touch();
        self.served(word, CALL + objs.len() as u64);
        // SAFETY: `len + n <= limit` entries are allocated at `base`; the caller's slice is not
        // part of the array, which nobody else can name.
        unsafe {
            self.base
                .add(len)
                .copy_from_nonoverlapping(NonNull::from(objs).cast(), objs.len());
        }
        true
    }

    /// Counts a call, and changes `len` in the same addition.
    #[inline(always)]
    fn served(&self, word: u64, change: u64) {
        self.word
            .store(word.wrapping_add(change), Ordering::Relaxed);
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
        let word = self.word.load(Ordering::Relaxed);
        let len = len_of(word);
        self.served(word, 0_u64.wrapping_sub(len as u64));
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
        self.served(self.word.load(Ordering::Relaxed), len as u64);
        self.limit.store(limit as u32, Ordering::Relaxed);
    }

    /// As [`restore`](Self::restore), after a use that the cache served: counts a call.
    ///
    /// # Safety
    /// As for [`restore`](Self::restore).
    #[inline(always)]
    pub(crate) unsafe fn close(&self, len: usize, limit: usize) {
        self.touch();
        self.served(self.word.load(Ordering::Relaxed), CALL + len as u64);
        self.limit.store(limit as u32, Ordering::Relaxed);
    }
}

#[inline(always)]
fn len_of(word: u64) -> usize {
    (word & LEN_MASK) as usize
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

/// Copies `out.len()` entries that start at `from`.
///
/// # Safety
/// So many entries are written at `from`, and `out` does not overlap them.
#[inline(always)]
pub(crate) unsafe fn copy_out(from: NonNull<NonNull<u8>>, out: &mut [MaybeUninit<NonNull<u8>>]) {
    // SAFETY: as the caller promises.
    unsafe {
        from.cast::<MaybeUninit<NonNull<u8>>>()
            .copy_to_nonoverlapping(NonNull::from(&mut *out).cast(), out.len())
    };
}
