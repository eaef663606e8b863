//! Fault injection: a backend whose k-th get fails.

use super::Backend;
use crate::sync::{AtomicU64, Ordering};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

/// Wraps a backend; a [`FailSwitch`] decides which of its gets fail.
///
/// In a pool without caches (`cache(0)`) each get of the pool is one get of the backend, so that
/// "the k-th allocation fails" can be tried for every k.
///
/// ```
/// use mempool::{RawPool, backend::{FailAt, Lifo}};
///
/// let (backend, switch) = FailAt::new(Lifo::new(8));
/// let pool = RawPool::builder(64).capacity(8).cache(0).custom_backend(Box::new(backend)).build()?;
/// switch.fail_at(2);
/// let first = pool.get()?;
/// assert!(pool.get().is_err());
/// let third = pool.get()?;
/// // SAFETY: both are this pool's and were not put back yet.
/// unsafe { pool.pool_ref().put_bulk(&[first, third]) };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FailAt<B> {
    inner: B,
    switch: FailSwitch,
}

/// Says which get fails next, and counts gets. Clones share the state.
#[derive(Clone)]
pub struct FailSwitch(Arc<State>);

struct State {
    gets: AtomicU64,
    /// Number of the get that fails; 0 for none.
    fail_at: AtomicU64,
}

impl<B: Backend> FailAt<B> {
    /// Wraps `inner`. No get fails until the switch says so.
    pub fn new(inner: B) -> (Self, FailSwitch) {
        let switch = FailSwitch::new();
        (Self::with(inner, &switch), switch)
    }

    /// Wraps `inner` under a switch that other pools share: gets are counted over all of them.
    pub fn with(inner: B, switch: &FailSwitch) -> Self {
        Self {
            inner,
            switch: switch.clone(),
        }
    }
}

impl Default for FailSwitch {
    fn default() -> Self {
        Self::new()
    }
}

impl FailSwitch {
    /// A switch that lets nothing fail.
    pub fn new() -> Self {
        Self(Arc::new(State {
            gets: AtomicU64::new(0),
            fail_at: AtomicU64::new(0),
        }))
    }

    /// Lets the `k`-th get from now fail (1 is the next), and only that one. 0 lets none fail.
    pub fn fail_at(&self, k: u64) {
        let at = if k == 0 {
            0
        } else {
            self.gets().saturating_add(k)
        };
        self.0.fail_at.store(at, Ordering::Relaxed);
    }

    /// Gets so far, failed ones included.
    pub fn gets(&self) -> u64 {
        self.0.gets.load(Ordering::Relaxed)
    }
}

// SAFETY: forwards to a backend that keeps the contract, or takes nothing.
unsafe impl<B: Backend> Backend for FailAt<B> {
    fn put_bulk(&self, objs: &[NonNull<u8>]) {
        self.inner.put_bulk(objs);
    }

    fn get_bulk(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), usize> {
        let number = self.switch.0.gets.fetch_add(1, Ordering::Relaxed) + 1;
        if number == self.switch.0.fail_at.load(Ordering::Relaxed) {
            return Err(0);
        }
        self.inner.get_bulk(out)
    }

    fn len(&self) -> usize {
        self.inner.len()
    }

    fn room(&self) -> usize {
        self.inner.room()
    }
}
