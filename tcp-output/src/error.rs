//! What can go wrong, with the numbers.

use mbuf::{AllocError, CopyError, NoRoom, OutOfRange};
use sockbuf::PastEnd;
use thiserror::Error;

use crate::seq::Seq;

/// A packet could not be built. Its parts are freed; the send buffer is unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum BuildError {
    /// No mbuf or no cluster.
    #[error("no buffer for the packet: {0}")]
    Alloc(#[from] AllocError),
    /// The segment is not in this send buffer.
    #[error("segment outside of the send buffer: {0}")]
    Range(#[from] OutOfRange),
    /// The storage that came is smaller than what was asked for.
    #[error("packet storage too small: {0}")]
    Room(#[from] NoRoom),
    /// The headers of a TSO frame give it a length that no IP header can hold.
    #[error("{asked} bytes do not fit an IP packet of at most {most}")]
    TooLong {
        /// Bytes of headers and payload.
        asked: usize,
        /// The most that an IP header can say.
        most: usize,
    },
}

impl From<CopyError> for BuildError {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Range(range) => BuildError::Range(range),
            CopyError::Alloc(alloc) => BuildError::Alloc(alloc),
        }
    }
}

/// Why the way out did not take a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum OutputError {
    /// Its queue is full: the packet did not leave and will be sent again.
    #[doc(alias = "ENOBUFS")]
    #[error("no buffers on the way out")]
    NoBuffers,
    /// There is no way to the peer at the moment. Counts as sent; the retransmission timer tries again.
    #[doc(alias = "EHOSTUNREACH")]
    #[doc(alias = "ENETDOWN")]
    #[error("peer unreachable at the moment")]
    Unreachable,
    /// It is longer than the path allows: it did not leave, and segments are to be made smaller.
    #[doc(alias = "EMSGSIZE")]
    #[error("packet too long for a path of {mtu} bytes")]
    TooLong {
        /// The longest IP packet that the path takes, bytes.
        mtu: u32,
    },
    /// Anything else, by the number that the way out gave it. Counts as sent.
    #[error("output failed with error {0}")]
    Other(i32),
}

/// Output stopped before everything was sent that could be. The connection's state is consistent:
/// what left is accounted for, what did not will be sent by a later call, and a timer runs if data
/// waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("output stopped after {packets} packets, {bytes} bytes: {cause}")]
pub struct SendError {
    /// Packets that left before.
    pub packets: usize,
    /// Bytes of payload in them.
    pub bytes: usize,
    /// What stopped it.
    #[source]
    pub cause: Cause,
}

/// What stopped the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Cause {
    /// A packet could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A packet could not be sent.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl Cause {
    /// The packet left, or may have: only its acknowledgment, or the timer, tells.
    pub(crate) fn counts_as_sent(&self) -> bool {
        use OutputError::{Other, Unreachable};
        matches!(self, Cause::Output(Other(_) | Unreachable))
    }
}

/// Why a connection was given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Dropped {
    /// The peer did not answer for too long.
    #[doc(alias = "ETIMEDOUT")]
    #[error("the peer did not answer for too long")]
    TimedOut,
    /// It did not, and this is what the way out last said about it.
    #[error("the peer did not answer for too long: {0}")]
    Unreachable(#[source] OutputError),
}

/// An acknowledgment that makes no sense. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum AckError {
    /// It acknowledges what was never sent.
    #[error("acknowledgment of {ack:?}, but {max:?} is the end of what was sent")]
    Beyond {
        /// The acknowledgment number.
        ack: Seq,
        /// One past the highest number sent.
        max: Seq,
    },
    /// It covers more than the send buffer holds: the buffer is not this connection's.
    #[error(transparent)]
    Buffer(#[from] PastEnd),
}
