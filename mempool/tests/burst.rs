//! Bursts of typed values.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::assert_whole;
use mempool::backend::{Backend, Lifo};
use mempool::burst::{FillError, Full, IntoIter};
use mempool::{Burst, Exhausted, Pool, Pooled};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const _: () = assert!(size_of::<Burst<[u8; 100], 32>>() == 33 * size_of::<usize>());

fn pool(capacity: usize, cache: usize) -> Pool<usize> {
    Pool::build(|b| b.capacity(capacity).cache(cache), |index| index).unwrap()
}

fn is_send_and_sync<T: Send + Sync>() {}

#[test]
fn bursts_go_where_their_values_may() {
    is_send_and_sync::<Burst<u8, 4>>();
    is_send_and_sync::<IntoIter<u8, 4>>();
    let (pool, mut burst) = (pool(8, 2), Burst::<_, 4>::new());
    burst.fill_all(&pool).unwrap();
    std::thread::spawn(move || drop(burst)).join().unwrap();
    assert_whole(pool.raw());
}

#[test]
fn filling_is_all_or_nothing_or_what_there_is() {
    for cache in [0, 4] {
        let pool = pool(20, cache);
        let mut burst: Burst<usize, 16> = pool.get_bulk().unwrap();
        assert!(burst.is_full() && burst.len() == 16 && burst.room() == 0);
        let error = burst.fill_exact(&pool, 1).unwrap_err();
        let no_room = FillError::NoRoom {
            asked: 1,
            room: 0,
            capacity: 16,
        };
        assert_eq!(error, no_room);
        assert_eq!(
            error.to_string(),
            "asked for 1 more values, a burst of 16 has room for 0 more"
        );
        burst.truncate(14);
        let mut other = Burst::<usize, 8>::new();
        let exhausted = Exhausted {
            asked: 8,
            available: 6,
            cached_elsewhere: 0,
            over_budget: false,
        };
        assert_eq!(other.fill_all(&pool), Err(exhausted));
        assert_eq!(
            other.fill_exact(&pool, 7),
            Err(FillError::Exhausted(Exhausted {
                asked: 7,
                ..exhausted
            }))
        );
        assert!(other.is_empty());
        other.fill_exact(&pool, 2).unwrap();
        assert_eq!((other.fill(&pool), other.len()), (4, 6));
        assert_eq!((other.fill(&pool), pool.get_burst::<4>().len()), (0, 0));
        assert!(pool.get_bulk::<1>().is_err());
        let mut seen: Vec<usize> = burst.iter().chain(&other).map(|value| **value).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..20).collect::<Vec<_>>(), "each value once");
        drop((burst, other));
        assert_whole(pool.raw());
    }
}

#[test]
fn fault_v1_bursts_around_255_values() {
    fn one<const N: usize>(pool: &Pool<usize>) {
        let mut burst: Burst<usize, N> = pool.get_bulk().unwrap();
        assert_eq!(burst.len(), N);
        burst.clear();
        assert_eq!(burst.fill(pool), N);
        assert_eq!(pool.raw().in_use(), N);
        drop(burst);
        assert!(pool.raw().is_full());
    }
    let pool = pool(3000, 512);
    one::<0>(&pool);
    one::<1>(&pool);
    one::<255>(&pool);
    one::<256>(&pool);
    one::<257>(&pool);
    one::<2048>(&pool);
    assert_whole(pool.raw());
}

#[test]
fn values_are_pushed_popped_swapped_and_changed() {
    let pool = pool(8, 2);
    let mut burst = Burst::<usize, 3>::default();
    assert!(burst.pop().is_none() && burst.swap_remove(0).is_none());
    for wanted in [10, 20, 30] {
        let mut value = pool.get().unwrap();
        *value = wanted;
        burst.push(value).unwrap();
    }
    let mut fourth = pool.get().unwrap();
    *fourth = 40;
    let full = burst.push(fourth).unwrap_err();
    assert_eq!(full.to_string(), "a burst of 3 is full");
    let Full { value, capacity: 3 } = full else {
        panic!("{full:?}")
    };
    assert_eq!(*value, 40);
    assert!(burst.swap_remove(3).is_none());
    assert_eq!(*burst.swap_remove(0).unwrap(), 10);
    assert_eq!(format!("{burst:?}"), "[Pooled(30), Pooled(20)]");
    burst.reverse();
    for value in &mut burst {
        **value += 1;
    }
    assert_eq!(*burst.pop().unwrap(), 31);
    assert_eq!(burst.iter().map(|value| **value).collect::<Vec<_>>(), [21]);
    drop((burst, value));
    assert_whole(pool.raw());
}

/// Runs of values of several pools, in all orders of eight from three pools.
#[test]
fn values_of_several_pools_go_back_each_to_its_own() {
    for cache in [0, 4] {
        let pools = [pool(8, cache), pool(8, cache), pool(8, cache)];
        for order in 0..3_usize.pow(8) {
            let mut burst = Burst::<usize, 8>::new();
            for place in 0..8 {
                let from = order / 3_usize.pow(place) % 3;
                burst.push(pools[from].get().unwrap()).unwrap();
            }
            drop(burst);
            assert!(
                pools.iter().all(|pool| pool.raw().is_full()),
                "order {order}"
            );
        }
        pools.iter().for_each(|pool| assert_whole(pool.raw()));
    }
}

