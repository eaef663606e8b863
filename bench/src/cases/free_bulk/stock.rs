//! How bursts are made: the pools, and the other owners of what is shared.

use super::shape::{Kind, MIXTURE, ROOM, Shape};
use fastrand::Rng;
use mbuf::{BufferSet, External, Mbuf, MbufPool, Packet, PlainBurst, SharedMbuf, TxMbuf};
use mempool::Builder;
use std::collections::VecDeque;
use std::fmt::Display;

/// Packets of a burst at most.
const MOST: usize = 256;
/// Bytes of a cluster, and of the caller's own memory behind a packet.
const STORAGE: usize = 2048;
/// Clusters: few are out at a time.
const CLUSTERS: usize = 1024;

/// Two pools, and the other owners of packets that are shared.
pub(crate) struct Stock {
    shape: Shape,
    /// The first pool is the set's.
    set: BufferSet,
    pools: [MbufPool; 2],
    owners: VecDeque<SharedMbuf>,
    /// Memory of the caller's own, one piece for each slot.
    memory: Vec<External>,
    /// What the next 32 slots of a mixture hold.
    mixture: Vec<Kind>,
    rng: Rng,
    /// A burst that is plain by type.
    pub(super) plain: PlainBurst<MOST>,
}

fn text(error: impl Display) -> String {
    error.to_string()
}

impl Stock {
    /// Pools of `capacity` mbufs each; the second only where the shape asks for it.
    pub(crate) fn new(
        shape: Shape,
        capacity: usize,
        configure: impl Fn(Builder) -> Builder + Clone + 'static,
    ) -> Result<Self, mbuf::CreateError> {
        let mut set = BufferSet::builder(capacity)
            .room(ROOM)
            .configure(configure.clone());
        if matches!(shape, Shape::OneCluster | Shape::Mixed) {
            set = set.class(STORAGE, CLUSTERS);
        }
        let set = set.build()?;
        let first = set.mbuf_pool().clone();
        let second = if shape.two_pools() {
            MbufPool::new(ROOM, |b| configure(b.capacity(capacity)))?
        } else {
            first.clone()
        };
        let pieces = if shape == Shape::External { MOST } else { 0 };
        Ok(Self {
            shape,
            set,
            pools: [first, second],
            owners: VecDeque::with_capacity(capacity),
            memory: (0..pieces)
                .map(|_| External::from(vec![0; STORAGE]))
                .collect(),
            mixture: MIXTURE
                .iter()
                .flat_map(|&(kind, n)| std::iter::repeat_n(kind, n))
                .collect(),
            rng: Rng::with_seed(32),
            plain: PlainBurst::new(),
        })
    }

    pub(crate) fn pools(&self) -> &[MbufPool; 2] {
        &self.pools
    }

    /// Makes a burst of the shape. Out of line: what is placed and timed is the free.
    #[inline(never)]
    pub(crate) fn fill(&mut self, slots: &mut [Option<TxMbuf>]) -> Result<(), String> {
        match self.shape {
            Shape::Flat => self.pools[0].header_bulk(slots).map_err(text),
            Shape::Shared => {
                self.pools[0].header_bulk(slots).map_err(text)?;
                for slot in slots.iter_mut().skip(3).step_by(4) {
                    *slot = Some(self.shared()?);
                }
                Ok(())
            }
            Shape::OneCluster => self.fill_one_cluster(slots),
            Shape::Mixed => self.fill_mixed(slots),
            _ => {
                for (at, slot) in slots.iter_mut().enumerate() {
                    *slot = self.one(at)?;
                }
                Ok(())
            }
        }
    }

    /// Makes a burst that is plain by type.
    #[inline(never)]
    pub(super) fn fill_plain(&mut self, n: usize) -> Result<(), String> {
        self.plain.fill(&self.pools[0], n).map_err(text)
    }

    /// What slot `at` holds, where that does not depend on others.
    fn one(&mut self, at: usize) -> Result<Option<TxMbuf>, String> {
        let Some(lane) = self.shape.lane(at) else {
            return Ok(None);
        };
        let packet = match self.shape {
            Shape::Clones => self.shared()?,
            Shape::Chain2 | Shape::Chain8 => self.chain(self.shape.segments())?.into(),
            Shape::External => {
                let mut packet = self.pools[0].header().map_err(text)?;
                packet.attach(self.memory[at].clone()).map_err(text)?;
                packet.into()
            }
            _ => self.pools[lane].header().map_err(text)?.into(),
        };
        Ok(Some(packet))
    }

    /// A packet with another owner.
    fn shared(&mut self) -> Result<TxMbuf, String> {
        let packet = self.pools[0].header().map_err(text)?.into_shared();
        self.owners.push_back(packet.clone());
        Ok(packet.into())
    }

    fn chain(&self, segments: usize) -> Result<Mbuf, String> {
        // Built from the tail, so that no chain is walked.
        let mut packet = self.pools[0].header().map_err(text)?;
        for _ in 1..segments {
            let mut head = self.pools[0].header().map_err(text)?;
            head.cat(packet);
            packet = head;
        }
        Ok(packet)
    }

    /// A packet with a full cluster.
    fn clustered(&self) -> Result<Mbuf, String> {
        let mut packet = self.pools[0].header().map_err(text)?;
        self.set
            .attach_cluster(&mut packet, STORAGE)
            .map_err(text)?;
        packet.append(STORAGE).map_err(text)?;
        Ok(packet)
    }

    fn fill_one_cluster(&self, slots: &mut [Option<TxMbuf>]) -> Result<(), String> {
        let first = self.clustered()?;
        for slot in slots {
            let copy = first.ref_copy(0, STORAGE, &self.set).map_err(text)?;
            *slot = Some(copy.into());
        }
        Ok(())
    }

    fn fill_mixed(&mut self, slots: &mut [Option<TxMbuf>]) -> Result<(), String> {
        for group in slots.chunks_mut(self.mixture.len()) {
            self.rng.shuffle(&mut self.mixture);
            for (at, slot) in group.iter_mut().enumerate() {
                let plain = |lane: usize| self.pools[lane].header().map_err(text);
                *slot = match self.mixture[at] {
                    Kind::Null => None,
                    Kind::Plain => Some(plain(0)?.into()),
                    Kind::OtherPool => Some(plain(1)?.into()),
                    Kind::Shared => Some(self.shared()?),
                    Kind::Chain(segments) => Some(self.chain(segments)?.into()),
                    Kind::Cluster => Some(self.clustered()?.into()),
                };
            }
        }
        Ok(())
    }

    /// Lets the other owners of the `slots` slots go that were filled longest ago.
    pub(crate) fn disown(&mut self, slots: usize) {
        self.owners.drain(..self.shape.owners(slots));
    }

    /// Calls of the pools' backends so far: gets and puts.
    pub(crate) fn backend_calls(&self) -> [u64; 2] {
        let pools = if self.shape.two_pools() { 2 } else { 1 };
        let stats = self.pools[..pools].iter().map(|pool| pool.raw().stats());
        stats.fold([0, 0], |[gets, puts], s| {
            [gets + s.backend_gets, puts + s.backend_puts]
        })
    }

    /// Objects that are out, of mbufs and clusters.
    pub(crate) fn in_use(&self) -> usize {
        let second = if self.shape.two_pools() {
            self.pools[1].raw().in_use()
        } else {
            0
        };
        self.set.in_use() + second
    }
}
