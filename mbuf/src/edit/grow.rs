//! Room made where there is none: in front, behind, at an offset, with new segments if need be.

use super::cow;
use crate::chain::Chain;
use crate::error::{AllocError, EditError, OutOfRange};
use crate::handle::Mbuf;
use crate::packet::Packet;
use crate::set::BufferSet;
use crate::wipe;

impl Mbuf {
    /// Opens `n` bytes in front and lends them: in the headroom of the first segment, else in a
    /// new header mbuf in front, its data at the end of its storage. What the header says of the
    /// packet moves along. The bytes hold what is left from earlier use.
    ///
    /// # Errors
    /// [`AllocError`]; unchanged then.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::bsd(64, 8)?;
    /// use mbuf::Packet;
    /// let mut m = set.copy_in(&[7; 1500], 0)?;
    /// let sent_again = m.ref_copy(0, 1500, &set)?;
    /// m.prepend_with(20, &set)?.fill(0x45); // shared, so not in place
    /// assert_eq!((m.pkt_len(), m.nsegs()), (1520, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "M_PREPEND")]
    #[doc(alias = "m_prepend")]
    pub fn prepend_with(&mut self, n: usize, set: &BufferSet) -> Result<&mut [u8], AllocError> {
        if self.first().headroom() < n {
            let mut front = set.header_with(n)?;
            // As many bytes of storage were asked for.
            let placed = front.align_end(n).is_ok() && front.append(n).is_ok();
            debug_assert!(placed, "room for {n} bytes was asked for");
            if wipe::asked_of(self.first()) {
                front.wipe_on_free(); // fields and tags come in
            }
            front.move_header_from(self);
            std::mem::swap(self, &mut front);
            self.cat(front);
        } else if let Err(e) = self.prepend(n) {
            debug_assert!(false, "{e}");
        }
        Ok(self.lend(0, 0, n))
    }

    /// Opens `n` contiguous bytes behind and lends them: in the tailroom of the last segment, else
    /// in a new segment. They hold what is left from earlier use.
    ///
    /// A packet of one empty mbuf is rather given a cluster, with the headroom that it has, so that the
    /// bytes are in its first segment.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::bsd(64, 8)?;
    /// use mbuf::Packet;
    /// let mut m = set.header()?;
    /// m.set_lead(64)?;
    /// m.append_with(1400, &set)?.fill(7);
    /// assert_eq!((m.nsegs(), m.first().headroom(), m.first().len()), (1, 64, 1400));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AllocError`]; unchanged then.
    #[doc(alias = "m_append")]
    pub fn append_with(&mut self, n: usize, set: &BufferSet) -> Result<&mut [u8], AllocError> {
        if self.last_raw().view().tailroom() < n && !self.take_cluster(n, set) {
            self.cat(set.plain_with(n)?);
        }
        let opened = self.append(n).is_ok();
        debug_assert!(opened, "room for {n} bytes was asked for");
        let (last, end) = (self.nsegs() - 1, self.last_raw().view().len());
        Ok(self.lend(last, end - n, n))
    }

    /// Gives a packet of one empty inline mbuf a cluster with `n` bytes of room behind its headroom, if
    /// there is one.
    fn take_cluster(&mut self, n: usize, set: &BufferSet) -> bool {
        let lead = self.first().lead();
        self.nsegs() == 1
            && self.check_vacant().is_ok()
            && set.attach_cluster(self, lead.saturating_add(n)).is_ok()
            && self.set_lead(lead).is_ok()
    }

