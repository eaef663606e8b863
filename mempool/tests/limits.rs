//! Budgets, callbacks, sizing, counters, audits.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::{assert_whole, give, take};
use mempool::backend::{Backend, Lifo};
use mempool::{Audit, AuditError, BackendKind, Budget, Exhausted, RawPool};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

#[test]
fn several_pools_share_a_budget_in_bytes() {
    let budget = Budget::new(100_000).unwrap();
    let pool = |size: usize, cache| {
        let builder = RawPool::builder(size)
            .capacity(64)
            .cache(cache)
            .spread(false);
        builder.budget(&budget).build().unwrap()
    };
    let (small, large) = (pool(2000, 0), pool(16000, 0));
    let mut held = take(&large, 5).unwrap();
    let used = 5 * large.stride() as u64;
    assert_eq!((budget.used(), budget.limit()), (used, 100_000));
    assert_eq!(budget.used_percent(), used / 1000);
    assert_eq!(large.used_percent(), used / 1000);
    // All or nothing: 18 000 bytes are left.
    let error = take(&large, 3).unwrap_err();
    assert_eq!(
        error,
        Exhausted {
            asked: 3,
            available: 1,
            cached_elsewhere: 0,
            over_budget: true
        }
    );
    assert!(error.to_string().contains("budget"));
    assert_eq!((budget.used(), budget.refused()), (used, 1));
    let few = take(&small, 8).unwrap();
    assert!(take(&small, 9).unwrap_err().over_budget);
    give(&small, &few);
    held.extend(take(&large, 1).unwrap());
    give(&large, &held);
    assert_eq!(budget.used(), 0);
    // The pool itself is the limit.
    let error = take(&small, 65).unwrap_err();
    assert!(error.over_budget, "130 KB would not do either");
    budget.set_limit(1 << 30).unwrap();
    assert!(!take(&small, 65).unwrap_err().over_budget);
    assert_eq!(budget.used(), 0);
}

#[test]
fn caches_charge_the_budget_for_what_they_keep() {
    let budget = Budget::new(48 * 64).unwrap();
    let builder = RawPool::builder(40).capacity(100).cache(32).spread(false);
    let pool = builder.budget(&budget).build().unwrap();
    let stride = pool.stride() as u64;
    budget.set_limit(48 * stride).unwrap();
    let first = pool.get().unwrap();
    assert_eq!(budget.used(), 16 * stride, "half a cache");
    let held = take(&pool, 47).unwrap();
    assert_eq!(budget.used(), 48 * stride);
    assert!(pool.get().unwrap_err().over_budget);
    assert_eq!(pool.in_use(), 48);
    // A refill that the budget does not allow falls back to what was asked.
    give(&pool, &held[..31]);
    pool.flush_thread_cache();
    assert_eq!(budget.used(), 17 * stride);
    budget.set_limit(20 * stride).unwrap();
    let few = take(&pool, 3).unwrap();
    assert_eq!((pool.cached(), budget.used()), (0, 20 * stride));
    give(&pool, &few);
    give(&pool, &held[31..]);
    give(&pool, &[first]);
    budget.set_limit(1 << 20).unwrap();
    assert_whole(&pool);
    pool.flush_thread_cache();
    assert_eq!(budget.used(), 0);
}

#[test]
fn impossible_budgets_are_refused() {
    let budget = Budget::new(5).unwrap();
    for bytes in [0, 1 << 48, u64::MAX] {
        assert_eq!(Budget::new(bytes).unwrap_err().bytes, bytes);
        assert_eq!(budget.set_limit(bytes).unwrap_err().bytes, bytes);
    }
    assert_eq!(budget.limit(), 5);
}

