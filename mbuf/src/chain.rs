//! A queue of segments with a tail pointer: what a socket buffer is made of.

mod marks;

use crate::copy;
use crate::error::{CopyError, OutOfRange};
use crate::handle::Mbuf;
use crate::header::{HeaderPtr, SegFlags};
use crate::segment::{RawSegmentMut, Segment, Segments};
use crate::set::BufferSet;
use marks::Marks;

/// Segments in a row, appended behind and cut off in front, with exact counters.
///
/// Reading from an offset begins where an earlier read ended, if that is nearer than the front: what
/// is read on and on, and beside it read again from further in front, is found at the same cost
/// in a chain of any length.
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
    /// Position of the first byte: how many were in front of it.
    base: usize,
    len: usize,
    segs: usize,
    charge: usize,
    marks: Marks,
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
            base: 0,
            len: 0,
            segs: 0,
            charge: 0,
            marks: Marks::new(),
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

    /// Bytes that were cut off or taken until now: the position of the first byte among all that
    /// ever passed.
    #[inline]
    pub fn position(&self) -> usize {
        self.base
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
    /// beyond.
    #[doc(alias = "m_getptr")]
    pub fn seek(&self, offset: usize) -> Option<(Segment<'_>, usize)> {
        if offset >= self.len {
            return None;
        }
        let (mut segments, mut rest) = self.walk_to(offset);
        segments.find_map(|seg| {
            if rest < seg.len() {
                return Some((seg, rest));
            }
            rest -= seg.len();
            None
        })
    }

    /// How many segments [`seek`](Self::seek) passes over before it is at the one it looks for;
    /// `None` where that finds none.
    pub fn steps_to(&self, offset: usize) -> Option<usize> {
        let (found, _) = self.seek(offset)?;
        let (mut segments, _) = self.walk_to(offset);
        segments.position(|seg| seg.ptr() == found.ptr())
    }

    /// Where the walk to `offset` begins, and how many bytes from there it is; not beyond the end.
    #[inline]
    fn walk_to(&self, offset: usize) -> (Segments<'_>, usize) {
        if offset == 0 {
            return (self.segments(), 0);
        }
        let position = self.base + offset;
        // SAFETY: whatever takes a segment out of this chain, `detach` and `take_packet`, has it
        // forgotten, so what is marked is the chain's, which is borrowed.
        match unsafe { self.marks.nearest(position) } {
            Some(seg) => (Segments(Some(seg)), position - seg.position()),
            None => (self.segments(), offset),
        }
    }

    /// Puts all segments of `packet` behind ours.
    #[doc(alias = "ml_enqueue")]
    pub fn push_back(&mut self, packet: Mbuf) {
        let head = packet.into_raw();
        let mut tail = head;
        let mut next = Some(head);
        while let Some(ptr) = next {
            // SAFETY: the packet was exclusive, and its reference has just been handed over.
            let fields = unsafe { ptr.fields_mut() };
            fields.pkt_len = self.base + self.len;
            fields.flags -= SegFlags::RECORD_END;
            self.len += fields.len as usize;
            self.segs += 1;
            self.charge += fields.charge as usize;
            tail = ptr;
            next = fields.next;
        }
        match &mut self.ends {
            None => self.ends = Some(Ends { head, tail }),
            Some(ends) => {
                // SAFETY: our tail is ours and has no successor; the packet is ours as above.
                unsafe { ends.tail.link(head) };
                ends.tail = tail;
            }
        }
    }

    /// Says that what is pushed from now on is another record. No change in an empty chain.
    #[doc(alias = "m_nextpkt")]
    pub fn end_record(&mut self) {
        self.mark_tail(SegFlags::RECORD_END);
    }

    /// Says that the sender's record ends with our last segment, if there is one.
    #[doc(alias = "M_EOR")]
    pub fn set_eor(&mut self) {
        self.mark_tail(SegFlags::EOR);
    }

    fn mark_tail(&mut self, flag: SegFlags) {
        if let Some(ends) = self.ends {
            // SAFETY: the chain owns the segment and is mutably borrowed.
            unsafe { ends.tail.fields_mut() }.flags |= flag;
        }
    }

    /// All segments as one packet; `None` when there are none.
    pub fn into_packet(mut self) -> Option<Mbuf> {
        self.take_packet()
    }

    fn take_packet(&mut self) -> Option<Mbuf> {
        let (len, segs) = (self.len, self.segs);
        let ends = self.ends.take()?;
        self.marks.forget_all();
        self.base += len;
        (self.len, self.segs, self.charge) = (0, 0, 0);
        // SAFETY: the chain owned all of it, and has just let go.
        Some(unsafe { packet_from(ends.head, len, segs) })
    }

    /// Takes segments out at the front as long as `take` says so of one, which is told of the bytes
    /// before it.
    #[inline]
    fn detach(&mut self, mut take: impl FnMut(Segment<'_>, usize) -> bool) -> Option<Mbuf> {
        let (mut len, mut segs, mut charge) = (0, 0, 0);
        let mut last = None;
        let mut rest = None;
        for seg in self.segments() {
            if !take(seg, len) {
                rest = Some(seg.ptr());
                break;
            }
            len += seg.len();
            segs += 1;
            charge += seg.charge();
            last = Some(seg.ptr());
        }
        let Some(rest) = rest else {
            return self.take_packet();
        };
        let (last, Ends { head, tail }) = (last?, self.ends?);
        // SAFETY: what is marked is still the chain's.
        unsafe { self.marks.forget_before(rest) };
        self.ends = Some(Ends { head: rest, tail });
        self.base += len;
        self.len -= len;
        self.segs -= segs;
        self.charge -= charge;
        // SAFETY: the chain owned all from `head` to `last`, and has let go of it; what follows stays.
        unsafe {
            last.unlink();
            Some(packet_from(head, len, segs))
        }
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
        let end = self.base + n;
        let gone = self.take_whole(n);
        let rest = end - self.base;
        if rest > 0
            && let Some(ends) = self.ends
        {
            // SAFETY: the chain owns the segment and is mutably borrowed.
            let fields = unsafe { ends.head.fields_mut() };
            fields.off += rest as u32;
            fields.len -= rest as u32;
            fields.pkt_len = end;
            self.len -= rest;
            self.base = end;
        }
        Ok(gone)
    }

    /// Removes as many whole segments from the front as hold at most `max` bytes together.
    /// Nothing is copied.
    #[doc(alias = "somove")]
    pub fn take_whole(&mut self, max: usize) -> Option<Mbuf> {
        if self.len <= max {
            return self.take_packet();
        }
        self.detach(|seg, before| before + seg.len() <= max)
    }

    /// Removes the first `n` segments, or all if there are fewer.
    pub fn take_segs(&mut self, n: usize) -> Option<Mbuf> {
        let mut left = n;
        self.detach(|_, _| {
            let more = left > 0;
            left = left.saturating_sub(1);
            more
        })
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
        OutOfRange::check(offset, dst.len(), self.len)?;
        let (segments, skip) = self.walk_to(offset);
        let last = copy::fill(segments, skip, dst);
        self.remember(last);
        Ok(())
    }

    /// See [`Packet::ref_copy`](crate::Packet::ref_copy).
    ///
    /// # Errors
    /// [`CopyError`]; nothing is taken then.
    pub fn ref_copy(&self, offset: usize, len: usize, set: &BufferSet) -> Result<Mbuf, CopyError> {
        OutOfRange::check(offset, len, self.len)?;
        let headed = offset == 0 && self.first().is_some_and(Segment::is_header);
        let (segments, skip) = self.walk_to(offset);
        let (copy, last) = copy::refer(segments, skip, len, headed, set)?;
        self.remember(last);
        Ok(copy)
    }

    /// A read has ended in `last`.
    #[inline]
    fn remember(&self, last: Option<Segment<'_>>) {
        if let Some(last) = last {
            // SAFETY: it is this chain's, as what is marked is.
            unsafe { self.marks.remember(last) };
        }
    }

    /// See [`Packet::byte_copy`](crate::Packet::byte_copy).
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
