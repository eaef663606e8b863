//! Caches that their caller owns.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::{Sent, assert_whole, give, take};
use mempool::{BackendKind, Exhausted, LocalCache, LocalCacheError, MAX_CACHE, RawPool};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread;

const BACKENDS: [BackendKind; 2] = [BackendKind::Lifo, BackendKind::Ring];

fn pool(capacity: usize, cache: usize, kind: BackendKind) -> RawPool {
    let builder = RawPool::builder(64).capacity(capacity).cache(cache);
    builder.backend(kind).build().unwrap()
}

fn get(cache: &mut LocalCache, n: usize) -> Result<Vec<NonNull<u8>>, Exhausted> {
    let mut out = vec![MaybeUninit::uninit(); n];
    cache.get_bulk(&mut out)?;
    // SAFETY: all are written after success.
    Ok(out.iter().map(|obj| unsafe { obj.assume_init() }).collect())
}

fn put_n(cache: &mut LocalCache, held: &mut Vec<NonNull<u8>>, n: usize) {
    let objs = held.split_off(held.len() - n);
    // SAFETY: got before, not used again.
    unsafe { cache.put_bulk(&objs) };
}

#[test]
fn dpdk_3c_trace_through_a_cache_of_the_callers_own() {
    for kind in BACKENDS {
        let pool = pool(1000, 0, kind);
        let mut cache = pool.local_cache(32).unwrap();
        let mut held = Vec::new();
        for (n, cached, backend_gets) in
            [(1, 15, 1), (15, 0, 1), (16, 0, 2), (17, 0, 3), (40, 0, 4)]
        {
            held.extend(get(&mut cache, n).unwrap());
            let seen = (cache.len(), cache.stats().backend_gets);
            assert_eq!(seen, (cached, backend_gets), "after get {n}");
        }
        for _ in 0..4 {
            put_n(&mut cache, &mut held, 8);
        }
        assert_eq!((cache.len(), cache.stats().backend_puts), (32, 0));
        for (n, cached, backend_puts, objects) in [
            (1, 17, 1, 16),
            (16, 17, 2, 32),
            (17, 17, 3, 49),
            (22, 17, 4, 71),
        ] {
            put_n(&mut cache, &mut held, n);
            let stats = cache.stats();
            let seen = (cache.len(), stats.backend_puts, stats.backend_objects_put);
            assert_eq!(seen, (cached, backend_puts, objects), "after put {n}");
        }
        assert_eq!(pool.in_use(), held.len() + cache.len(), "counts as held");
        let n = held.len();
        put_n(&mut cache, &mut held, n);
        cache.flush();
        assert_eq!((cache.len(), pool.stats().backend_puts), (0, 0));
        assert_whole(&pool);
    }
}

#[test]
fn dpdk_3c_failed_get_leaves_the_cache_as_it_was() {
    for kind in BACKENDS {
        let pool = pool(100, 8, kind);
        let own = take(&pool, 1).unwrap();
        assert_eq!(pool.cached(), 3, "in this thread's cache");
        let mut cache = pool.local_cache(32).unwrap();
        let mut held = get(&mut cache, 96).unwrap();
        put_n(&mut cache, &mut held, 3);
        let failed = Exhausted {
            asked: 4,
            available: 3,
            cached_elsewhere: 3,
            over_budget: false,
        };
        assert_eq!(get(&mut cache, 4), Err(failed));
        assert_eq!((cache.len(), cache.stats().failed_gets), (3, 1));
        held.extend(get(&mut cache, 3).unwrap());
        // The failure called back what this thread has in its ordinary cache.
        held.extend(get(&mut cache, 3).unwrap());
        assert_eq!(cache.get().unwrap_err().available, 0);
        put_n(&mut cache, &mut held, 99);
        drop(cache);
        give(&pool, &own);
        assert_whole(&pool);
    }
}

#[test]
fn sizes_that_are_not_possible_are_errors_with_numbers() {
    let pool = pool(100, 0, BackendKind::Lifo);
    for asked in [0, 101, usize::MAX] {
        let error = pool.local_cache(asked).unwrap_err();
        assert_eq!(error, LocalCacheError::BadSize { asked, max: 100 });
    }
    let error = self::pool(1000, 0, BackendKind::Lifo)
        .local_cache(513)
        .unwrap_err();
    let max = MAX_CACHE;
    assert_eq!(error, LocalCacheError::BadSize { asked: 513, max });
    assert_eq!(
        error.to_string(),
        "local cache of 513 objects asked for, 1 to 512 possible here"
    );
    assert!(pool.local_cache(100).is_ok() && pool.local_cache(1).is_ok());
}

