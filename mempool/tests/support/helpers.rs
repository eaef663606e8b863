//! What several test binaries need.
#![allow(dead_code, reason = "not every binary needs all of it")]

use mempool::{Exhausted, RawPool};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// A bulk get into a vector.
pub fn take(pool: &RawPool, n: usize) -> Result<Vec<NonNull<u8>>, Exhausted> {
    let mut out = vec![MaybeUninit::uninit(); n];
    pool.get_bulk(&mut out)?;
    // SAFETY: all are written after success.
    Ok(out
        .into_iter()
        .map(|obj| unsafe { obj.assume_init() })
        .collect())
}

/// A bulk put of objects that the test got before and does not use again.
pub fn give(pool: &RawPool, objs: &[NonNull<u8>]) {
    // SAFETY: as above.
    unsafe { pool.pool_ref().put_bulk(objs) };
}

/// Takes the newest `n` objects off a vector and gives them back.
pub fn give_n(pool: &RawPool, held: &mut Vec<NonNull<u8>>, n: usize) {
    let objs = held.split_off(held.len() - n);
    give(pool, &objs);
}

/// Asserts that all objects are there, each once, and within this thread's reach.
pub fn assert_whole(pool: &RawPool) {
    assert!(pool.is_full(), "{pool:?}");
    pool.flush_thread_cache();
    let all = take(pool, pool.capacity()).expect("every object can be had");
    let distinct: std::collections::HashSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), pool.capacity());
    for &obj in &all {
        assert!(pool.contains(obj).is_some());
    }
    assert_eq!(pool.in_use(), pool.capacity());
    give(pool, &all);
    assert!(pool.is_full());
}

/// An object that may be sent to another thread.
pub struct Sent(pub NonNull<u8>);

// SAFETY: an address; whoever receives it owns the object.
unsafe impl Send for Sent {}
