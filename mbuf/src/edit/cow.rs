//! Copy on write, by name: shared segments get storage of their own.

use super::storage::adopt;
use crate::chain::Chain;
use crate::error::{AllocError, EditError, OutOfRange};
use crate::handle::Mbuf;
use crate::packet::Packet;
use crate::set::BufferSet;

impl Mbuf {
    /// True when every byte of the packet may be written.
    #[doc(alias = "M_READONLY")]
    pub fn is_writable(&self) -> bool {
        self.segments()
            .all(|seg| seg.is_empty() || seg.is_writable())
    }

    /// Copies what is shared, so that every byte of the packet may be written. Segments stay as
    /// they are cut, with their leads where there is room for them.
    ///
    /// # Errors
    /// [`AllocError`]; unchanged then.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::bsd(64, 8)?;
    /// use mbuf::Packet;
    /// let mut m = set.copy_in(&[1; 1500], 0)?;
    /// let copy = m.ref_copy(0, 1500, &set)?;
    /// assert!(!m.is_writable());
    /// m.make_writable(&set)?;
    /// m.data_mut().unwrap().fill(2);
    /// assert_eq!(copy.to_vec(), [1; 1500]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "m_unshare")]
    #[doc(alias = "m_makewritable")]
    pub fn make_writable(&mut self, set: &BufferSet) -> Result<(), AllocError> {
        let staged = stage(self, 0, self.pkt_len(), set)?;
        commit(self, staged);
        Ok(())
    }

    /// As [`make_writable`](Self::make_writable), for the segments that hold
    /// `[offset, offset + len)`.
    ///
    /// # Errors
    /// [`EditError`] when the range reaches past the end or there is no buffer; unchanged then.
    pub fn make_range_writable(
        &mut self,
        offset: usize,
        len: usize,
        set: &BufferSet,
    ) -> Result<(), EditError> {
        OutOfRange::check(offset, len, self.pkt_len())?;
        let staged = stage(self, offset, len, set)?;
        commit(self, staged);
        Ok(())
    }
}

/// Copies of the segments that hold `[offset, offset + len)` and are shared. Each remembers whose
/// copy it is in its user word: a segment that is shared now may not be a moment later.
pub(super) fn stage(
    m: &Mbuf,
    offset: usize,
    len: usize,
    set: &BufferSet,
) -> Result<Chain, AllocError> {
    let mut staged = Chain::new();
    let mut end = 0;
    for (index, seg) in m.segments().enumerate() {
        let start = end;
        end += seg.len();
        let touched = start < offset + len && end > offset;
        if touched && !seg.is_empty() && !seg.is_writable() {
            let mut copy = set.storage_for(seg, seg.len())?;
            if let Some(data) = copy.data_mut() {
                data.copy_from_slice(seg.data());
            }
            copy.set_user(index as u64);
            staged.push_back(copy);
        }
    }
    Ok(staged)
}

/// Puts the copies where they belong. What was there goes last: an owner may unwind.
pub(super) fn commit(m: &mut Mbuf, staged: Chain) {
    let mut old = Chain::new();
    let mut staged = staged.into_packet();
    while let Some(copies) = staged {
        let (copy, rest) = copies.split_first();
        let index = copy.user() as usize;
        old.push_back(adopt(&mut m.segment_raw(index), copy));
        staged = rest;
    }
}
