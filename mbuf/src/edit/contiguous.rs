//! Bytes made contiguous: at the front, anywhere, or all of them.

use super::storage::{adopt, slide};
use crate::error::{AllocError, EditError, NoRoom, OutOfRange};
use crate::handle::Mbuf;
use crate::packet::Packet;
use crate::set::BufferSet;
use crate::wipe;

impl Mbuf {
    /// Makes the first `n` bytes contiguous in the first segment. Nothing happens when they are,
    /// shared or not. The first segment's own storage is used when it is large enough, with the
    /// data moved if need be, else it gets new storage from `set`. Segments that run empty are freed;
    /// bytes behind the first `n` stay where they are.
    ///
    /// # Errors
    /// [`EditError`] when the packet is shorter or there is no buffer; unchanged then.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::bsd(64, 8)?;
    /// use mbuf::Packet;
    /// let mut m = set.copy_in(b"head", 0)?;
    /// m.cat(set.copy_in(b"er and payload", 0)?);
    /// m.make_contiguous(6, &set)?;
    /// assert_eq!(m.first().data(), b"header");
    /// assert_eq!(m.nsegs(), 2);
    /// assert!(m.make_contiguous(19, &set).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "m_ensure_contig")]
    pub fn make_contiguous(&mut self, n: usize, set: &BufferSet) -> Result<(), EditError> {
        OutOfRange::check(0, n, self.pkt_len())?;
        Ok(self.gather_front(n, set)?)
    }

    /// As [`make_contiguous`](Self::make_contiguous), but takes the packet, and frees it when that
    /// fails.
    ///
    /// # Errors
    /// [`EditError`] when the packet is shorter or there is no buffer; the packet is gone then.
    #[doc(alias = "m_pullup")]
    pub fn pullup(mut self, n: usize, set: &BufferSet) -> Result<Mbuf, EditError> {
        self.make_contiguous(n, set)?;
        Ok(self)
    }

    /// Makes the packet one segment, without a new buffer: the first segment takes all bytes
    /// behind its own.
    ///
    /// # Errors
    /// [`NoRoom`] when its tailroom is too short or its storage is shared; unchanged then.
    #[doc(alias = "rte_pktmbuf_linearize")]
    pub fn linearize(&mut self) -> Result<(), NoRoom> {
        let asked = self.pkt_len() - self.first().len();
        let have = self.first().tailroom();
        if asked > have {
            return Err(NoRoom::in_segment(self.first(), asked, have));
        }
        if let Some(rest) = self.detach_behind(0) {
            self.fill_end_from(&rest, asked);
        }
        Ok(())
    }

    /// Makes the packet one segment: the first one, in its own storage when that is large enough
    /// and not shared, else in new storage from `set`. Nothing happens when it has one segment.
    ///
    /// # Errors
    /// [`AllocError`]; unchanged then.
    #[doc(alias = "m_defrag")]
    pub fn defrag(&mut self, set: &BufferSet) -> Result<(), AllocError> {
        self.gather_front(self.pkt_len(), set)?;
        // Empty segments, if any.
        drop(self.detach_behind(0));
        Ok(())
    }

    /// The first `n` bytes into the first segment; the packet has as many.
    fn gather_front(&mut self, n: usize, set: &BufferSet) -> Result<(), AllocError> {
        let first = self.first();
        let Some(need) = n.checked_sub(first.len()).filter(|&need| need > 0) else {
            return Ok(());
        };
        let old = if first.is_writable() && n <= first.capacity() {
            self.gather_in_place(n, need);
            None
        } else {
            Some(self.gather_anew(n, need, set)?)
        };
        let gone = self.consume_behind(0, need);
        drop((old, gone));
        Ok(())
    }

    /// Copies the `need` bytes behind the first segment's to its end: `n` then, for which it has room.
    fn gather_in_place(&mut self, n: usize, need: usize) {
        let first = self.first();
        if first.tailroom() < need {
            let (lead, spare) = (first.lead() % 8, first.capacity() - n);
            slide(&mut self.first_raw(), if lead <= spare { lead } else { 0 });
        }
        if let Some(rest) = self.detach_behind(0) {
            self.fill_end_from(&rest, need);
            self.cat(rest);
        }
    }

    /// Copies the first `n` bytes to new storage, the first segment's from now on; what it had.
    fn gather_anew(&mut self, n: usize, need: usize, set: &BufferSet) -> Result<Mbuf, AllocError> {
        let mut fresh = set.storage_for(self.first(), n)?;
        let asked = wipe::asked(self, 0, n);
        if asked {
            fresh.wipe_on_free();
        }
        if let Some(data) = fresh.data_mut() {
            self.copy_to(0, data)
                .unwrap_or_else(|e| debug_assert!(false, "{e}"));
        }
        let old = adopt(&mut self.first_raw(), fresh);
        if asked {
            self.first_raw().ask_wipe();
        }
        self.first_raw().fields().pkt_len += need;
        Ok(old)
    }

