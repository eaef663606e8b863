//! Callbacks when a pool runs low, and when it has run out.

use crate::error::Exhausted;
use crate::inner::Inner;
use crate::sync::{AtomicU32, Ordering};

type OnLow = Box<dyn Fn(usize) + Send + Sync>;
type OnExhausted = Box<dyn Fn(&Exhausted) + Send + Sync>;

/// What to call, and whether the pool was found low last time.
#[derive(Default)]
pub(crate) struct Alarms {
    pub(crate) low: Option<(usize, OnLow)>,
    pub(crate) exhausted: Option<OnExhausted>,
    is_low: AtomicU32,
}

impl Alarms {
    /// A get took `n` objects: calls if the backend is low now, once until it has recovered to twice
    /// the level.
    pub(crate) fn after_get(&self, inner: &Inner, n: usize) {
        let Some((level, call)) = &self.low else {
            return;
        };
        let free = inner.capacity.saturating_sub(inner.units.0.away());
        // What this get found counts, not only what it left.
        if free.saturating_add(n) >= level.saturating_mul(2).min(inner.capacity) {
            self.is_low.store(0, Ordering::Relaxed);
        }
        if free <= *level && self.is_low.swap(1, Ordering::Relaxed) == 0 {
            call(free);
        }
    }

    /// A get failed.
    pub(crate) fn after_failure(&self, exhausted: &Exhausted) {
        if let Some(call) = &self.exhausted {
            call(exhausted);
        }
    }
}
