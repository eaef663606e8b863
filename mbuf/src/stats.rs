//! What a buffer set holds and did: the pools' own counters, external storage, and counters of the
//! rare things that operations on packets do.

use crate::set::BufferSet;
use mempool::RawPool;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Use of one pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Usage {
    /// Objects of the pool.
    pub capacity: usize,
    /// Objects that are in no pool and in no cache.
    pub in_use: usize,
    /// Most objects that were ever out at a time, in caches included.
    pub high_water: usize,
    /// Allocations that failed.
    pub failures: u64,
}

impl Usage {
    fn of(pool: &RawPool) -> Self {
        let stats = pool.stats();
        Self {
            capacity: stats.capacity,
            in_use: stats.in_use,
            high_water: stats.high_water,
            failures: stats.failed_gets,
        }
    }
}

/// What [`BufferSet::stats`] says, read without stopping anybody.
///
/// Header mbufs and plain ones come from one pool and are counted together: telling them apart would
/// cost each allocation and each free a counter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[doc(alias = "mbstat")]
#[non_exhaustive]
pub struct MbufStats {
    /// Mbufs.
    pub mbufs: Usage,
    /// Clusters by class, ascending: bytes that one holds, and its pool's use.
    pub clusters: Vec<(usize, Usage)>,
    /// Pieces of external storage in the whole process; they belong to no set.
    pub external: usize,
    /// How often each [`Event`] was counted, in the order of [`Event::ALL`].
    pub events: [u64; Event::ALL.len()],
}

impl MbufStats {
    /// How often `event` was counted.
    pub fn count(&self, event: Event) -> u64 {
        self.events[event as usize]
    }
}

/// Rare things that are counted where they happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// A packet was dropped for want of buffers or room.
    #[doc(alias = "m_drops")]
    Drop,
    /// Defragmenting took a buffer.
    #[doc(alias = "defrag_alloc")]
    DefragAlloc,
    /// Prepending took an mbuf.
    #[doc(alias = "prepend_alloc")]
    PrependAlloc,
    /// Making bytes contiguous took a buffer.
    #[doc(alias = "pullup_alloc")]
    PullupAlloc,
    /// Making bytes contiguous moved them within the storage that was there.
    #[doc(alias = "pullup_copy")]
    PullupCopy,
    /// Making a range contiguous took a buffer.
    #[doc(alias = "pulldown_alloc")]
    PulldownAlloc,
    /// Making a range contiguous moved bytes within the storage that was there.
    #[doc(alias = "pulldown_copy")]
    PulldownCopy,
}

impl Event {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Drop,
        Self::DefragAlloc,
        Self::PrependAlloc,
        Self::PullupAlloc,
        Self::PullupCopy,
        Self::PulldownAlloc,
        Self::PulldownCopy,
    ];
}

/// One counter for each event.
#[derive(Default)]
pub(crate) struct Events([AtomicU64; Event::ALL.len()]);

impl BufferSet {
    /// Use of the pools, failures, and what was counted.
    ///
    /// ```
    /// use mbuf::{BufferSet, Event};
    /// let set = BufferSet::builder(8).class(2048, 1).build()?;
    /// let m = set.header_with(2000)?;
    /// assert!(set.header_with(2000).is_err());
    /// set.count(Event::Drop);
    /// let stats = set.stats();
    /// assert_eq!((stats.mbufs.in_use, stats.clusters[0].1.failures), (1, 1));
    /// assert_eq!(stats.count(Event::Drop), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stats(&self) -> MbufStats {
        let events = self.events();
        let cluster = |pool: &crate::pool::ClusterPool| (pool.class(), Usage::of(pool.raw()));
        MbufStats {
            mbufs: Usage::of(self.mbuf_pool().raw()),
            clusters: self.cluster_pools().iter().map(cluster).collect(),
            external: external_in_use(),
            events: std::array::from_fn(|at| events.0[at].load(Ordering::Relaxed)),
        }
    }

    /// Counts an event: for operations on packets of this set, where they take their rare way.
    #[cold]
    pub fn count(&self, event: Event) {
        self.events().0[event as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// Pieces of external storage, counted apart by their address, so that threads which make and drop
/// their own seldom meet.
static EXTERNAL: [Part; 16] = [const { Part(AtomicUsize::new(0)) }; 16];

#[repr(align(64))]
struct Part(AtomicUsize);

fn part(address: NonZeroUsize) -> &'static AtomicUsize {
    let hash = address.get().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (usize::BITS - 4);
    &EXTERNAL[hash].0
}

/// A piece of external storage has come to be at this address.
pub(crate) fn external_made(address: NonZeroUsize) {
    part(address).fetch_add(1, Ordering::Relaxed);
}

/// It is about to go.
pub(crate) fn external_gone(address: NonZeroUsize) {
    part(address).fetch_sub(1, Ordering::Relaxed);
}

fn external_in_use() -> usize {
    let parts = EXTERNAL.iter().map(|part| part.0.load(Ordering::Relaxed));
    parts.fold(0, usize::wrapping_add)
}
