//! What a call on a socket can fail with, and what a protocol can report.

use std::io;

use mbuf::{AllocError, Mbuf};
use thiserror::Error;

use crate::splice::Verdict;

/// Why a call on a socket failed, or what the protocol said of the connection.
///
/// Where some bytes went through before it happened, the call returns their number, and the next
/// call tells the reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SocketError {
    /// There is not enough data or space now, and the caller does not wait.
    #[doc(alias = "EWOULDBLOCK")]
    #[error("{asked} bytes asked for, {available} possible now")]
    WouldBlock {
        /// Bytes to send or to receive.
        asked: usize,
        /// Space, or bytes that there are.
        available: isize,
    },
    /// There was not enough data or space in time.
    #[doc(alias = "SO_SNDTIMEO")]
    #[doc(alias = "SO_RCVTIMEO")]
    #[error("{asked} bytes asked for, {available} possible in time")]
    TimedOut {
        /// Bytes to send or to receive.
        asked: usize,
        /// Space, or bytes that there were.
        available: isize,
    },
    /// This side was shut down for sending.
    #[doc(alias = "EPIPE")]
    #[error("{asked} bytes to be sent after shutdown")]
    Shut {
        /// Bytes to send.
        asked: usize,
    },
    /// There is no connection.
    #[doc(alias = "ENOTCONN")]
    #[error("not connected")]
    NotConnected,
    /// There is a connection, and an address was given all the same.
    #[doc(alias = "EISCONN")]
    #[error("connected already")]
    Connected,
    /// There is no connection, and nobody said where to.
    #[doc(alias = "EDESTADDRREQ")]
    #[error("no destination")]
    NoDestination,
    /// It could not be sent in one piece, however long one waits.
    #[doc(alias = "EMSGSIZE")]
    #[error("message of {asked} bytes with its control messages, possible are {max}")]
    TooLong {
        /// Bytes of address, control messages and data.
        asked: usize,
        /// What an empty buffer takes.
        max: usize,
    },
    /// A stream has no records that could end.
    #[doc(alias = "EINVAL")]
    #[error("end of a record in a stream")]
    NoRecords,
    /// Nothing urgent was announced, or it was read already.
    #[doc(alias = "EINVAL")]
    #[error("no urgent byte")]
    NothingUrgent,
    /// No mbuf or cluster.
    #[doc(alias = "ENOBUFS")]
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// The other end broke the connection.
    #[doc(alias = "ECONNRESET")]
    #[error("connection reset")]
    Reset,
    /// The other end wanted none.
    #[doc(alias = "ECONNREFUSED")]
    #[error("connection refused")]
    Refused,
    /// The connection was given up on this side.
    #[doc(alias = "ECONNABORTED")]
    #[error("connection aborted")]
    Aborted,
    /// The other end did not answer any more.
    #[doc(alias = "ETIMEDOUT")]
    #[error("no answer")]
    NoAnswer,
    /// There is no way there.
    #[doc(alias = "EHOSTUNREACH")]
    #[error("host unreachable")]
    Unreachable,
    /// A splice from this socket ended by its own rules.
    #[error("splice ended: {0}")]
    Spliced(#[from] Verdict),
    /// Any other error of a protocol, by the system's number.
    #[error("system error {0}")]
    Os(i32),
}

impl SocketError {
    /// What it is for `std`.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        use io::ErrorKind as Kind;
        match self {
            Self::WouldBlock { .. } => Kind::WouldBlock,
            Self::TimedOut { .. } | Self::NoAnswer => Kind::TimedOut,
            Self::Shut { .. } => Kind::BrokenPipe,
            Self::NotConnected => Kind::NotConnected,
            Self::Connected | Self::NoDestination | Self::TooLong { .. } => Kind::InvalidInput,
            Self::NoRecords | Self::NothingUrgent => Kind::InvalidInput,
            Self::Alloc(_) => Kind::OutOfMemory,
            Self::Reset => Kind::ConnectionReset,
            Self::Refused => Kind::ConnectionRefused,
            Self::Aborted => Kind::ConnectionAborted,
            Self::Unreachable => Kind::HostUnreachable,
            Self::Spliced(Verdict::Idle { .. }) => Kind::TimedOut,
            Self::Spliced(Verdict::MaxReached { .. }) => Kind::FileTooLarge,
            Self::Spliced(Verdict::Loop { .. }) => Kind::Other,
            Self::Os(number) => io::Error::from_raw_os_error(*number).kind(),
        }
    }
}

impl From<SocketError> for io::Error {
    fn from(error: SocketError) -> Self {
        Self::new(error.kind(), error)
    }
}

/// A packet did not go in, or not all of it.
#[derive(Debug, Error)]
#[error("{sent} bytes sent: {error}")]
pub struct Unsent {
    /// Bytes that went in.
    pub sent: usize,
    /// The packet from the first byte on that did not.
    pub rest: Mbuf,
    /// Why.
    #[source]
    pub error: SocketError,
}