    /// Writes `bytes` at `offset`, over what is there and on beyond the end; a gap between the
    /// end and `offset` is filled with zeros. Shared segments that are written get storage of
    /// their own first: no other packet's bytes change.
    ///
    /// # Errors
    /// [`EditError`] when `offset + bytes.len()` is no length, or there is no buffer; unchanged then.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::bsd(64, 8)?;
    /// use mbuf::Packet;
    /// let mut m = set.copy_in(b"abc", 0)?;
    /// m.write_at(5, b"xyz", &set)?;
    /// m.write_at(0, b"A", &set)?;
    /// assert_eq!(m.to_vec(), b"Abc\0\0xyz");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "m_copyback")]
    pub fn write_at(
        &mut self,
        offset: usize,
        bytes: &[u8],
        set: &BufferSet,
    ) -> Result<(), EditError> {
        let have = self.pkt_len();
        let len = bytes.len();
        let Some(end) = offset.checked_add(len) else {
            return Err(OutOfRange { offset, len, have }.into());
        };
        // Room before copies: were the last segment seen as shared first and as ours then, its
        // copy would be taken to have the room of the original.
        let grow = end.saturating_sub(have);
        let in_tail = grow.min(self.last_raw().view().tailroom());
        let from = offset.min(have);
        let staged = cow::stage(self, from, end.min(have) - from, set)?;
        let behind = set.room_chain(grow - in_tail)?;

        cow::commit(self, staged);
        let opened = self.append(in_tail).is_ok();
        debug_assert!(opened, "room does not shrink");
        if let Some(behind) = behind {
            self.cat(behind);
        }
        self.edit_range(have, offset.saturating_sub(have), |gap| gap.fill(0));
        let mut rest = bytes;
        self.edit_range(offset, len, |piece| {
            let (now, later) = rest.split_at(piece.len());
            piece.copy_from_slice(now);
            rest = later;
        });
        Ok(())
    }

    /// Opens a gap of `n` contiguous bytes in front of byte `skip` and lends it: the shorter side of the
    /// segment moves into its headroom or tailroom if that is large enough, else the other side,
    /// else the segment is split there and a new one inserted. The gap holds what is left from
    /// earlier use.
    ///
    /// # Errors
    /// [`EditError`] when `skip` is beyond the end or there is no buffer; unchanged then.
    #[doc(alias = "m_makespace")]
    #[doc(alias = "m_inject")]
    pub fn make_space(
        &mut self,
        skip: usize,
        n: usize,
        set: &BufferSet,
    ) -> Result<&mut [u8], EditError> {
        OutOfRange::check(skip, 0, self.pkt_len())?;
        let (index, at) = self.place(skip);
        let seg = self.segment_raw(index);
        let view = seg.view();
        let (before, after) = (at, view.len() - at);
        let (front, back) = (view.headroom() >= n, view.tailroom() >= n);
        let lead = view.lead();
        let forward = front && (before <= after || !back);
        if forward || back {
            self.open_gap(index, at, n, if forward { lead - n } else { lead });
            return Ok(self.lend(index, at, n));
        }
        if skip == 0 {
            return Ok(self.prepend_with(n, set)?);
        }
        let mut gap = set.plain_with(n)?;
        let opened = gap.append(n).is_ok();
        debug_assert!(opened, "room for {n} bytes was asked for");
        let tail = match skip < self.pkt_len() {
            true => Some(self.split_segments(skip, set)?),
            false => None,
        };
        let index = self.nsegs();
        self.cat(gap);
        if let Some(tail) = tail {
            self.cat(tail);
        }
        Ok(self.lend(index, 0, n))
    }

    /// Moves the bytes of segment `index` apart at `at`, so that they start at `lead` and have a
    /// gap of `n`; there is room for it, and the segment is not shared.
    fn open_gap(&mut self, index: usize, at: usize, n: usize, lead: usize) {
        let mut seg = self.segment_raw(index);
        let (old, len) = (seg.view().lead(), seg.view().len());
        if lead == old {
            seg.fields().len += n as u32;
            if let Some(data) = seg.into_data() {
                data.copy_within(at..len, at + n);
            }
        } else {
            seg.fields().off -= n as u32;
            seg.fields().len += n as u32;
            if let Some(data) = seg.into_data() {
                data.copy_within(n..n + at, 0);
            }
        }
        self.first_raw().fields().pkt_len += n;
    }
}

impl BufferSet {
    /// Segments with `len` bytes of data together, which hold what is left from earlier use; none
    /// for no bytes.
    pub(super) fn room_chain(&self, len: usize) -> Result<Option<Mbuf>, AllocError> {
        let most = self.largest_class().unwrap_or(0).max(self.plain_room());
        let mut chain = Chain::new();
        while chain.len() < len {
            let n = (len - chain.len()).min(most);
            let mut m = self.plain_with(n)?;
            let opened = m.append(n).is_ok();
            debug_assert!(opened, "room for {n} bytes was asked for");
            chain.push_back(m);
        }
        Ok(chain.into_packet())
    }
}
