//! How short memory is, for all buffers together.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mbuf::BufferSet;
use mempool::{Budget, RawPool};

/// Memory is low above this, in percent.
const LOW_ABOVE: u64 = 80;

/// It is good again below this.
const GOOD_BELOW: u64 = 60;

/// Above this there is nothing for new connections.
const ADMIT_UP_TO: u64 = 95;

/// How much of the memory for packets is used. Low above 80 %, and good again only below 60 %, so that
/// buffers do not grow and shrink by turns.
///
/// Clones share the state.
///
/// ```
/// use mbuf::BufferSet;
/// use sockbuf::Pressure;
/// let set = BufferSet::builder(10).configure(|pool| pool.cache(0)).build()?;
/// let memory = Pressure::of_set(&set);
/// let mut held: Vec<_> = (0..9).map(|_| set.header()).collect::<Result<_, _>>()?;
/// assert!((memory.percent(), memory.is_low(), memory.admits()) == (90, true, true));
/// held.truncate(6);
/// assert!(memory.is_low(), "60 % is not below 60 %");
/// held.truncate(5);
/// assert!(!memory.is_low());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[doc(alias = "sbchecklowmem")]
pub struct Pressure(Arc<State>);

struct State {
    gauge: Gauge,
    /// As it was found last time.
    low: AtomicBool,
}

enum Gauge {
    Budget(Budget),
    Set(BufferSet),
}

impl Pressure {
    /// By a budget that the pools share: BSD's one limit on all mbufs and clusters.
    #[must_use]
    pub fn of_budget(budget: &Budget) -> Self {
        Self::new(Gauge::Budget(budget.clone()))
    }

    /// By the pools of a set: by the bytes of all of them together, or by the mbufs alone where these
    /// are shorter, since nothing can be had without one.
    #[must_use]
    pub fn of_set(set: &BufferSet) -> Self {
        Self::new(Gauge::Set(set.clone()))
    }

    fn new(gauge: Gauge) -> Self {
        let low = AtomicBool::new(false);
        Self(Arc::new(State { gauge, low }))
    }

    /// Used part in percent, rounded down.
    #[doc(alias = "m_pool_used")]
    #[must_use]
    pub fn percent(&self) -> u64 {
        match &self.0.gauge {
            Gauge::Budget(budget) => budget.used_percent(),
            Gauge::Set(set) => {
                let all = used(set.pools());
                all.max(used(std::iter::once(set.mbuf_pool().raw())))
            }
        }
    }

    /// Whether memory is low. Between the two bounds it is what it was when asked last.
    #[doc(alias = "sblowmem")]
    #[must_use]
    pub fn is_low(&self) -> bool {
        let percent = self.percent();
        let low = &self.0.low;
        if percent > LOW_ABOVE {
            low.store(true, Ordering::Relaxed);
        } else if percent < GOOD_BELOW {
            low.store(false, Ordering::Relaxed);
        }
        low.load(Ordering::Relaxed)
    }

    /// Whether there is memory for new connections: up to 95 %.
    #[must_use]
    pub fn admits(&self) -> bool {
        self.percent() <= ADMIT_UP_TO
    }
}

/// Bytes of the objects that are out, in percent of all.
fn used<'a>(pools: impl Iterator<Item = &'a RawPool>) -> u64 {
    let (used, all) = pools.fold((0, 0), |(used, all), pool| {
        let size = pool.stride() as u64;
        let (out, capacity) = (pool.in_use() as u64, pool.capacity() as u64);
        (used + size * out, all + size * capacity)
    });
    (used * 100).checked_div(all).unwrap_or(0)
}

impl fmt::Debug for Pressure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pressure {} % low {}", self.percent(), self.is_low())
    }
}
