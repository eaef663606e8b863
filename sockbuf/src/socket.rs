//! Sockets: two buffers between a user, who may wait, and a protocol, which never does.

mod error;
mod flags;
mod half;
mod io;
mod options;
mod poll;
mod protocol;
mod receive;
mod records;
mod send;
mod shared;
mod sink;
mod source;
mod status;

use std::sync::Arc;
use std::time::Duration;

use mbuf::{BufferSet, free_bulk};

use crate::buf::SockBuf;
use crate::records::RecordBuf;
use crate::side::Side;
use crate::splice::Spliced;
use crate::sync::AtomicU32;
use crate::wait::{Monitor, Patience};

pub use error::{SocketError, Unsent};
pub use flags::{ReceiveFlags, SendFlags};
pub use half::{Buffer, Urgent};
use half::{Receiving, Sending};
use options::{Options, Way};
pub use protocol::{Protocol, ProtocolEnd};
pub use records::{Outgoing, Received};
use shared::Shared;
use status::Status;

/// What the user has of a socket: [`Socket`] or [`RecordSocket`]. Clones are handles of the same one; the
/// protocol is told when the last is gone.
#[derive(Debug)]
#[doc(alias = "socket")]
pub struct UserEnd<B: Buffer>(Arc<User<B>>);

/// A socket whose data are a stream.
#[doc(alias = "SOCK_STREAM")]
pub type Socket = UserEnd<SockBuf>;

/// A socket whose data are records: datagrams, or messages with an end.
#[doc(alias = "SOCK_DGRAM")]
#[doc(alias = "SOCK_SEQPACKET")]
pub type RecordSocket = UserEnd<RecordBuf>;

/// Gone with the user's last handle.
#[derive(Debug)]
struct User<B: Buffer> {
    end: ProtocolEnd<B>,
}

/// Which directions are shut down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shutdown {
    /// Nothing is read any more.
    #[doc(alias = "SHUT_RD")]
    Read,
    /// Nothing is written any more.
    #[doc(alias = "SHUT_WR")]
    Write,
    /// Both: nothing is read or written any more.
    #[doc(alias = "SHUT_RDWR")]
    Both,
}

/// Threads that wait at a socket, and wakes that found somebody.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waits {
    /// Threads asleep in a send.
    pub writers: usize,
    /// Threads asleep in a receive.
    pub readers: usize,
    /// How often threads or tasks were woken that wait to send.
    pub writer_wakes: u64,
    /// How often threads or tasks were woken that wait to receive.
    pub reader_wakes: u64,
}

impl<B: Buffer> Clone for UserEnd<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B: Buffer> Drop for User<B> {
    fn drop(&mut self) {
        let shared = &self.end.0;
        let unread = shared.receive.change(|half| {
            half.buf.side_mut().shut_down();
            half.buf.take_all()
        });
        free_bulk(&mut [unread]);
        shared.send.change(|half| half.0.side_mut().shut_down());
        shared.protocol.closed(&self.end);
    }
}

impl<B: Buffer> UserEnd<B> {
    /// A socket with these limits for sending and receiving, over `protocol`. Bytes that are sent go to
    /// mbufs of `set`. It is not connected yet.
    #[doc(alias = "socreate")]
    #[doc(alias = "sonewconn")]
    pub fn new(
        set: &BufferSet,
        (send, receive): (Side, Side),
        protocol: impl Protocol<B> + 'static,
    ) -> Self {
        let shared = Shared {
            send: Monitor::new(Sending(B::with_side(send))),
            receive: Monitor::new(Receiving {
                buf: B::with_side(receive),
                urgent: Urgent::Inline,
                spliced: Spliced::default(),
            }),
            status: Status::new(),
            options: Options::new(),
            set: set.clone(),
            needs_connection: protocol.needs_connection(),
            protocol: Box::new(protocol),
            fed: AtomicU32::new(0),
        };
        let end = ProtocolEnd(Arc::new(shared));
        Self(Arc::new(User { end }))
    }

    /// What the protocol has of it.
    #[must_use]
    pub fn protocol_end(&self) -> ProtocolEnd<B> {
        self.0.end.clone()
    }

    fn send_patience(&self, flags: SendFlags) -> Patience<'static> {
        let dont_wait = flags.contains(SendFlags::DONTWAIT);
        self.shared().options.patience(Way::Send, dont_wait)
    }

    fn receive_patience(&self, flags: ReceiveFlags) -> Patience<'static> {
        let dont_wait = flags.contains(ReceiveFlags::DONTWAIT);
        self.shared().options.patience(Way::Receive, dont_wait)
    }

    pub(crate) fn shared(&self) -> &Shared<B> {
        &self.0.end.0
    }

    /// Whether calls return rather than wait.
    #[doc(alias = "FIONBIO")]
    #[doc(alias = "O_NONBLOCK")]
    pub fn set_nonblocking(&self, on: bool) {
        self.shared().options.set_nonblocking(on);
    }

    /// How long a send waits; for ever without a limit.
    #[doc(alias = "SO_SNDTIMEO")]
    pub fn set_send_timeout(&self, limit: Option<Duration>) {
        self.shared().options.set_limit(Way::Send, limit);
    }

    /// How long a receive waits; for ever without a limit.
    #[doc(alias = "SO_RCVTIMEO")]
    pub fn set_receive_timeout(&self, limit: Option<Duration>) {
        self.shared().options.set_limit(Way::Receive, limit);
    }

    /// Changes the limits of the send side, and wakes those for whom there is space then.
    pub fn with_send_side<R>(&self, act: impl FnOnce(&mut Side) -> R) -> R {
        let shared = self.shared();
        let result = shared.send.change(|half| act(half.0.side_mut()));
        // What a sleeper needs may be another now.
        shared.send.wake_all();
        result
    }

    /// Changes the limits of the receive side.
    pub fn with_receive_side<R>(&self, act: impl FnOnce(&mut Side) -> R) -> R {
        let shared = self.shared();
        let result = shared.receive.change(|half| act(half.buf.side_mut()));
        shared.receive.wake_all();
        result
    }

    /// Who waits, and how often somebody was woken.
    #[must_use]
    pub fn waits(&self) -> Waits {
        let shared = self.shared();
        Waits {
            writers: shared.send.sleepers(),
            readers: shared.receive.sleepers(),
            writer_wakes: shared.send.wakes(),
            reader_wakes: shared.receive.wakes(),
        }
    }

    /// Whether there is a connection.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.shared().status.is_connected()
    }

    /// Takes the error out that the protocol reported, if there is one.
    #[doc(alias = "SO_ERROR")]
    #[must_use]
    pub fn take_error(&self) -> Option<SocketError> {
        self.shared().status.take_error()
    }

    /// Shuts one direction down, or both. What was written is still sent; what was not read is freed.
    ///
    /// # Errors
    /// [`SocketError::NotConnected`].
    #[doc(alias = "soshutdown")]
    pub fn shutdown(&self, which: Shutdown) -> Result<(), SocketError> {
        let shared = self.shared();
        if !shared.status.has_peer() {
            return Err(SocketError::NotConnected);
        }
        if which != Shutdown::Write {
            let unread = shared.receive.change(|half| {
                half.buf.side_mut().shut_down();
                half.buf.take_all()
            });
            free_bulk(&mut [unread]);
        }
        if which != Shutdown::Read {
            shared.send.change(|half| half.0.side_mut().shut_down());
            shared.protocol.shut_down(&self.0.end);
        }
        Ok(())
    }
}
