//! Views of one segment, and the walk along a chain.

use crate::cluster::ClusterPtr;
use crate::error::NoRoom;
use crate::header::{Fields, HeaderPtr, SegFlags};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Where a segment's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// In the element itself, behind the header.
    Inline,
    /// In a cluster.
    Cluster {
        /// Bytes that the cluster holds.
        class: usize,
    },
}

/// One segment of a packet, for reading.
#[derive(Clone, Copy)]
pub struct Segment<'a> {
    ptr: HeaderPtr,
    packet: PhantomData<&'a Fields>,
}

// SAFETY: a view reads fields that nobody writes while it lives, and counts, which are atomic.
unsafe impl Send for Segment<'_> {}
// SAFETY: as above.
unsafe impl Sync for Segment<'_> {}

impl<'a> Segment<'a> {
    /// # Safety
    /// The segment is reachable from a handle that is borrowed for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn new(ptr: HeaderPtr) -> Self {
        Self {
            ptr,
            packet: PhantomData,
        }
    }

    #[inline(always)]
    pub(crate) fn fields(self) -> &'a Fields {
        // SAFETY: the borrow of the handle keeps writers away for `'a`.
        unsafe { self.ptr.fields() }
    }

    #[inline(always)]
    pub(crate) fn ptr(self) -> HeaderPtr {
        self.ptr
    }

    #[inline(always)]
    pub(crate) fn cluster(self) -> Option<ClusterPtr> {
        self.fields().cluster
    }

    #[inline(always)]
    fn base(self) -> NonNull<u8> {
        match self.cluster() {
            Some(cluster) => cluster.data(),
            // SAFETY: the room lies `room_off` bytes behind the header, in the same element.
            None => unsafe { self.ptr.0.cast::<u8>().add(self.fields().room_off as usize) },
        }
    }

    /// The bytes of this segment.
    #[doc(alias = "mtod")]
    #[doc(alias = "rte_pktmbuf_mtod")]
    #[inline(always)]
    pub fn data(self) -> &'a [u8] {
        // SAFETY: `off + len <= capacity` is kept by all that writes them; arenas are zeroed when
        // made, so the bytes are initialised; storage is writable only through an exclusive
        // borrow of its only handle (`SegmentMut::data_mut`), which `'a` excludes.
        unsafe { std::slice::from_raw_parts(self.base().add(self.lead()).as_ptr(), self.len()) }
    }

    /// Bytes in this segment. Zero is allowed anywhere in a chain.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.fields().len as usize
    }

    /// True when the segment holds no bytes.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Bytes between the start of the storage and the data, whether they may be written or not.
    #[inline(always)]
    pub fn lead(self) -> usize {
        self.fields().off as usize
    }

    /// Bytes of storage: the cluster's size, else the limit of the inline room.
    #[doc(alias = "M_SIZE")]
    #[inline(always)]
    pub fn capacity(self) -> usize {
        self.fields().capacity as usize
    }

    /// Bytes that can be put in front of the data; 0 when the storage is shared.
    #[doc(alias = "M_LEADINGSPACE")]
    #[doc(alias = "rte_pktmbuf_headroom")]
    #[inline]
    pub fn headroom(self) -> usize {
        if self.is_shared() { 0 } else { self.lead() }
    }

    /// Bytes that can be put behind the data; 0 when the storage is shared.
    #[doc(alias = "M_TRAILINGSPACE")]
    #[doc(alias = "rte_pktmbuf_tailroom")]
    #[inline]
    pub fn tailroom(self) -> usize {
        if self.is_shared() {
            0
        } else {
            self.capacity() - self.lead() - self.len()
        }
    }

    /// Where the bytes are.
    pub fn storage(self) -> Storage {
        match self.cluster() {
            None => Storage::Inline,
            Some(_) => Storage::Cluster {
                class: self.capacity(),
            },
        }
    }

    /// True when another mbuf refers to the same cluster, which makes the bytes read-only.
    #[doc(alias = "M_READONLY")]
    #[inline]
    pub fn is_shared(self) -> bool {
        match self.cluster() {
            None => false,
            // SAFETY: this segment holds one of the references while it is borrowed.
            Some(cluster) => unsafe { !cluster.get().count.is_one() },
        }
    }

    /// How many mbufs refer to this segment's storage.
    pub fn storage_refs(self) -> usize {
        match self.cluster() {
            None => 1,
            // SAFETY: as in `is_shared`.
            Some(cluster) => unsafe { cluster.get().count.get() as usize },
        }
    }

    /// What a socket buffer is charged for it: the mbuf, and its cluster's size.
    #[doc(alias = "sb_mbcnt")]
    #[inline]
    pub fn charge(self) -> usize {
        self.fields().charge as usize
    }

    /// True when the segment was allocated to head a packet.
    #[doc(alias = "M_PKTHDR")]
    #[inline]
    pub fn is_header(self) -> bool {
        self.fields().flags.contains(SegFlags::HEADER)
    }

    /// The segment behind this one.
    #[inline(always)]
    pub fn next(self) -> Option<Segment<'a>> {
        // SAFETY: a successor is reachable from the same handle.
        self.fields().next.map(|ptr| unsafe { Segment::new(ptr) })
    }
}

