//! What can go wrong, with the numbers.

use mbuf::AllocError;
use thiserror::Error;

/// More was to be dropped than there is. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("asked to drop {asked} bytes of {have}")]
pub struct PastEnd {
    /// Bytes asked for.
    pub asked: usize,
    /// Bytes in the buffer.
    pub have: usize,
}

/// Not a single byte could be written. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum WriteError {
    /// The buffer is full: by bytes, or by the storage that the bytes hold.
    #[error("send buffer full: {queued} bytes queued, space {space}")]
    Full {
        /// Bytes queued.
        queued: usize,
        /// What [`SockBuf::space`](crate::SockBuf::space) says: 0 or less.
        space: isize,
    },
    /// No mbuf or cluster to put the bytes into.
    #[error(transparent)]
    Alloc(#[from] AllocError),
}

/// A record could not be appended. The buffer is unchanged; what was given by value is freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum AppendError {
    /// The record does not fit.
    #[error("record of {asked} bytes, space {space}")]
    NoSpace {
        /// Bytes of address, control messages and data.
        asked: usize,
        /// What [`RecordBuf::space`](crate::RecordBuf::space) says.
        space: isize,
    },
    /// The address is longer than a plain mbuf.
    #[error("address of {asked} bytes, possible are {max}")]
    AddressTooLong {
        /// Bytes of the address.
        asked: usize,
        /// Bytes of a plain mbuf.
        max: usize,
    },
    /// No mbuf for the address.
    #[error(transparent)]
    Alloc(#[from] AllocError),
}

/// A control message could not be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ControlError {
    /// With its header it is longer than a cluster.
    #[error("control message of {asked} bytes with its header, possible are {max}")]
    TooLong {
        /// Bytes with header and padding.
        asked: usize,
        /// The limit.
        max: usize,
    },
    /// No mbuf or cluster for it.
    #[error(transparent)]
    Alloc(#[from] AllocError),
}

/// A buffer cannot have this size. It keeps the one it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SizeError {
    /// Sizes are limited.
    #[doc(alias = "ENOBUFS")]
    #[error("buffer of {asked} bytes asked for, possible are 1 to {max}")]
    Impossible {
        /// Bytes asked for.
        asked: usize,
        /// The largest size.
        max: usize,
    },
    /// While memory is low no buffer grows beyond its usual size.
    #[doc(alias = "ENOBUFS")]
    #[error("buffer of {asked} bytes asked for, {usual} possible while memory is low")]
    LowMemory {
        /// Bytes asked for.
        asked: usize,
        /// The usual size.
        usual: usize,
    },
    /// This direction was shut down.
    #[doc(alias = "EINVAL")]
    #[error("buffer of {asked} bytes asked for after shutdown")]
    Shut {
        /// Bytes asked for.
        asked: usize,
    },
}
