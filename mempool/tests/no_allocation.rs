//! After a pool was built and a thread has used one, nothing allocates.

#[path = "support/helpers.rs"]
mod helpers;

use mempool::{BackendKind, Burst, LocalCache, Pool, RawPool};
use std::alloc::{GlobalAlloc, Layout, System};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: forwards to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Bursts, a local cache, and reading in place.
fn other_ways(pool: &RawPool, local: &mut LocalCache, cache: usize) {
    let mut out = [MaybeUninit::uninit(); 40];
    for _ in 0..10 {
        assert_eq!(pool.get_burst(&mut out), 40);
        // SAFETY: written; objects are given up once.
        unsafe { local.put_bulk(out.assume_init_ref()) };
        local.get_bulk(&mut out).unwrap();
        // SAFETY: as above.
        unsafe { pool.pool_ref().put_bulk(out.assume_init_ref()) };
        let n = cache.min(4);
        let in_place = pool.get_in_place(n, |objs| {
            let mut held = [NonNull::dangling(); 4];
            held[..n].copy_from_slice(objs);
            held
        });
        if let Ok(held) = in_place {
            helpers::give(pool, &held[..n]);
        }
    }
}

/// Bursts of typed values.
fn bursts(pools: &[Pool<u64>; 2]) {
    for _ in 0..10 {
        let mut burst: Burst<u64, 64> = pools[0].get_bulk().unwrap();
        burst.truncate(50);
        assert_eq!(burst.fill(&pools[1]), 14);
        burst.drain().take(3).for_each(drop);
        burst.fill_all(&pools[1]).unwrap();
        burst.into_iter().skip(5).take(3).for_each(drop);
    }
}

// One test in this binary: nobody else allocates meanwhile.
#[test]
fn nothing_allocates_after_creation() {
    let first = RawPool::builder(8).build().unwrap();
    helpers::give(&first, &[first.get().unwrap()]);
    for kind in [BackendKind::Lifo, BackendKind::Ring] {
        for cache in [0, 8, 512] {
            let builder = RawPool::builder(64)
                .capacity(1000)
                .cache(cache)
                .backend(kind);
            let pool = builder.build().unwrap();
            let mut out = [MaybeUninit::uninit(); 300];
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            for n in [1, 7, 8, 100, 300] {
                let out = &mut out[..n];
                for _ in 0..10 {
                    pool.get_bulk(out).unwrap();
                    // SAFETY: written after success; objects are given up once.
                    unsafe {
                        let mut cursor = pool.pool_ref().open_put();
                        for obj in out.iter() {
                            cursor.push(obj.assume_init());
                        }
                    }
                    let obj = pool.get().unwrap();
                    helpers::give(&pool, &[obj]);
                }
            }
            assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before);
            let mut local = pool.local_cache(32).unwrap();
            let before_the_rest = ALLOCATIONS.load(Ordering::Relaxed);
            other_ways(&pool, &mut local, cache);
            assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before_the_rest);
            drop(local);
            let before = before_the_rest;
            pool.flush_thread_cache();
            assert!(pool.is_full());
            assert!(pool.get_bulk(&mut [MaybeUninit::uninit(); 1001]).is_err());
            assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before);
        }
    }
    let pools = [(), ()].map(|()| Pool::new(256, |_| 0_u64).unwrap());
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    bursts(&pools);
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before);
}
