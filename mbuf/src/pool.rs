//! The two kinds of pool: mbufs, which rest as complete headers, and clusters of one class.

use crate::attach::MAX_STORAGE;
use crate::cluster::{CLUSTER_HEADER_LEN, Cluster, ClusterPtr};
use crate::count::Count;
use crate::error::{AllocError, Buffers, CreateError};
use crate::free::raw::Slots;
use crate::handle::Mbuf;
use crate::header::{Fields, HEADER_LEN, Header, HeaderPtr, Home, RoomStart, SegFlags};
use crate::history::{self, LifeEvent};
use crate::packet::Packet;
use crate::private::PrivateArea;
use crate::word::{self, POOL_IDS};
use mempool::{Builder, Exhausted, RawPool};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// How much of an element's room an mbuf may use, and what it is charged.
///
/// One element serves both kinds of a BSD buffer set: a header mbuf with 144 bytes of room and a
/// plain one with 224.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes of inline room of a header mbuf.
    pub header: usize,
    /// Bytes of inline room of a plain mbuf.
    pub plain: usize,
    /// Bytes that a socket buffer is charged for an mbuf, its cluster aside.
    pub charge: usize,
}

impl Room {
    pub(crate) fn check(self) -> Result<(), CreateError> {
        for asked in [self.header, self.plain, self.charge] {
            checked_room(asked)?;
        }
        Ok(())
    }
}

/// A pool of mbufs. A handle: cloning it is cheap, and mbufs may outlive all handles.
#[derive(Clone)]
pub struct MbufPool {
    raw: RawPool,
    header: Fields,
    plain: Fields,
}

// SAFETY: the templates hold no element's address, only the pool's.
unsafe impl Send for MbufPool {}
// SAFETY: as above; `RawPool` is `Sync`.
unsafe impl Sync for MbufPool {}

