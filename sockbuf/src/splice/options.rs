//! What is asked for when two sockets are spliced.

use std::time::Duration;

use super::gather::Gather;
use super::verdict::SpliceError;

/// How long a splice lasts, and how it moves. The default moves whole mbufs until an end is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SpliceOptions {
    /// The splice ends after so many bytes. BSD writes 0 for no limit; here that is `None`, and 0 is
    /// refused.
    #[doc(alias = "sp_max")]
    pub max: Option<u64>,
    /// It ends when nothing was moved for so long. BSD writes 0 for no limit; here that is `None`, and 0 is
    /// refused.
    #[doc(alias = "sp_idle")]
    pub idle: Option<Duration>,
    /// Whether small clusters are merged while the drain is backed up.
    pub gather: Gather,
}

impl SpliceOptions {
    /// # Errors
    /// [`SpliceError::Impossible`].
    pub(super) fn check(&self) -> Result<(), SpliceError> {
        let Self { max, idle, .. } = *self;
        if max == Some(0) || idle == Some(Duration::ZERO) {
            return Err(SpliceError::Impossible { max, idle });
        }
        Ok(())
    }
}
