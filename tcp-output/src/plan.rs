//! What is about to be sent, as a copy policy sees it.

use mbuf::{BufferSet, CopyError, Mbuf};
use sockbuf::SockBuf;

use crate::decide::Segment;
use crate::tcb::Tcb;

/// A range of the send buffer that is about to become a packet.
///
/// Looking costs nothing until it is asked for: [`first_capacity`](Self::first_capacity) reads one
/// mbuf, [`shape`](Self::shape) walks the range.
#[derive(Clone, Copy, Debug)]
pub struct SendPlan<'a> {
    sb: &'a SockBuf,
    off: usize,
    len: usize,
    header_len: usize,
    tso: bool,
}

/// What the mbufs under a range look like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shape {
    /// Mbufs that the range touches: the pieces that a reference would have.
    pub pieces: usize,
    /// Those of them with a cluster, or external storage; the others are copied even by a reference.
    pub clusters: usize,
    /// Those of these that somebody else refers to as well.
    pub shared: usize,
    /// Bytes of storage under the pieces.
    pub capacity: usize,
    /// Bytes of the range that were looked at: all of it, unless the limit came first.
    pub bytes: usize,
}

impl<'a> SendPlan<'a> {
    /// The plan for `len` bytes at `off` with `header_len` bytes of headers in front. `tso`: the
    /// hardware is going to cut it.
    #[must_use]
    pub fn new(sb: &'a SockBuf, off: usize, len: usize, header_len: usize, tso: bool) -> Self {
        SendPlan {
            sb,
            off,
            len,
            header_len,
            tso,
        }
    }

    /// The plan for a segment that was decided on.
    #[must_use]
    pub fn of(tcb: &Tcb, segment: &Segment, sb: &'a SockBuf) -> Self {
        Self::new(
            sb,
            segment.off,
            segment.len,
            segment.header_len(tcb),
            segment.tso_mss.is_some(),
        )
    }

    /// Offset of the range in the send buffer.
    #[must_use]
    pub fn off(&self) -> usize {
        self.off
    }

    /// Bytes of payload.
    #[allow(clippy::len_without_is_empty)]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of headers in front of it.
    #[must_use]
    pub fn header_len(&self) -> usize {
        self.header_len
    }

    /// Whether the packet is a frame for the hardware to cut.
    #[must_use]
    pub fn tso(&self) -> bool {
        self.tso
    }

    /// Storage size of the send buffer's first mbuf, whether the range touches it or not; `None`
    /// when the buffer is empty.
    #[doc(alias = "M_SIZE")]
    #[inline]
    #[must_use]
    pub fn first_capacity(&self) -> Option<usize> {
        self.sb.first().map(|seg| seg.capacity())
    }

    /// A packet of references to the range.
    pub(crate) fn refer(&self, set: &BufferSet) -> Result<Mbuf, CopyError> {
        self.sb.ref_copy(self.off, self.len, set)
    }

    /// Looks at the mbufs under the range, at most `limit` of them.
    #[must_use]
    pub fn shape(&self, limit: usize) -> Shape {
        let mut shape = Shape::default();
        let mut skip = self.off;
        for seg in self.sb.segments() {
            if skip >= seg.len() {
                skip -= seg.len();
                continue;
            }
            if shape.pieces == limit || shape.bytes >= self.len {
                break;
            }
            shape.pieces += 1;
            shape.bytes += (seg.len() - skip).min(self.len - shape.bytes);
            shape.capacity += seg.capacity();
            if seg.storage() != mbuf::Storage::Inline {
                shape.clusters += 1;
                shape.shared += usize::from(seg.is_shared());
            }
            skip = 0;
        }
        shape
    }
}
