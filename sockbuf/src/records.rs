//! One direction of a socket as records: datagrams, or messages with an end; with the address that each
//! is from and the control messages that go with it.

mod append;
mod view;

use mbuf::{Chain, Kind, Mbuf, Packet, Segment, free_bulk};

use crate::error::PastEnd;
use crate::side::{Held, Side};
use crate::usage::StorageUse;

pub use view::{OwnedRecord, Record, Records};

/// Records in a row, first in, first out.
///
/// A record is an address, control messages and data, in this order, each of which may be missing.
/// All records lie in one chain, in which the last segment of each says that another one follows.
///
/// ```
/// use mbuf::BufferSet;
/// use sockbuf::RecordBuf;
///
/// let set = BufferSet::bsd(64, 8)?;
/// let mut rb = RecordBuf::new(65536);
/// rb.append_address(b"192.0.2.1", Some(set.copy_in(b"first", 0)?), None, &set)?;
/// rb.append_record(set.copy_in(b"second", 0)?);
/// assert_eq!((rb.len(), rb.data_len(), rb.nrecords()), (20, 11, 2));
///
/// let first = rb.front().expect("two records");
/// assert_eq!((first.address(), first.data_len()), (Some(&b"192.0.2.1"[..]), 5));
/// rb.drop_record();
/// assert_eq!((rb.len(), rb.nrecords()), (6, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
#[doc(alias = "sockbuf")]
pub struct RecordBuf {
    /// All records.
    chain: Chain,
    side: Side,
    /// Records that have another one behind them.
    complete: usize,
    /// Bytes that are not data.
    aside: usize,
}

impl RecordBuf {
    /// An empty buffer for `hiwat` bytes that may hold down eight times as much storage, at least
    /// 192 KB.
    #[must_use]
    pub const fn new(hiwat: usize) -> Self {
        Self::with_side(Side::receiving(hiwat))
    }

    /// An empty buffer with these limits.
    #[must_use]
    pub const fn with_side(side: Side) -> Self {
        RecordBuf {
            chain: Chain::new(),
            side,
            complete: 0,
            aside: 0,
        }
    }

    /// The limits, and what else was said of this side.
    #[must_use]
    pub fn side(&self) -> &Side {
        &self.side
    }

    /// The same, to be changed.
    pub fn side_mut(&mut self) -> &mut Side {
        &mut self.side
    }