#[test]
fn fault_v1_burst_sizes_around_powers_of_two() {
    for size in [1, 2, 512] {
        let pool = pool(70_000, 0, BackendKind::Ring);
        let mut cache = pool.local_cache(size).unwrap();
        for n in [0, 1, 255, 256, 257, 511, 512, 513, 65_535, 65_536, 69_488] {
            let mut held = get(&mut cache, n).unwrap();
            assert_eq!(pool.in_use(), n + cache.len());
            put_n(&mut cache, &mut held, n);
        }
        cache.flush();
        assert!(pool.is_full());
        assert!(get(&mut cache, 70_001).is_err());
        let mut out = vec![MaybeUninit::uninit(); 65_536];
        assert_eq!(cache.get_burst(&mut out), 65_536);
        // SAFETY: written, and given up once.
        unsafe { cache.put_bulk(out.assume_init_ref()) };
        drop(cache);
        assert_whole(&pool);
    }
}

#[test]
fn the_last_handle_may_be_the_caches() {
    let alive = Arc::new(());
    let builder = RawPool::builder(8).capacity(64).cache(8);
    let pool = builder.private(alive.clone()).build().unwrap();
    let (mut cache, own) = (pool.local_cache(8).unwrap(), take(&pool, 3).unwrap());
    let error = pool.try_destroy().unwrap_err();
    assert_eq!(
        error.to_string(),
        "2 handles of the pool exist, this one included"
    );
    drop(error.into_handle());
    let objs = get(&mut cache, 5).unwrap().into_iter().chain(own);
    let objs: Vec<_> = objs.map(Sent).collect();
    assert!(!cache.pool().is_full());
    thread::spawn(move || {
        for Sent(obj) in objs {
            // SAFETY: got above, given up.
            unsafe { cache.put(obj) };
        }
        assert_eq!(cache.pool().in_use(), cache.len());
    })
    .join()
    .unwrap();
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn a_forgotten_cache_leaks_its_objects_and_the_pool() {
    let alive = Arc::new(());
    let builder = RawPool::builder(8).capacity(64).cache(0);
    let pool = builder.private(alive.clone()).build().unwrap();
    let mut cache = pool.local_cache(8).unwrap();
    let obj = cache.get().unwrap();
    std::mem::forget(cache);
    give(&pool, &[obj]);
    assert_eq!(pool.in_use(), 3);
    drop(pool);
    assert_eq!(Arc::strong_count(&alive), 2);
}

/// One cache takes, another puts back: the pool that its documentation asks for never runs dry, and
/// one object less does, with numbers.
#[test]
fn fault_w2_pool_of_exactly_what_is_held_and_cached() {
    const HELD: usize = 64;
    const CACHE: usize = 16;
    for kind in BACKENDS {
        for (capacity, enough) in [(HELD + CACHE, true), (HELD + CACHE - 1, false)] {
            let pool = pool(capacity, 0, kind);
            let (mut taker, mut giver) = (
                pool.local_cache(CACHE).unwrap(),
                pool.local_cache(CACHE).unwrap(),
            );
            let mut failures = 0;
            let mut held = get(&mut taker, HELD).unwrap();
            for round in 0..1000 {
                let n = 1 + round % HELD;
                // One by one, so that the giver fills up.
                for _ in 0..n {
                    put_n(&mut giver, &mut held, 1);
                }
                match get(&mut taker, n) {
                    Ok(objs) => held.extend(objs),
                    Err(error) => {
                        assert_eq!(error.asked, n);
                        assert_eq!(error.available, n - 1, "one is missing");
                        failures += 1;
                        giver.flush();
                        held.extend(get(&mut taker, n).unwrap());
                    }
                }
            }
            assert_eq!(failures == 0, enough, "{failures} failures of {capacity}");
            let n = held.len();
            put_n(&mut giver, &mut held, n);
            drop((taker, giver));
            assert_whole(&pool);
        }
    }
}
