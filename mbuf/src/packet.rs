//! The read side of a packet, the same on every handle.

use crate::copy::{self, ByteSlices};
use crate::error::{CopyError, OutOfRange, ReadError};
use crate::handle::Mbuf;
use crate::header::{HeaderPtr, SegFlags};
use crate::offload::TxOffload;
use crate::segment::{Segment, Segments};
use crate::set::BufferSet;

/// Keeps [`Packet`] to this crate: bulk free relies on what its implementors look like in memory.
pub trait Sealed {
    #[doc(hidden)]
    fn raw(&self) -> RawPacket;
}

/// A header's address, opaque outside of this crate.
#[derive(Clone, Copy)]
pub struct RawPacket(pub(crate) HeaderPtr);

/// What can be read of a packet, whichever handle holds it: [`Mbuf`], [`SharedMbuf`] or [`TxMbuf`].
///
/// [`SharedMbuf`]: crate::SharedMbuf
/// [`TxMbuf`]: crate::TxMbuf
pub trait Packet: Sealed {
    /// The first segment.
    #[inline(always)]
    fn first(&self) -> Segment<'_> {
        // SAFETY: the handle is borrowed for as long as the view lives.
        unsafe { Segment::new(self.raw().0) }
    }

    /// All segments, first to last.
    #[inline(always)]
    fn segments(&self) -> Segments<'_> {
        Segments(Some(self.first()))
    }

    /// Bytes in the packet.
    #[doc(alias = "m_pkthdr.len")]
    #[inline(always)]
    fn pkt_len(&self) -> usize {
        self.first().fields().pkt_len
    }

    /// Segments in the packet, at least 1.
    #[doc(alias = "nb_segs")]
    #[inline(always)]
    fn nsegs(&self) -> usize {
        self.first().fields().nsegs as usize
    }

    /// Offload requests; the default when nothing is asked.
    #[inline]
    fn offload(&self) -> TxOffload {
        let seg = self.first();
        if seg.fields().flags.contains(SegFlags::OFFLOAD) {
            // SAFETY: line 1 was written when the flag was set; the borrow keeps writers away.
            unsafe { (*seg.ptr().0.as_ptr()).offload }
        } else {
            TxOffload::default()
        }
    }

    /// The word that the owner has set, 0 before.
    fn user(&self) -> u64 {
        let seg = self.first();
        if seg.fields().flags.contains(SegFlags::USER) {
            // SAFETY: as in `offload`.
            unsafe { (*seg.ptr().0.as_ptr()).user }
        } else {
            0
        }
    }

    /// Gathers `dst.len()` bytes from `offset`.
    ///
    /// # Errors
    /// [`OutOfRange`] when they are not all there; `dst` is unchanged then.
    #[doc(alias = "m_copydata")]
    fn copy_to(&self, offset: usize, dst: &mut [u8]) -> Result<(), OutOfRange> {
        copy::gather(self.segments(), self.pkt_len(), offset, dst)
    }

    /// The bytes `[offset, offset + len)` as slices, one per segment that holds any of them.
    ///
    /// # Errors
    /// [`OutOfRange`] when they are not all there.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::bsd(64, 8)?;
    /// use mbuf::Packet;
    /// let mut m = set.copy_in(b"one ", 0)?;
    /// m.cat(set.copy_in(b"two", 0)?);
    /// assert!(m.pieces(1, 5)?.eq([&b"ne "[..], &b"tw"[..]]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "m_apply")]
    fn pieces(&self, offset: usize, len: usize) -> Result<ByteSlices<'_>, OutOfRange> {
        OutOfRange::check(offset, len, self.pkt_len())?;
        Ok(ByteSlices(copy::pieces(self.segments(), offset, len)))
    }

    /// The segment that holds byte `offset`, and the byte's place in it. At the very end: the
    /// end of the last segment.
    ///
    /// # Errors
    /// [`OutOfRange`] beyond the end.
    #[doc(alias = "m_getptr")]
    fn locate(&self, offset: usize) -> Result<(Segment<'_>, usize), OutOfRange> {
        copy::locate(self.segments(), self.pkt_len(), offset)
    }

    /// The bytes `[offset, offset + len)`: where they lie when one segment holds them all, else
    /// gathered in the front of `scratch`.
    ///
    /// # Errors
    /// [`ReadError`] when they are not all there, or not contiguous and `scratch` is shorter;
    /// `scratch` is unchanged then.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::bsd(64, 8)?;
    /// use mbuf::Packet;
    /// let mut m = set.copy_in(b"one ", 0)?;
    /// m.cat(set.copy_in(b"two", 0)?);
    /// assert_eq!(m.read(4, 3, &mut [])?, b"two");
    /// assert_eq!(m.read(2, 3, &mut [0; 8])?, b"e t");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "rte_pktmbuf_read")]
    fn read<'a>(
        &'a self,
        offset: usize,
        len: usize,
        scratch: &'a mut [u8],
    ) -> Result<&'a [u8], ReadError> {
        copy::read(self.segments(), self.pkt_len(), offset, len, scratch)
    }

    /// All bytes, gathered.
    fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.pkt_len());
        self.segments()
            .for_each(|s| bytes.extend_from_slice(s.data()));
        bytes
    }

    /// A packet with the same bytes `[offset, offset + len)`: clusters and external storage by
    /// reference, inline room by copying. What is shared is read-only for both while both live.
    ///
    /// `len` 0 gives an empty packet, also at the very end. The head is a header mbuf when the
    /// copy starts at 0 and the source's first segment is one. A copy from 0 takes over what the
    /// header says of the packet.
    ///
    /// # Errors
    /// [`CopyError`]; nothing is taken then and the source is unchanged.
    #[doc(alias = "m_copym")]
    fn ref_copy(&self, offset: usize, len: usize, set: &BufferSet) -> Result<Mbuf, CopyError> {
        let mut copy = copy::reference(self.segments(), self.pkt_len(), offset, len, set)?;
        if offset == 0 {
            copy.copy_header_from(self);
        }
        Ok(copy)
    }

    /// A packet with the same bytes and header, as [`ref_copy`](Self::ref_copy) makes it.
    ///
    /// A packet that nobody is to write any more is shared at no cost by
    /// [`Mbuf::into_shared`].
    ///
    /// # Errors
    /// [`CopyError`]; nothing is taken then.
    #[doc(alias = "rte_pktmbuf_clone")]
    fn clone_packet(&self, set: &BufferSet) -> Result<Mbuf, CopyError> {
        self.ref_copy(0, self.pkt_len(), set)
    }

    /// The bytes `[offset, offset + len)` copied into one piece of storage, the smallest that
    /// takes them with `lead` bytes of headroom. A copy from 0 takes over what the header says of
    /// the packet.
    ///
    /// # Errors
    /// [`CopyError`]; nothing is taken then.
    #[doc(alias = "rte_pktmbuf_copy")]
    fn byte_copy(
        &self,
        offset: usize,
        len: usize,
        lead: usize,
        set: &BufferSet,
    ) -> Result<Mbuf, CopyError> {
        let mut copy = copy::bytes(self.segments(), self.pkt_len(), offset, len, lead, set)?;
        if offset == 0 {
            copy.copy_header_from(self);
        }
        Ok(copy)
    }

    /// The bytes from `offset` to the end copied into one piece of storage, as
    /// [`byte_copy`](Self::byte_copy) does; from the very end that is an empty packet.
    ///
    /// # Errors
    /// [`CopyError`]; nothing is taken then.
    #[doc(alias = "M_COPYALL")]
    fn byte_copy_from(
        &self,
        offset: usize,
        lead: usize,
        set: &BufferSet,
    ) -> Result<Mbuf, CopyError> {
        OutOfRange::check(offset, 0, self.pkt_len())?;
        self.byte_copy(offset, self.pkt_len() - offset, lead, set)
    }

    /// The whole packet copied into one piece of storage with `lead` bytes of headroom.
    ///
    /// # Errors
    /// [`CopyError`]; nothing is taken then.
    #[doc(alias = "m_dup_pkt")]
    #[doc(alias = "m_copym2")]
    fn deep_copy(&self, lead: usize, set: &BufferSet) -> Result<Mbuf, CopyError> {
        self.byte_copy_from(0, lead, set)
    }

    /// Recounts what the header says of the chain.
    ///
    /// # Errors
    /// The first rule that does not hold, in words.
    #[doc(alias = "rte_mbuf_check")]
    fn check(&self) -> Result<(), String> {
        let (mut bytes, mut segs) = (0, 0);
        for seg in self.segments() {
            if seg.lead() + seg.len() > seg.capacity() {
                return Err(format!("segment {segs} reaches past its storage: {seg:?}"));
            }
            bytes += seg.len();
            segs += 1;
        }
        if bytes != self.pkt_len() {
            return Err(format!("pkt_len {}, recount {bytes}", self.pkt_len()));
        }
        if segs != self.nsegs() {
            return Err(format!("nsegs {}, recount {segs}", self.nsegs()));
        }
        Ok(())
    }
}
