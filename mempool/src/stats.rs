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
    /// Gets and puts that a cache served alone. A cursor counts as one.
    pub hits: u64,
    /// Gets and puts that found too little in a cache, or too little room; and each time that a
    /// cursor made room.
    pub misses: u64,
    /// Most objects that were ever out of the backend at a time: held, or cached.
    pub high_water: usize,
}

/// What one worker id did in a pool, and has cached there. Ids pass from thread to thread; counts go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WorkerStats {
    /// The worker id.
    pub worker: usize,
    /// Objects in its cache.
    pub cached: usize,
    /// Gets and puts that its cache served alone. A cursor counts as one.
    pub hits: u64,
    /// Gets and puts that found too little in its cache, or too little room; and each time that a
    /// cursor made room.
    pub misses: u64,
    /// Calls that took from the backend, successful ones.
    pub backend_gets: u64,
    /// Objects that these took.
    pub backend_objects_got: u64,
    /// Calls that gave to the backend.
    pub backend_puts: u64,
    /// Objects that these gave.
    pub backend_objects_put: u64,
    /// Gets that failed.
    pub failed_gets: u64,
}

impl PoolStats {
    /// Adds what a worker did.
    pub(crate) fn add(&mut self, worker: &WorkerStats) {
        self.cached += worker.cached;
        self.hits += worker.hits;
        self.misses += worker.misses;
        self.backend_gets += worker.backend_gets;
        self.backend_objects_got += worker.backend_objects_got;
        self.backend_puts += worker.backend_puts;
        self.backend_objects_put += worker.backend_objects_put;
        self.failed_gets += worker.failed_gets;
    }
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
    misses: AtomicU64,
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

    pub(crate) fn missed(&self, writers: Writers) {
        writers.add(&self.misses, 1);
    }

    /// The counters as those of `worker`, which has `cached` objects and was served `hits` times.
    pub(crate) fn read(&self, worker: usize, cached: usize, hits: u64) -> WorkerStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        WorkerStats {
            worker,
            cached,
            hits,
            misses: read(&self.misses),
            backend_gets: read(&self.gets),
            backend_objects_got: read(&self.objects_got),
            backend_puts: read(&self.puts),
            backend_objects_put: read(&self.objects_put),
            failed_gets: read(&self.failed),
        }
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
