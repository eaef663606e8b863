//! This project's pools.

#![allow(unsafe_code)] // giving back is a promise

use super::stores::{Lane, Store, empty};
use super::{CACHE, CAPACITY, OBJECT};
use mempool::{BackendKind, RawPool};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// A pool with the backend and caches that `RING` and `CACHED` say.
pub(super) struct Pool<const RING: bool, const CACHED: bool>(RawPool);

/// The default backend.
pub(super) type Ours = Pool<false, true>;
/// The ring for many producers and consumers.
pub(super) type Ring = Pool<true, true>;
/// The default backend alone.
pub(super) type LifoNoCache = Pool<false, false>;
/// The ring alone.
pub(super) type RingNoCache = Pool<true, false>;

// SAFETY: the pool hands out each object once and takes it back from any thread.
unsafe impl<const RING: bool, const CACHED: bool> Store for Pool<RING, CACHED> {
    const NAME: &'static str = match (RING, CACHED) {
        (false, true) => "ours",
        (true, true) => "ring",
        (false, false) => "lifo-nocache",
        (true, false) => "ring-nocache",
    };
    const CACHED: bool = CACHED;
    type Lane<'a> = Way<'a>;

    fn build() -> Result<Self, String> {
        let kind = if RING {
            BackendKind::Ring
        } else {
            BackendKind::Lifo
        };
        RawPool::builder(OBJECT)
            .capacity(CAPACITY)
            .cache(if CACHED { CACHE } else { 0 })
            .backend(kind)
            .build()
            .map(Pool)
            .map_err(|e| e.to_string())
    }

    fn lane(&self) -> Way<'_> {
        self.0.flush_thread_cache();
        Way(&self.0)
    }

    fn missing(&self) -> Option<usize> {
        Some(self.0.in_use())
    }

    fn calls(&self) -> Option<[u64; 2]> {
        let stats = self.0.stats();
        Some([stats.backend_gets, stats.backend_puts])
    }
}

/// The calls of a pool.
pub(super) struct Way<'a>(&'a RawPool);

// SAFETY: a get that succeeds has written all of `out`, and each address is one object.
unsafe impl Lane for Way<'_> {
    type Item = NonNull<u8>;

    #[inline(always)]
    fn get(&mut self, out: &mut [MaybeUninit<NonNull<u8>>]) {
        if self.0.get_bulk(out).is_err() {
            empty();
        }
    }

    #[inline(always)]
    unsafe fn put(&mut self, items: &mut [MaybeUninit<NonNull<u8>>]) {
        // SAFETY: all are written, objects of this pool, and given up.
        unsafe { self.0.pool_ref().put_bulk(items.assume_init_ref()) };
    }

    #[inline(always)]
    fn get_one(&mut self) -> NonNull<u8> {
        self.0.get().unwrap_or_else(|_| empty())
    }

    #[inline(always)]
    unsafe fn put_one(&mut self, item: NonNull<u8>) {
        // SAFETY: an object of this pool, given up.
        unsafe { self.0.pool_ref().put(item) };
    }

    #[inline(always)]
    fn line(item: &mut NonNull<u8>) -> *mut u64 {
        item.as_ptr().cast()
    }
}