/// Pool ids are never used twice: equal free words mean the same pool.
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl MbufPool {
    /// Makes a pool of mbufs from what `configure` makes of a builder for elements of the right
    /// size (capacity, cache, backend, name).
    ///
    /// # Errors
    /// [`CreateError`], as the pool below reports it, or when a room or the charge is impossible.
    pub fn new(
        room: Room,
        configure: impl FnOnce(Builder) -> Builder,
    ) -> Result<Self, CreateError> {
        Self::with_private(room, PrivateArea::default(), configure)
    }

    /// As [`new`](Self::new), with a private area in each mbuf.
    ///
    /// # Errors
    /// As for [`new`](Self::new), or when the area is impossible.
    #[doc(alias = "rte_pktmbuf_pool_create")]
    pub fn with_private(
        room: Room,
        private: PrivateArea,
        configure: impl FnOnce(Builder) -> Builder,
    ) -> Result<Self, CreateError> {
        room.check()?;
        private.check()?;
        let inline = room.header.max(room.plain);
        let offset = HEADER_LEN + private.len();
        let own_room = |object: NonNull<u8>, _| {
            // SAFETY: elements are so much longer than their header.
            unsafe { object.add(offset) }
        };
        let start = RoomStart::at(offset);
        Self::build(room, private, inline, start, configure, own_room)
    }

    /// Makes a pool of elements with `inline` bytes behind header and private area, whose rooms begin at
    /// `start`, or, if that is not in the element, where `own_room` says (of an element, and its
    /// index). Room and area have been checked.
    pub(crate) fn build(
        room: Room,
        private: PrivateArea,
        inline: usize,
        start: RoomStart,
        configure: impl FnOnce(Builder) -> Builder,
        mut own_room: impl FnMut(NonNull<u8>, usize) -> NonNull<u8>,
    ) -> Result<Self, CreateError> {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        if id >= POOL_IDS {
            return Err(CreateError::TooManyPools { limit: POOL_IDS });
        }
        let resting = word::resting(id);
        let size = HEADER_LEN + private.len() + inline;
        let charge = room.charge;
        let fields = |pool, room, flags| Fields {
            next: None,
            pool,
            storage: None,
            pkt_len: 0,
            off: 0,
            len: 0,
            capacity: room as u32,
            nsegs: 1,
            charge: charge as u32,
            room: start,
            hops: 0,
            flags,
        };
        // Whatever builder comes back, possibly another one: headers and rooms need this much.
        let builder = configure(RawPool::builder(size)).objects_of(size, align_of::<Header>());
        let raw = builder.build_with_ref(|pool, object, index| {
            let home = Home {
                room: own_room(object, index),
                header: room.header as u32,
                plain: room.plain as u32,
            };
            let fields = fields(pool, room.plain, SegFlags::empty());
            let header = Header::new(resting, fields, home);
            // SAFETY: a fresh object of at least `HEADER_LEN` bytes, aligned to 64, which nobody
            // else has.
            unsafe {
                object.cast::<Header>().write(header);
                private.write_new(object);
            }
        })?;
        let pool = raw.pool_ref();
        Ok(Self {
            raw,
            header: fields(pool, room.header, SegFlags::HEADER),
            plain: fields(pool, room.plain, SegFlags::empty()),
        })
    }

    /// The pool below, for its counts. An object that is taken from it directly is no mbuf and belongs to
    /// nobody; it must go back as it came.
    pub fn raw(&self) -> &RawPool {
        &self.raw
    }

    /// Bytes of inline room, and the charge.
    pub fn room(&self) -> Room {
        Room {
            header: self.header.capacity as usize,
            plain: self.plain.capacity as usize,
            charge: self.plain.charge as usize,
        }
    }

    /// An empty header mbuf.
    ///
    /// # Errors
    /// [`AllocError::Exhausted`].
    #[doc(alias = "m_gethdr")]
    #[doc(alias = "rte_pktmbuf_alloc")]
    #[inline]
    pub fn header(&self) -> Result<Mbuf, AllocError> {
        self.alloc(&self.header)
    }

    /// An empty plain mbuf.
    ///
    /// # Errors
    /// [`AllocError::Exhausted`].
    #[doc(alias = "m_get")]
    #[inline]
    pub fn plain(&self) -> Result<Mbuf, AllocError> {
        self.alloc(&self.plain)
    }

    #[inline(always)]
    fn alloc(&self, template: &Fields) -> Result<Mbuf, AllocError> {
        match self.raw.get() {
            // SAFETY: an object of this pool, fresh from it: the word rests, which says
            // exclusive, unchained and inline, and the template agrees.
            Ok(object) => Ok(unsafe {
                let ptr = HeaderPtr(object.cast());
                *ptr.fields_mut() = *template;
                history::note(ptr, LifeEvent::Alloc);
                Mbuf::from_raw(ptr)
            }),
            Err(short) => Err(exhausted(Buffers::Mbufs, short)),
        }
    }

    /// Fills `out` with empty header mbufs, all or none. What was in it is freed first. A fresh
    /// mbuf has one reference, so that it may start under any handle.
    ///
    /// # Errors
    /// [`AllocError::Exhausted`]; all of `out` is `None` then.
    #[doc(alias = "rte_pktmbuf_alloc_bulk")]
    #[inline]
    pub fn header_bulk<P: Packet>(&self, out: &mut [Option<P>]) -> Result<(), AllocError> {
        // A look without branches: most arrays are empty.
        if out.iter().fold(false, |any, slot| any | slot.is_some()) {
            crate::free::free_bulk(out);
        }
        // Whatever stops us below, no slot may keep a pointer: dropped, this makes all `None`.
        let mut slots = Slots::new(out);
        // SAFETY: a slot is one pointer, null for `None`; all are `None`, so that overwriting
        // them drops nothing. Nobody reads them before they are all written or all emptied.
        let fresh = unsafe { slots.as_uninit() };
        self.fresh_headers(fresh)?;
        slots.keep();
        Ok(())
    }

    /// Fills `out` with empty header mbufs, all or none.
    #[inline(always)]
    pub(crate) fn headers_into(&self, out: &mut [MaybeUninit<Mbuf>]) -> Result<(), AllocError> {
        // SAFETY: an `Mbuf` is the address of its element.
        let fresh = unsafe { &mut *(std::ptr::from_mut(out) as *mut [MaybeUninit<NonNull<u8>>]) };
        self.fresh_headers(fresh)
    }

    #[inline(always)]
    fn fresh_headers(&self, fresh: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), AllocError> {
        if let Err(short) = self.raw.get_bulk(fresh) {
            return Err(exhausted(Buffers::Mbufs, short));
        }
        for object in fresh {
            // SAFETY: just written; a fresh object of this pool, as in `alloc`.
            unsafe {
                let ptr = HeaderPtr(object.assume_init().cast());
                *ptr.fields_mut() = self.header;
                history::note(ptr, LifeEvent::Alloc);
            }
        }
        Ok(())
    }
}

