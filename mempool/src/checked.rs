//! Checked mode: double puts, foreign objects and writes past either end are found when they happen.
//!
//! On in builds with debug assertions, and with the feature `checked`. Each object has a byte that
//! says whether it is free, and lies between two guards whose content is looked at when it is put
//! back. Built with `--cfg asan` under the address sanitizer, free objects and what lies between
//! objects are poisoned besides, so that the very access is reported.
//!
//! Otherwise nothing of this is left: no byte, no branch.

use crate::inner::Inner;
use crate::pool_ref::PoolRef;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
// Not the model checker's: these bytes order nothing, and would only multiply its work.
use std::sync::atomic::{AtomicU8, Ordering};

/// Whether this build of the crate looks for misuse: with debug assertions, the feature `checked`, or
/// `--cfg asan`. Objects lie further apart then.
pub const CHECKED: bool = cfg!(any(debug_assertions, feature = "checked", asan));

/// Whether free memory is poisoned.
const POISON: bool = cfg!(asan);

/// Bytes kept free of objects on either side of each.
pub(crate) const GUARD: usize = if CHECKED { 8 } else { 0 };

const BEFORE: [u8; GUARD] = [0xb5; GUARD];
const BEHIND: [u8; GUARD] = [0xe5; GUARD];

const FREE: u8 = 0;
const OUT: u8 = 1;

/// What checked mode knows of a pool's objects.
#[derive(Default)]
pub(crate) struct Checks {
    /// One byte for each object; none outside of checked mode.
    states: Box<[AtomicU8]>,
    /// Whether the pool laid its memory out itself, with room for guards.
    own_layout: bool,
}

/// Whether guards are looked at: the address sanitizer sees more than they do.
const GUARDS: bool = CHECKED && !POISON;

/// An end of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Just before its first byte.
    Before,
    /// Just past its last byte.
    Past,
}

impl Checks {
    /// For `capacity` free objects, with room for guards between them or not.
    pub(crate) fn new(capacity: usize, own_layout: bool) -> Self {
        let states = if CHECKED { capacity } else { 0 };
        Self {
            states: (0..states).map(|_| AtomicU8::new(FREE)).collect(),
            own_layout,
        }
    }

    /// Writes the guards, when all objects are made.
    pub(crate) fn arm(&self, inner: &Inner) {
        if !CHECKED {
            return;
        }
        for index in 0..inner.capacity {
            // SAFETY: within the arena, in which each object has room before and behind it when
            // there are guards. Nobody has the objects yet.
            unsafe {
                let object = inner.base.add(index * inner.stride);
                if GUARDS && self.own_layout {
                    object.sub(GUARD).cast().write_unaligned(BEFORE);
                    let behind = object.add(inner.object_size);
                    behind.cast().write_unaligned(BEHIND);
                }
                poison(object, self.extent(inner));
            }
        }
    }

    /// Makes all of the arena accessible again: it is about to go.
    pub(crate) fn unpoison(&self, inner: &Inner) {
        let bytes = (inner.capacity - 1) * inner.stride + self.extent(inner);
        unpoison(inner.base, bytes);
    }

    /// Bytes at each object that are poisoned: what lies between objects of a caller's region is
    /// the caller's.
    fn extent(&self, inner: &Inner) -> usize {
        if self.own_layout {
            inner.stride
        } else {
            inner.object_size
        }
    }

    /// The end of object `index` past which somebody wrote.
    pub(crate) fn damage(&self, inner: &Inner, index: usize) -> Option<End> {
        if !GUARDS || !self.own_layout {
            return None;
        }
        // SAFETY: as in `arm`; guards are written by nobody who may.
        let (before, behind): ([u8; GUARD], [u8; GUARD]) = unsafe {
            let object = inner.base.add(index * inner.stride);
            let behind = object.add(inner.object_size);
            (
                object.sub(GUARD).cast().read_unaligned(),
                behind.cast().read_unaligned(),
            )
        };
        if before != BEFORE {
            Some(End::Before)
        } else if behind != BEHIND {
            Some(End::Past)
        } else {
            None
        }
    }

    /// Objects that are marked as held; `None` outside of checked mode.
    pub(crate) fn held(&self) -> Option<usize> {
        let held = |state: &&AtomicU8| state.load(Ordering::Relaxed) == OUT;
        CHECKED.then(|| self.states.iter().filter(held).count())
    }

    #[track_caller]
    fn put(&self, inner: &Inner, object: NonNull<u8>) {
        let name = &inner.name;
        let Some(index) = inner.index_of(object) else {
            panic!("{object:p} was put into pool \"{name}\", but is no object of it");
        };
        if let Some(end) = self.damage(inner, index) {
            let end = match end {
                End::Before => "before the start",
                End::Past => "past the end",
            };
            panic!("somebody wrote {end} of object {index} ({object:p}) of pool \"{name}\"");
        }
        if self.states[index].swap(FREE, Ordering::Relaxed) == FREE {
            panic!("object {index} ({object:p}) of pool \"{name}\" was put twice");
        }
        poison(object, inner.object_size);
    }

    #[track_caller]
    fn got(&self, inner: &Inner, object: NonNull<u8>) {
        let name = &inner.name;
        let Some(index) = inner.index_of(object) else {
            panic!("pool \"{name}\" handed out {object:p}, which is no object of it");
        };
        unpoison(object, inner.object_size);
        if self.states[index].swap(OUT, Ordering::Relaxed) == OUT {
            panic!("pool \"{name}\" handed out object {index} ({object:p}) twice");
        }
    }
}

impl PoolRef {
    /// Objects are about to be put. Whoever puts objects calls this first.
    ///
    /// # Safety
    /// The pool lives.
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn on_put(self, objects: &[NonNull<u8>]) {
        if CHECKED {
            // SAFETY: as the caller promises.
            let inner = unsafe { self.inner() };
            for &object in objects {
                inner.checks.put(inner, object);
            }
        }
    }

    /// Objects are about to be handed out.
    ///
    /// # Safety
    /// The pool lives, and all of `objects` are written.
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn on_got(self, objects: &[MaybeUninit<NonNull<u8>>]) {
        if CHECKED {
            // SAFETY: as the caller promises.
            let inner = unsafe { self.inner() };
            for object in objects {
                // SAFETY: as the caller promises.
                inner.checks.got(inner, unsafe { object.assume_init() });
            }
        }
    }
}

#[cfg(asan)]
mod sanitizer {
    unsafe extern "C" {
        fn __asan_poison_memory_region(start: *const std::ffi::c_void, bytes: usize);
        fn __asan_unpoison_memory_region(start: *const std::ffi::c_void, bytes: usize);
    }

    pub(super) fn poison(start: std::ptr::NonNull<u8>, bytes: usize) {
        // SAFETY: marks memory of the pool's own arena, which holds no other objects.
        unsafe { __asan_poison_memory_region(start.as_ptr().cast(), bytes) };
    }

    pub(super) fn unpoison(start: std::ptr::NonNull<u8>, bytes: usize) {
        // SAFETY: as above.
        unsafe { __asan_unpoison_memory_region(start.as_ptr().cast(), bytes) };
    }
}

#[cfg(not(asan))]
mod sanitizer {
    #[inline(always)]
    pub(super) fn poison(_start: std::ptr::NonNull<u8>, _bytes: usize) {}
    #[inline(always)]
    pub(super) fn unpoison(_start: std::ptr::NonNull<u8>, _bytes: usize) {}
}

use sanitizer::{poison, unpoison};