#[test]
fn a_raised_limit_and_another_pools_put_wake_who_waits() {
    let budget = Budget::new(1000).unwrap();
    let pool = || {
        let builder = RawPool::builder(500).align(4).capacity(4).cache(0);
        builder.budget(&budget).build().unwrap()
    };
    let (one, two) = (pool(), pool());
    budget.set_limit(2 * one.stride() as u64).unwrap();
    let held = take(&one, 2).unwrap();
    assert!(
        two.get_timeout(Duration::from_millis(5))
            .unwrap_err()
            .over_budget
    );
    let waiter = |pool: &RawPool| {
        let pool = pool.clone();
        thread::spawn(move || {
            let obj = pool.get_timeout(Duration::from_secs(60)).unwrap();
            give(&pool, &[obj]);
        })
    };
    let first = waiter(&two);
    thread::sleep(Duration::from_millis(10));
    give(&one, &held[..1]);
    first.join().unwrap();
    let again = one.get().unwrap();
    let second = waiter(&two);
    thread::sleep(Duration::from_millis(10));
    budget.set_limit(10_000).unwrap();
    second.join().unwrap();
    give(&one, &[again, held[1]]);
}

#[test]
fn low_water_calls_once_until_the_pool_has_recovered() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = seen.clone();
    let builder = RawPool::builder(8).capacity(20).cache(0);
    let pool = builder
        .on_low_water(5, move |free| note.lock().unwrap().push(free))
        .build()
        .unwrap();
    let mut held = take(&pool, 14).unwrap();
    assert!(seen.lock().unwrap().is_empty());
    held.extend(take(&pool, 2).unwrap());
    held.extend(take(&pool, 1).unwrap());
    assert_eq!(*seen.lock().unwrap(), [4]);
    // Above the level, but not twice as high.
    give(&pool, &held.split_off(12));
    held.extend(take(&pool, 4).unwrap());
    assert_eq!(*seen.lock().unwrap(), [4]);
    give(&pool, &held.split_off(5));
    held.extend(take(&pool, 1).unwrap());
    held.extend(take(&pool, 14).unwrap());
    assert_eq!(*seen.lock().unwrap(), [4, 0]);
    give(&pool, &held);
    assert_whole(&pool);
}

#[test]
fn exhausted_calls_with_the_error_and_may_use_the_pool() {
    let seen = Arc::new(AtomicUsize::new(0));
    let note = seen.clone();
    let own: Arc<Mutex<Option<RawPool>>> = Arc::default();
    let inside = own.clone();
    let builder = RawPool::builder(8).capacity(4).cache(2);
    let pool = builder
        .on_exhausted(move |error| {
            note.store(error.asked, Ordering::Relaxed);
            if let Some(pool) = &*inside.lock().unwrap() {
                let obj = pool.get().expect("there are some");
                give(pool, &[obj]);
            }
        })
        .build()
        .unwrap();
    *own.lock().unwrap() = Some(pool.clone());
    assert_eq!(take(&pool, 9).unwrap_err().available, 4);
    assert_eq!(seen.load(Ordering::Relaxed), 9);
    own.lock().unwrap().take();
    assert_whole(&pool);
}

#[test]
fn callbacks_that_unwind_lose_nothing() {
    let angry = Arc::new(AtomicBool::new(true));
    let (low, out) = (angry.clone(), angry.clone());
    let fail = |angry: &AtomicBool| assert!(!angry.load(Ordering::Relaxed), "angry");
    let builder = RawPool::builder(8).capacity(8).cache(4);
    let pool = builder
        .on_low_water(8, move |_| fail(&low))
        .on_exhausted(move |_| fail(&out))
        .build()
        .unwrap();
    for n in [2, 9] {
        assert!(catch_unwind(AssertUnwindSafe(|| take(&pool, n))).is_err());
        assert_eq!(pool.in_use(), 0);
        pool.audit().unwrap();
    }
    angry.store(false, Ordering::Relaxed);
    assert_whole(&pool);
}

