//! The pools that have caches, so that a thread that ends can flush its own.

use crate::pool_ref::PoolRef;
use crate::sync::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[cfg(not(loom))]
fn pools() -> &'static Mutex<Vec<PoolRef>> {
    static POOLS: Mutex<Vec<PoolRef>> = Mutex::new(Vec::new());
    &POOLS
}
#[cfg(loom)]
fn pools() -> &'static Mutex<Vec<PoolRef>> {
    loom::lazy_static! {
        static ref POOLS: Mutex<Vec<PoolRef>> = Mutex::new(Vec::new());
    }
    &POOLS
}

/// Adds a new pool.
pub(crate) fn add(pool: PoolRef) {
    pools().lock().push(pool);
}

/// Removes a pool that is about to be freed: after this nobody finds it here.
pub(crate) fn remove(pool: PoolRef) {
    let mut pools = pools().lock();
    if let Some(index) = pools.iter().position(|&other| other == pool) {
        pools.swap_remove(index);
    }
}

/// Flushes the caches of the calling thread, whose slot offset is `offset`, in all pools.
pub(crate) fn flush_worker(offset: usize) {
    let filled: Vec<PoolRef> = pools()
        .lock()
        .iter()
        .copied()
        // SAFETY: a pool is freed after it was removed, so those in the list live while it is locked.
        .filter(|pool| unsafe { pool.cached_at(offset) } > 0)
        .collect();
    for pool in filled {
        // A backend that panics loses what was cached; the other pools have no part in it.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: objects in our own slot are not in the backend and keep the pool alive;
            // nobody but us can flush them. The id is still ours.
            unsafe { pool.flush_at(offset) }
        }));
    }
}