impl std::fmt::Debug for Segment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seg = *self;
        write!(
            f,
            "{:?} lead {} len {} trail {} refs {}",
            seg.storage(),
            seg.lead(),
            seg.len(),
            seg.capacity() - seg.lead() - seg.len(),
            seg.storage_refs()
        )
    }
}

/// Iterator over the segments of a packet or chain, first to last.
#[derive(Clone)]
pub struct Segments<'a>(pub(crate) Option<Segment<'a>>);

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Segment<'a>> {
        let seg = self.0?;
        self.0 = seg.next();
        Some(seg)
    }
}

/// One segment, for writing. It edits this segment's own data; lengths of the packet around it
/// are kept by whoever lends it.
pub(crate) struct RawSegmentMut<'a> {
    ptr: HeaderPtr,
    packet: PhantomData<&'a mut Fields>,
}

impl<'a> RawSegmentMut<'a> {
    /// # Safety
    /// The segment is reachable from a handle that is exclusive and mutably borrowed for `'a`,
    /// and no other view of it exists.
    #[inline(always)]
    pub(crate) unsafe fn new(ptr: HeaderPtr) -> Self {
        Self {
            ptr,
            packet: PhantomData,
        }
    }

    #[inline(always)]
    pub(crate) fn view(&self) -> Segment<'_> {
        // SAFETY: shorter borrow of the same segment.
        unsafe { Segment::new(self.ptr) }
    }

    #[inline(always)]
    pub(crate) fn fields(&mut self) -> &mut Fields {
        // SAFETY: exclusive for `'a`, and this borrow is shorter.
        unsafe { self.ptr.fields_mut() }
    }

    /// The bytes, when the storage is this segment's alone.
    #[inline]
    pub(crate) fn into_data(self) -> Option<&'a mut [u8]> {
        let (base, lead, len) = {
            let seg = self.view();
            if seg.is_shared() {
                return None;
            }
            (seg.base(), seg.lead(), seg.len())
        };
        // SAFETY: in bounds and initialised as in `Segment::data`. Exclusive: the segment is
        // mutably borrowed for `'a`; inline room belongs to it alone; a cluster whose count is 1
        // is referred to by this segment alone, and only a holder, that is this segment, could
        // make another reference.
        Some(unsafe { std::slice::from_raw_parts_mut(base.add(lead).as_ptr(), len) })
    }

    /// Opens `n` bytes in front of the data.
    #[inline]
    pub(crate) fn grow_front(mut self, n: usize) -> Result<&'a mut [u8], NoRoom> {
        let have = self.view().headroom();
        if n > have {
            return Err(NoRoom { asked: n, have });
        }
        let fields = self.fields();
        fields.off -= n as u32;
        fields.len += n as u32;
        Ok(self.into_writable(0, n))
    }

    /// Opens `n` bytes behind the data.
    #[inline]
    pub(crate) fn grow_back(mut self, n: usize) -> Result<&'a mut [u8], NoRoom> {
        let have = self.view().tailroom();
        if n > have {
            return Err(NoRoom { asked: n, have });
        }
        let old = self.view().len();
        self.fields().len += n as u32;
        Ok(self.into_writable(old, n))
    }

    #[inline]
    fn into_writable(self, at: usize, n: usize) -> &'a mut [u8] {
        match self.into_data() {
            Some(data) => &mut data[at..at + n],
            // Room was found; shared storage has none, except for an empty request.
            None => &mut [],
        }
    }
}

/// One segment of an exclusive packet, for writing its bytes.
pub struct SegmentMut<'a>(pub(crate) RawSegmentMut<'a>);

impl<'a> SegmentMut<'a> {
    /// The bytes; `None` when the storage is shared.
    pub fn data_mut(self) -> Option<&'a mut [u8]> {
        self.0.into_data()
    }

    /// The same segment, for reading.
    pub fn view(&self) -> Segment<'_> {
        self.0.view()
    }
}
