//! What forty lines can do: a stack under a lock, and the same behind a cache.

#![allow(unsafe_code)] // copies pointers

use super::arena::Arena;
use super::stores::{Lane, Store, empty};
use super::{CACHE, CAPACITY};
use parking_lot::Mutex;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

type Ptr = NonNull<u8>;

struct Stack {
    entries: Box<[MaybeUninit<Ptr>; CAPACITY]>,
    len: usize,
}

// SAFETY: the pointers are only carried; they are into the arena, which lives as long.
unsafe impl Send for Stack {}

impl Stack {
    #[inline(always)]
    fn pop(&mut self, out: &mut [MaybeUninit<Ptr>]) {
        let Some(rest) = self.len.checked_sub(out.len()) else {
            empty()
        };
        out.copy_from_slice(&self.entries[rest..self.len]);
        self.len = rest;
    }

    #[inline(always)]
    fn push(&mut self, items: &[MaybeUninit<Ptr>]) {
        self.entries[self.len..self.len + items.len()].copy_from_slice(items);
        self.len += items.len();
    }
}

/// A fixed array under a lock, bursts copied in one piece.
pub(super) struct MutexLifo {
    stack: Mutex<Stack>,
    /// What the pointers are into.
    _arena: Arena,
}

impl MutexLifo {
    fn full() -> Self {
        let arena = Arena::new();
        let entries: Vec<_> = arena.objects().map(MaybeUninit::new).collect();
        let entries = entries.try_into().unwrap_or_else(|_| empty());
        let len = CAPACITY;
        MutexLifo {
            stack: Mutex::new(Stack { entries, len }),
            _arena: arena,
        }
    }

    fn short_of(&self) -> usize {
        CAPACITY - self.stack.lock().len
    }
}

// SAFETY: what is popped is in the stack no more; the lock orders threads.
unsafe impl Store for MutexLifo {
    const NAME: &'static str = "mutex-lifo";
    type Lane<'a> = Locked<'a>;

    fn build() -> Result<Self, String> {
        Ok(Self::full())
    }

    fn lane(&self) -> Locked<'_> {
        Locked(self)
    }

    fn missing(&self) -> Option<usize> {
        Some(self.short_of())
    }
}

/// Straight to the lock.
pub(super) struct Locked<'a>(&'a MutexLifo);

// SAFETY: a pop writes all of `out`, with objects that were in the stack.
unsafe impl Lane for Locked<'_> {
    type Item = Ptr;

    #[inline(always)]
    fn get(&mut self, out: &mut [MaybeUninit<Ptr>]) {
        self.0.stack.lock().pop(out);
    }

    #[inline(always)]
    unsafe fn put(&mut self, items: &mut [MaybeUninit<Ptr>]) {
        self.0.stack.lock().push(items);
    }

    #[inline(always)]
    fn get_one(&mut self) -> Ptr {
        let mut one = [MaybeUninit::uninit()];
        self.get(&mut one);
        // SAFETY: just written.
        unsafe { one[0].assume_init() }
    }

    #[inline(always)]
    unsafe fn put_one(&mut self, item: Ptr) {
        self.0.stack.lock().push(&[MaybeUninit::new(item)]);
    }

    #[inline(always)]
    fn line(item: &mut Ptr) -> *mut u64 {
        item.as_ptr().cast()
    }
}

/// The same behind a cache that the caller owns: half of it is fetched when it is empty, and half
/// of it given away when it is full.
pub(super) struct MutexLifoCache(MutexLifo);

// SAFETY: as for the stack; a cache has one owner.
unsafe impl Store for MutexLifoCache {
    const NAME: &'static str = "mutex-lifo-cache512";
    const CACHED: bool = true;
    type Lane<'a> = Cached<'a>;

    fn build() -> Result<Self, String> {
        Ok(MutexLifoCache(MutexLifo::full()))
    }

    fn lane(&self) -> Cached<'_> {
        Cached {
            behind: &self.0,
            entries: Box::new([MaybeUninit::uninit(); CACHE]),
            len: 0,
        }
    }

    fn missing(&self) -> Option<usize> {
        Some(self.0.short_of())
    }
}

/// A cache before the lock; it is emptied when dropped.
pub(super) struct Cached<'a> {
    behind: &'a MutexLifo,
    entries: Box<[MaybeUninit<Ptr>; CACHE]>,
    len: usize,
}

impl Cached<'_> {
    /// Makes room for `n` objects or more, if a cache has so much.
    #[cold]
    #[inline(never)]
    fn give_away(&mut self, n: usize) {
        let gone = n.max(CACHE / 2).min(self.len);
        let mut stack = self.behind.stack.lock();
        stack.push(&self.entries[..gone]);
        self.entries.copy_within(gone..self.len, 0);
        self.len -= gone;
    }

    /// Fetches what `n` objects lack, and half a cache if there is room for that.
    #[cold]
    #[inline(never)]
    fn fetch(&mut self, n: usize) {
        let more = (n - self.len).max(CACHE / 2).min(CACHE - self.len);
        let (from, to) = (self.len, self.len + more);
        self.behind.stack.lock().pop(&mut self.entries[from..to]);
        self.len = to;
    }
}

impl Drop for Cached<'_> {
    fn drop(&mut self) {
        self.behind.stack.lock().push(&self.entries[..self.len]);
    }
}

// SAFETY: entries below `len` came from the stack, or were given back; each is handed out once.
unsafe impl Lane for Cached<'_> {
    type Item = Ptr;

    #[inline(always)]
    fn get(&mut self, out: &mut [MaybeUninit<Ptr>]) {
        if self.len < out.len() {
            self.fetch(out.len());
        }
        let rest = self.len - out.len();
        out.copy_from_slice(&self.entries[rest..self.len]);
        self.len = rest;
    }

    #[inline(always)]
    unsafe fn put(&mut self, items: &mut [MaybeUninit<Ptr>]) {
        if CACHE - self.len < items.len() {
            self.give_away(items.len());
        }
        self.entries[self.len..self.len + items.len()].copy_from_slice(items);
        self.len += items.len();
    }

    #[inline(always)]
    fn get_one(&mut self) -> Ptr {
        if self.len == 0 {
            self.fetch(1);
        }
        self.len -= 1;
        // SAFETY: entries below the old length are written.
        unsafe { self.entries[self.len].assume_init() }
    }

    #[inline(always)]
    unsafe fn put_one(&mut self, item: Ptr) {
        if self.len == CACHE {
            self.give_away(1);
        }
        self.entries[self.len] = MaybeUninit::new(item);
        self.len += 1;
    }

    #[inline(always)]
    fn line(item: &mut Ptr) -> *mut u64 {
        item.as_ptr().cast()
    }
}
