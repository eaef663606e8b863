//! A buffer set: the mbuf pool and the cluster pools that a stack allocates from.

use crate::error::{AllocError, CreateError};
use crate::handle::Mbuf;
use crate::packet::Packet;
use crate::pool::{ClusterPool, MbufPool, Room};
use crate::private::PrivateArea;
use crate::stats::Events;
use mempool::backend::{FailAt, FailSwitch, Lifo};
use mempool::{Builder, RawPool};
use std::sync::Arc;

/// BSD's own sizes: 256-byte mbufs with 144 bytes of room in a header mbuf and 224 in a plain
/// one, and its eight classes.
const BSD_CLASSES: [usize; 8] = [2048, 2050, 4096, 8192, 9344, 12288, 16384, 65536];
const BSD_ROOM: Room = Room {
    header: 144,
    plain: 224,
    charge: 256,
};

/// Ours: one more class, since between 16 KB and 64 KB BSD wastes up to 73 % of a cluster, and
/// the 2050 class, there for link headers of 14 bytes, is not needed where headroom is asked for.
const CLASSES: [usize; 8] = [2048, 4096, 8192, 9344, 12288, 16384, 32768, 65536];
const ROOM: Room = Room {
    header: 256,
    plain: 256,
    charge: 384,
};

/// The pools that a stack allocates from. A handle: clones share the pools.
///
/// ```
/// use mbuf::{BufferSet, Packet, Storage};
/// let set = BufferSet::bsd(256, 16)?;
/// assert_eq!(set.header()?.first().capacity(), 144);
/// assert_eq!(set.plain()?.first().capacity(), 224);
/// let m = set.header_with(5000)?;
/// assert_eq!(m.first().storage(), Storage::Cluster { class: 8192 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct BufferSet(Arc<Pools>);

struct Pools {
    mbufs: MbufPool,
    /// Ascending.
    clusters: Box<[ClusterPool]>,
    events: Events,
}

/// How a [`BufferSet`] is made: rooms, classes, and how many of each.
pub struct BufferSetBuilder {
    room: Room,
    private: PrivateArea,
    mbufs: usize,
    classes: Vec<(usize, usize)>,
    configure: Box<dyn Fn(Builder) -> Builder>,
    switch: Option<FailSwitch>,
}

impl BufferSetBuilder {
    /// The inline room and charge of an mbuf.
    pub fn room(mut self, room: Room) -> Self {
        self.room = room;
        self
    }

    /// Room for named fields and tags in each mbuf; none unless given.
    pub fn private(mut self, area: PrivateArea) -> Self {
        self.private = area;
        self
    }

    /// A class of `count` clusters that hold `size` bytes each; replaces that size's class.
    pub fn class(mut self, size: usize, count: usize) -> Self {
        self.classes.retain(|&(s, _)| s != size);
        self.classes.push((size, count));
        self
    }

    /// A last word on each pool's builder: cache size, backend, memory.
    pub fn configure(mut self, configure: impl Fn(Builder) -> Builder + 'static) -> Self {
        self.configure = Box::new(configure);
        self
    }

    /// Fault injection: caches off, and each allocation from any of the pools counts for
    /// `switch`, which says which of them fails.
    pub fn fail_switch(mut self, switch: &FailSwitch) -> Self {
        self.switch = Some(switch.clone());
        self
    }

    /// Makes the pools.
    ///
    /// # Errors
    /// The first pool that cannot be made.
    pub fn build(mut self) -> Result<BufferSet, CreateError> {
        self.classes.sort_unstable();
        let configure = |b: Builder, name: &str, count: usize| {
            let b = (self.configure)(b.name(name).capacity(count));
            match &self.switch {
                None => b,
                Some(switch) => {
                    let backend = FailAt::with(Lifo::new(count), switch);
                    b.cache(0).custom_backend(Box::new(backend))
                }
            }
        };
        let mbufs = MbufPool::with_private(self.room, self.private, |b| {
            configure(b, "mbuf", self.mbufs)
        })?;
        let cluster = |&(size, count): &(usize, usize)| {
            let name = format!("cluster-{size}");
            ClusterPool::new(size, |b| configure(b, &name, count))
        };
        let clusters = self.classes.iter().map(cluster).collect::<Result<_, _>>()?;
        Ok(BufferSet(Arc::new(Pools {
            mbufs,
            clusters,
            events: Events::default(),
        })))
    }
}

impl BufferSet {
    /// A set of `mbufs` mbufs and no classes yet.
    pub fn builder(mbufs: usize) -> BufferSetBuilder {
        BufferSetBuilder {
            room: ROOM,
            private: PrivateArea::default(),
            mbufs,
            classes: Vec::new(),
            configure: Box::new(|b| b),
            switch: None,
        }
    }

    /// BSD's sizes, `clusters` of each class: room of 144 bytes in a header mbuf and 224 in a plain
    /// one, charged 256; classes of 2048, 2050, 4096, 8192, 9344, 12288, 16384 and 65536 bytes.
    ///
    /// # Errors
    /// The first pool that cannot be made.
    pub fn bsd(mbufs: usize, clusters: usize) -> Result<Self, CreateError> {
        Self::with(BSD_ROOM, &BSD_CLASSES, mbufs, clusters).build()
    }

    /// Our sizes, `clusters` of each class: 256 bytes of room, charged 384; classes of 2048, 4096,
    /// 8192, 9344, 12288, 16384, 32768 and 65536 bytes.
    ///
    /// # Errors
    /// The first pool that cannot be made.
    pub fn standard(mbufs: usize, clusters: usize) -> Result<Self, CreateError> {
        Self::with(ROOM, &CLASSES, mbufs, clusters).build()
    }

