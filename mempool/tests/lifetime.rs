//! When pools end: handles, objects that outlive them, caches of threads that end.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::{Sent, assert_whole, give, take};
use mempool::{BackendKind, DestroyError, Pool, RawPool};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

fn pool(capacity: usize, cache: usize) -> RawPool {
    RawPool::builder(64)
        .capacity(capacity)
        .cache(cache)
        .build()
        .unwrap()
}

/// Counts how many values of it live.
struct Tracked(Arc<AtomicUsize>);

impl Tracked {
    fn new(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self(alive.clone())
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn tracked(capacity: usize, cache: usize) -> (Pool<Tracked>, Arc<AtomicUsize>) {
    let alive = Arc::new(AtomicUsize::new(0));
    let pool = Pool::build(
        |b| b.capacity(capacity).cache(cache),
        |_| Tracked::new(&alive),
    );
    (pool.unwrap(), alive)
}

#[test]
fn objects_outlive_the_last_handle() {
    for cache in [0, 1, 4] {
        let (pool, alive) = tracked(8, cache);
        let held: Vec<_> = (0..5).map(|_| pool.get().unwrap()).collect();
        drop(pool);
        for (index, value) in held.into_iter().enumerate() {
            assert_eq!(alive.load(Ordering::Relaxed), 8, "before put {index}");
            drop(value);
        }
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn a_pool_with_objects_in_the_cache_of_its_last_user_is_freed() {
    let (pool, alive) = tracked(8, 4);
    drop(pool.get().unwrap());
    assert!(pool.raw().cached() > 0);
    let clone = pool.clone();
    drop(pool);
    assert_eq!(alive.load(Ordering::Relaxed), 8);
    drop(clone);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[test]
fn objects_dropped_by_another_thread_after_the_last_handle_free_the_pool() {
    let (pool, alive) = tracked(8, 4);
    let value = pool.get().unwrap();
    drop(pool);
    thread::spawn(move || drop(value)).join().unwrap();
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[test]
fn objects_in_another_threads_cache_keep_a_closed_pool_until_it_ends() {
    let (pool, alive) = tracked(8, 4);
    let step = Arc::new(Barrier::new(2));
    let other = thread::spawn({
        let (pool, step) = (pool.clone(), step.clone());
        move || {
            drop(pool.get().unwrap());
            drop(pool);
            step.wait();
            step.wait();
        }
    });
    step.wait();
    assert_eq!(pool.raw().cached(), 2);
    drop(pool);
    assert_eq!(alive.load(Ordering::Relaxed), 8);
    step.wait();
    other.join().unwrap();
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[test]
fn a_put_into_a_closed_pool_flushes_this_threads_cache() {
    let (pool, alive) = tracked(8, 4);
    let step = Arc::new(Barrier::new(2));
    let other = thread::spawn({
        let (pool, step) = (pool.clone(), step.clone());
        move || {
            let (first, second) = (pool.get().unwrap(), pool.get().unwrap());
            drop(first);
            assert!(pool.raw().cached() > 0);
            drop(pool);
            step.wait();
            step.wait();
            drop(second);
            step.wait();
            step.wait();
        }
    });
    step.wait();
    drop(pool);
    assert_eq!(alive.load(Ordering::Relaxed), 8);
    step.wait();
    step.wait();
    assert_eq!(
        alive.load(Ordering::Relaxed),
        0,
        "though the other thread lives"
    );
    step.wait();
    other.join().unwrap();
}

#[test]
fn a_thread_that_ends_gives_its_caches_back() {
    for kind in [BackendKind::Lifo, BackendKind::Ring] {
        let pools: Vec<_> = (0..3)
            .map(|_| {
                RawPool::builder(8)
                    .capacity(40)
                    .cache(20)
                    .backend(kind)
                    .build()
                    .unwrap()
            })
            .collect();
        thread::spawn({
            let pools = pools.clone();
            move || {
                for pool in &pools {
                    let held = take(pool, 20).unwrap();
                    give(pool, &held);
                    assert_eq!(pool.cached(), 20);
                }
            }
        })
        .join()
        .unwrap();
        for pool in &pools {
            assert_eq!(pool.cached(), 0);
            assert_whole(pool);
        }
    }
}

#[test]
fn try_destroy_refuses_with_the_number_outstanding() {
    let pool = pool(32, 8);
    let held = take(&pool, 10).unwrap();
    // Fault D4: a burst of which some are handed out; exactly the rest is ours to give back.
    give(&pool, &held[3..]);
    let pool = match pool.try_destroy() {
        Err(DestroyError::Outstanding {
            handle,
            outstanding: 3,
            cached_elsewhere: 0,
        }) => handle,
        other => panic!("{other:?}"),
    };
    let clone = pool.clone();
    let pool = match pool.try_destroy() {
        Err(DestroyError::StillShared { handle, handles: 2 }) => handle,
        other => panic!("{other:?}"),
    };
    drop(clone);
    give(&pool, &held[..3]);
    pool.try_destroy().unwrap();
}

#[test]
fn fault_d4_a_partly_handed_out_burst_is_given_back_exactly() {
    let pool = pool(64, 0);
    let held = take(&pool, 32).unwrap();
    let (out, rest) = held.split_at(10);
    give(&pool, rest);
    assert_eq!((pool.in_use(), pool.available()), (10, 54));
    give(&pool, out);
    assert_whole(&pool);
}

#[test]
fn try_destroy_reports_objects_in_other_threads_caches_apart() {
    let pool = pool(32, 8);
    let step = Arc::new(Barrier::new(2));
    let other = thread::spawn({
        let (pool, step) = (pool.clone(), step.clone());
        move || {
            let held = take(&pool, 5).unwrap();
            give(&pool, &held);
            drop(pool);
            step.wait();
            step.wait();
        }
    });
    step.wait();
    let error = pool.try_destroy().unwrap_err();
    assert_eq!(
        error.to_string(),
        "0 objects outstanding, 5 in caches of other threads"
    );
    let pool = error.into_handle();
    let error = take(&pool, 32).unwrap_err();
    assert_eq!((error.available, error.cached_elsewhere), (27, 5));
    step.wait();
    other.join().unwrap();
    pool.try_destroy().unwrap();
}

#[test]
fn a_forgotten_cursor_leaks_its_cache_and_nothing_else() {
    let pool = pool(32, 8);
    // Another thread, so that its worker id is the one that suffers.
    thread::spawn({
        let pool = pool.clone();
        move || {
            let held = take(&pool, 6).unwrap();
            // SAFETY: the pool lives; objects are given up once.
            unsafe {
                let mut cursor = pool.pool_ref().open_put();
                cursor.push(held[0]);
                cursor.push(held[1]);
                std::mem::forget(cursor);
            }
            give(&pool, &held[2..]);
            let again = take(&pool, 4).unwrap();
            give(&pool, &again);
            assert_eq!(pool.cached(), 0, "uncached from now on");
        }
    })
    .join()
    .unwrap();
    assert_eq!((pool.in_use(), pool.available()), (2, 30));
    let held = take(&pool, 30).unwrap();
    give(&pool, &held);
    let error = pool.try_destroy().unwrap_err();
    assert!(
        matches!(error, DestroyError::Outstanding { outstanding: 2, .. }),
        "{error}"
    );
}

#[test]
fn a_handle_can_be_had_from_an_object_until_the_pool_is_closed() {
    let pool = pool(8, 4);
    let obj = pool.get().unwrap();
    let name = pool.pool_ref();
    // SAFETY: `obj` is out, and keeps the pool alive until it is put, last of all.
    unsafe {
        let again = name.handle().unwrap();
        assert_eq!((name.capacity(), name.object_size()), (8, 64));
        drop(pool);
        let other = again.get().unwrap();
        drop(again);
        assert!(name.handle().is_none());
        name.put(other);
        name.put(obj);
    }
}

#[test]
fn a_cursor_outlives_the_last_handle_while_it_holds_objects() {
    let (pool, alive) = tracked(8, 4);
    let raw = pool.into_raw();
    let held = take(&raw, 7).unwrap();
    let name = raw.pool_ref();
    // SAFETY: objects that are out, or cached under the cursor, keep the pool alive.
    unsafe {
        let mut cursor = name.open_put();
        drop(raw);
        for obj in held {
            cursor.push(obj);
        }
        drop(cursor);
    }
    // The cache was open when the pool was closed: it comes back when this thread ends.
    assert_eq!(alive.load(Ordering::Relaxed), 8);
    let (pool, alive) = tracked(8, 4);
    let value = Sent(pool.raw().get().unwrap());
    pool.raw().flush_thread_cache();
    let name = pool.raw().pool_ref();
    thread::spawn(move || {
        let value = value;
        // SAFETY: as above.
        unsafe {
            let mut cursor = name.open_put();
            drop(pool);
            cursor.push(value.0);
        }
    })
    .join()
    .unwrap();
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}
