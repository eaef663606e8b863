//! What a burst looks like, and how one is made.

use mbuf::{AllocError, Mbuf, MbufPool, Room, SharedMbuf, TxMbuf};
use mempool::Builder;
use std::collections::VecDeque;

/// One element as DPDK has it by default: 128 bytes of headroom and 2048 of data.
pub(in crate::cases) const ROOM: Room = Room {
    header: 2176,
    plain: 2176,
    charge: 2304,
};

/// What is in the array that is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One pool, no oddities.
    Flat,
    /// Every fourth slot is null.
    Nulls,
    /// Two pools, one packet of each in turn.
    TwoPools,
    /// Two pools, eight packets of each in turn.
    Blocks,
    /// Chains of two segments.
    Chain2,
    /// Chains of eight segments.
    Chain8,
    /// Every fourth packet has another owner.
    Shared,
}

impl Shape {
    pub(crate) const ALL: [Shape; 7] = [
        Shape::Flat,
        Shape::Nulls,
        Shape::TwoPools,
        Shape::Blocks,
        Shape::Chain2,
        Shape::Chain8,
        Shape::Shared,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Shape::Flat => "flat",
            Shape::Nulls => "nulls4",
            Shape::TwoPools => "two-pools",
            Shape::Blocks => "two-pools-by-8",
            Shape::Chain2 => "chain2",
            Shape::Chain8 => "chain8",
            Shape::Shared => "shared4",
        }
    }

    /// Segments of a packet.
    pub(crate) fn segments(self) -> usize {
        match self {
            Shape::Chain2 => 2,
            Shape::Chain8 => 8,
            _ => 1,
        }
    }

    /// Mbufs that a burst of `slots` slots holds.
    pub(crate) fn mbufs(self, slots: usize) -> usize {
        match self {
            Shape::Nulls => slots - slots / 4,
            _ => slots * self.segments(),
        }
    }

    /// Which of the two pools slot `at` is from; `None` for a null.
    #[inline(always)]
    pub(crate) fn lane(self, at: usize) -> Option<usize> {
        match self {
            Shape::Nulls if at % 4 == 3 => None,
            Shape::TwoPools => Some(at % 2),
            Shape::Blocks => Some(at / 8 % 2),
            _ => Some(0),
        }
    }
}

/// Two pools, and the other owners of packets that are shared.
pub(crate) struct Stock {
    shape: Shape,
    pools: [MbufPool; 2],
    owners: VecDeque<SharedMbuf>,
}

impl Stock {
    /// Pools of `capacity` mbufs each; the second only where the shape asks for it.
    pub(crate) fn new(
        shape: Shape,
        capacity: usize,
        configure: impl Fn(Builder) -> Builder,
    ) -> Result<Self, mbuf::CreateError> {
        let pool = || MbufPool::new(ROOM, |b| configure(b.capacity(capacity)));
        let first = pool()?;
        let second = match shape {
            Shape::TwoPools | Shape::Blocks => pool()?,
            _ => first.clone(),
        };
        Ok(Self {
            shape,
            pools: [first, second],
            owners: VecDeque::with_capacity(capacity),
        })
    }

    pub(crate) fn pools(&self) -> &[MbufPool; 2] {
        &self.pools
    }

    /// Makes a burst of the shape. Out of line: what is placed and timed is the free.
    #[inline(never)]
    pub(crate) fn fill(&mut self, slots: &mut [Option<TxMbuf>]) -> Result<(), AllocError> {
        match self.shape {
            Shape::Flat => self.pools[0].header_bulk(slots),
            Shape::Shared => self.fill_shared(slots),
            Shape::Chain2 | Shape::Chain8 => self.fill_chains(slots),
            _ => {
                for (at, slot) in slots.iter_mut().enumerate() {
                    if let Some(lane) = self.shape.lane(at) {
                        *slot = Some(self.pools[lane].header()?.into());
                    }
                }
                Ok(())
            }
        }
    }

    fn fill_shared(&mut self, slots: &mut [Option<TxMbuf>]) -> Result<(), AllocError> {
        self.pools[0].header_bulk(slots)?;
        for slot in slots.iter_mut().skip(3).step_by(4) {
            let packet = self.pools[0].header()?.into_shared();
            self.owners.push_back(packet.clone());
            *slot = Some(packet.into());
        }
        Ok(())
    }

    fn fill_chains(&mut self, slots: &mut [Option<TxMbuf>]) -> Result<(), AllocError> {
        for slot in slots {
            // Built from the tail, so that no chain is walked.
            let mut packet: Option<Mbuf> = None;
            for _ in 0..self.shape.segments() {
                let mut head = self.pools[0].header()?;
                if let Some(tail) = packet {
                    head.cat(tail);
                }
                packet = Some(head);
            }
            *slot = packet.map(TxMbuf::from);
        }
        Ok(())
    }

    /// Lets the other owners of the `slots` slots go that were filled longest ago.
    pub(crate) fn disown(&mut self, slots: usize) {
        let owners = if self.shape == Shape::Shared {
            slots / 4
        } else {
            0
        };
        self.owners.drain(..owners);
    }

    /// Calls of the pools' backends so far: gets and puts.
    pub(crate) fn backend_calls(&self) -> [u64; 2] {
        let pools = if self.two_pools() { 2 } else { 1 };
        let stats = self.pools[..pools].iter().map(|pool| pool.raw().stats());
        stats.fold([0, 0], |[gets, puts], s| {
            [gets + s.backend_gets, puts + s.backend_puts]
        })
    }

    fn two_pools(&self) -> bool {
        matches!(self.shape, Shape::TwoPools | Shape::Blocks)
    }

    /// Objects that are out, in both pools.
    pub(crate) fn in_use(&self) -> usize {
        let second = if self.two_pools() {
            self.pools[1].raw().in_use()
        } else {
            0
        };
        self.pools[0].raw().in_use() + second
    }
}
