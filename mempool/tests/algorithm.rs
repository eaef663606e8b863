//! The cache algorithm, step by step.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::{assert_whole, give, give_n, take};
use mempool::{BackendKind, Exhausted, RawPool};

const BACKENDS: [BackendKind; 2] = [BackendKind::Lifo, BackendKind::Ring];

fn pool(capacity: usize, cache: usize, kind: BackendKind) -> RawPool {
    RawPool::builder(64)
        .capacity(capacity)
        .cache(cache)
        .backend(kind)
        .build()
        .unwrap()
}

#[test]
fn dpdk_3c_trace_of_a_cache_of_32() {
    for kind in BACKENDS {
        let pool = pool(1000, 32, kind);
        let mut held = Vec::new();
        for (n, cached, backend_gets) in
            [(1, 15, 1), (15, 0, 1), (16, 0, 2), (17, 0, 3), (40, 0, 4)]
        {
            held.extend(take(&pool, n).unwrap());
            assert_eq!(pool.cached(), cached, "after get {n}");
            assert_eq!(pool.stats().backend_gets, backend_gets, "after get {n}");
        }
        for _ in 0..4 {
            give_n(&pool, &mut held, 8);
        }
        assert_eq!((pool.cached(), pool.stats().backend_puts), (32, 0));
        for (n, cached, backend_puts, objects) in [
            (1, 17, 1, 16),
            (16, 17, 2, 32),
            (17, 17, 3, 49),
            (22, 17, 4, 71),
        ] {
            give_n(&pool, &mut held, n);
            assert_eq!(pool.cached(), cached, "after put {n}");
            let stats = pool.stats();
            assert_eq!(
                (stats.backend_puts, stats.backend_objects_put),
                (backend_puts, objects)
            );
        }
        assert_eq!(pool.in_use(), held.len());
        give(&pool, &held);
        assert_whole(&pool);
    }
}

#[test]
fn dpdk_3c_refill_that_fails_falls_back_to_the_rest_alone() {
    for kind in BACKENDS {
        let pool = pool(100, 32, kind);
        let mut held = take(&pool, 90).unwrap();
        assert_eq!(pool.cached(), 0);
        held.extend(take(&pool, 4).unwrap());
        assert_eq!(pool.cached(), 0);
        let failed = Exhausted {
            asked: 8,
            available: 6,
            cached_elsewhere: 0,
            over_budget: false,
        };
        assert_eq!(take(&pool, 8), Err(failed));
        assert_eq!(pool.stats().failed_gets, 1);
        assert_eq!((pool.in_use(), pool.available()), (94, 6));
        give(&pool, &held);
        assert_whole(&pool);
    }
}

#[test]
fn dpdk_3c_failed_get_leaves_the_cache_as_it_was() {
    for kind in BACKENDS {
        let pool = pool(100, 32, kind);
        let mut held = take(&pool, 100).unwrap();
        give_n(&pool, &mut held, 3);
        assert_eq!(pool.cached(), 3);
        let failed = Exhausted {
            asked: 4,
            available: 3,
            cached_elsewhere: 0,
            over_budget: false,
        };
        assert_eq!(take(&pool, 4), Err(failed));
        assert_eq!(pool.cached(), 3);
        held.extend(take(&pool, 3).unwrap());
        assert_eq!(pool.in_use(), 100);
        give(&pool, &held);
        assert_whole(&pool);
    }
}

#[test]
fn newest_objects_come_back_first_and_bursts_in_their_order() {
    let pool = pool(100, 32, BackendKind::Lifo);
    let held = take(&pool, 3).unwrap();
    let [a, b, c] = held[..] else {
        unreachable!("asked for three")
    };
    give(&pool, &[a, b, c]);
    assert_eq!(take(&pool, 3).unwrap(), [a, b, c]);
    give(&pool, &[a, b, c]);
    assert_eq!(pool.get().unwrap(), c);
    assert_eq!(take(&pool, 2).unwrap(), [a, b]);
    give(&pool, &[a, b, c]);
    assert_eq!(take(&pool, 2).unwrap(), [b, c]);
    assert_eq!(pool.get().unwrap(), a);
    give(&pool, &[a, b, c]);
    assert_whole(&pool);
}

#[test]
fn fault_e2_cache_holds_exactly_its_size_and_flushes_the_oldest() {
    let pool = pool(100, 8, BackendKind::Ring);
    let held = take(&pool, 9).unwrap();
    assert_eq!(pool.cached(), 0);
    for &obj in &held[..8] {
        give(&pool, &[obj]);
    }
    assert_eq!((pool.cached(), pool.stats().backend_puts), (8, 0));
    give(&pool, &held[8..]);
    assert_eq!((pool.cached(), pool.stats().backend_puts), (5, 1));
    assert_eq!(take(&pool, 5).unwrap(), held[4..]);
    give(&pool, &held[4..]);
    assert_whole(&pool);
}