/// Lengths and offsets are 32 bits wide; sums of a few of these stay below that.
fn checked_room(asked: usize) -> Result<u32, CreateError> {
    const MAX: usize = MAX_STORAGE;
    match u32::try_from(asked) {
        Ok(room) if (1..=MAX).contains(&asked) => Ok(room),
        _ => Err(CreateError::Room { asked, max: MAX }),
    }
}

#[cold]
#[inline(never)]
fn exhausted(of: Buffers, short: Exhausted) -> AllocError {
    AllocError::Exhausted { of, short }
}

/// A pool of clusters of one size.
#[derive(Clone)]
pub struct ClusterPool {
    raw: RawPool,
    size: u32,
}

impl ClusterPool {
    /// Makes a pool of clusters that hold `size` bytes each.
    ///
    /// # Errors
    /// [`CreateError`], as the pool below reports it, or when `size` is impossible.
    pub fn new(
        size: usize,
        configure: impl FnOnce(Builder) -> Builder,
    ) -> Result<Self, CreateError> {
        let class = checked_room(size)?;
        let len = CLUSTER_HEADER_LEN + size;
        let builder = configure(RawPool::builder(len)).objects_of(len, align_of::<Cluster>());
        let raw = builder.build_with_ref(|pool, object, _| {
            let cluster = Cluster {
                count: Count::new(),
                size: class,
                pool,
            };
            // SAFETY: a fresh object, large and aligned enough, which nobody else has.
            unsafe { object.cast::<Cluster>().write(cluster) };
        })?;
        Ok(Self { raw, size: class })
    }

    /// The pool below, for its counts. An object that is taken from it directly is no storage of
    /// any mbuf, and must go back as it came.
    pub fn raw(&self) -> &RawPool {
        &self.raw
    }

    /// Bytes that a cluster holds.
    pub fn class(&self) -> usize {
        self.size as usize
    }

    /// Gives an empty inline mbuf a cluster as its storage; data starts at the cluster's start.
    ///
    /// # Errors
    /// [`AllocError::Exhausted`], or [`AllocError::Occupied`] when the mbuf's first segment holds data
    /// or has a cluster; unchanged then.
    #[doc(alias = "m_clget")]
    #[doc(alias = "MCLGETL")]
    #[inline]
    pub fn attach(&self, m: &mut Mbuf) -> Result<(), AllocError> {
        let seg = m.first();
        if !seg.is_empty() || seg.counted().is_some() {
            return Err(AllocError::Occupied {
                len: seg.len(),
                capacity: seg.capacity(),
            });
        }
        match self.raw.get() {
            Ok(object) => {
                let cluster = ClusterPtr(object.cast());
                // SAFETY: fresh from this pool. A cluster rests with count 1: the reference that the
                // mbuf gets.
                unsafe { m.give_cluster(cluster.storage(), self.size) };
                Ok(())
            }
            Err(short) => {
                let class = self.class();
                Err(exhausted(Buffers::Clusters { class }, short))
            }
        }
    }
}

impl std::fmt::Debug for MbufPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("MbufPool").field(&self.raw).finish()
    }
}

impl std::fmt::Debug for ClusterPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ClusterPool").field(&self.raw).finish()
    }
}
