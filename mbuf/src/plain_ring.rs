//! A ring of packets that are plain by type: what a transmit queue holds that only ever sees such bursts.
//!
//! Packets go in from the front of a [`PlainBurst`] and come out, oldest first, by being freed: one slice
//! of the ring or two, handed to the pool as they lie there, no header read. The pool is compared once
//! for each burst, since a burst of another pool must not go back to this one.

use crate::handle::Mbuf;
use crate::plain::{self, PlainBurst};
use mempool::PoolRef;
use std::fmt;
use std::mem::MaybeUninit;

/// A burst's packets are of another pool than those in the ring. Nothing has been moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{asked} packets of another pool than the {held} in the ring")]
pub struct OtherPool {
    /// Packets in the burst.
    pub asked: usize,
    /// Packets in the ring.
    pub held: usize,
}

/// A ring of inline, unchained, unshared packets of one pool, oldest first.
///
/// Dropping it frees them, without looking at them.
///
/// ```
/// use mbuf::{BufferSet, PlainBurst, PlainRing};
///
/// let set = BufferSet::standard(64, 8)?;
/// let mut ring = PlainRing::new(16);
/// let mut burst = PlainBurst::<12>::new();
/// burst.fill(set.mbuf_pool(), 12)?;
/// assert_eq!(ring.push_burst(&mut burst)?, 12);
/// burst.fill(set.mbuf_pool(), 12)?;
/// assert_eq!((ring.push_burst(&mut burst)?, burst.len()), (4, 8), "the rest stays");
/// assert_eq!(ring.free_front(10), 10);
/// assert_eq!(ring.len(), 6);
/// drop((ring, burst));
/// assert!(set.is_full());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE")]
pub struct PlainRing {
    /// `len` slots from `head` on, wrapping, are packets of `pool` whose words rest.
    slots: Box<[MaybeUninit<Mbuf>]>,
    head: usize,
    len: usize,
    /// `Some` whenever there are packets, which keep it alive.
    pool: Option<PoolRef>,
}

impl PlainRing {
    /// An empty ring for `capacity` packets, any number.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            slots: (0..capacity).map(|_| MaybeUninit::uninit()).collect(),
            head: 0,
            len: 0,
            pool: None,
        }
    }

    /// Packets in it.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Packets that still fit.
    #[inline]
    pub fn room(&self) -> usize {
        self.slots.len() - self.len
    }

    /// Whether packets of this burst could go in now, room aside.
    ///
    /// # Errors
    /// [`OtherPool`] if both hold packets, of different pools.
    #[inline]
    pub fn accepts<const N: usize>(&self, burst: &PlainBurst<N>) -> Result<(), OtherPool> {
        if self.is_empty() || burst.is_empty() || burst.pool() == self.pool {
            return Ok(());
        }
        Err(OtherPool {
            asked: burst.len(),
            held: self.len,
        })
    }

    /// Moves packets from the front of `burst` behind the others, as many as fit; says how many.
    ///
    /// # Errors
    /// [`OtherPool`], as [`accepts`](Self::accepts).
    #[inline]
    pub fn push_burst<const N: usize>(
        &mut self,
        burst: &mut PlainBurst<N>,
    ) -> Result<usize, OtherPool> {
        self.accepts(burst)?;
        let count = burst.len().min(self.room());
        if count == 0 {
            return Ok(0);
        }
        self.pool = burst.pool();
        let tail = self.index(self.len);
        let (packets, straight) = (burst.as_ptr(), count.min(self.slots.len() - tail));
        // SAFETY: the burst holds `count` packets or more, the slots from the tail on are free, as
        // many as there is room, first to the end of the array and then from its start.
        unsafe {
            let slots = self.slots.as_mut_ptr().cast::<Mbuf>();
            slots.add(tail).copy_from_nonoverlapping(packets, straight);
            slots.copy_from_nonoverlapping(packets.add(straight), count - straight);
            burst.forget_front(count);
        }
        self.len += count;
        Ok(count)
    }

    /// Packet `index`, the oldest being 0.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Mbuf> {
        // SAFETY: one of the packets.
        (index < self.len).then(|| unsafe { self.slots[self.index(index)].assume_init_ref() })
    }

    /// Frees the oldest packets, at most `count`, without looking at them; says how many.
    #[inline]
    pub fn free_front(&mut self, count: usize) -> usize {
        let count = count.min(self.len);
        let straight = count.min(self.slots.len() - self.head);
        let (from, slots) = (self.head, self.slots.as_mut_ptr());
        // Given up first: should a pool's own backend unwind, they leak.
        self.head = self.index(count);
        self.len -= count;
        // SAFETY: `count` packets from the old head on, wrapping, which are no more in the ring. Those of
        // the second slice keep the pool alive while the first is put.
        unsafe {
            plain::free(slots.add(from).cast(), straight, self.pool);
            plain::free(slots.cast(), count - straight, self.pool);
        }
        count
    }

    /// The slot of packet `index`, which is at most the capacity.
    #[inline]
    fn index(&self, index: usize) -> usize {
        let at = self.head + index;
        if at < self.slots.len() {
            at
        } else {
            at - self.slots.len()
        }
    }
}

impl Drop for PlainRing {
    fn drop(&mut self) {
        self.free_front(usize::MAX);
    }
}

impl fmt::Debug for PlainRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packets = (0..self.len).filter_map(|index| self.get(index));
        f.debug_list().entries(packets).finish()
    }
}
