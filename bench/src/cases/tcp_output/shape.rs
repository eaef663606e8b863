//! Segments and frames that are built, and the send buffers under them.

use mbuf::{AllocError, BufferSet};
use sockbuf::SockBuf;
use tcp_output::build::Payload;

/// Payload of a full segment.
const FULL: usize = 1448;
/// Segments of a TSO frame.
const SEGMENTS: usize = 45;
/// Bytes that a send buffer of small clusters has in each, as a splice leaves them.
const SPLICED: usize = 1448;

/// What is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// An acknowledgment.
    Ack,
    /// 20 bytes, which ride in the header mbuf.
    Inline,
    /// A full segment that refers to a cluster.
    Referenced,
    /// A full segment with a copy of its payload.
    Copied,
    /// A TSO frame over 45 clusters of 2 KB.
    Spliced,
    /// A TSO frame over one cluster of 64 KB.
    Written,
}

impl Shape {
    pub(super) const ALL: [Shape; 6] = [
        Shape::Ack,
        Shape::Inline,
        Shape::Referenced,
        Shape::Copied,
        Shape::Spliced,
        Shape::Written,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Shape::Ack => "ack",
            Shape::Inline => "inline20",
            Shape::Referenced => "referenced1448",
            Shape::Copied => "copied1448",
            Shape::Spliced => "many45",
            Shape::Written => "one64k",
        }
    }

    /// Cut by the NIC.
    pub(super) fn is_frame(self) -> bool {
        matches!(self, Shape::Spliced | Shape::Written)
    }

    /// Bytes of payload.
    pub(super) fn len(self) -> usize {
        match self {
            Shape::Ack => 0,
            Shape::Inline => 20,
            Shape::Referenced | Shape::Copied => FULL,
            Shape::Spliced | Shape::Written => SEGMENTS * FULL,
        }
    }

    /// How a segment, not a frame, comes to hold its payload.
    pub(super) fn payload(self) -> Payload {
        match self {
            Shape::Ack => Payload::None,
            Shape::Inline => Payload::Inline,
            Shape::Copied => Payload::Copied,
            Shape::Referenced | Shape::Spliced | Shape::Written => Payload::Referenced,
        }
    }

    /// A send buffer with `bytes`.
    pub(super) fn fill(self, bytes: &[u8], set: &BufferSet) -> Result<SockBuf, AllocError> {
        let mut sb = SockBuf::new(1 << 20);
        let each = match self {
            Shape::Spliced => SPLICED,
            _ => bytes.len().max(1),
        };
        for part in bytes.chunks(each) {
            let mut m = set.header_with(part.len().max(SPLICED))?;
            if let Ok(room) = m.append(part.len()) {
                room.copy_from_slice(part);
            }
            sb.append_stream(m);
        }
        Ok(sb)
    }
}