    /// Bytes in the buffer, addresses and control messages included.
    #[doc(alias = "sb_cc")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.chain.len()
    }

    /// Bytes of data.
    #[doc(alias = "sb_datacc")]
    #[must_use]
    pub fn data_len(&self) -> usize {
        self.chain.len() - self.aside
    }

    /// Whether there is no record. One without a byte is a record too.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }

    /// Records in the buffer.
    #[must_use]
    pub fn nrecords(&self) -> usize {
        self.complete + usize::from(!self.is_empty())
    }

    /// Storage held down: each mbuf, and each cluster at its full size.
    #[doc(alias = "sb_mbcnt")]
    #[must_use]
    pub fn charge(&self) -> usize {
        self.chain.charge()
    }

    /// Segments in the buffer.
    #[must_use]
    pub fn segs(&self) -> usize {
        self.chain.segs()
    }

    /// Bytes and storage in use, to be held against the limits.
    #[must_use]
    pub fn held(&self) -> Held {
        Held {
            bytes: self.chain.len(),
            storage: self.chain.charge(),
        }
    }

    /// What the bytes cost in storage. Walks the buffer.
    #[must_use]
    pub fn storage_use(&self) -> StorageUse {
        StorageUse::of(&self.chain)
    }

    /// Bytes that may still be added, by whichever limit is nearer; negative beyond one.
    #[doc(alias = "sbspace")]
    #[must_use]
    pub fn space(&self) -> isize {
        self.side.space(self.held())
    }

    /// The first record.
    #[doc(alias = "sb_mb")]
    #[must_use]
    pub fn front(&self) -> Option<Record<'_>> {
        self.chain.first().map(Record::from)
    }

    /// The records, first to last.
    #[must_use]
    pub fn records(&self) -> Records<'_> {
        Records::new(self.chain.first())
    }

    /// Removes `n` bytes from the front, of whatever kind and across records, and frees the mbufs that
    /// they leave empty.
    ///
    /// # Errors
    /// [`PastEnd`] when there are fewer; nothing has changed then.
    #[doc(alias = "sbdrop")]
    pub fn drop_front(&mut self, n: usize) -> Result<(), PastEnd> {
        free_bulk(&mut [self.cut(n)?]);
        Ok(())
    }

    /// As [`drop_front`](Self::drop_front), and hands out the mbufs that it removes: those that are used
    /// up, and empty ones behind them in the same record.
    ///
    /// # Errors
    /// [`PastEnd`] when there are fewer; nothing has changed then.
    #[doc(alias = "sbcut_locked")]
    pub fn cut(&mut self, n: usize) -> Result<Option<Mbuf>, PastEnd> {
        let have = self.len();
        if n > have {
            return Err(PastEnd { asked: n, have });
        }
        let (segs, rest) = self.used_up(n);
        let gone = self.take_segs(segs);
        if rest > 0 {
            let meta = self.chain.first().is_some_and(is_aside);
            let cut = self.chain.cut(rest);
            debug_assert!(matches!(cut, Ok(None)), "less than the first mbuf");
            self.aside -= if meta { rest } else { 0 };
        }
        self.check("cut");
        Ok(gone)
    }

    /// How many segments go with the first `n` bytes, and how many bytes of the next one.
    fn used_up(&self, n: usize) -> (usize, usize) {
        let (mut segs, mut rest, mut inside) = (0, n, true);
        for seg in self.chain.segments() {
            let gone = if rest > 0 {
                seg.len() <= rest
            } else {
                seg.is_empty() && inside
            };
            if !gone {
                break;
            }
            segs += 1;
            rest -= seg.len();
            inside = !seg.ends_record();
        }
        (segs, rest)
    }

    /// Removes the first record and hands it out as it is; `None` when there is none.
    #[doc(alias = "sbdroprecord")]
    pub fn cut_record(&mut self) -> Option<Mbuf> {
        let segs = self.front()?.segments().count();
        let gone = self.take_segs(segs);
        self.check("cut_record");
        gone
    }

    /// Frees the first record; false when there is none.
    #[doc(alias = "sbdroprecord")]
    pub fn drop_record(&mut self) -> bool {
        let gone = self.cut_record();
        let any = gone.is_some();
        free_bulk(&mut [gone]);
        any
    }

    /// Removes the first record and hands out its parts.
    pub fn take_record(&mut self) -> Option<OwnedRecord> {
        self.cut_record().map(OwnedRecord::from)
    }

    /// Removes everything and hands it out.
    #[doc(alias = "sbflush")]
    pub fn take_all(&mut self) -> Option<Mbuf> {
        let gone = self.take_segs(usize::MAX);
        self.check("take_all");
        gone
    }

    /// Frees everything and sets the limits to 0: nothing goes in any more.
    #[doc(alias = "sbrelease")]
    pub fn release(&mut self) {
        free_bulk(&mut [self.take_all()]);
        self.side.set_limits(0, 0);
    }

    /// Takes segments out at the front, and out of the counters.
    fn take_segs(&mut self, n: usize) -> Option<Mbuf> {
        let gone = self.chain.take_segs(n);
        for seg in gone.iter().flat_map(Packet::segments) {
            self.complete -= usize::from(seg.ends_record());
            self.aside -= if is_aside(seg) { seg.len() } else { 0 };
        }
        gone
    }

    /// Recounts everything, in debug builds, and panics with the place's name if a counter is wrong.
    /// Every method that changes something ends with it.
    #[doc(alias = "sbcheck")]
    #[doc(alias = "sblastrecordchk")]
    #[doc(alias = "sblastmbufchk")]
    #[inline]
    pub fn check(&self, place: &str) {
        if cfg!(debug_assertions) {
            self.recount(place);
        }
    }

    #[cold]
    fn recount(&self, place: &str) {
        let (mut bytes, mut charge, mut segs) = (0, 0, 0);
        let (mut aside, mut complete) = (0, 0);
        for seg in self.chain.segments() {
            bytes += seg.len();
            charge += seg.charge();
            segs += 1;
            aside += if is_aside(seg) { seg.len() } else { 0 };
            complete += usize::from(seg.ends_record());
        }
        let counted = (self.chain.len(), self.chain.charge(), self.chain.segs());
        assert_eq!(
            (counted, self.aside, self.complete),
            ((bytes, charge, segs), aside, complete),
            "{place}: (bytes, storage, mbufs), not data, complete records: counters against recount"
        );
        let open = self.chain.last().is_none_or(|last| !last.ends_record());
        assert!(open, "{place}: the last mbuf says that a record follows");
    }
}

/// Whether a segment's bytes go with the data rather than being data.
fn is_aside(seg: Segment<'_>) -> bool {
    seg.kind() != Kind::Data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "here: (bytes, storage, mbufs), not data, complete records")]
    fn sb_check_names_the_place_when_a_counter_is_wrong() {
        let mut rb = RecordBuf::new(1);
        rb.aside += 1;
        rb.check("here");
    }
}
