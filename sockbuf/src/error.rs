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
