//! Backends that re-enter, unwind or fail half-way, and what must not come of it.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::{assert_whole, give, take};
use mempool::backend::{Backend, Lifo};
use mempool::{PoolRef, RawPool};
use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// What the test tells its backend.
#[derive(Default)]
struct Orders {
    pool: OnceLock<PoolRef>,
    nested: AtomicBool,
    reenter: AtomicBool,
    panic_in_get: AtomicBool,
    panic_in_put: AtomicBool,
    fail_half_way: AtomicBool,
    calls: AtomicUsize,
}

struct Wild {
    inner: Lifo,
    orders: Arc<Orders>,
}

impl Wild {
    /// Uses its own pool, one level deep.
    fn maybe_reenter(&self) {
        self.orders.calls.fetch_add(1, Ordering::Relaxed);
        let orders = &*self.orders;
        let Some(&pool) = orders.pool.get() else {
            return;
        };
        if !orders.reenter.load(Ordering::Relaxed) || orders.nested.swap(true, Ordering::Relaxed) {
            return;
        }
        // SAFETY: called by a test that holds a handle; each object is given back once.
        unsafe {
            if let Ok(obj) = pool.get() {
                let mut cursor = pool.open_put();
                cursor.push(obj);
            }
            let mut two = [MaybeUninit::uninit(); 2];
            if pool.get_bulk(&mut two).is_ok() {
                pool.put_bulk(&two.map(|obj| obj.assume_init()));
            }
            if let Some(handle) = pool.handle() {
                handle.flush_thread_cache();
            }
        }
        orders.nested.store(false, Ordering::Relaxed);
    }
}

// SAFETY: forwards to a backend that keeps the contract, takes nothing, or unwinds.
unsafe impl Backend for Wild {
    fn put_bulk(&self, objs: &[NonNull<u8>]) {
        self.maybe_reenter();
        assert!(
            !self.orders.panic_in_put.load(Ordering::Relaxed),
            "as ordered"
        );
        self.inner.put_bulk(objs);
    }

    fn get_bulk(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), usize> {
        self.maybe_reenter();
        assert!(
            !self.orders.panic_in_get.load(Ordering::Relaxed),
            "as ordered"
        );
        if self.orders.fail_half_way.load(Ordering::Relaxed) {
            let half = out.len() / 2;
            out[..half].fill(MaybeUninit::new(NonNull::dangling()));
            return Err(half);
        }
        self.inner.get_bulk(out)
    }

    fn len(&self) -> usize {
        self.inner.len()
    }
}

fn wild(capacity: usize, cache: usize) -> (RawPool, Arc<Orders>) {
    let orders = Arc::new(Orders::default());
    let backend = Wild {
        inner: Lifo::new(capacity),
        orders: orders.clone(),
    };
    let builder = RawPool::builder(8).capacity(capacity).cache(cache);
    let pool = builder.custom_backend(Box::new(backend)).build().unwrap();
    orders.pool.set(pool.pool_ref()).unwrap();
    (pool, orders)
}

#[test]
fn a_backend_may_use_its_own_pool() {
    for cache in [0, 1, 8] {
        let (pool, orders) = wild(64, cache);
        orders.reenter.store(true, Ordering::Relaxed);
        for n in [1, 3, 8, 20] {
            let held = take(&pool, n).unwrap();
            assert_eq!(pool.in_use(), n);
            for obj in held {
                give(&pool, &[obj]);
            }
            assert!(pool.is_full());
        }
        let held = take(&pool, 30).unwrap();
        // SAFETY: the pool lives; objects are given up once.
        unsafe {
            let mut cursor = pool.pool_ref().open_put();
            for obj in held {
                cursor.push(obj);
            }
        }
        assert!(orders.calls.load(Ordering::Relaxed) > 10);
        assert_whole(&pool);
        orders.reenter.store(false, Ordering::Relaxed);
        pool.try_destroy().unwrap();
    }
}

