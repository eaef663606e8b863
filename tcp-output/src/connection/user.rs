//! The user's side: writing, reading, closing.

use mbuf::{BufferSet, Mbuf};
use sockbuf::{SockBuf, WriteError};
use thiserror::Error;

use super::{Connection, Events};
use crate::input::CongestionControl;
use crate::policy::CopyPolicy;
use crate::state::State;
use crate::time::Time;

/// Nothing can be written, now or ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum CannotWrite {
    /// This side was closed, or there is no connection.
    #[error("no writing in state {0:?}")]
    State(State),
    /// The send buffer took nothing. Where that is [`WriteError::Full`], wait for
    /// [`Events::WRITABLE`].
    #[error(transparent)]
    Buffer(#[from] WriteError),
}

impl<P: CopyPolicy, C: CongestionControl> Connection<P, C> {
    /// Copies bytes into the send buffer, as many as there is space for, and says how many that were.
    /// Before the connection stands they wait.
    ///
    /// # Errors
    /// [`CannotWrite`] when none were; nothing has changed then.
    #[doc(alias = "sosend")]
    pub fn write(&mut self, data: &[u8], set: &BufferSet) -> Result<usize, CannotWrite> {
        match self.state() {
            State::SynSent | State::SynReceived | State::Established | State::CloseWait
                if !self.closing =>
            {
                Ok(self.snd.write(data, set)?)
            }
            state => Err(CannotWrite::State(state)),
        }
    }

    /// Moves bytes out of the receive buffer, as many as there are and fit, and says how many that
    /// were.
    #[doc(alias = "soreceive")]
    pub fn read(&mut self, data: &mut [u8]) -> usize {
        let n = data.len().min(self.rcv.len());
        let there = self.rcv.copy_to(0, &mut data[..n]).is_ok() && self.rcv.drop_front(n).is_ok();
        debug_assert!(there, "{n} bytes are there");
        self.tell_space();
        n
    }

    /// Takes all that has arrived, without copying.
    pub fn take(&mut self) -> Option<Mbuf> {
        let taken = self.rcv.take_all();
        self.tell_space();
        taken
    }

    /// What was written and is not acknowledged yet.
    #[must_use]
    pub fn send_buffer(&self) -> &SockBuf {
        &self.snd
    }

    /// What has arrived and is not read yet.
    #[must_use]
    pub fn receive_buffer(&self) -> &SockBuf {
        &self.rcv
    }

    /// This side sends no more: a FIN follows what was written. Reading goes on; for who is gone
    /// altogether there is [`leave`](Self::leave). A connection whose SYN was not answered yet ends at
    /// once, and what was written is lost.
    #[doc(alias = "shutdown")]
    #[doc(alias = "tcp_usrclosed")]
    pub fn close(&mut self) -> Events {
        let next = match self.state() {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            State::SynReceived => {
                self.closing = true;
                return Events::empty();
            }
            State::SynSent => return self.ended(),
            _ => return Events::empty(),
        };
        self.sender.tcb_mut().state = next;
        Events::empty()
    }

    /// The user is gone: this side sends no more, and nobody reads. Bytes that were not read, and
    /// bytes that still arrive, reset the connection, since the peer could not learn otherwise that
    /// they are lost (RFC 1122, 4.2.2.13). A peer that does not close in its turn is not waited for
    /// longer than ten minutes of silence.
    #[doc(alias = "soclose")]
    pub fn leave(&mut self, now: Time) -> Events {
        if !self.rcv.is_empty() {
            return self.abort();
        }
        self.left = true;
        let events = self.close();
        if self.state() == State::FinWait2 {
            self.wait_for_fin(now);
        }
        events
    }

    /// Ends the connection at once; a peer that knows of it is sent a reset.
    #[doc(alias = "tcp_drop")]
    pub fn abort(&mut self) -> Events {
        let state = self.state();
        self.reset_due = state.received_syn() && state != State::TimeWait;
        self.ended()
    }

    /// How much room there is, for the window.
    pub(super) fn tell_space(&mut self) {
        let space = self.rcv.space().clamp(0, 1 << 30);
        self.sender.tcb_mut().rcv.space = space as u32;
    }
}
