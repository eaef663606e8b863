//! Threads and worker ids: those that end, those that have none, those that are too many.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::{assert_whole, give, take};
use mempool::{Pool, RawPool};
use std::cell::RefCell;
use std::sync::{Arc, Barrier};
use std::thread;

thread_local! {
    static EARLY: RefCell<Vec<Box<dyn Send>>> = const { RefCell::new(Vec::new()) };
    static LATE: RefCell<Vec<Box<dyn Send>>> = const { RefCell::new(Vec::new()) };
}

#[test]
fn fault_e8_thread_locals_dropped_before_and_after_retirement_give_back() {
    let pool = Pool::build(|b| b.capacity(40).cache(16), |index| index).unwrap();
    thread::spawn({
        let pool = pool.clone();
        move || {
            EARLY.with_borrow_mut(|early| early.reserve(1));
            let values: Vec<_> = (0..3).map(|_| pool.get().unwrap()).collect();
            LATE.with_borrow_mut(|late| late.reserve(1));
            for (index, value) in values.into_iter().enumerate() {
                let list = if index == 0 { &EARLY } else { &LATE };
                list.with_borrow_mut(|list| list.push(Box::new(value)));
            }
            assert!(pool.raw().cached() > 0);
        }
    })
    .join()
    .unwrap();
    assert_eq!(pool.raw().cached(), 0);
    assert_whole(pool.raw());
}

#[test]
fn fault_e8_a_thread_that_first_uses_a_pool_while_it_ends() {
    struct AtExit(Pool<usize>);
    impl Drop for AtExit {
        fn drop(&mut self) {
            drop(self.0.get().unwrap());
        }
    }
    let pool = Pool::build(|b| b.capacity(40).cache(16), |index| index).unwrap();
    thread::spawn({
        let at_exit = AtExit(pool.clone());
        move || EARLY.with_borrow_mut(|early| early.push(Box::new(at_exit)))
    })
    .join()
    .unwrap();
    assert_eq!(pool.raw().cached(), 0);
    assert_whole(pool.raw());
}

#[test]
fn fault_e8_threads_beyond_the_workers_of_a_pool_are_uncached() {
    let pool = RawPool::builder(8)
        .capacity(64)
        .cache(8)
        .workers(1)
        .build()
        .unwrap();
    let all_done = Arc::new(Barrier::new(4));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (pool, all_done) = (pool.clone(), all_done.clone());
            thread::spawn(move || {
                for n in [1, 4, 9] {
                    let held = take(&pool, n).unwrap();
                    give(&pool, &held);
                }
                all_done.wait();
                assert!(pool.cached() <= 8, "one cache at most");
                all_done.wait();
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_whole(&pool);
}