    /// Copies the first `n` bytes of `rest` behind the data of our last segment, which
    /// has room for them.
    pub(super) fn fill_end_from(&mut self, rest: &Mbuf, n: usize) {
        let copied = match self.append(n) {
            Ok(room) => rest.copy_to(0, room).is_ok(),
            Err(_) => false,
        };
        debug_assert!(copied, "room and bytes were counted before");
        if wipe::asked(rest, 0, n) {
            self.last_raw().ask_wipe();
        }
    }

    /// Makes `[offset, offset + len)` contiguous somewhere, and lends it for writing. The bytes
    /// before `offset` stay where they are, and nothing that is shared is written: a shared
    /// target is copied.
    ///
    /// Tried in order: in place, the tailroom of the segment that holds `offset`, the headroom of
    /// the next, a new segment between the two. Segments that run empty are freed.
    ///
    /// # Errors
    /// [`EditError`] when the range reaches past the end or there is no buffer; unchanged then.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::bsd(64, 8)?;
    /// use mbuf::Packet;
    /// let mut m = set.copy_in(b"ip, tc", 0)?;
    /// m.cat(set.copy_in(b"p, data", 0)?);
    /// m.pulldown(4, 3, &set)?.make_ascii_uppercase();
    /// assert_eq!(m.to_vec(), b"ip, TCP, data");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "m_pulldown")]
    pub fn pulldown(
        &mut self,
        offset: usize,
        len: usize,
        set: &BufferSet,
    ) -> Result<&mut [u8], EditError> {
        OutOfRange::check(offset, len, self.pkt_len())?;
        if len == 0 {
            return Ok(&mut []);
        }
        let (index, at) = self.place(offset);
        let target = self.segment_raw(index);
        let target = target.view();
        let (here, tailroom, read_only) =
            (target.len() - at, target.tailroom(), !target.is_writable());
        if here >= len {
            if !read_only {
                return Ok(self.lend(index, at, len));
            }
            let (index, at) = self.own_from(index, at, set)?;
            return Ok(self.lend(index, at, len));
        }
        let need = len - here;
        if tailroom >= need {
            let rest = self.detach_behind(index);
            if let Some(rest) = rest {
                // `index` is the last segment now: `append` opens its tailroom.
                self.fill_end_from(&rest, need);
                self.cat(rest);
            }
            let _gone = self.consume_behind(index, need);
            return Ok(self.lend(index, at, len));
        }
        if self.pull_into_next(index, at, need) {
            return Ok(self.lend(index + 1, 0, len));
        }
        let mut between = set.plain_with(len)?;
        if let Ok(room) = between.append(len) {
            self.copy_to(offset, room)?;
        }
        if wipe::asked(self, offset, len) {
            between.wipe_on_free();
        }
        self.shorten(index, at);
        let _gone = self.consume_behind(index, need);
        self.insert_behind(index, Some(between));
        Ok(self.lend(index + 1, 0, len))
    }

    /// Moves the bytes from `at` of segment `index` in front of the next segment's, when that one
    /// holds the `need` bytes that follow and has the room.
    fn pull_into_next(&mut self, index: usize, at: usize, need: usize) -> bool {
        let here = self.segment_raw(index).view().len() - at;
        let next = self.segment_raw(index + 1);
        if next.view().len() < need || next.view().headroom() < here {
            return false;
        }
        let Some(mut rest) = self.detach_behind(index) else {
            return false;
        };
        let from = self.pkt_len() - here;
        let copied = match rest.prepend(here) {
            Ok(room) => self.copy_to(from, room).is_ok(),
            Err(_) => false,
        };
        debug_assert!(copied, "room and bytes were counted before");
        if wipe::asked(self, from, here) {
            rest.first_raw().ask_wipe();
        }
        self.shorten(index, at);
        self.cat(rest);
        true
    }

    /// Gives the bytes from `at` of segment `index`, which is shared, storage of their own; where
    /// they are then. What is before `at` stays.
    fn own_from(
        &mut self,
        index: usize,
        at: usize,
        set: &BufferSet,
    ) -> Result<(usize, usize), AllocError> {
        let seg = self.segment_raw(index);
        let data = &seg.view().data()[at..];
        if at == 0 {
            let mut fresh = set.storage_for(seg.view(), data.len())?;
            if let Some(room) = fresh.data_mut() {
                room.copy_from_slice(data);
            }
            drop(adopt(&mut self.segment_raw(index), fresh));
            return Ok((index, 0));
        }
        let mut fresh = set.plain_with(data.len())?;
        if let Ok(room) = fresh.append(data.len()) {
            room.copy_from_slice(data);
        }
        if wipe::asked_of(seg.view()) {
            fresh.wipe_on_free();
        }
        self.shorten(index, at);
        self.insert_behind(index, Some(fresh));
        Ok((index + 1, 0))
    }
}