#[test]
fn fault_e6_refill_that_fails_half_way_leaves_the_cache() {
    let (pool, orders) = wild(64, 32);
    let held = take(&pool, 40).unwrap();
    give(&pool, &held[..10]);
    orders.fail_half_way.store(true, Ordering::Relaxed);
    for n in [11, 12, 26, 27, 64] {
        let error = take(&pool, n).unwrap_err();
        assert_eq!((error.asked, error.available), (n, 10 + (n - 10) / 2));
        assert_eq!((pool.cached(), pool.in_use()), (10, 30));
    }
    assert_eq!(take(&pool, 10).unwrap(), held[..10]);
    orders.fail_half_way.store(false, Ordering::Relaxed);
    give(&pool, &held);
    assert_whole(&pool);
}

/// Takes all that can be had and asserts that nothing is there twice, or is also in `held`.
fn assert_no_duplicates(pool: &RawPool, held: &[NonNull<u8>]) -> usize {
    let mut seen: HashSet<_> = held.iter().copied().collect();
    let mut got = Vec::new();
    while let Ok(obj) = pool.get() {
        assert!(seen.insert(obj), "handed out twice");
        got.push(obj);
    }
    give(pool, &got);
    got.len()
}

#[test]
fn an_unwinding_put_loses_objects_but_doubles_none() {
    for cache in [0, 1, 8] {
        for cursor in [false, true] {
            let (pool, orders) = wild(64, cache);
            let mut held = take(&pool, 30).unwrap();
            orders.panic_in_put.store(true, Ordering::Relaxed);
            let result = catch_unwind(AssertUnwindSafe(|| {
                // SAFETY: objects are given up once: popped before they are put.
                unsafe {
                    if cursor {
                        let mut cursor = pool.pool_ref().open_put();
                        while let Some(obj) = held.pop() {
                            cursor.push(obj);
                        }
                    } else {
                        while let Some(obj) = held.pop() {
                            pool.pool_ref().put(obj);
                        }
                    }
                }
            }));
            assert!(result.is_err());
            orders.panic_in_put.store(false, Ordering::Relaxed);
            let left = assert_no_duplicates(&pool, &held);
            assert!((34..=64).contains(&left));
            give(&pool, &held);
        }
    }
}

#[test]
fn an_unwinding_get_loses_objects_but_doubles_none() {
    for cache in [0, 1, 8] {
        for n in [1, 4, 9] {
            let (pool, orders) = wild(64, cache);
            let mut held = take(&pool, 8).unwrap();
            helpers::give_n(&pool, &mut held, 1);
            orders.panic_in_get.store(true, Ordering::Relaxed);
            let result = catch_unwind(AssertUnwindSafe(|| {
                let mut kept = Vec::new();
                loop {
                    kept.extend(take(&pool, n).unwrap());
                }
            }));
            assert!(result.is_err());
            orders.panic_in_get.store(false, Ordering::Relaxed);
            assert_no_duplicates(&pool, &held);
            give(&pool, &held);
        }
    }
}

#[test]
fn an_unwinding_backend_at_thread_end_keeps_other_pools_whole() {
    let (pool, orders) = wild(64, 8);
    let other = RawPool::builder(8).capacity(16).cache(4).build().unwrap();
    std::thread::spawn({
        let (pool, other, orders) = (pool.clone(), other.clone(), orders.clone());
        move || {
            for pool in [&pool, &other] {
                let held = take(pool, 4).unwrap();
                give(pool, &held);
                assert!(pool.cached() > 0);
            }
            orders.panic_in_put.store(true, Ordering::Relaxed);
        }
    })
    .join()
    .unwrap();
    orders.panic_in_put.store(false, Ordering::Relaxed);
    assert_eq!(
        assert_no_duplicates(&pool, &[]),
        60,
        "what was cached is lost"
    );
    assert_whole(&other);
}

#[test]
#[should_panic(expected = "a double put")]
fn more_objects_than_there_are_do_not_fit_the_lifo() {
    let backend = Lifo::new(1);
    backend.put_bulk(&[NonNull::dangling(), NonNull::dangling()]);
}

#[test]
#[should_panic(expected = "a double put")]
fn more_objects_than_there_are_do_not_fit_the_ring() {
    let backend = mempool::backend::Ring::new(1);
    backend.put_bulk(&[NonNull::dangling(), NonNull::dangling()]);
}
