//! One limit in bytes, shared by several pools.
//!
//! After the way BSD bounds its network memory: not each pool has a limit, all mbufs and clusters
//! together have one, and sockets look at how much of it is used.

use crate::sync::{AtomicU64, Ordering};
use crate::wait;
use std::sync::Arc;

/// Waiters are counted above the bytes, as in [`Units`](crate::units::Units).
const WAITER: u64 = 1 << 48;
const BYTES: u64 = WAITER - 1;

/// A limit on the bytes that the objects of several pools may take together.
///
/// An object is charged, with its stride, while it is not in its pool's backend: held by somebody, or
/// in a cache. So a thread's cache keeps a part of the budget, as it keeps objects. A get that would
/// exceed the limit fails, and says so ([`Exhausted::over_budget`](crate::Exhausted::over_budget)).
///
/// Clones share the budget.
///
/// ```
/// use mempool::{Budget, RawPool};
///
/// let budget = Budget::new(64 * 1024)?;
/// let small = RawPool::builder(2048).capacity(64).cache(0).budget(&budget).build()?;
/// let large = RawPool::builder(16384).capacity(64).cache(0).budget(&budget).build()?;
/// let held: Vec<_> = (0..3).map(|_| large.get()).collect::<Result<_, _>>()?;
/// assert!(large.get().unwrap_err().over_budget);
/// assert!(small.get().is_ok(), "there is room for a small one");
/// assert!(budget.used_percent() > 75);
/// # for object in held { unsafe { large.pool_ref().put(object) } }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[doc(alias = "nmbclust")]
#[doc(alias = "pool_sethardlimit")]
pub struct Budget(Arc<State>);

#[derive(Debug)]
struct State {
    used: AtomicU64,
    limit: AtomicU64,
    refused: AtomicU64,
}

/// A limit that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[doc(alias = "ERANGE")]
#[error("a budget of {bytes} bytes asked for, 1 to {max} possible")]
pub struct BadLimit {
    /// Bytes asked for.
    pub bytes: u64,
    /// The largest limit.
    pub max: u64,
}

impl Budget {
    /// A budget of `bytes`.
    ///
    /// # Errors
    /// [`BadLimit`] if that is 0 or 2^48 and more.
    pub fn new(bytes: u64) -> Result<Self, BadLimit> {
        Ok(Self(Arc::new(State {
            used: AtomicU64::new(0),
            limit: AtomicU64::new(check(bytes)?),
            refused: AtomicU64::new(0),
        })))
    }

    /// Changes the limit. A lower one than what is used takes nothing away: gets fail until enough
    /// came back. A higher one wakes those who wait.
    ///
    /// # Errors
    /// [`BadLimit`] if that is 0 or 2^48 and more. The limit stays then.
    pub fn set_limit(&self, bytes: u64) -> Result<(), BadLimit> {
        self.0.limit.store(check(bytes)?, Ordering::Relaxed);
        wait::wake_all();
        Ok(())
    }

    /// The limit in bytes.
    pub fn limit(&self) -> u64 {
        self.0.limit.load(Ordering::Relaxed)
    }

    /// Bytes charged at this moment.
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed) & BYTES
    }

    /// Used part of the limit in percent, rounded down; above 100 after the limit was lowered.
    ///
    /// BSD's sockets call memory low above 80, and good again below 60; it admits no new
    /// connection above 95.
    #[doc(alias = "m_pool_used")]
    pub fn used_percent(&self) -> u64 {
        self.used() * 100 / self.limit()
    }

    /// Gets that the limit refused.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Bytes that may still be charged.
    pub(crate) fn left(&self) -> u64 {
        self.limit().saturating_sub(self.used())
    }

    /// Charges `bytes`, or nothing.
    pub(crate) fn charge(&self, bytes: u64) -> bool {
        let limit = self.limit();
        let fits = |used: u64| (used & BYTES).saturating_add(bytes) <= limit;
        let more = |used: u64| fits(used).then(|| used + bytes);
        let used = &self.0.used;
        used.fetch_update(Ordering::Acquire, Ordering::Relaxed, more)
            .is_ok()
    }

    /// Takes a charge back; wakes those who wait for it.
    pub(crate) fn credit(&self, bytes: u64) {
        if self.0.used.fetch_sub(bytes, Ordering::Release) >= WAITER {
            wait::wake_all();
        }
    }

    /// Counts a get that the limit refused.
    pub(crate) fn count_refused(&self) {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn enter(&self) {
        self.0.used.fetch_add(WAITER, Ordering::AcqRel);
    }

    pub(crate) fn leave(&self) {
        self.0.used.fetch_sub(WAITER, Ordering::Release);
    }
}

fn check(bytes: u64) -> Result<u64, BadLimit> {
    if bytes == 0 || bytes > BYTES {
        return Err(BadLimit { bytes, max: BYTES });
    }
    Ok(bytes)
}