#[test]
fn a_run_is_one_put() {
    let pools = [pool(64, 0), pool(64, 0)];
    let mut burst = pools[0].get_bulk::<32>().unwrap();
    burst.truncate(20);
    burst.fill_exact(&pools[1], 12).unwrap();
    let puts = || pools.each_ref().map(|pool| pool.raw().stats().backend_puts);
    let before = puts();
    drop(burst);
    assert_eq!(puts(), before.map(|puts| puts + 1));
}

#[test]
fn iterators_give_back_what_was_not_taken() {
    let pool = pool(16, 2);
    let mut iter = pool.get_bulk::<8>().unwrap().into_iter();
    let taken: Vec<Pooled<usize>> = [iter.next(), iter.next_back(), iter.next()]
        .into_iter()
        .flatten()
        .collect();
    assert_eq!((iter.len(), pool.raw().in_use()), (5, 8));
    drop(iter);
    assert_eq!(pool.raw().in_use(), 3);
    drop(taken);

    let mut burst = pool.get_bulk::<8>().unwrap();
    let mut drain = burst.drain();
    let taken = (drain.next().unwrap(), drain.next_back().unwrap());
    assert_eq!(drain.len(), 6);
    drop(drain);
    assert_eq!((burst.len(), pool.raw().in_use()), (0, 2));
    burst.fill_all(&pool).unwrap();
    assert_eq!(burst.drain().count(), 8);
    drop((burst, taken));
    assert_whole(pool.raw());
}

#[test]
fn forgetting_leaks_and_doubles_nothing() {
    let pool = pool(32, 4);
    let mut burst = pool.get_bulk::<8>().unwrap();
    std::mem::forget(burst.drain());
    assert_eq!((burst.len(), pool.raw().in_use()), (0, 8));
    burst.fill_all(&pool).unwrap();
    std::mem::forget(burst);
    let mut iter = pool.get_bulk::<8>().unwrap().into_iter();
    iter.next();
    std::mem::forget(iter);
    pool.raw().flush_thread_cache();
    assert_eq!(pool.raw().in_use(), 8 + 8 + 7);
    assert_eq!(pool.get_burst::<32>().len(), 9);
}

#[test]
fn the_last_values_of_a_closed_pool_free_it() {
    let alive = Arc::new(());
    let new = || Pool::build(|b| b.capacity(16).cache(4), |_| alive.clone()).unwrap();
    let (first, second) = (new(), new());
    let mut burst = first.get_bulk::<12>().unwrap();
    burst.truncate(3);
    burst.fill_exact(&second, 4).unwrap();
    burst.fill_exact(&first, 2).unwrap();
    drop((first, second));
    assert_eq!(Arc::strong_count(&alive), 33);
    drop(burst);
    assert_eq!(Arc::strong_count(&alive), 1);
}

/// A backend whose puts unwind while it is told to.
struct Unwinds {
    inner: Lifo,
    armed: Arc<AtomicBool>,
    unwound: Arc<AtomicUsize>,
}

// SAFETY: forwards, or keeps nothing of what it was to take in.
unsafe impl Backend for Unwinds {
    fn put_bulk(&self, objs: &[NonNull<u8>]) {
        if self.armed.load(Ordering::Relaxed) {
            self.unwound.fetch_add(objs.len(), Ordering::Relaxed);
            panic!("on purpose");
        }
        self.inner.put_bulk(objs);
    }

    fn get_bulk(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), usize> {
        self.inner.get_bulk(out)
    }

    fn len(&self) -> usize {
        self.inner.len()
    }
}

#[test]
fn a_put_that_unwinds_loses_its_run_and_no_other() {
    let (armed, unwound) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let backend = Box::new(Unwinds {
        inner: Lifo::new(16),
        armed: armed.clone(),
        unwound: unwound.clone(),
    });
    let wild = Pool::build(|b| b.capacity(16).cache(0).custom_backend(backend), |_| 0).unwrap();
    let tame = pool(16, 4);
    let mut burst = Burst::<usize, 16>::new();
    for _ in 0..2 {
        burst.fill_exact(&tame, 2).unwrap();
        burst.fill_exact(&wild, 3).unwrap();
        burst.fill_exact(&tame, 2).unwrap();
    }
    armed.store(true, Ordering::Relaxed);
    assert!(catch_unwind(AssertUnwindSafe(|| burst.truncate(1))).is_err());
    armed.store(false, Ordering::Relaxed);
    assert_eq!(
        (burst.len(), tame.raw().in_use()),
        (1, 1),
        "all the tame ones came back"
    );
    assert_eq!(
        (unwound.load(Ordering::Relaxed), wild.raw().in_use()),
        (6, 6)
    );
    let mut left: Vec<_> = std::iter::from_fn(|| wild.get().ok()).collect();
    assert_eq!(left.len(), 10);
    let distinct: std::collections::HashSet<_> =
        left.iter_mut().map(|value| &raw mut **value).collect();
    assert_eq!(distinct.len(), 10);
    drop(burst);
    assert_whole(tame.raw());
}
