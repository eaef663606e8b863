//! Nothing is stranded: objects in other threads' caches come back, and a get can wait for them.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::{Sent, assert_whole, give, take};
use mempool::{Pool, RawPool};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(20);

fn pool(capacity: usize, cache: usize) -> RawPool {
    let builder = RawPool::builder(64).capacity(capacity).cache(cache);
    builder.build().unwrap()
}

/// A thread that does one thing with the pool at a time, when told to.
struct Worker {
    orders: Option<Sender<Order>>,
    done: Receiver<()>,
    thread: Option<thread::JoinHandle<()>>,
}

type Order = Box<dyn FnOnce(&RawPool) + Send>;

impl Worker {
    fn new(pool: &RawPool) -> Self {
        let (orders, to_do) = channel::<Order>();
        let (report, done) = channel();
        let pool = pool.clone();
        let thread = thread::spawn(move || {
            for order in to_do {
                order(&pool);
                report.send(()).unwrap();
            }
        });
        Self {
            orders: Some(orders),
            done,
            thread: Some(thread),
        }
    }

    fn start(&self, order: impl FnOnce(&RawPool) + Send + 'static) {
        self.orders.as_ref().unwrap().send(Box::new(order)).unwrap();
    }

    fn run(&self, order: impl FnOnce(&RawPool) + Send + 'static) {
        self.start(order);
        self.done.recv().unwrap();
    }