#[test]
fn counters_tell_hits_from_misses_for_each_worker() {
    let builder = RawPool::builder(8).capacity(100).cache(32);
    let pool = builder.build().unwrap();
    let before = pool.worker_stats().map(|worker| worker.hits).sum::<u64>();
    assert_eq!(before, 0);
    let first = pool.get().unwrap();
    let stats = pool.stats();
    assert_eq!((stats.hits, stats.misses, stats.backend_gets), (0, 1, 1));
    let held = take(&pool, 10).unwrap();
    give(&pool, &held);
    give(&pool, &[first]);
    // SAFETY: the objects are the pool's, and given up.
    unsafe {
        let objs = take(&pool, 4).unwrap();
        let mut cursor = pool.pool_ref().open_put();
        objs.iter().for_each(|&obj| cursor.push(obj));
    }
    let stats = pool.stats();
    assert_eq!((stats.hits, stats.misses), (5, 1));
    assert_eq!((stats.cached, stats.high_water), (16, 16));
    let all = take(&pool, 100).unwrap();
    assert_eq!(pool.stats().high_water, 100);
    assert!(take(&pool, 1).is_err());
    give(&pool, &all);
    let mine: Vec<_> = pool
        .worker_stats()
        .filter(|worker| worker.misses > 0)
        .collect();
    assert_eq!(mine.len(), 1, "one thread used the pool: {mine:?}");
    assert_eq!((mine[0].failed_gets, mine[0].hits), (1, 5));
    assert_whole(&pool);
}

#[test]
fn an_audit_adds_up_and_leaves_everything_where_it_was() {
    for kind in [BackendKind::Lifo, BackendKind::Ring] {
        let builder = RawPool::builder(8).capacity(200).cache(16).backend(kind);
        let pool = builder.build().unwrap();
        let held = take(&pool, 20).unwrap();
        give(&pool, &held[..5]);
        let audit = pool.audit().unwrap();
        assert_eq!((audit.backend, audit.cached, audit.out), (180, 5, 15));
        // The order is what it would have been.
        let next = |pool: &RawPool| take(pool, 100).unwrap();
        let twin = {
            let builder = RawPool::builder(8).capacity(200).cache(16).backend(kind);
            let twin = builder.build().unwrap();
            let held = take(&twin, 20).unwrap();
            give(&twin, &held[..5]);
            twin
        };
        let index = |pool: &RawPool, objs: Vec<NonNull<u8>>| -> Vec<_> {
            objs.into_iter().map(|obj| pool.contains(obj)).collect()
        };
        assert_eq!(index(&pool, next(&pool)), index(&twin, next(&twin)));
    }
}

/// A backend that says it holds what it does not, or gives something else.
struct Liar(Lifo, Mutex<Option<NonNull<u8>>>);

// SAFETY: carried only.
unsafe impl Send for Liar {}
// SAFETY: as above.
unsafe impl Sync for Liar {}

// SAFETY: it keeps the contract until the test makes it lie, and is only audited then.
unsafe impl Backend for Liar {
    fn put_bulk(&self, objs: &[NonNull<u8>]) {
        self.0.put_bulk(objs);
    }

