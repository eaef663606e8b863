//! What a segment's bytes are, and where a sender's record ends: what socket buffers go by.

use crate::handle::Mbuf;
use crate::header::SegFlags;

/// What the bytes of a segment are.
#[doc(alias = "m_type")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Kind {
    /// What was sent.
    #[doc(alias = "MT_DATA")]
    #[default]
    Data,
    /// Whom it is from.
    #[doc(alias = "MT_SONAME")]
    Address,
    /// What goes with it: control messages.
    #[doc(alias = "MT_CONTROL")]
    Control,
}

impl Kind {
    #[inline]
    pub(crate) fn of(flags: SegFlags) -> Self {
        if !flags.intersects(SegFlags::ADDRESS | SegFlags::CONTROL) {
            Self::Data
        } else if flags.contains(SegFlags::ADDRESS) {
            Self::Address
        } else {
            Self::Control
        }
    }

    fn flags(self) -> SegFlags {
        match self {
            Self::Data => SegFlags::empty(),
            Self::Address => SegFlags::ADDRESS,
            Self::Control => SegFlags::CONTROL,
        }
    }
}

impl Mbuf {
    /// Says what the bytes are, of each segment. A new mbuf's are [`Kind::Data`], and so are those of
    /// a copy.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::bsd(64, 8)?;
    /// use mbuf::{Kind, Packet};
    /// let mut m = set.copy_in(b"from whom", 0)?;
    /// m.set_kind(Kind::Address);
    /// m.set_eor(true);
    /// assert_eq!((m.first().kind(), m.first().is_eor()), (Kind::Address, true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_kind(&mut self, kind: Kind) {
        self.for_each_segment(|mut seg| {
            let flags = &mut seg.fields().flags;
            *flags = (*flags - SegFlags::ADDRESS - SegFlags::CONTROL) | kind.flags();
            true
        });
    }

    /// Says whether the sender's record ends with the last segment; it does not with any other.
    #[doc(alias = "M_EOR")]
    pub fn set_eor(&mut self, eor: bool) {
        self.for_each_segment(|mut seg| {
            let last = seg.view().next().is_none();
            seg.fields().flags.set(SegFlags::EOR, eor && last);
            true
        });
    }
}
