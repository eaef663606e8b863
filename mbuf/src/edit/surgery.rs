//! Taking a packet apart and putting it together again, by the index of a segment. All other
//! edits are made of these few steps, which keep the counts of every packet exact.

use crate::chain::Chain;
use crate::handle::Mbuf;
use crate::header::HeaderPtr;
use crate::packet::Packet;
use crate::segment::{RawSegmentMut, Segment};

impl Mbuf {
    /// Segment `index`, or the last one when there are fewer; its index, and the bytes up to its end.
    fn nth(&self, index: usize) -> (HeaderPtr, usize, usize) {
        let mut found = (self.ptr(), 0, 0);
        for (at, seg) in self.segments().take(index.saturating_add(1)).enumerate() {
            found = (seg.ptr(), at, found.2 + seg.len());
        }
        found
    }

    /// Segment `index`, or the last one when there are fewer, for writing.
    pub(super) fn segment_raw(&mut self, index: usize) -> RawSegmentMut<'_> {
        let (ptr, ..) = self.nth(index);
        // SAFETY: segments of an exclusive packet are exclusive, and `self` is mutably borrowed.
        unsafe { RawSegmentMut::new(ptr) }
    }

    /// What the first segment says of the whole packet.
    pub(super) fn set_counts(&mut self, bytes: usize, segs: usize) {
        let mut first = self.first_raw();
        let fields = first.fields();
        fields.pkt_len = bytes;
        fields.nsegs = segs as u32;
    }

    /// Cuts off what lies behind segment `index`, as a packet of its own.
    pub(super) fn detach_behind(&mut self, index: usize) -> Option<Mbuf> {
        let (bytes, segs) = (self.pkt_len(), self.nsegs());
        let (ptr, index, kept) = self.nth(index);
        // SAFETY: exclusive; the successor becomes a packet of its own right here.
        let mut rest = unsafe { Mbuf::from_raw(ptr.unlink()?) };
        self.set_counts(kept, index + 1);
        rest.set_counts(bytes - kept, segs - index - 1);
        Some(rest)
    }

    /// Links the segments of `packet`, if any, behind segment `index`.
    pub(super) fn insert_behind(&mut self, index: usize, packet: Option<Mbuf>) {
        let rest = self.detach_behind(index);
        for part in [packet, rest].into_iter().flatten() {
            self.cat(part);
        }
    }

    /// Removes `n` bytes behind segment `index`, and the segments that run empty in front there.
    /// There are as many. Those segments are returned, to be dropped when the edit is done: an owner
    /// of external storage may unwind.
    #[must_use = "to be dropped last"]
    pub(super) fn consume_behind(&mut self, index: usize, n: usize) -> Chain {
        let mut gone = Chain::new();
        let mut rest = self.detach_behind(index);
        if let Some(packet) = &mut rest
            && packet.trim_front(n).is_err()
        {
            debug_assert!(false, "more bytes asked for than there are");
        }
        while let Some(packet) = rest {
            if !packet.first().is_empty() {
                self.cat(packet);
                break;
            }
            let (empty, behind) = packet.split_first();
            gone.push_back(empty);
            rest = behind;
        }
        gone
    }

    /// Shortens segment `index` to `len` bytes; it has as many.
    pub(super) fn shorten(&mut self, index: usize, len: usize) {
        let mut seg = self.segment_raw(index);
        let gone = seg.view().len() - len;
        seg.fields().len -= gone as u32;
        self.first_raw().fields().pkt_len -= gone;
    }

    /// Where byte `offset` lies: the segment's index, and the place in it. At the very end: the
    /// end of the last segment. The offset is not beyond that.
    pub(super) fn place(&self, offset: usize) -> (usize, usize) {
        let mut rest = offset;
        for (index, seg) in self.segments().enumerate() {
            if rest < seg.len() {
                return (index, rest);
            }
            rest -= seg.len();
        }
        (self.nsegs() - 1, self.last().len())
    }

    /// Lends `len` bytes at `at` of segment `index`; they are there and not shared.
    pub(super) fn lend(&mut self, index: usize, at: usize, len: usize) -> &mut [u8] {
        match self.segment_raw(index).into_data() {
            Some(data) => &mut data[at..at + len],
            None => {
                debug_assert!(len == 0, "shared bytes are never lent");
                &mut []
            }
        }
    }

    /// Calls `edit` for each piece of `[offset, offset + len)`; none of it is shared.
    pub(super) fn edit_range(
        &mut self,
        offset: usize,
        len: usize,
        mut edit: impl FnMut(&mut [u8]),
    ) {
        let (mut skip, mut left) = (offset, len);
        self.for_each_segment(|seg| {
            let here = seg.view().len();
            if skip >= here {
                skip -= here;
                return left > 0;
            }
            let at = std::mem::take(&mut skip);
            let n = (here - at).min(left);
            left -= n;
            match seg.into_data() {
                Some(data) => edit(&mut data[at..at + n]),
                None => debug_assert!(n == 0, "shared bytes are never written"),
            }
            left > 0
        });
    }

    /// The last segment; the walk costs one step per segment.
    fn last(&self) -> Segment<'_> {
        self.segments().last().unwrap_or(self.first())
    }
}
