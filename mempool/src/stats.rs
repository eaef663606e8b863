//! Counters. Only cold paths count: a get or put that the cache serves costs nothing for it.

use crate::sync::{AtomicU64, Ordering};

/// What a pool did and holds, read without stopping anybody: exact when nobody uses the pool,
/// close otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PoolStats {
    /// Objects of the pool.
    pub capacity: usize,
    /// Objects that somebody holds.
    pub in_use: usize,
    /// Objects in caches, of all threads.
    pub cached: usize,
    /// Calls that took from the backend, successful ones.
    pub backend_gets: u64,
    /// Objects that these took.
    pub backend_objects_got: u64,
    /// Calls that gave to the backend (those that fill a new pool are not counted).
    pub backend_puts: u64,
    /// Objects that these gave.
    pub backend_objects_put: u64,
    /// Gets that failed.
    pub failed_gets: u64,
}

/// One set of counters: each cache has one, written by its owner alone, and the pool has one for
/// calls without a cache.
#[derive(Default)]
pub(crate) struct Counters {
    gets: AtomicU64,
    objects_got: AtomicU64,
    puts: AtomicU64,
    objects_put: AtomicU64,
    failed: AtomicU64,
}

impl Counters {
    pub(crate) fn got(&self, n: usize, writers: Writers) {
        writers.add(&self.gets, 1);
        writers.add(&self.objects_got, n as u64);
    }

    pub(crate) fn put(&self, n: usize, writers: Writers) {
        writers.add(&self.puts, 1);
        writers.add(&self.objects_put, n as u64);
    }

    pub(crate) fn failed(&self, writers: Writers) {
        writers.add(&self.failed, 1);
    }

    pub(crate) fn add_to(&self, sum: &mut PoolStats) {
        sum.backend_gets += self.gets.load(Ordering::Relaxed);
        sum.backend_objects_got += self.objects_got.load(Ordering::Relaxed);
        sum.backend_puts += self.puts.load(Ordering::Relaxed);
        sum.backend_objects_put += self.objects_put.load(Ordering::Relaxed);
        sum.failed_gets += self.failed.load(Ordering::Relaxed);
    }
}

/// Who else may write a counter at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writers {
    /// Nobody: no locked instruction is needed.
    Owner,
    /// Anybody.
    Many,
}

impl Writers {
    fn add(self, counter: &AtomicU64, n: u64) {
        match self {
            Self::Owner => counter.store(
                counter.load(Ordering::Relaxed).wrapping_add(n),
                Ordering::Relaxed,
            ),
            Self::Many => {
                counter.fetch_add(n, Ordering::Relaxed);
            }
        }
    }
}