    fn get_bulk(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), usize> {
        self.0.get_bulk(out)?;
        if let Some(lie) = self.1.lock().unwrap().take() {
            out[0].write(lie);
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

#[test]
fn an_audit_finds_what_is_foreign_twice_or_missing() {
    let liar = Arc::new(Liar(Lifo::new(8), Mutex::new(None)));
    struct Shared(Arc<Liar>);
    // SAFETY: forwards.
    unsafe impl Backend for Shared {
        fn put_bulk(&self, objs: &[NonNull<u8>]) {
            self.0.put_bulk(objs);
        }
        fn get_bulk(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), usize> {
            self.0.get_bulk(out)
        }
        fn len(&self) -> usize {
            self.0.len()
        }
    }
    let builder = RawPool::builder(8).capacity(8).cache(0);
    let pool = builder
        .custom_backend(Box::new(Shared(liar.clone())))
        .build()
        .unwrap();
    assert!(matches!(pool.audit(), Ok(Audit { out: 0, .. })));
    let (first, second) = (pool.object(0).unwrap(), pool.object(5).unwrap());
    *liar.1.lock().unwrap() = Some(second);
    assert!(matches!(pool.audit(), Err(AuditError::Twice { index: 5 })));
    // One object is there twice now, and one is lost.
    *liar.1.lock().unwrap() = Some(NonNull::from(&7_u8));
    assert!(matches!(pool.audit(), Err(AuditError::Foreign { .. })));
    let mut out = [MaybeUninit::uninit()];
    liar.0.get_bulk(&mut out).unwrap();
    let found = pool.audit();
    assert!(found.is_err(), "{found:?}");
    let _ = first;
    // What is left of the pool is not to be used any more.
    std::mem::forget(pool);
}

#[test]
fn low_water_is_called_again_after_the_pool_was_full() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let builder = RawPool::builder(8).capacity(100).cache(0);
    let pool = builder
        .on_low_water(10, move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        })
        .build()
        .unwrap();
    for round in 1..=5 {
        let held = take(&pool, 95).unwrap();
        give(&pool, &held);
        assert_eq!(calls.load(Ordering::Relaxed), round);
    }
}

#[test]
fn low_water_is_called_by_gets_in_place_and_may_unwind() {
    let angry = Arc::new(AtomicBool::new(false));
    let calls = Arc::new(AtomicUsize::new(0));
    let (anger, count) = (angry.clone(), calls.clone());
    let builder = RawPool::builder(8).capacity(16).cache(16);
    let pool = builder
        .on_low_water(8, move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            assert!(!anger.load(Ordering::Relaxed), "angry");
        })
        .build()
        .unwrap();
    angry.store(true, Ordering::Relaxed);
    let unwound = catch_unwind(AssertUnwindSafe(|| pool.get_in_place(8, <[_]>::to_vec)));
    assert!(unwound.is_err());
    assert_eq!((pool.in_use(), calls.load(Ordering::Relaxed)), (0, 1));
    angry.store(false, Ordering::Relaxed);
    let held = pool.get_in_place(12, <[_]>::to_vec).unwrap();
    assert_eq!(pool.in_use(), 12);
    give(&pool, &held);
    assert_whole(&pool);
}

#[test]
fn a_backend_that_unwinds_leaves_no_charge() {
    struct Angry(Lifo);
    // SAFETY: forwards, or takes nothing.
    unsafe impl Backend for Angry {
        fn put_bulk(&self, objs: &[NonNull<u8>]) {
            self.0.put_bulk(objs);
        }
        fn get_bulk(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), usize> {
            assert!(out.len() != 3, "angry");
            self.0.get_bulk(out)
        }
        fn len(&self) -> usize {
            self.0.len()
        }
    }
    let budget = Budget::new(1 << 20).unwrap();
    let builder = RawPool::builder(8).capacity(8).cache(0).budget(&budget);
    let pool = builder
        .custom_backend(Box::new(Angry(Lifo::new(8))))
        .build()
        .unwrap();
    for _ in 0..4 {
        assert!(catch_unwind(AssertUnwindSafe(|| take(&pool, 3))).is_err());
    }
    assert_eq!((budget.used(), pool.in_use()), (0, 0));
}

#[test]
fn numbers_from_arguments_do_not_overflow() {
    let budget = Budget::new(1 << 40).unwrap();
    let memory = Box::leak(vec![0; 64].into_boxed_slice());
    let builder = RawPool::builder(8).align(1).stride(1 << 61).capacity(1);
    let pool = builder
        .cache(0)
        .budget(&budget)
        .static_region(memory)
        .build()
        .unwrap();
    assert!(take(&pool, 4).is_err());
    assert!(take(&pool, 1).unwrap_err().over_budget);
    let small = RawPool::builder(8).sized_for(10, 0).build().unwrap();
    assert_eq!(small.capacity(), 10);
}
