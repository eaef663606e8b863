//! Views of one segment, and the walk along a chain.

use crate::cluster::StoragePtr;
use crate::error::NoRoom;
use crate::external::External;
use crate::header::{Fields, HeaderPtr, SegFlags};
use crate::kind::Kind;
use crate::word;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Where a segment's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Storage {
    /// In the mbuf's own room: behind the header, or in its slice of a pinned pool's memory.
    Inline,
    /// In a cluster.
    Cluster {
        /// Bytes that the cluster holds.
        class: usize,
    },
    /// In memory that somebody else owns: see [`External`].
    #[doc(alias = "RTE_MBUF_F_EXTERNAL")]
    #[doc(alias = "M_EXT")]
    External {
        /// Bytes of that memory.
        len: usize,
        /// Whether its only holder may write it.
        writable: bool,
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

    /// The storage outside of the mbuf's own room, a cluster or external, whose references are
    /// counted.
    #[inline(always)]
    pub(crate) fn counted(self) -> Option<StoragePtr> {
        self.fields().storage
    }

    /// Start of the storage.
    #[inline(always)]
    pub(crate) fn base(self) -> NonNull<u8> {
        let fields = self.fields();
        match fields.storage {
            Some(storage) if !fields.flags.contains(SegFlags::EXTERNAL) => storage.cluster().data(),
            // SAFETY: this segment holds a reference to the record while it is borrowed.
            Some(storage) => unsafe { storage.record().data() },
            None => match fields.room.offset() {
                // SAFETY: the room lies so many bytes behind the header, in the same element.
                Some(offset) => unsafe { self.ptr.0.cast::<u8>().add(offset) },
                // SAFETY: the handle that is borrowed holds the element.
                None => unsafe { self.ptr.home() }.room,
            },
        }
    }

    /// Whether the bytes may be written by whoever has the packet alone.
    #[doc(alias = "M_EXTWR")]
    #[inline]
    pub fn is_writable(self) -> bool {
        match self.counted() {
            None => true,
            Some(storage) => {
                // SAFETY: this segment holds one of the references while it is borrowed.
                !self.fields().flags.contains(SegFlags::READ_ONLY)
                    && unsafe { storage.count() }.is_one()
            }
        }
    }

    /// The external storage, if the bytes are in such: one more reference to it.
    pub fn external(self) -> Option<External> {
        if !self.fields().flags.contains(SegFlags::EXTERNAL) {
            return None;
        }
        // SAFETY: this segment holds a reference while it is borrowed.
        self.counted()
            .map(|storage| unsafe { storage.record().share() })
    }

    /// Whether this segment's storage will be wiped when the last reference to it goes: see
    /// [`Mbuf::wipe_on_free`](crate::Mbuf::wipe_on_free).
    pub fn is_wiped_on_free(self) -> bool {
        match self.counted() {
            // SAFETY: the handle that is borrowed holds the element.
            None => unsafe { self.ptr.word() }.load() & word::WIPE != 0,
            Some(storage) => {
                // SAFETY: this segment holds one of the references while it is borrowed.
                let asked = unsafe { storage.count() }.wipes();
                asked && !self.fields().flags.contains(SegFlags::READ_ONLY)
            }
        }
    }

    /// The bytes of this segment.
    #[doc(alias = "mtod")]
    #[doc(alias = "rte_pktmbuf_mtod")]
    #[inline(always)]
    pub fn data(self) -> &'a [u8] {
        // SAFETY: `off + len <= capacity` is kept by all that writes them; arenas are zeroed when
        // made and external memory is initialised by contract; storage is writable only through an exclusive
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

    /// Bytes of storage: the size of the cluster or external memory, else the limit of the mbuf's
    /// own room.
    #[doc(alias = "M_SIZE")]
    #[inline(always)]
    pub fn capacity(self) -> usize {
        self.fields().capacity as usize
    }

    /// Bytes that can be put in front of the data; 0 when the storage is read-only.
    #[doc(alias = "M_LEADINGSPACE")]
    #[doc(alias = "rte_pktmbuf_headroom")]
    #[inline]
    pub fn headroom(self) -> usize {
        if self.is_writable() { self.lead() } else { 0 }
    }

    /// Bytes that can be put behind the data; 0 when the storage is read-only.
    #[doc(alias = "M_TRAILINGSPACE")]
    #[doc(alias = "rte_pktmbuf_tailroom")]
    #[inline]
    pub fn tailroom(self) -> usize {
        if self.is_writable() {
            self.capacity() - self.lead() - self.len()
        } else {
            0
        }
    }

    /// Where the bytes are.
    pub fn storage(self) -> Storage {
        let flags = self.fields().flags;
        match self.counted() {
            None => Storage::Inline,
            Some(_) if flags.contains(SegFlags::EXTERNAL) => Storage::External {
                len: self.capacity(),
                writable: !flags.contains(SegFlags::READ_ONLY),
            },
            Some(_) => Storage::Cluster {
                class: self.capacity(),
            },
        }
    }

    /// True when somebody else refers to the same cluster or external storage, which makes the bytes
    /// read-only.
    #[doc(alias = "M_READONLY")]
    #[inline]
    pub fn is_shared(self) -> bool {
        match self.counted() {
            None => false,
            // SAFETY: this segment holds one of the references while it is borrowed.
            Some(storage) => unsafe { !storage.count().is_one() },
        }
    }

    /// How many refer to this segment's storage.
    #[doc(alias = "rte_mbuf_ext_refcnt_read")]
    pub fn storage_refs(self) -> usize {
        match self.counted() {
            None => 1,
            // SAFETY: as in `is_shared`.
            Some(storage) => unsafe { storage.count().get() as usize },
        }
    }

    /// What a socket buffer is charged for it: the mbuf, and the size of its cluster or
    /// external memory.
    #[doc(alias = "sb_mbcnt")]
    #[inline]
    pub fn charge(self) -> usize {
        self.fields().charge as usize
    }

    /// How many sockets have passed this segment on to another connection, with
    /// [`Mbuf::pass_on`](crate::Mbuf::pass_on). Copies have it too: those into one
    /// storage the most of what is copied.
    #[doc(alias = "ph_loopcnt")]
    #[inline(always)]
    pub fn hops(self) -> u8 {
        self.fields().hops
    }

    /// In a chain: the position of its first byte.
    #[inline(always)]
    pub(crate) fn position(self) -> usize {
        self.fields().pkt_len
    }

    /// What the bytes are.
    #[doc(alias = "m_type")]
    #[inline]
    pub fn kind(self) -> Kind {
        Kind::of(self.fields().flags)
    }

    /// Whether the sender's record ends with this segment.
    #[doc(alias = "M_EOR")]
    #[inline]
    pub fn is_eor(self) -> bool {
        self.fields().flags.contains(SegFlags::EOR)
    }

    /// In a [`Chain`](crate::Chain): whether another record begins behind this segment.
    #[doc(alias = "m_nextpkt")]
    #[inline]
    pub fn ends_record(self) -> bool {
        self.fields().flags.contains(SegFlags::RECORD_END)
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
            if !seg.is_writable() {
                return None;
            }
            (seg.base(), seg.lead(), seg.len())
        };
        // SAFETY: in bounds and initialised as in `Segment::data`. Exclusive: the segment is
        // mutably borrowed for `'a`; inline room belongs to it alone; counted storage whose count
        // is 1 is referred to by this segment alone, and only a holder, that is this segment,
        // could make another reference. External memory is writable where nobody but its record
        // has access.
        Some(unsafe { std::slice::from_raw_parts_mut(base.add(lead).as_ptr(), len) })
    }

    /// Opens `n` bytes in front of the data.
    #[inline]
    pub(crate) fn grow_front(mut self, n: usize) -> Result<&'a mut [u8], NoRoom> {
        let have = self.view().headroom();
        if n > have {
            return Err(NoRoom::in_segment(self.view(), n, have));
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
            return Err(NoRoom::in_segment(self.view(), n, have));
        }
        let old = self.view().len();
        self.fields().len += n as u32;
        Ok(self.into_writable(old, n))
    }

    #[inline]
    fn into_writable(self, at: usize, n: usize) -> &'a mut [u8] {
        match self.into_data() {
            Some(data) => &mut data[at..at + n],
            // Room was found; read-only storage has none, except for an empty request.
            None => &mut [],
        }
    }
}

/// One segment of an exclusive packet, for writing its bytes.
pub struct SegmentMut<'a>(pub(crate) RawSegmentMut<'a>);

impl<'a> SegmentMut<'a> {
    /// The bytes; `None` when the storage is read-only.
    pub fn data_mut(self) -> Option<&'a mut [u8]> {
        self.0.into_data()
    }

    /// The same segment, for reading.
    pub fn view(&self) -> Segment<'_> {
        self.0.view()
    }
}
