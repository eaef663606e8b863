//! A queue of segments with a tail pointer: what a socket buffer is made of.

use crate::copy;
use crate::error::{CopyError, OutOfRange};
use crate::handle::Mbuf;
use crate::header::HeaderPtr;
use crate::packet::Packet;
use crate::segment::{RawSegmentMut, Segment, Segments};
use crate::set::BufferSet;

/// Segments in a row, appended behind and cut off in front, with exact counters.
///
/// ```
/// use mbuf::{BufferSet, Chain, Packet};
/// let set = BufferSet::standard(64, 8)?;
/// let mut chain = Chain::new();
/// for word in ["to ", "be ", "or "] {
///     let mut m = set.header()?;
///     m.append(word.len())?.copy_from_slice(word.as_bytes());
///     chain.push_back(m);
/// }
/// assert_eq!((chain.len(), chain.segs()), (9, 3));
/// let gone = chain.cut(4)?.expect("one whole segment");
/// assert_eq!(gone.nsegs(), 1);
/// assert_eq!(chain.ref_copy(0, 5, &set)?.to_vec(), b"e or ");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "mbuf_list")]
#[derive(Default)]
pub struct Chain {
    ends: Option<Ends>,
    len: usize,
    segs: usize,
    charge: usize,
}

/// First and last segment. The chain owns all from one to the other, exclusively; the last has
/// no successor.
#[derive(Clone, Copy)]
struct Ends {
    head: HeaderPtr,
    tail: HeaderPtr,
}

// SAFETY: as for `Mbuf`, which it is a row of.
unsafe impl Send for Chain {}
// SAFETY: as for `Mbuf`.
unsafe impl Sync for Chain {}

impl Chain {
    /// An empty chain.
    pub const fn new() -> Self {
        Self {
            ends: None,
            len: 0,
            segs: 0,
            charge: 0,
        }
    }