#[test]
fn fault_e4_one_sided_bursts_flush_every_half_cache() {
    let pool = pool(4096, 256, BackendKind::Lifo);
    let held = take(&pool, 3200).unwrap();
    let before = pool.stats().backend_puts;
    for burst in held.chunks(32) {
        give(&pool, burst);
    }
    // 3200 objects, 128 with each flush, the last up to 256 stay cached.
    let flushes = pool.stats().backend_puts - before;
    assert!((23..=25).contains(&flushes), "{flushes} flushes");
    assert_whole(&pool);
}

#[test]
fn odd_and_tiny_caches_keep_all_objects() {
    for kind in BACKENDS {
        for size in [1, 2, 3, 5] {
            let pool = pool(16, size, kind);
            for n in 0..=16 {
                let mut held = take(&pool, n).unwrap();
                assert_eq!(pool.in_use(), n);
                while !held.is_empty() {
                    let n = held.len().min(1 + n % 3);
                    give_n(&pool, &mut held, n);
                    assert!(pool.cached() <= size);
                }
            }
            assert_whole(&pool);
        }
    }
}

#[test]
fn a_put_of_more_than_half_that_fits_is_cached() {
    let pool = pool(64, 32, BackendKind::Lifo);
    let held = take(&pool, 32).unwrap();
    assert_eq!(pool.cached(), 0);
    give(&pool, &held);
    assert_eq!(pool.cached(), 32);
    assert_whole(&pool);
}

#[test]
fn fault_v1_burst_sizes_around_powers_of_two() {
    for kind in BACKENDS {
        for cache in [0, 512] {
            let pool = pool(70_000, cache, kind);
            for n in [0, 1, 255, 256, 257, 511, 512, 513, 65_535, 65_536, 70_000] {
                let held = take(&pool, n).unwrap();
                assert_eq!(pool.in_use(), n);
                give(&pool, &held);
                assert!(pool.is_full());
            }
            assert!(take(&pool, 70_001).is_err());
            assert_whole(&pool);
        }
    }
}

#[test]
fn cursor_writes_in_place_as_puts_do() {
    for kind in BACKENDS {
        let pool = pool(100, 8, kind);
        let held = take(&pool, 40).unwrap();
        // SAFETY: the pool lives; each object is given up once.
        unsafe {
            let mut cursor = pool.pool_ref().open_put();
            assert!(cursor.is_cached());
            for &obj in &held[..9] {
                cursor.push(obj);
            }
            assert_eq!(pool.cached(), 0, "open: counts as taken");
            let room = cursor.spare(4).expect("half a cache can always be had");
            for (index, &obj) in held[9..13].iter().enumerate() {
                room.add(index).write(obj);
            }
            cursor.advance(4);
            assert!(
                cursor.spare(5).is_none(),
                "neither fits nor is at most half"
            );
            cursor.push_slice(&held[13..25]);
            cursor.push_slice(&[]);
        }
        assert_eq!(pool.in_use(), 15);
        assert_eq!(pool.get().unwrap(), held[12]);
        give(&pool, &held[12..13]);
        give(&pool, &held[25..]);
        assert_whole(&pool);
    }
}

#[test]
fn cursor_without_a_cache_goes_to_the_backend() {
    let pool = pool(10, 0, BackendKind::Lifo);
    let held = take(&pool, 5).unwrap();
    // SAFETY: the pool lives; each object is given up once.
    unsafe {
        let mut cursor = pool.pool_ref().open_put();
        assert!(!cursor.is_cached());
        assert!(cursor.spare(0).is_none());
        cursor.push(held[0]);
        cursor.push_slice(&held[1..]);
        cursor.push_slice(&[]);
    }
    assert_whole(&pool);
}

#[test]
fn calls_under_an_open_cursor_go_to_the_backend() {
    let pool = pool(20, 8, BackendKind::Lifo);
    let held = take(&pool, 4).unwrap();
    // SAFETY: the pool lives; each object is given up once.
    unsafe {
        let mut cursor = pool.pool_ref().open_put();
        cursor.push(held[0]);
        let other = pool.get().unwrap();
        pool.pool_ref().put(other);
        pool.pool_ref().put(held[1]);
        let mut nested = pool.pool_ref().open_put();
        assert!(!nested.is_cached());
        nested.push(held[2]);
        pool.flush_thread_cache();
        cursor.push(held[3]);
    }
    assert_whole(&pool);
}
