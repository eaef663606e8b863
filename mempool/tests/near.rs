//! Caches kept at hand: puts that make no call, and what they leave to `put`.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::{Sent, assert_whole, give, take};
use mempool::RawPool;
use std::sync::{Arc, Barrier};
use std::thread;

fn pool(cache: usize) -> RawPool {
    let builder = RawPool::builder(8).capacity(64).cache(cache);
    builder.build().unwrap()
}

#[test]
fn none_without_a_cache_or_before_the_first_miss() {
    thread::spawn(|| {
        let (uncached, cached) = (pool(0), pool(4));
        let obj = take(&uncached, 1).unwrap()[0];
        // SAFETY: the pools live; the object is given up once, below.
        unsafe {
            assert!(uncached.pool_ref().near_cache().is_none());
            assert!(!uncached.pool_ref().try_put(obj));
            // The miss above made this thread a worker, in all pools.
            assert!(cached.pool_ref().near_cache().is_some());
        }
        assert_eq!(uncached.in_use(), 1, "refused, so still ours");
        give(&uncached, &[obj]);
    })
    .join()
    .unwrap();
    thread::spawn(|| {
        let pool = pool(4);
        // SAFETY: the pool lives.
        assert!(unsafe { pool.pool_ref().near_cache() }.is_none(), "no id");
    })
    .join()
    .unwrap();
}

#[test]
fn pushes_fill_the_cache_exactly_and_are_refused_then() {
    for cache in [1, 2, 7] {
        let pool = pool(cache);
        let mut held = take(&pool, 20).unwrap();
        pool.flush_thread_cache();
        let puts = pool.stats().backend_puts;
        // SAFETY: the pool lives; objects are given up once, those that were refused below.
        unsafe {
            let near = pool.pool_ref().near_cache().unwrap();
            for n in 1..=cache {
                // By turns: both ways lead to the same cache.
                let obj = held.pop().unwrap();
                assert!(if n % 2 == 0 {
                    near.try_push(obj)
                } else {
                    pool.pool_ref().try_put(obj)
                });
                assert_eq!((pool.cached(), pool.in_use()), (n, 20 - n));
                assert_eq!(pool.get().unwrap(), obj, "newest first");
                assert!(near.try_push(obj));
            }
            assert!(!near.try_push(held[0]) && !pool.pool_ref().try_put(held[0]));
        }
        assert_eq!(pool.stats().backend_puts, puts, "no call was made");
        give(&pool, &held);
        assert_whole(&pool);
    }
}

#[test]
fn stays_good_over_refills_flushes_and_open_cursors() {
    let pool = pool(8);
    let mut held = take(&pool, 30).unwrap();
    // SAFETY: the pool lives; objects are given up once, those that were refused below.
    unsafe {
        let near = pool.pool_ref().near_cache().unwrap();
        let cursor = pool.pool_ref().open_put();
        assert!(!near.try_push(held[0]), "the cache is taken");
        assert!(!pool.pool_ref().try_put(held[0]));
        drop(cursor);
        for _ in 0..5 {
            assert!(near.try_push(held.pop().unwrap()));
            pool.flush_thread_cache();
            held.extend(take(&pool, 3).unwrap());
            helpers::give_n(&pool, &mut held, 2);
        }
    }
    give(&pool, &held);
    assert_whole(&pool);
}

#[test]
fn a_closed_pool_has_no_near_cache_and_lives_until_its_last_object() {
    let alive = Arc::new(());
    let pool = RawPool::builder(8).capacity(8).cache(4);
    let pool = pool.private(alive.clone()).build().unwrap();
    let (held, name) = (take(&pool, 2).unwrap(), pool.pool_ref());
    drop(pool);
    // SAFETY: the objects that are out keep the pool alive; each is given up once.
    unsafe {
        assert!(name.near_cache().is_none());
        assert!(!name.try_put(held[0]));
        assert_eq!(Arc::strong_count(&alive), 2);
        name.put_bulk(&held);
    }
    assert_eq!(Arc::strong_count(&alive), 1);
}

/// The last handle goes on another thread while a near cache is at hand: what is pushed after that
/// stays until this thread ends, and then frees the pool.
#[test]
fn pushes_into_a_pool_that_was_closed_meanwhile_come_back_at_thread_end() {
    let alive = Arc::new(());
    let pool = RawPool::builder(8).capacity(8).cache(4);
    let pool = pool.private(alive.clone()).build().unwrap();
    let name = pool.pool_ref();
    let step = Arc::new(Barrier::new(2));
    let out: Vec<_> = take(&pool, 2).unwrap().into_iter().map(Sent).collect();
    let worker = thread::spawn({
        let step = step.clone();
        move || {
            // SAFETY: the objects keep the pool alive, then what is cached; both are given up once.
            unsafe {
                let own = name.get().unwrap();
                let near = name.near_cache().unwrap();
                step.wait();
                step.wait();
                for Sent(obj) in out {
                    assert!(near.try_push(obj));
                }
                assert!(near.try_push(own));
            }
        }
    });
    step.wait();
    drop(pool);
    assert_eq!(Arc::strong_count(&alive), 2);
    step.wait();
    worker.join().unwrap();
    assert_eq!(Arc::strong_count(&alive), 1);
}