    /// Bytes in the chain.
    #[doc(alias = "sb_cc")]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there is no segment. A chain of empty segments is not empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ends.is_none()
    }

    /// Segments in the chain.
    #[inline]
    pub fn segs(&self) -> usize {
        self.segs
    }

    /// Storage charged for the chain, in bytes: see [`Segment::charge`].
    #[doc(alias = "sb_mbcnt")]
    #[inline]
    pub fn charge(&self) -> usize {
        self.charge
    }

    /// The first segment.
    #[inline]
    pub fn first(&self) -> Option<Segment<'_>> {
        // SAFETY: the chain owns it and is borrowed.
        self.ends.map(|e| unsafe { Segment::new(e.head) })
    }

    /// The last segment.
    #[inline]
    pub fn last(&self) -> Option<Segment<'_>> {
        // SAFETY: the chain owns it and is borrowed.
        self.ends.map(|e| unsafe { Segment::new(e.tail) })
    }

    /// All segments, first to last.
    #[inline]
    pub fn segments(&self) -> Segments<'_> {
        Segments(self.first())
    }

    /// The segment that holds byte `offset`, and the byte's place in it; `None` at the end and
    /// beyond. Walks from the front.
    #[doc(alias = "m_getptr")]
    pub fn seek(&self, offset: usize) -> Option<(Segment<'_>, usize)> {
        let mut rest = offset;
        self.segments().find_map(|seg| {
            if rest < seg.len() {
                return Some((seg, rest));
            }
            rest -= seg.len();
            None
        })
    }

    /// Puts all segments of `packet` behind ours.
    #[doc(alias = "ml_enqueue")]
    pub fn push_back(&mut self, packet: Mbuf) {
        let head = packet.ptr();
        let mut tail = head;
        for seg in packet.segments() {
            tail = seg.ptr();
            self.len += seg.len();
            self.segs += 1;
            self.charge += seg.charge();
        }
        let head = packet.into_raw();
        match &mut self.ends {
            None => self.ends = Some(Ends { head, tail }),
            Some(ends) => {
                // SAFETY: our tail is ours and has no successor; the packet was exclusive and its
                // reference has just been handed over.
                unsafe { ends.tail.link(head) };
                ends.tail = tail;
            }
        }
    }

    /// All segments as one packet; `None` when there are none.
    pub fn into_packet(mut self) -> Option<Mbuf> {
        self.take_packet()
    }

    fn take_packet(&mut self) -> Option<Mbuf> {
        let (len, segs) = (self.len, self.segs);
        let ends = self.ends.take()?;
        (self.len, self.segs, self.charge) = (0, 0, 0);
        // SAFETY: the chain owned all of it, and has just let go.
        Some(unsafe { packet_from(ends.head, len, segs) })
    }

    /// Removes the first segment.
    fn pop_into(&mut self, gone: &mut Chain) {
        let Some(Ends { head, tail }) = self.ends else {
            return;
        };
        // SAFETY: the chain owns the segment; the successor stays in the chain.
        let next = unsafe { head.unlink() };
        self.ends = next.map(|head| Ends { head, tail });
        // SAFETY: unlinked and no longer in this chain, so this is the only reference.
        let m = unsafe {
            let seg = Segment::new(head);
            let (len, charge) = (seg.len(), seg.charge());
            self.len -= len;
            self.segs -= 1;
            self.charge -= charge;
            packet_from(head, len, 1)
        };
        gone.push_back(m);
    }

    /// Removes `n` bytes from the front. Segments that are used up come back as one packet, to be
    /// freed where it suits the caller (outside of a lock); of a segment that is used in part
    /// only the start of its data moves. Empty segments at the new front go too.
    ///
    /// # Errors
    /// [`OutOfRange`] when there are fewer bytes; nothing is changed then.
    #[doc(alias = "sbdrop")]
    #[doc(alias = "sbcut")]
    pub fn cut(&mut self, n: usize) -> Result<Option<Mbuf>, OutOfRange> {
        OutOfRange::check(0, n, self.len)?;
        let mut rest = n;
        let mut gone = Chain::new();
        while let Some(seg) = self.first() {
            let len = seg.len();
            if len > rest {
                break;
            }
            rest -= len;
            self.pop_into(&mut gone);
        }
        if rest > 0
            && let Some(ends) = self.ends
        {
            // SAFETY: the chain owns the segment and is mutably borrowed.
            let fields = unsafe { ends.head.fields_mut() };
            fields.off += rest as u32;
            fields.len -= rest as u32;
            self.len -= rest;
        }
        Ok(gone.into_packet())
    }

    /// Removes as many whole segments from the front as hold at most `max` bytes together.
    /// Nothing is copied.
    #[doc(alias = "somove")]
    pub fn take_whole(&mut self, max: usize) -> Option<Mbuf> {
        if self.len <= max {
            return self.take_packet();
        }
        let mut taken = Chain::new();
        while let Some(seg) = self.first() {
            if taken.len() + seg.len() > max {
                break;
            }
            self.pop_into(&mut taken);
        }
        taken.into_packet()
    }

    /// Copies as many of `bytes` as fit behind the last segment's data, where its storage is not
    /// shared. Returns how many that were.
    #[doc(alias = "sbcompress")]
    pub fn append_bytes(&mut self, bytes: &[u8]) -> usize {
        let Some(ends) = self.ends else { return 0 };
        // SAFETY: the chain owns the segment exclusively and is mutably borrowed.
        let seg = unsafe { RawSegmentMut::new(ends.tail) };
        let n = bytes.len().min(seg.view().tailroom());
        if let Ok(room) = seg.grow_back(n) {
            room.copy_from_slice(&bytes[..n]);
            self.len += n;
        }
        n
    }

    /// Gathers `dst.len()` bytes from `offset`.
    ///
    /// # Errors
    /// [`OutOfRange`] when they are not all there; `dst` is unchanged then.
    pub fn copy_to(&self, offset: usize, dst: &mut [u8]) -> Result<(), OutOfRange> {
        copy::gather(self.segments(), self.len, offset, dst)
    }

    /// See [`Packet::ref_copy`].
    ///
    /// # Errors
    /// [`CopyError`]; nothing is taken then.
    pub fn ref_copy(&self, offset: usize, len: usize, set: &BufferSet) -> Result<Mbuf, CopyError> {
        copy::reference(self.segments(), self.len, offset, len, set)
    }

    /// See [`Packet::byte_copy`].
    ///
    /// # Errors
    /// [`CopyError`]; nothing is taken then.
    pub fn byte_copy(
        &self,
        offset: usize,
        len: usize,
        lead: usize,
        set: &BufferSet,
    ) -> Result<Mbuf, CopyError> {
        copy::bytes(self.segments(), self.len, offset, len, lead, set)
    }
}

/// A packet of the segments from `head` on.
///
/// # Safety
/// The caller hands over the only reference; the segments hold `len` bytes and are `segs` many.
unsafe fn packet_from(head: HeaderPtr, len: usize, segs: usize) -> Mbuf {
    // SAFETY: exclusive by contract.
    unsafe {
        let fields = head.fields_mut();
        fields.pkt_len = len;
        fields.nsegs = segs as u32;
        Mbuf::from_raw(head)
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        drop(self.take_packet());
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Chain len {} charge {} ", self.len, self.charge)?;
        f.debug_list().entries(self.segments()).finish()
    }
}
