//! Defects that others' pools had, as scenarios.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::{assert_whole, give, take};
use mempool::backend::{FailAt, Lifo};
use mempool::{Budget, Burst, DestroyError, Pool, RawPool};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts its end.
struct Ends(Arc<AtomicUsize>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn counted(capacity: usize) -> (Pool<Ends>, Arc<AtomicUsize>) {
    let ends = Arc::new(AtomicUsize::new(0));
    let pool = Pool::new(capacity, |_| Ends(ends.clone())).unwrap();
    (pool, ends)
}

#[test]
fn fault_d2_what_was_given_back_is_not_given_back_again() {
    let pool = Pool::new(8, |index| index).unwrap();
    let mut burst: Burst<usize, 5> = pool.get_bulk().unwrap();
    burst.clear();
    assert!(burst.is_empty() && pool.raw().is_full());
    burst.clear();
    drop(burst);
    let all: Burst<usize, 8> = pool.get_bulk().unwrap();
    let mut values: Vec<usize> = all.iter().map(|value| **value).collect();
    values.sort_unstable();
    assert_eq!(values, [0, 1, 2, 3, 4, 5, 6, 7], "each once");
}

#[test]
fn fault_d8_a_pool_is_not_destroyed_under_its_objects() {
    let (pool, ends) = counted(8);
    let (first, second) = (pool.get().unwrap(), pool.get().unwrap());
    let error = pool.into_raw().try_destroy().unwrap_err();
    let DestroyError::Outstanding {
        handle,
        outstanding: 2,
        cached_elsewhere: 0,
    } = error
    else {
        panic!("{error}");
    };
    drop(first);
    let handle = handle.try_destroy().unwrap_err().into_handle();
    assert_eq!(ends.load(Ordering::Relaxed), 0);
    drop(second);
    handle.try_destroy().unwrap();
    assert_eq!(ends.load(Ordering::Relaxed), 8, "each value ended once");
}

/// The first step of a get fails, then the second, and so on: what succeeds is whole, what fails
/// changes nothing.
#[test]
fn fault_f4_a_get_whose_kth_step_fails_falls_back_or_changes_nothing() {
    let mut failures = 0;
    for k in 1.. {
        let (backend, switch) = FailAt::new(Lifo::new(100));
        let builder = RawPool::builder(64).capacity(100).cache(32);
        let pool = builder.custom_backend(Box::new(backend)).build().unwrap();
        let warm = take(&pool, 3).unwrap();
        give(&pool, &warm);
        let before = (pool.cached(), pool.in_use());
        let base = switch.gets();
        switch.fail_at(k);
        let sizes = [20, 5, 40, 1];
        let mut held = Vec::new();
        let mut failed = 0;
        for n in sizes {
            let (cached, in_use) = (pool.cached(), pool.in_use());
            match take(&pool, n) {
                Ok(objs) => held.extend(objs),
                Err(error) => {
                    failed += 1;
                    assert_eq!(error.asked, n);
                    assert_eq!((pool.cached(), pool.in_use()), (cached, in_use));
                }
            }
        }
        let hit = switch.gets() >= base + k;
        switch.fail_at(u64::MAX);
        give(&pool, &held);
        assert_eq!(before.1, pool.in_use());
        assert_whole(&pool);
        failures += failed;
        if !hit {
            println!("no failure any more at k = {k}, {failures} gets failed before");
            assert!(k > 3 && failures > 0, "k = {k}, failures {failures}");
            return;
        }
    }
}

#[test]
fn fault_y4_a_forgotten_value_keeps_the_pool_and_says_so() {
    let budget = Budget::new(1 << 20).unwrap();
    let ends = Arc::new(AtomicUsize::new(0));
    let configure = |b: mempool::Builder| b.capacity(4).cache(0).budget(&budget);
    let pool = Pool::build(configure, |_| Ends(ends.clone())).unwrap();
    let stride = pool.raw().stride() as u64;
    let object = pool.raw().get().unwrap();
    assert_eq!(budget.used(), stride);
    let error = pool.into_raw().try_destroy().unwrap_err();
    assert!(matches!(
        error,
        DestroyError::Outstanding { outstanding: 1, .. }
    ));
    let handle = error.into_handle();
    // Found again, it goes back, and nothing is left of the pool.
    give(&handle, &[object]);
    handle.try_destroy().unwrap();
    assert_eq!((budget.used(), ends.load(Ordering::Relaxed)), (0, 4));
    assert_eq!(Arc::strong_count(&ends), 1, "the pool kept none");
}

/// A value whose end panics does not keep the others, nor the memory, from theirs.
#[test]
fn values_that_unwind_at_their_end_end_nevertheless() {
    struct Angry(usize, Arc<AtomicUsize>);
    impl Drop for Angry {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
            assert!(self.0 != 3, "angry");
        }
    }
    let ends = Arc::new(AtomicUsize::new(0));
    let pool = Pool::new(8, |index| Angry(index, ends.clone())).unwrap();
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(pool)));
    assert!(unwound.is_err());
    assert_eq!(ends.load(Ordering::Relaxed), 8);
    assert_eq!(Arc::strong_count(&ends), 1, "the arena went too");
}
