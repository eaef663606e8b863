//! What a socket asks of the protocol below, and what the protocol tells the socket.

use std::sync::Arc;

use mbuf::{Mbuf, free_bulk};

use super::error::SocketError;
use super::half::{Buffer, Urgent};
use super::shared::Shared;
use crate::buf::SockBuf;
use crate::error::PastEnd;

/// The protocol below a socket: told of what the user did.
///
/// Every call comes without a lock held, so the protocol may use its [`ProtocolEnd`] within; and from
/// whatever thread the user called in, so also two at once.
pub trait Protocol<B: Buffer = SockBuf>: Send + Sync {
    /// Whether data needs a connection.
    #[doc(alias = "PR_CONNREQUIRED")]
    fn needs_connection(&self) -> bool {
        true
    }

    /// Whether what is received over it may be passed on to another socket, and what another one received
    /// be sent.
    #[doc(alias = "PR_SPLICE")]
    fn can_splice(&self) -> bool {
        true
    }

    /// There is more in the send buffer. While a user is about to append more at once, its
    /// [`more_to_come`](crate::Side::more_to_come) says so.
    #[doc(alias = "PRU_SEND")]
    fn send(&self, end: &ProtocolEnd<B>) {
        let _ = end;
    }

    /// As [`send`](Self::send), and the last byte is urgent.
    #[doc(alias = "PRU_SENDOOB")]
    fn send_urgent(&self, end: &ProtocolEnd<B>) {
        self.send(end);
    }

    /// The user took `bytes` out of the receive buffer: maybe the other end is to be told.
    #[doc(alias = "PRU_RCVD")]
    #[doc(alias = "PR_WANTRCVD")]
    fn received(&self, end: &ProtocolEnd<B>, bytes: usize) {
        let _ = (end, bytes);
    }

    /// No more will be appended to the send buffer: after what is in it, the stream ends.
    #[doc(alias = "PRU_SHUTDOWN")]
    fn shut_down(&self, end: &ProtocolEnd<B>) {
        let _ = end;
    }

    /// The user's last handle is gone.
    #[doc(alias = "PRU_DETACH")]
    #[doc(alias = "soclose")]
    fn closed(&self, end: &ProtocolEnd<B>) {
        let _ = end;
    }
}

/// No protocol: somebody looks after the [`ProtocolEnd`] unasked.
impl<B: Buffer> Protocol<B> for () {}

/// What the protocol has of a socket.
///
/// A protocol that keeps one keeps the socket's buffers, and these keep the protocol: it should let
/// go when it is told that the user [`closed`](Protocol::closed).
#[derive(Debug)]
pub struct ProtocolEnd<B: Buffer = SockBuf>(pub(crate) Arc<Shared<B>>);

impl<B: Buffer> Clone for ProtocolEnd<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B: Buffer> ProtocolEnd<B> {
    /// Reads or changes the send buffer, under its lock, and wakes writers for whom there is space then.
    pub fn with_send<R>(&self, act: impl FnOnce(&mut B) -> R) -> R {
        self.0.send.change(|half| act(&mut half.0))
    }

    /// Reads or changes the receive buffer, under its lock, and wakes readers for whom there is enough
    /// then.
    pub fn with_receive<R>(&self, act: impl FnOnce(&mut B) -> R) -> R {
        self.0.receive.change(|half| act(&mut half.buf))
    }

    /// Adds what was received, and wakes readers. Returns whether it was added: after a shutdown
    /// nobody would read it, and it is freed.
    ///
    /// Does not look at the limits, since it may have been acknowledged already.
    #[doc(alias = "sbappendstream")]
    #[doc(alias = "sbappendrecord")]
    #[doc(alias = "sorwakeup")]
    pub fn append(&self, packet: Mbuf) -> bool {
        let refused = self.0.receive.change(|half| {
            if half.buf.side().is_shut() {
                return Some(packet);
            }
            half.buf.append(packet);
            None
        });
        let added = refused.is_none();
        free_bulk(&mut [refused]);
        added
    }

    /// Space for what is received: what can be offered to the other end.
    #[must_use]
    pub fn receive_space(&self) -> isize {
        self.0.receive.look(|half| half.buf.space())
    }

    /// An error for whoever calls next; who waits is woken for it.
    #[doc(alias = "so_error")]
    pub fn report(&self, error: SocketError) {
        self.0.status.report(error);
        self.0.wake_all();
    }

    /// The socket waits for connections and has none of its own.
    #[doc(alias = "SO_ACCEPTCONN")]
    pub fn listening(&self) {
        self.0.status.set_listening();
    }

    /// A connection is being made.
    #[doc(alias = "soisconnecting")]
    pub fn connecting(&self) {
        self.0.status.set_connecting();
    }

    /// There is a connection.
    #[doc(alias = "soisconnected")]
    pub fn connected(&self) {
        self.0.status.set_connected();
        self.0.wake_all();
    }

    /// There is none any more, in either direction. What was received can still be read.
    #[doc(alias = "soisdisconnected")]
    pub fn disconnected(&self) {
        self.0.status.set_disconnected();
        let unsent = self.0.send.change(|half| {
            half.0.side_mut().shut_down();
            half.0.take_all()
        });
        self.peer_closed();
        free_bulk(&mut [unsent]);
    }

    /// The other end sends no more: after what is in the receive buffer, the stream ends.
    #[doc(alias = "socantrcvmore")]
    pub fn peer_closed(&self) {
        self.0
            .receive
            .change(|half| half.buf.side_mut().shut_down());
    }

    /// Nothing can be sent any more.
    #[doc(alias = "socantsendmore")]
    pub fn cannot_send(&self) {
        self.0.send.change(|half| half.0.side_mut().shut_down());
    }
}

impl ProtocolEnd<SockBuf> {
    /// Removes bytes from the front of the send buffer, frees them without the lock, and wakes writers.
    ///
    /// # Errors
    /// [`PastEnd`] when there are fewer; nothing has changed then.
    #[doc(alias = "sbdrop")]
    #[doc(alias = "sowwakeup")]
    pub fn acknowledge(&self, n: usize) -> Result<(), PastEnd> {
        let gone = self.0.send.change(|half| half.0.cut(n))?;
        free_bulk(&mut [gone]);
        Ok(())
    }

    /// Says that the byte `off` behind the front of the receive buffer is urgent, and where it is.
    #[doc(alias = "sohasoutofband")]
    pub fn urgent(&self, off: usize, byte: Urgent) {
        self.0.receive.change(|half| {
            half.buf.set_urgent(off);
            half.urgent = byte;
        });
        self.0.receive.wake_all();
    }
}