    fn get_and_put(&self, n: usize) {
        self.run(move |pool| {
            let held = take(pool, n).unwrap();
            give(pool, &held);
        });
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.orders = None;
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
fn a_failed_get_makes_others_give_back_at_their_next_operation() {
    let pool = pool(32, 16);
    let other = Worker::new(&pool);
    other.get_and_put(12);
    assert_eq!(pool.cached(), 12);
    let error = take(&pool, 32).unwrap_err();
    assert_eq!(
        (error.asked, error.available, error.cached_elsewhere),
        (32, 20, 12)
    );
    // Idle threads keep what they have.
    assert!(take(&pool, 32).is_err());
    assert_eq!(pool.cached(), 12);
    other.get_and_put(1);
    assert_eq!(pool.cached(), 0);
    let all = take(&pool, 32).expect("all were given back");
    give(&pool, &all);
    drop(other);
    assert_whole(&pool);
}

#[test]
fn caches_are_used_again_after_a_recall() {
    let pool = pool(64, 16);
    let others = [Worker::new(&pool), Worker::new(&pool)];
    others.iter().for_each(|other| other.get_and_put(16));
    assert!(take(&pool, 64).is_err());
    others[0].get_and_put(1);
    assert_eq!(pool.cached(), 16, "one gave back, the other is idle");
    // The idle one does not keep the rest from their caches for ever.
    for _ in 0..2000 {
        let obj = pool.get().unwrap();
        give(&pool, &[obj]);
    }
    assert!(pool.cached() > 16);
    // A get that more than all caches could not satisfy disturbs nobody.
    let held = take(&pool, 40).unwrap();
    let hits = pool.stats().hits;
    assert!(take(&pool, 60).is_err());
    let obj = pool.get().unwrap();
    give(&pool, &[obj]);
    others[1].get_and_put(1);
    assert!(pool.stats().hits > hits);
    give(&pool, &held);
    drop(others);
    assert_whole(&pool);
}

#[test]
fn an_idle_thread_flushes_by_a_call() {
    let pool = pool(32, 16);
    let other = Worker::new(&pool);
    other.get_and_put(16);
    assert!(take(&pool, 32).is_err());
    other.run(RawPool::flush_thread_cache);
    let all = take(&pool, 32).unwrap();
    give(&pool, &all);
}

/// Two threads use a pool that is exactly as large as what both hold at most, with caches as large
/// as it: neither starves, and neither waits for long.
#[test]
fn fault_w2_a_pool_exactly_as_large_as_needed_serves_two_threads() {
    let pool = pool(32, 32);
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let pool = pool.clone();
            thread::spawn(move || {
                let mut out = [MaybeUninit::uninit(); 16];
                for _ in 0..2000 {
                    pool.get_bulk_timeout(&mut out, LONG).unwrap();
                    // SAFETY: written after success.
                    let objs = out.map(|obj| unsafe { obj.assume_init() });
                    give(&pool, &objs);
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert_whole(&pool);
}

#[test]
fn a_waiting_get_takes_what_another_thread_had_cached() {
    let pool = pool(32, 16);
    let other = Worker::new(&pool);
    other.get_and_put(16);
    let waiter = {
        let pool = pool.clone();
        thread::spawn(move || {
            let mut out = [MaybeUninit::uninit(); 32];
            pool.get_bulk_timeout(&mut out, LONG).map(|()| {
                // SAFETY: written after success.
                let objs = out.map(|obj| unsafe { obj.assume_init() });
                give(&pool, &objs);
            })
        })
    };
    while !waiter.is_finished() {
        // Any operation will do, one that fails too.
        other.run(|pool| {
            if let Ok(held) = take(pool, 1) {
                give(pool, &held);
            }
        });
    }
    waiter.join().unwrap().unwrap();
}

#[test]
fn what_is_put_while_somebody_waits_goes_to_him() {
    for n in [1, 3] {
        let pool = pool(8, 8);
        let held = take(&pool, 8).unwrap();
        let (to_other, objs) = channel::<Sent>();
        let other = {
            let pool = pool.clone();
            thread::spawn(move || {
                for Sent(obj) in objs {
                    thread::sleep(Duration::from_millis(2));
                    give(&pool, &[obj]);
                }
            })
        };
        for &obj in &held[..n] {
            to_other.send(Sent(obj)).unwrap();
        }
        let mut out = vec![MaybeUninit::uninit(); n];
        pool.get_bulk_timeout(&mut out, LONG).unwrap();
        // The other thread lives: nothing came by its end.
        // SAFETY: written after success.
        let objs: Vec<_> = out.iter().map(|obj| unsafe { obj.assume_init() }).collect();
        give(&pool, &objs);
        give(&pool, &held[n..]);
        drop(to_other);
        other.join().unwrap();
        assert_whole(&pool);
    }
}

#[test]
fn a_wait_ends_in_time_and_counts_one_failure() {
    let pool = pool(4, 2);
    let held = take(&pool, 4).unwrap();
    let start = Instant::now();
    let error = pool.get_timeout(SHORT).unwrap_err();
    assert!(start.elapsed() >= SHORT);
    assert_eq!((error.asked, error.available), (1, 0));
    assert_eq!(pool.stats().failed_gets, 1);
    // More than there are: at once.
    let mut out = [MaybeUninit::uninit(); 5];
    let start = Instant::now();
    assert!(pool.get_bulk_timeout(&mut out, LONG).is_err());
    assert!(start.elapsed() < LONG / 2);
    give(&pool, &held);
    assert_whole(&pool);
    // Nothing to wait for.
    let obj = pool.get_timeout(Duration::ZERO).unwrap();
    give(&pool, &[obj]);
    pool.get_bulk_timeout(&mut [], Duration::ZERO).unwrap();
    // Caches are in use again.
    assert!(pool.cached() > 0);
}

#[test]
fn typed_values_can_be_waited_for() {
    let pool = Pool::new(1, |_| 7).unwrap();
    let value = pool.get().unwrap();
    assert!(pool.get_timeout(SHORT).is_err());
    let waiter = {
        let pool = pool.clone();
        thread::spawn(move || pool.get_timeout(LONG).map(|value| *value))
    };
    thread::sleep(SHORT);
    drop(value);
    assert_eq!(waiter.join().unwrap(), Ok(7));
}

/// Many threads want more than there is, for a while.
#[test]
fn waiters_that_come_and_go_lose_no_wake() {
    let pool = pool(6, 3);
    let threads: Vec<_> = (0..4)
        .map(|seed| {
            let pool = pool.clone();
            thread::spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed);
                for _ in 0..if cfg!(miri) { 20 } else { 2000 } {
                    let n = rng.usize(1..=4);
                    let mut out = vec![MaybeUninit::uninit(); n];
                    if rng.u8(..8) == 0 {
                        let _ = pool
                            .get_timeout(Duration::ZERO)
                            .map(|obj| give(&pool, &[obj]));
                    }
                    pool.get_bulk_timeout(&mut out, LONG)
                        .expect("a wake was lost");
                    // SAFETY: written after success.
                    let objs: Vec<_> = out.iter().map(|obj| unsafe { obj.assume_init() }).collect();
                    give(&pool, &objs);
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert_whole(&pool);
}

#[test]
fn a_recall_that_was_served_is_over() {
    let pool = pool(32, 16);
    let other = Worker::new(&pool);
    other.get_and_put(12);
    assert!(take(&pool, 32).is_err());
    other.get_and_put(1);
    let all = take(&pool, 32).unwrap();
    give(&pool, &all);
    // Caches are in use again at once.
    let held = take(&pool, 4).unwrap();
    give(&pool, &held);
    assert!(pool.cached() > 0);
    let hits = pool.stats().hits;
    let held = take(&pool, 4).unwrap();
    assert_eq!(pool.stats().hits, hits + 1);
    give(&pool, &held);
}

/// A budget with room to spare, and nothing to be had.
#[test]
fn a_wait_under_a_budget_ends_in_time() {
    let budget = mempool::Budget::new(1 << 20).unwrap();
    let builder = RawPool::builder(64).capacity(1).cache(0).budget(&budget);
    let pool = builder.build().unwrap();
    let held = pool.get().unwrap();
    let start = Instant::now();
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let pool = pool.clone();
            thread::spawn(move || pool.get_timeout(SHORT).unwrap_err().over_budget)
        })
        .collect();
    assert!(!pool.get_timeout(SHORT).unwrap_err().over_budget);
    for thread in threads {
        assert!(!thread.join().unwrap());
    }
    assert!(start.elapsed() < LONG / 2);
    assert_eq!(budget.used(), pool.stride() as u64);
    give(&pool, &[held]);
    assert_eq!(budget.used(), 0);
}

#[test]
fn an_audit_wakes_who_looked_meanwhile() {
    let pool = pool(64, 0);
    let over = Arc::new(AtomicBool::new(false));
    let auditor = {
        let (pool, over) = (pool.clone(), over.clone());
        thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let _ = pool.audit();
            }
        })
    };
    for _ in 0..300 {
        let obj = pool.get_timeout(LONG).expect("the audit put it back");
        give(&pool, &[obj]);
    }
    over.store(true, Ordering::Relaxed);
    auditor.join().unwrap();
}

#[test]
fn a_cache_of_the_callers_own_reaches_what_its_thread_has_cached() {
    let pool = pool(8, 4);
    let held = take(&pool, 4).unwrap();
    give(&pool, &held);
    pool.get().map(|obj| give(&pool, &[obj])).unwrap();
    assert!(pool.cached() > 0);
    let mut own = pool.local_cache(4).unwrap();
    let mut out = [MaybeUninit::uninit(); 8];
    // The first get calls caches back, the second finds this thread's.
    let _ = own.get_bulk(&mut out);
    own.get_bulk(&mut out).unwrap();
    // SAFETY: written after success.
    let objs = out.map(|obj| unsafe { obj.assume_init() });
    give(&pool, &objs);
}
