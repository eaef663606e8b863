//! Several threads at once. Objects carry plain, unsynchronised marks: a race detector (and Miri)
//! sees it if an object is ever in two hands.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::{assert_whole, give, take};
use mempool::backend::{Backend, Ring};
use mempool::{BackendKind, Pool, RawPool};
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread;

const ROUNDS: usize = if cfg!(miri) { 60 } else { 20_000 };

fn mark(obj: NonNull<u8>, from: u64, to: u64) {
    // SAFETY: the caller holds the object; that nobody else does is what is tested.
    unsafe {
        assert_eq!(obj.cast::<u64>().read(), from, "object in two hands");
        obj.cast::<u64>().write(to);
    }
}

fn churn(pool: &RawPool, me: u64) {
    let mut rng = fastrand::Rng::with_seed(me);
    let mut held: Vec<NonNull<u8>> = Vec::new();
    for _ in 0..ROUNDS {
        if rng.bool() {
            if let Ok(objs) = take(pool, rng.usize(..12)) {
                for obj in objs {
                    mark(obj, 0, me);
                    held.push(obj);
                }
            }
        } else {
            let n = rng.usize(..12).min(held.len());
            let objs = held.split_off(held.len() - n);
            for &obj in &objs {
                mark(obj, me, 0);
            }
            if rng.bool() {
                give(pool, &objs);
            } else {
                // SAFETY: the pool lives; objects are given up once.
                unsafe {
                    let mut cursor = pool.pool_ref().open_put();
                    objs.iter().for_each(|&obj| cursor.push(obj));
                }
            }
        }
        assert!(pool.available() <= pool.capacity());
    }
    for obj in held {
        mark(obj, me, 0);
        give(pool, &[obj]);
    }
}

#[test]
fn fault_c5_threads_that_take_and_put_keep_every_object() {
    for kind in [BackendKind::Lifo, BackendKind::Ring] {
        for cache in [0, 8] {
            let builder = RawPool::builder(16).capacity(64).cache(cache).backend(kind);
            let pool = builder.build().unwrap();
            let threads: Vec<_> = (1..=3)
                .map(|me| {
                    let pool = pool.clone();
                    thread::spawn(move || churn(&pool, me))
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            assert_whole(&pool);
        }
    }
}

#[test]
fn fault_c5_a_ring_never_holds_too_much_nor_too_little() {
    let ring = Arc::new(Ring::new(2));
    let mut objs = [0u64; 2];
    let objs = objs.each_mut().map(|obj| NonNull::from(obj).cast::<u8>());
    ring.put_bulk(&objs);
    let threads: Vec<_> = (1..=3)
        .map(|me| {
            let ring = ring.clone();
            thread::spawn(move || {
                let mut out = [std::mem::MaybeUninit::uninit()];
                for _ in 0..ROUNDS {
                    assert!(ring.len() <= 2);
                    match ring.get_bulk(&mut out) {
                        Ok(()) => {
                            // SAFETY: written after success.
                            let obj = unsafe { out[0].assume_init() };
                            mark(obj, 0, me);
                            mark(obj, me, 0);
                            ring.put_bulk(&[obj]);
                        }
                        Err(available) => assert_eq!(available, 0),
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(ring.len(), 2);
}

/// One thread takes, another puts back (row MP8): values travel through a ring of their own.
#[test]
fn mp_8_one_thread_takes_and_another_puts_back() {
    for kind in [BackendKind::Lifo, BackendKind::Ring] {
        let configure = move |b: mempool::Builder| b.capacity(48).cache(16).backend(kind);
        let pool = Pool::build(configure, |_| 0usize).unwrap();
        let road = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let taker = thread::spawn({
            let (pool, road) = (pool.clone(), road.clone());
            move || {
                let mut sent = 0;
                while sent < ROUNDS {
                    match pool.get() {
                        Ok(mut value) => {
                            *value += 1;
                            road.lock().push(value);
                            sent += 1;
                        }
                        Err(_) => thread::yield_now(),
                    }
                }
            }
        });
        let mut received = 0;
        while received < ROUNDS {
            let values = std::mem::take(&mut *road.lock());
            received += values.len();
            if values.is_empty() {
                thread::yield_now();
            }
        }
        taker.join().unwrap();
        pool.raw().flush_thread_cache();
        let all: Vec<_> = (0..48).map(|_| pool.get().unwrap()).collect();
        assert_eq!(all.iter().map(|value| **value).sum::<usize>(), ROUNDS);
        drop(all);
        assert_whole(pool.raw());
    }
}

/// Handles and objects go away on several threads at once; whoever is last frees.
#[test]
fn pools_end_on_any_thread() {
    let rounds = if cfg!(miri) { 5 } else { 300 };
    for round in 0..rounds {
        let dropped = Arc::new(());
        let pool = Pool::build(|b| b.capacity(12).cache(round % 4), |_| dropped.clone()).unwrap();
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let pool = pool.clone();
                let value = pool.get().unwrap();
                thread::spawn(move || {
                    let own = pool.get();
                    drop(pool);
                    drop(value);
                    drop(own);
                })
            })
            .collect();
        drop(pool);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(Arc::strong_count(&dropped), 1);
    }
}
