//! The read side of a packet, the same on every handle.

use crate::copy;
use crate::error::{CopyError, OutOfRange};
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
    /// copy starts at 0 and the source's first segment is one.
    ///
    /// # Errors
    /// [`CopyError`]; nothing is taken then and the source is unchanged.
    #[doc(alias = "m_copym")]
    #[doc(alias = "rte_pktmbuf_clone")]
    fn ref_copy(&self, offset: usize, len: usize, set: &BufferSet) -> Result<Mbuf, CopyError> {
        copy::reference(self.segments(), self.pkt_len(), offset, len, set)
    }

    /// The bytes `[offset, offset + len)` copied into one piece of storage, the smallest that
    /// takes them with `lead` bytes of headroom.
    ///
    /// # Errors
    /// [`CopyError`]; nothing is taken then.
    #[doc(alias = "m_dup_pkt")]
    #[doc(alias = "rte_pktmbuf_copy")]
    fn byte_copy(
        &self,
        offset: usize,
        len: usize,
        lead: usize,
        set: &BufferSet,
    ) -> Result<Mbuf, CopyError> {
        copy::bytes(self.segments(), self.pkt_len(), offset, len, lead, set)
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
