//! More threads than worker ids. Alone in its binary: it takes the ids away from other tests.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::{assert_whole, give};
use mempool::RawPool;
use std::sync::{Arc, Barrier};
use std::thread;

#[test]
#[cfg_attr(miri, ignore = "hundreds of threads")]
fn fault_e8_more_threads_than_worker_ids() {
    const THREADS: usize = mempool::MAX_WORKERS + 10;
    let pool = RawPool::builder(8)
        .capacity(THREADS * 4)
        .cache(4)
        .workers(256)
        .build()
        .unwrap();
    let all_hold = Arc::new(Barrier::new(THREADS));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (pool, all_hold) = (pool.clone(), all_hold.clone());
            thread::spawn(move || {
                let obj = pool.get().unwrap();
                all_hold.wait();
                assert!(pool.in_use() <= THREADS);
                give(&pool, &[obj]);
                pool.flush_thread_cache();
                all_hold.wait();
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_whole(&pool);
}
