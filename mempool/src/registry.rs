//! The pools of the process, oldest first: to find them by name or address, and so that a thread
//! that ends can flush its caches.
//!
//! A pool is listed from when it is built until it is freed. Handles are made under the lock but
//! never dropped under it: the last one frees its pool, which takes the lock.

use crate::error::CreateError;
use crate::inner::Inner;
use crate::pool::RawPool;
use crate::pool_ref::PoolRef;
use crate::sync::{Mutex, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

#[cfg(not(loom))]
fn listed() -> &'static Mutex<Vec<PoolRef>> {
    static POOLS: Mutex<Vec<PoolRef>> = Mutex::new(Vec::new());
    &POOLS
}
#[cfg(loom)]
fn listed() -> &'static Mutex<Vec<PoolRef>> {
    loom::lazy_static! {
        static ref POOLS: Mutex<Vec<PoolRef>> = Mutex::new(Vec::new());
    }
    &POOLS
}

/// A listed pool's shared part.
///
/// # Safety
/// The list is locked for `'a`.
unsafe fn inner<'a>(pool: PoolRef) -> &'a Inner {
    // SAFETY: a pool is freed after it was removed, so those in the list live while it is locked.
    unsafe { pool.inner() }
}

/// Whether one of `pools`, the locked list, has handles and this name. The empty name is none.
fn is_taken(pools: &[PoolRef], name: &str) -> bool {
    let has = |&pool: &PoolRef| {
        // SAFETY: the caller locked the list.
        let inner = unsafe { inner(pool) };
        *inner.name == *name && inner.handles.load(Ordering::Relaxed) > 0
    };
    !name.is_empty() && pools.iter().any(has)
}

fn taken(name: &str) -> CreateError {
    CreateError::NameTaken { name: name.into() }
}

/// Refuses a name that a pool has.
pub(crate) fn check_name(name: &str) -> Result<(), CreateError> {
    if is_taken(&listed().lock(), name) {
        return Err(taken(name));
    }
    Ok(())
}

/// Adds a new pool, if its name is free or need not be.
pub(crate) fn add(pool: PoolRef, unique: bool) -> Result<(), CreateError> {
    // SAFETY: the caller's new pool lives.
    let name = unsafe { &*pool.inner().name };
    let mut pools = listed().lock();
    if unique && is_taken(&pools, name) {
        return Err(taken(name));
    }
    pools.push(pool);
    Ok(())
}

/// Removes a pool that is about to be freed: after this nobody finds it here.
pub(crate) fn remove(pool: PoolRef) {
    unlist(&mut listed().lock(), pool);
}

fn unlist(pools: &mut Vec<PoolRef>, pool: PoolRef) {
    if let Some(index) = pools.iter().position(|&other| other == pool) {
        pools.remove(index);
    }
}

/// Handles of a pool, and objects that are not in its backend. If there are no others than the one
/// borrowed, and no such objects, nobody finds the pool any more: its handle is the last for good.
pub(crate) fn remove_if_unused(pool: &RawPool) -> (usize, usize) {
    let mut pools = listed().lock();
    let inner = pool.inner();
    // Handles before objects, since a handle can take an object and go; and once more after them,
    // since who holds an object can make a handle and put the object back.
    let before = inner.handles.load(Ordering::Acquire);
    let missing = inner.units.0.away();
    let handles = before.max(inner.handles.load(Ordering::Acquire));
    if (handles, missing) == (1, 0) {
        unlist(&mut pools, pool.pool_ref());
    }
    (handles, missing)
}

/// A handle of the oldest pool that `wanted` likes, among those that have handles. Those that only
/// certain threads may use are for their makers to pass on.
pub(crate) fn find(wanted: impl Fn(&Inner) -> bool) -> Option<RawPool> {
    let pools = listed().lock();
    pools.iter().find_map(|&pool| {
        // SAFETY: the list is locked.
        let inner = unsafe { inner(pool) };
        if inner.backend.is_single() || !wanted(inner) {
            return None;
        }
        // SAFETY: listed pools live while the list is locked.
        unsafe { pool.handle() }
    })
}

/// Handles of all pools that have any.
pub(crate) fn all() -> Vec<RawPool> {
    let pools = listed().lock();
    // Room first: an allocation that fails must not drop handles under the lock.
    let mut handles = Vec::with_capacity(pools.len());
    handles.extend(pools.iter().filter_map(|&pool| {
        // SAFETY: listed pools live while the list is locked.
        unsafe { (!inner(pool).backend.is_single()).then(|| pool.handle())? }
    }));
    handles
}

/// Flushes the caches of the calling thread, whose slot offset is `offset`, in all pools.
pub(crate) fn flush_worker(offset: usize) {
    let filled: Vec<PoolRef> = listed()
        .lock()
        .iter()
        .copied()
        // SAFETY: listed pools live while the list is locked.
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
