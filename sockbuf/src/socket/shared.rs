//! What the user's handles and the protocol's share.

use std::fmt;

use mbuf::BufferSet;

use super::half::{Buffer, Receiving, Sending};
use super::options::Options;
use super::protocol::Protocol;
use super::status::Status;
use crate::sync::AtomicU32;
use crate::wait::Monitor;

pub(crate) struct Shared<B: Buffer> {
    pub(crate) send: Monitor<Sending<B>>,
    pub(crate) receive: Monitor<Receiving<B>>,
    pub(crate) status: Status,
    pub(super) options: Options,
    pub(crate) set: BufferSet,
    /// What the protocol said of itself.
    pub(crate) needs_connection: bool,
    pub(crate) protocol: Box<dyn Protocol<B>>,
    /// 1 while a splice feeds the send buffer.
    pub(crate) fed: AtomicU32,
}

impl<B: Buffer> Shared<B> {
    /// Something changed that concerns both directions.
    pub(crate) fn wake_all(&self) {
        self.send.wake_all();
        self.receive.wake_all();
    }
}

impl<B: Buffer + fmt::Debug> fmt::Debug for Shared<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("send", &self.send)
            .field("receive", &self.receive)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}
