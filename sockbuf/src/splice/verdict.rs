//! How a splice ends, and why it could not begin.

use std::time::Duration;

use thiserror::Error;

use crate::socket::SocketError;

/// A splice's own reasons to end, which the source then reports as an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Verdict {
    /// As many bytes were moved as were asked for.
    #[doc(alias = "EFBIG")]
    #[error("{max} bytes were moved, as many as were asked for")]
    MaxReached {
        /// The number asked for.
        max: u64,
    },
    /// Nothing was moved for too long.
    #[doc(alias = "ETIMEDOUT")]
    #[error("nothing was moved for {idle:?}")]
    Idle {
        /// How long it was allowed to be.
        idle: Duration,
    },
    /// Packets came by so often that they must run in a circle. They stay in the source.
    #[doc(alias = "ELOOP")]
    #[error("a packet came by {hops} times")]
    Loop {
        /// How often it had been passed on.
        hops: u8,
    },
}

/// How a splice ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The source has no more, and all of it was moved.
    Finished,
    /// The drain takes no more.
    #[doc(alias = "EPIPE")]
    DrainShut {
        /// Bytes that stay in the source.
        left: usize,
    },
    /// By the splice's own rules.
    Verdict(Verdict),
    /// By an error of the source, which will tell it.
    SourceFailed(SocketError),
    /// By an error of the drain.
    DrainFailed(SocketError),
    /// The user took them apart.
    Unspliced,
}

impl End {
    /// What the source is to report on account of it.
    #[must_use]
    pub fn error(self) -> Option<SocketError> {
        match self {
            Self::Finished | Self::Unspliced | Self::SourceFailed(_) => None,
            Self::DrainShut { left } => Some(SocketError::Shut { asked: left }),
            Self::Verdict(verdict) => Some(verdict.into()),
            Self::DrainFailed(error) => Some(error),
        }
    }
}

/// Two sockets could not be spliced, or not be taken apart. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SpliceError {
    /// The protocol of one of them cannot be spliced.
    #[doc(alias = "EPROTONOSUPPORT")]
    #[error("the protocol cannot be spliced")]
    Unsupported,
    /// No limit is said by `None`.
    #[doc(alias = "EINVAL")]
    #[error("a splice for {max:?} bytes, idle for {idle:?}, is over before it begins")]
    Impossible {
        /// The most bytes that were asked for.
        max: Option<u64>,
        /// How long it was to be idle.
        idle: Option<Duration>,
    },
    /// One of them waits for connections.
    #[doc(alias = "EOPNOTSUPP")]
    #[error("the socket waits for connections")]
    Listening,
    /// The source has no connection, and is not about to have one.
    #[doc(alias = "ENOTCONN")]
    #[error("the source is not connected")]
    NotConnected,
    /// The source is spliced already.
    #[doc(alias = "EBUSY")]
    #[error("the source is spliced already")]
    SourceBusy,
    /// The drain is fed by another splice already.
    #[doc(alias = "EBUSY")]
    #[error("the drain is fed by another splice")]
    DrainBusy,
    /// There is no splice to end.
    #[doc(alias = "EPROTO")]
    #[error("not spliced")]
    NotSpliced,
}
