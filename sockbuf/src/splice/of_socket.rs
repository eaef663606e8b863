//! Sockets that are spliced, as their user sees it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::link::Link;
use super::options::SpliceOptions;
use super::progress::Progress;
use super::splicer::Splicer;
use super::verdict::{End, SpliceError};
use crate::socket::Socket;
use crate::sync::Ordering;
use crate::wait::Patience;

/// What a splice has done until now, or did when it was the last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SpliceState {
    /// Whether it goes on.
    pub active: bool,
    /// Bytes moved.
    #[doc(alias = "SO_SPLICE")]
    #[doc(alias = "so_splicelen")]
    pub bytes: u64,
    /// How it ended; `None` while it goes on, and when there never was one.
    pub end: Option<End>,
}

impl Socket {
    /// Has all that this socket receives sent by `drain`, beginning with what is in its buffer. Until that
    /// ends, this socket looks empty to who reads from it.
    ///
    /// `drain` may be any socket, also this one, or one that is spliced the other way. It may be still
    /// about to be connected. How the splice ended this socket tells as an error, if something was wrong;
    /// both may be used again then.
    ///
    /// # Errors
    /// [`SpliceError`], the first of them in the order in which they are listed there; nothing has changed
    /// then.
    #[doc(alias = "sosplice")]
    #[doc(alias = "SO_SPLICE")]
    pub fn splice(
        &self,
        drain: &Self,
        options: SpliceOptions,
        splicer: &Splicer,
    ) -> Result<(), SpliceError> {
        let (from, to) = (self.shared(), drain.shared());
        if !from.protocol.can_splice() || !to.protocol.can_splice() {
            return Err(SpliceError::Unsupported);
        }
        options.check()?;
        if from.status.is_listening() || to.status.is_listening() {
            return Err(SpliceError::Listening);
        }
        if from.needs_connection && !from.status.has_peer() {
            return Err(SpliceError::NotConnected);
        }
        let link = from.receive.change(|half| {
            if half.spliced.is_active() {
                return Err(SpliceError::SourceBusy);
            }
            if to.fed.swap(1, Ordering::AcqRel) != 0 {
                return Err(SpliceError::DrainBusy);
            }
            let ends = (self.protocol_end(), drain.protocol_end());
            let progress = Progress::new(options, Instant::now());
            let queue = splicer.queue();
            let link = queue.add(|id| Link::new(id, ends, progress, Arc::downgrade(queue)));
            half.spliced.link = Some(Arc::downgrade(&link));
            (half.spliced.bytes, half.spliced.end) = (0, None);
            Ok(link)
        })?;
        link.schedule();
        Ok(())
    }

    /// Ends the splice from this socket. Returns the bytes that were moved.
    ///
    /// # Errors
    /// [`SpliceError::NotSpliced`].
    #[doc(alias = "sounsplice")]
    pub fn unsplice(&self) -> Result<u64, SpliceError> {
        let receive = &self.shared().receive;
        let link = receive.look(|half| half.spliced.link.clone());
        let link = link.and_then(|link| link.upgrade());
        if !link.is_some_and(|link| link.unsplice()) {
            return Err(SpliceError::NotSpliced);
        }
        Ok(receive.look(|half| half.spliced.bytes))
    }

    /// Waits until this socket is not spliced any more, or until `limit` is over, and says how it stands
    /// then.
    #[must_use]
    pub fn wait_spliced(&self, limit: Option<Duration>) -> SpliceState {
        // A limit beyond what the clock can count is none.
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let patience = Patience::Until(deadline);
        let receive = &self.shared().receive;
        receive.wait_while(patience, |half| half.spliced.is_active());
        self.splice_state()
    }

    /// What the splice from this socket has done, or the last one did.
    #[must_use]
    pub fn splice_state(&self) -> SpliceState {
        self.shared().receive.look(|half| SpliceState {
            active: half.spliced.is_active(),
            bytes: half.spliced.bytes,
            end: half.spliced.end,
        })
    }
}
