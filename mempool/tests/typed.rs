//! The typed layer.

use mempool::{Pool, Pooled, RawPool};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const _: () = assert!(size_of::<Pooled<[u8; 100]>>() == size_of::<usize>());
const _: () = assert!(size_of::<Option<Pooled<[u8; 100]>>>() == size_of::<usize>());

fn is_send_and_sync<T: Send + Sync>() {}

#[test]
fn handles_and_guards_go_where_their_values_may() {
    is_send_and_sync::<Pool<std::cell::Cell<u8>>>();
    is_send_and_sync::<Pooled<u8>>();
}

#[test]
fn values_keep_their_state_and_are_dropped_once() {
    let alive = Arc::new(());
    let pool = Pool::build(|b| b.capacity(10).cache(3), |index| (index, alive.clone())).unwrap();
    assert_eq!(Arc::strong_count(&alive), 11);
    let mut value = pool.get().unwrap();
    value.0 = 77;
    drop(value);
    assert_eq!(pool.get().unwrap().0, 77);
    let all: Vec<_> = std::iter::from_fn(|| pool.get().ok()).collect();
    assert_eq!(all.len(), 10);
    assert!(format!("{:?}", all[0]).starts_with("Pooled"));
    drop(all);
    drop(pool);
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn a_constructor_that_panics_leaves_nothing_behind() {
    let alive = Arc::new(());
    let result = std::panic::catch_unwind(|| {
        Pool::new(10, |index| {
            assert!(index < 6);
            alive.clone()
        })
    });
    assert!(result.is_err());
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn a_foreign_builder_cannot_change_the_size_of_objects() {
    let pool = Pool::build(
        |_| RawPool::builder(1).align(1).capacity(3).cache(0),
        |_| [7u64; 40],
    );
    let pool = pool.unwrap();
    let all: Vec<_> = std::iter::from_fn(|| pool.get().ok()).collect();
    assert_eq!(all.len(), 3);
    assert!(all.iter().all(|value| **value == [7; 40]));
    assert!(pool.raw().object_size() > 320);
}

#[test]
fn alignment_of_values_is_kept() {
    #[repr(align(512))]
    struct Wide(u8);
    let pool = Pool::new(3, |_| Wide(1)).unwrap();
    let value = pool.get().unwrap();
    assert_eq!((&raw const *value).addr() % 512, 0);
    assert_eq!(value.0, 1);
}

#[test]
fn a_forgotten_guard_leaks_its_pool_and_nothing_else() {
    let alive = Arc::new(());
    let pool = Pool::build(|b| b.capacity(4).cache(2), |_| alive.clone()).unwrap();
    std::mem::forget(pool.get().unwrap());
    let left: Vec<_> = std::iter::from_fn(|| pool.get().ok()).collect();
    assert_eq!(left.len(), 3);
    drop(left);
    let error = pool.into_raw().try_destroy().unwrap_err();
    assert_eq!(
        error.to_string(),
        "1 objects outstanding, 0 in caches of other threads"
    );
    drop(error);
    assert_eq!(Arc::strong_count(&alive), 5);
}

#[test]
fn values_of_one_pool_may_own_values_of_another() {
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            DROPS.fetch_add(1, Ordering::Relaxed);
        }
    }
    let inner = Pool::build(|b| b.capacity(5).cache(1), |_| Counted).unwrap();
    let outer = Pool::build(|b| b.capacity(5).cache(1), |_| Some(inner.get().unwrap())).unwrap();
    drop(inner);
    let mut value = outer.get().unwrap();
    drop(value.take());
    drop(value);
    assert_eq!(DROPS.load(Ordering::Relaxed), 0);
    drop(outer);
    assert_eq!(DROPS.load(Ordering::Relaxed), 5);
}

#[test]
fn a_value_may_own_a_handle_of_its_own_pool() {
    let pool = Pool::build(|b| b.capacity(2), |_| None::<RawPool>).unwrap();
    let mut value = pool.get().unwrap();
    *value = Some(pool.raw().clone());
    drop(pool);
    *value = None;
}
