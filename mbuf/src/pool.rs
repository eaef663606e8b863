//! The two kinds of pool: mbufs, which rest as complete headers, and clusters of one class.

use crate::cluster::{CLUSTER_HEADER_LEN, Cluster, ClusterPtr};
use crate::count::Count;
use crate::error::{AllocError, CreateError};
use crate::free::raw::Slots;
use crate::handle::Mbuf;
use crate::header::{Fields, HEADER_LEN, Header, HeaderPtr, SegFlags};
use crate::history::{self, LifeEvent};
use crate::packet::Packet;
use crate::private::PrivateArea;
use crate::segment::Segment;
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
        for asked in [room.header, room.plain, room.charge] {
            checked_room(asked)?;
        }
        private.check()?;
        let inline = room.header.max(room.plain);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        if id >= POOL_IDS {
            return Err(CreateError::TooManyPools { limit: POOL_IDS });
        }
        let resting = word::resting(id);
        let charge = room.charge;
        let room_off = HEADER_LEN + private.len();
        let size = room_off + inline;
        let template = |pool, room, flags| template(pool, room, room_off, charge, flags);
        // Whatever builder comes back, possibly another one: headers and rooms need this much.
        let builder = configure(RawPool::builder(size)).objects_of(size, align_of::<Header>());
        let raw = builder.build_with_ref(|pool, object, _| {
            let header = Header::new(resting, template(pool, room.plain, SegFlags::empty()));
            // SAFETY: a fresh object of at least `room_off` bytes, aligned to 64, which nobody
            // else has.
            unsafe {
                object.cast::<Header>().write(header);
                private.write_new(object);
            }
        })?;
        let pool = raw.pool_ref();
        Ok(Self {
            raw,
            header: template(pool, room.header, SegFlags::HEADER),
            plain: template(pool, room.plain, SegFlags::empty()),
        })
    }

    /// The pool below, for its counts.
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
            Err(short) => Err(exhausted(&self.raw, short)),
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
        crate::free::free_bulk(out);
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
            return Err(exhausted(&self.raw, short));
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
    const MAX: usize = 1 << 30;
    match u32::try_from(asked) {
        Ok(room) if (1..=MAX).contains(&asked) => Ok(room),
        _ => Err(CreateError::Room { asked, max: MAX }),
    }
}

#[cold]
#[inline(never)]
fn exhausted(pool: &RawPool, short: Exhausted) -> AllocError {
    AllocError::Exhausted {
        asked: short.asked,
        available: short.available,
        size: pool.object_size(),
    }
}

fn template(
    pool: mempool::PoolRef,
    room: usize,
    room_off: usize,
    charge: usize,
    flags: SegFlags,
) -> Fields {
    Fields {
        next: None,
        pool,
        cluster: None,
        pkt_len: 0,
        off: 0,
        len: 0,
        capacity: room as u32,
        nsegs: 1,
        charge: charge as u32,
        room_off: room_off as u16,
        flags,
    }
}

impl Mbuf {
    /// Bytes of storage of the first segment.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.first().capacity()
    }

    /// Makes an empty inline mbuf refer to `len` bytes at `at` of `source`'s data, which lie in a
    /// cluster; otherwise does nothing.
    #[inline]
    pub(crate) fn refer_to(&mut self, source: Segment<'_>, at: usize, len: usize) {
        let Some(cluster) = source.cluster() else {
            return;
        };
        debug_assert!(at + len <= source.len() && self.first().cluster().is_none());
        // SAFETY: the source holds a reference while it is borrowed.
        unsafe { cluster.get().count.retain() };
        let capacity = source.fields().capacity;
        self.set_cluster(cluster, capacity, (source.lead() + at) as u32, len as u32);
    }

    /// Hands one reference of `cluster` to this mbuf, which has none.
    #[inline(always)]
    fn set_cluster(&mut self, cluster: ClusterPtr, capacity: u32, off: u32, len: u32) {
        let ptr = self.ptr();
        // SAFETY: exclusive handle, mutably borrowed.
        unsafe {
            let word = ptr.word();
            word.set(word.load() | word::CLUSTER);
            let fields = ptr.fields_mut();
            fields.cluster = Some(cluster);
            fields.capacity = capacity;
            fields.charge += capacity;
            fields.off = off;
            fields.pkt_len = fields.pkt_len - fields.len as usize + len as usize;
            fields.len = len;
        }
    }
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

    /// The pool below, for its counts.
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
        if !seg.is_empty() || seg.cluster().is_some() {
            return Err(AllocError::Occupied {
                len: seg.len(),
                capacity: seg.capacity(),
            });
        }
        match self.raw.get() {
            Ok(object) => {
                // A cluster rests with count 1: the reference that the mbuf gets.
                m.set_cluster(ClusterPtr(object.cast()), self.size, 0, 0);
                Ok(())
            }
            Err(short) => Err(exhausted(&self.raw, short)),
        }
    }
}
