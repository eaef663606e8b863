//! Packets cut in two, and put together.

use crate::chain::Chain;
use crate::copy::{Piece, copy_piece};
use crate::error::{AllocError, EditError, OutOfRange};
use crate::handle::Mbuf;
use crate::packet::Packet;
use crate::set::BufferSet;
use crate::wipe;

impl Mbuf {
    /// Cuts the packet before byte `at` and returns the rest, with a duplicate of what the header
    /// says. No byte in a cluster is copied: the two share the one that is cut, and may
    /// not write it until one of them is gone (or [`make_writable`](Mbuf::make_writable)). A cut between
    /// two segments takes no buffer; at 0 and at the end one of the two is an empty header mbuf.
    ///
    /// # Errors
    /// [`EditError`] when `at` is beyond the end or there is no buffer; unchanged then.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::bsd(64, 8)?;
    /// use mbuf::Packet;
    /// let mut m = set.copy_in(b"firstsecond", 0)?;
    /// let rest = m.split(5, &set)?;
    /// assert_eq!((m.to_vec(), rest.to_vec()), (b"first".to_vec(), b"second".to_vec()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "m_split")]
    pub fn split(&mut self, at: usize, set: &BufferSet) -> Result<Mbuf, EditError> {
        OutOfRange::check(at, 0, self.pkt_len())?;
        let mut tail = if at == 0 {
            let empty = set.header()?;
            std::mem::replace(self, empty)
        } else if at == self.pkt_len() {
            set.header()?
        } else {
            self.split_segments(at, set)?
        };
        let (to, from) = match at {
            0 => (self, &tail),
            _ => (&mut tail, &*self),
        };
        if wipe::asked_of(from.first()) {
            to.first_raw().ask_wipe(); // fields and tags come in
        }
        to.copy_header_from(from);
        Ok(tail)
    }

    /// Cuts before byte `at`, which is neither the first nor beyond the last.
    pub(super) fn split_segments(
        &mut self,
        at: usize,
        set: &BufferSet,
    ) -> Result<Mbuf, AllocError> {
        // The segment of the last byte that stays.
        let (index, last) = self.place(at - 1);
        let keep = last + 1;
        let mut copied = Chain::new();
        let mut done = Ok(());
        let seg = self.segment_raw(index);
        let cut = seg.view().len() - keep;
        if cut > 0 {
            let piece = Piece {
                seg: seg.view(),
                at: keep,
                len: cut,
            };
            done = copy_piece(&piece, true, set, &mut copied);
        }
        let mut tail = copied.into_packet();
        if let Some(tail) = &mut tail
            && wipe::asked(self, at, cut)
        {
            tail.wipe_on_free();
        }
        done?;
        let rest = self.detach_behind(index);
        self.shorten(index, keep);
        match (tail, rest) {
            (Some(mut tail), Some(rest)) => {
                tail.cat(rest);
                Ok(tail)
            }
            (Some(tail), None) | (None, Some(tail)) => Ok(tail),
            // Bytes were left, so there is a segment.
            (None, None) => set.header(),
        }
    }

    /// Puts the bytes of `tail` behind ours: copied into the tailroom of our last segment as long
    /// as whole segments fit there, the rest linked.
    ///
    /// See [`cat`](Self::cat), which only links.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::bsd(64, 8)?;
    /// use mbuf::Packet;
    /// let mut m = set.copy_in(b"one", 0)?;
    /// m.cat_packed(set.copy_in(b"two", 0)?);
    /// assert_eq!((m.to_vec(), m.nsegs()), (b"onetwo".to_vec(), 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "m_cat")]
    #[doc(alias = "sbcompress")]
    pub fn cat_packed(&mut self, mut tail: Mbuf) {
        let room = self.last_raw().view().tailroom();
        let (mut segs, mut bytes) = (0, 0);
        for seg in tail.segments() {
            if seg.len() > room - bytes {
                break;
            }
            bytes += seg.len();
            segs += 1;
        }
        if segs == 0 {
            return self.cat(tail);
        }
        self.fill_end_from(&tail, bytes);
        if let Some(rest) = tail.detach_behind(segs - 1) {
            self.cat(rest);
        }
    }
}
