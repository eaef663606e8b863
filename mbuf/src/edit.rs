//! What the exclusive owner of a packet may do to it. `&mut` means unchanged on failure. Here is
//! what needs no buffer; the rest is below, one idea a file.

mod contiguous;
mod cow;
mod grow;
mod head;
mod split;
mod storage;
mod surgery;

use crate::error::{NoRoom, OutOfRange};
use crate::handle::Mbuf;
use crate::header::SegFlags;
use crate::offload::TxOffload;
use crate::packet::Packet;
use crate::segment::{RawSegmentMut, SegmentMut};

impl Mbuf {
    #[inline(always)]
    fn first_raw(&mut self) -> RawSegmentMut<'_> {
        // SAFETY: exclusive handle, mutably borrowed.
        unsafe { RawSegmentMut::new(self.ptr()) }
    }

    /// The last segment; the walk costs one step per segment.
    pub(crate) fn last_raw(&mut self) -> RawSegmentMut<'_> {
        let mut last = self.ptr();
        for seg in self.segments() {
            last = seg.ptr();
        }
        // SAFETY: segments of an exclusive packet are exclusive, and `self` is mutably borrowed.
        unsafe { RawSegmentMut::new(last) }
    }

    /// The first segment, for writing.
    pub fn first_mut(&mut self) -> SegmentMut<'_> {
        SegmentMut(self.first_raw())
    }

    /// The bytes of the first segment, or `None` when its storage is read-only.
    #[doc(alias = "mtod")]
    #[inline]
    pub fn data_mut(&mut self) -> Option<&mut [u8]> {
        self.first_raw().into_data()
    }

    /// Opens `n` bytes in front of the first segment's data and lends them; what they hold is
    /// left from earlier use.
    ///
    /// # Errors
    /// [`NoRoom`] when the headroom is shorter or the storage is read-only.
    #[doc(alias = "rte_pktmbuf_prepend")]
    #[inline]
    pub fn prepend(&mut self, n: usize) -> Result<&mut [u8], NoRoom> {
        let have = self.first().headroom();
        if n > have {
            return Err(NoRoom::in_segment(self.first(), n, have));
        }
        let mut seg = self.first_raw();
        seg.fields().pkt_len += n;
        seg.grow_front(n)
    }

    /// Opens `n` bytes behind the last segment's data and lends them; what they hold is left from
    /// earlier use.
    ///
    /// # Errors
    /// [`NoRoom`] when the tailroom is shorter or the storage is read-only.
    #[doc(alias = "rte_pktmbuf_append")]
    #[inline]
    pub fn append(&mut self, n: usize) -> Result<&mut [u8], NoRoom> {
        let last = self.last_raw();
        let have = last.view().tailroom();
        if n > have {
            return Err(NoRoom::in_segment(last.view(), n, have));
        }
        self.first_raw().fields().pkt_len += n;
        self.last_raw().grow_back(n)
    }

    /// Removes `n` bytes from the front. Segments that run empty stay in the chain.
    ///
    /// # Errors
    /// [`OutOfRange`] when the packet is shorter.
    #[doc(alias = "m_adj")]
    #[doc(alias = "rte_pktmbuf_adj")]
    pub fn trim_front(&mut self, n: usize) -> Result<(), OutOfRange> {
        OutOfRange::check(0, n, self.pkt_len())?;
        let mut rest = n;
        self.for_each_segment(|mut seg| {
            let gone = rest.min(seg.view().len());
            let fields = seg.fields();
            fields.off += gone as u32;
            fields.len -= gone as u32;
            rest -= gone;
            rest > 0
        });
        self.first_raw().fields().pkt_len -= n;
        Ok(())
    }

    /// Removes `n` bytes from the end. Segments that run empty stay in the chain.
    ///
    /// # Errors
    /// [`OutOfRange`] when the packet is shorter.
    #[doc(alias = "m_adj")]
    #[doc(alias = "rte_pktmbuf_trim")]
    pub fn trim_back(&mut self, n: usize) -> Result<(), OutOfRange> {
        OutOfRange::check(0, n, self.pkt_len())?;
        if n == 0 {
            return Ok(());
        }
        let mut keep = self.pkt_len() - n;
        self.for_each_segment(|mut seg| {
            let fields = seg.fields();
            let kept = keep.min(fields.len as usize);
            fields.len = kept as u32;
            keep -= kept;
            true
        });
        self.first_raw().fields().pkt_len -= n;
        Ok(())
    }

    /// Calls `edit` for each segment until it returns false.
    pub(crate) fn for_each_segment(&mut self, mut edit: impl FnMut(RawSegmentMut<'_>) -> bool) {
        let mut at = Some(self.ptr());
        while let Some(ptr) = at {
            // SAFETY: segments of an exclusive packet are exclusive, `self` is mutably borrowed,
            // and one view lives at a time.
            let seg = unsafe { RawSegmentMut::new(ptr) };
            at = seg.view().next().map(|s| s.ptr());
            if !edit(seg) {
                return;
            }
        }
    }

    /// Links the segments of `tail` behind ours. No byte is copied, and what the header of `tail`
    /// says of its packet is no longer looked at. The walk to our end costs one step per segment of ours.
    ///
    /// See [`cat_packed`](Self::cat_packed), which copies what fits.
    #[doc(alias = "rte_pktmbuf_chain")]
    pub fn cat(&mut self, tail: Mbuf) {
        let (bytes, segs) = (tail.pkt_len(), tail.nsegs() as u32);
        let mut last = self.ptr();
        for seg in self.segments() {
            last = seg.ptr();
        }
        // SAFETY: both packets are exclusive, so they are not the same; `last` has no successor
        // and takes over the reference that `into_raw` hands out.
        unsafe { last.link(tail.into_raw()) };
        let mut first = self.first_raw();
        first.fields().pkt_len += bytes;
        first.fields().nsegs += segs;
    }

    /// Cuts the first segment off: it, and the rest if there is one.
    pub fn split_first(mut self) -> (Mbuf, Option<Mbuf>) {
        let rest = self.detach_behind(0);
        (self, rest)
    }

    /// On an empty first segment: leaves `n` bytes of headroom.
    ///
    /// # Errors
    /// [`NoRoom`] when the storage is smaller, holds data, or is read-only.
    #[doc(alias = "rte_pktmbuf_reset_headroom")]
    pub fn set_lead(&mut self, n: usize) -> Result<(), NoRoom> {
        let seg = self.first();
        if !seg.is_empty() {
            let (asked, len) = (n, seg.len());
            return Err(NoRoom::NotEmpty { asked, len });
        }
        let have = if seg.is_writable() { seg.capacity() } else { 0 };
        if n > have {
            return Err(NoRoom::in_segment(seg, n, have));
        }
        self.first_raw().fields().off = n as u32;
        Ok(())
    }

    /// On an empty first segment: places the data so that `len` bytes end at the storage's end,
    /// rounded down to a multiple of 8.
    ///
    /// # Errors
    /// [`NoRoom`] when the storage is smaller, holds data, or is read-only.
    #[doc(alias = "m_align")]
    pub fn align_end(&mut self, len: usize) -> Result<(), NoRoom> {
        let capacity = self.first().capacity();
        match capacity.checked_sub(len) {
            Some(lead) => self.set_lead(lead & !7),
            None => Err(NoRoom::in_segment(self.first(), len, capacity)),
        }
    }

    /// Says what the hardware shall do with the packet.
    pub fn set_offload(&mut self, offload: TxOffload) {
        self.line1(SegFlags::OFFLOAD).offload = offload;
    }

    /// One word that the stack never reads; 0 until it is set.
    pub fn set_user(&mut self, user: u64) {
        self.line1(SegFlags::USER).user = user;
    }
}