    /// A builder with BSD's sizes, to be changed where needed.
    pub fn bsd_builder(mbufs: usize, clusters: usize) -> BufferSetBuilder {
        Self::with(BSD_ROOM, &BSD_CLASSES, mbufs, clusters)
    }

    /// A builder with our sizes, to be changed where needed.
    pub fn standard_builder(mbufs: usize, clusters: usize) -> BufferSetBuilder {
        Self::with(ROOM, &CLASSES, mbufs, clusters)
    }

    fn with(room: Room, classes: &[usize], mbufs: usize, clusters: usize) -> BufferSetBuilder {
        classes
            .iter()
            .fold(Self::builder(mbufs).room(room), |b, &size| {
                b.class(size, clusters)
            })
    }

    /// An empty header mbuf.
    ///
    /// # Errors
    /// [`AllocError::Exhausted`].
    #[doc(alias = "m_gethdr")]
    #[inline]
    pub fn header(&self) -> Result<Mbuf, AllocError> {
        self.0.mbufs.header()
    }

    /// An empty plain mbuf.
    ///
    /// # Errors
    /// [`AllocError::Exhausted`].
    #[doc(alias = "m_get")]
    #[inline]
    pub fn plain(&self) -> Result<Mbuf, AllocError> {
        self.0.mbufs.plain()
    }

    /// An empty header mbuf whose storage holds at least `capacity` bytes: its own room if that
    /// is enough, else the smallest class.
    ///
    /// # Errors
    /// [`AllocError`]; nothing is taken then.
    #[doc(alias = "m_clget")]
    #[inline]
    pub fn header_with(&self, capacity: usize) -> Result<Mbuf, AllocError> {
        self.with_capacity(self.header()?, capacity)
    }

    /// As [`header_with`](Self::header_with), for a plain mbuf.
    ///
    /// # Errors
    /// [`AllocError`]; nothing is taken then.
    #[inline]
    pub fn plain_with(&self, capacity: usize) -> Result<Mbuf, AllocError> {
        self.with_capacity(self.plain()?, capacity)
    }

    #[inline]
    fn with_capacity(&self, mut m: Mbuf, capacity: usize) -> Result<Mbuf, AllocError> {
        if capacity > m.capacity() {
            self.attach_cluster(&mut m, capacity)?;
        }
        Ok(m)
    }

    /// Gives an empty inline mbuf a cluster of the smallest class that holds `len` bytes.
    ///
    /// # Errors
    /// [`AllocError`]; `m` is unchanged then.
    #[doc(alias = "MCLGETL")]
    #[inline]
    pub fn attach_cluster(&self, m: &mut Mbuf, len: usize) -> Result<(), AllocError> {
        match self.0.clusters.iter().find(|c| c.class() >= len) {
            Some(class) => class.attach(m),
            None => Err(self.no_class(len)),
        }
    }

    #[cold]
    fn no_class(&self, asked: usize) -> AllocError {
        AllocError::NoClass {
            asked,
            largest: self.largest_class().unwrap_or(0),
        }
    }

    /// Fills `out` with empty header mbufs, all or none. What was in it is freed first.
    ///
    /// # Errors
    /// [`AllocError::Exhausted`]; all of `out` is `None` then.
    #[doc(alias = "rte_pktmbuf_alloc_bulk")]
    #[inline]
    pub fn header_bulk<P: Packet>(&self, out: &mut [Option<P>]) -> Result<(), AllocError> {
        self.0.mbufs.header_bulk(out)
    }

    /// The smallest class that holds `len` bytes.
    pub fn class_for(&self, len: usize) -> Option<usize> {
        let mut classes = self.0.clusters.iter().map(ClusterPool::class);
        classes.find(|&class| class >= len)
    }

    /// The pool of the mbufs.
    pub fn mbuf_pool(&self) -> &MbufPool {
        &self.0.mbufs
    }

    /// The pools of the clusters, by ascending class.
    pub fn cluster_pools(&self) -> &[ClusterPool] {
        &self.0.clusters
    }

    pub(crate) fn events(&self) -> &Events {
        &self.0.events
    }

    /// The largest class; `None` when the set has none.
    pub fn largest_class(&self) -> Option<usize> {
        self.0.clusters.last().map(ClusterPool::class)
    }

    /// Inline rooms and the charge per mbuf.
    pub fn room(&self) -> Room {
        self.0.mbufs.room()
    }

    /// Bytes of inline room of a header mbuf.
    pub fn header_room(&self) -> usize {
        self.room().header
    }

    /// Bytes of inline room of a plain mbuf.
    pub fn plain_room(&self) -> usize {
        self.room().plain
    }

    /// All pools, the mbufs' first.
    pub fn pools(&self) -> impl Iterator<Item = &RawPool> {
        let clusters = self.0.clusters.iter().map(ClusterPool::raw);
        std::iter::once(self.0.mbufs.raw()).chain(clusters)
    }

    /// Objects that are in no pool and in no cache, over all pools.
    pub fn in_use(&self) -> usize {
        self.pools().map(RawPool::in_use).sum()
    }

    /// True when everything is back.
    pub fn is_full(&self) -> bool {
        self.in_use() == 0
    }
}

impl std::fmt::Debug for BufferSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.pools()).finish()
    }
}
