//! This project's pools.

#![allow(unsafe_code)] // giving back is a promise

use super::stores::{Lane, Store, empty};
use super::{CACHE, CAPACITY, OBJECT};
use mempool::{BackendKind, RawPool};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

const LIFO: u8 = 0;
const RING: u8 = 1;
const SPSC: u8 = 2;

/// A pool with the backend that `KIND` names, with caches or without.
pub(super) struct Pool<const KIND: u8, const CACHED: bool>(RawPool);

/// The default backend.
pub(super) type Ours = Pool<LIFO, true>;
/// The ring for many producers and consumers.
pub(super) type Ring = Pool<RING, true>;
/// The default backend alone.
pub(super) type LifoNoCache = Pool<LIFO, false>;
/// The ring alone.
pub(super) type RingNoCache = Pool<RING, false>;
/// The ring for one producer and one consumer, alone: with caches both threads would give to it,
/// each when it starts a round with an empty one.
pub(super) type SpscNoCache = Pool<SPSC, false>;

// SAFETY: the pool hands out each object once and takes it back from any thread.
unsafe impl<const KIND: u8, const CACHED: bool> Store for Pool<KIND, CACHED> {
    const NAME: &'static str = match (KIND, CACHED) {
        (LIFO, true) => "ours",
        (RING, true) => "ring",
        (LIFO, false) => "lifo-nocache",
        (RING, false) => "ring-nocache",
        _ => "spsc-nocache",
    };
    const CACHED: bool = CACHED;
    type Lane<'a> = Way<'a>;

    fn build() -> Result<Self, String> {
        let builder = RawPool::builder(OBJECT)
            .capacity(CAPACITY)
            .cache(if CACHED { CACHE } else { 0 });
        match KIND {
            LIFO => builder.backend(BackendKind::Lifo),
            RING => builder.backend(BackendKind::Ring),
            // SAFETY: `one_way` alone uses it: one thread gets and another puts; what is done with
            // it before and after a round is ordered by the start and the end of the other thread's job.
            _ => unsafe { builder.spsc_backend() },
        }
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
