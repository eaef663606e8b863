//! Receiving: from the receive buffer to the user, who may wait for more.

use std::io::IoSliceMut;

use mbuf::Mbuf;

use super::Socket;
use super::error::SocketError;
use super::flags::ReceiveFlags;
use super::half::{Buffer, Receiving, Urgent};
use super::send::refused;
use super::sink::{Mbufs, Sink, Slices};
use crate::buf::SockBuf;
use crate::wait::{Patience, Turn};

impl Socket {
    /// Receives bytes into `room`, as many as there are, and waits until there are enough: as many as
    /// the low-water mark says; with [`WAITALL`](ReceiveFlags::WAITALL) as many as asked for. It does not go
    /// past an urgent byte in one call. 0 bytes are the end of the stream, unless none were asked for.
    ///
    /// Whole mbufs are taken out and copied without the lock; the protocol is told how much went.
    ///
    /// # Errors
    /// When there is not one byte, in this order: what the protocol reported, once (but peeking leaves it);
    /// [`NotConnected`](SocketError::NotConnected); [`WouldBlock`](SocketError::WouldBlock) or
    /// [`TimedOut`](SocketError::TimedOut).
    ///
    /// ```
    /// use mbuf::BufferSet;
    /// use sockbuf::{ReceiveFlags, Side, Socket};
    /// let set = BufferSet::bsd(64, 8)?;
    /// let socket = Socket::new(&set, (Side::sending(1000), Side::receiving(1000)), ());
    /// let end = socket.protocol_end();
    /// end.connected();
    /// end.append(set.copy_in(b"hello", 0)?);
    /// end.peer_closed();
    /// let mut room = [0; 10];
    /// assert_eq!(socket.receive(&mut room, ReceiveFlags::PEEK)?, 5);
    /// assert_eq!(socket.receive(&mut room, ReceiveFlags::WAITALL)?, 5);
    /// assert_eq!(&room[..5], b"hello");
    /// assert_eq!(socket.receive(&mut room, ReceiveFlags::empty())?, 0, "the end");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "soreceive")]
    pub fn receive(&self, room: &mut [u8], flags: ReceiveFlags) -> Result<usize, SocketError> {
        self.receive_vectored(&mut [IoSliceMut::new(room)], flags)
    }

    /// As [`receive`](Self::receive), into several slices.
    ///
    /// # Errors
    /// As there.
    #[doc(alias = "recvmsg")]
    pub fn receive_vectored(
        &self,
        slices: &mut [IoSliceMut<'_>],
        flags: ReceiveFlags,
    ) -> Result<usize, SocketError> {
        let patience = self.receive_patience(flags);
        self.receive_sink(&mut Slices::new(slices), flags, patience)
    }

    /// As [`receive`](Self::receive), but hands out the mbufs: as many whole ones as hold at most `max`
    /// bytes, or part of the first by reference. `None` at the end of the stream.
    ///
    /// # Errors
    /// As [`receive`](Self::receive), and [`Alloc`](SocketError::Alloc) when there is no mbuf to refer to
    /// part of one.
    #[doc(alias = "soreceive")]
    pub fn receive_mbufs(
        &self,
        max: usize,
        flags: ReceiveFlags,
    ) -> Result<Option<Mbuf>, SocketError> {
        let patience = self.receive_patience(flags);
        let mut sink = Mbufs {
            left: max,
            packet: None,
        };
        self.receive_sink(&mut sink, flags, patience)?;
        Ok(sink.packet)
    }

    /// The urgent byte, if it was taken out of the stream.
    ///
    /// # Errors
    /// [`WouldBlock`](SocketError::WouldBlock) when it was announced and is not there yet,
    /// [`NothingUrgent`](SocketError::NothingUrgent) when it was not, or was read.
    #[doc(alias = "PRU_RCVOOB")]
    #[doc(alias = "MSG_OOB")]
    pub fn receive_urgent(&self, flags: ReceiveFlags) -> Result<u8, SocketError> {
        let peek = flags.contains(ReceiveFlags::PEEK);
        self.shared().receive.change(|half| match half.urgent {
            Urgent::Aside(byte) => {
                if !peek {
                    half.urgent = Urgent::Inline;
                }
                Ok(byte)
            }
            Urgent::Awaited => Err(SocketError::WouldBlock {
                asked: 1,
                available: 0,
            }),
            Urgent::Inline => Err(SocketError::NothingUrgent),
        })
    }

    /// Whether the next byte is the one that is urgent, or would have been.
    #[doc(alias = "SIOCATMARK")]
    #[must_use]
    pub fn at_mark(&self) -> bool {
        self.shared().receive.look(|half| half.buf.at_mark())
    }

    pub(super) fn receive_sink(
        &self,
        sink: &mut impl Sink,
        flags: ReceiveFlags,
        patience: Patience<'_>,
    ) -> Result<usize, SocketError> {
        let shared = self.shared();
        let asked = sink.left();
        let refuse = |not_now| refused(not_now, asked, 0);
        let mut turn = shared.receive.turn(patience).map_err(refuse)?;
        let mut told = 0;
        let result = loop {
            let received = asked - sink.left();
            let ready = self.ready(&mut turn, sink.left(), received > 0, flags, patience);
            let now = match ready {
                Ok(Some(n)) if n > 0 => turn.buf.until_mark(n),
                Ok(_) => break Ok(()),
                Err(error) => break Err(error),
            };
            let taken = if flags.contains(ReceiveFlags::PEEK) {
                sink.peek(&turn.buf, now, &shared.set)
            } else {
                sink.take(&mut turn.buf, now, &shared.set)
            };
            if let Err(error) = taken {
                break Err(error.into());
            }
            let again = flags.contains(ReceiveFlags::WAITALL)
                && !flags.contains(ReceiveFlags::PEEK)
                && sink.left() > 0
                && !turn.buf.at_mark();
            if !again {
                break Ok(());
            }
            turn.unlocked(|| {
                sink.settle();
                self.tell_received(asked - sink.left() - told);
            });
            told = asked - sink.left();
        };
        drop(turn);
        sink.settle();
        let received = asked - sink.left();
        if !flags.contains(ReceiveFlags::PEEK) {
            self.tell_received(received - told);
        }
        match result {
            Err(error) if received == 0 => Err(error),
            _ => Ok(received),
        }
    }

    fn tell_received(&self, bytes: usize) {
        if bytes > 0 {
            let end = &self.0.end;
            end.0.protocol.received(end, bytes);
        }
    }

    /// Waits until `left` bytes, or as many as there have to be, can be read, and says how many can;
    /// `None` when there is nothing to wait for.
    fn ready(
        &self,
        turn: &mut Turn<'_, Receiving<SockBuf>>,
        left: usize,
        received: bool,
        flags: ReceiveFlags,
        patience: Patience<'_>,
    ) -> Result<Option<usize>, SocketError> {
        let shared = self.shared();
        loop {
            if turn.spliced.is_active() && left > 0 {
                // Nothing is the user's until everybody is told to look.
                let waited = turn.wait(usize::MAX, patience);
                waited.map_err(|not_now| refused(not_now, left, 0))?;
                continue;
            }
            let sb = &turn.buf;
            let len = sb.len();
            let need = enough(sb, left, flags);
            let now = matches!(patience, Patience::None) || sb.readable() >= need;
            if len > 0 && now {
                return Ok(Some(len.min(left)));
            }
            let ended = shared.status.error().is_some() || sb.side().is_shut();
            if len > 0 && ended {
                return Ok(Some(len.min(left)));
            }
            if received && ended {
                return Ok(None);
            }
            let pending = if flags.contains(ReceiveFlags::PEEK) {
                shared.status.error()
            } else {
                shared.status.take_error()
            };
            if let Some(error) = pending {
                return Err(error);
            }
            if sb.side().is_shut() || left == 0 {
                return Ok(None);
            }
            if shared.needs_connection && !shared.status.has_peer() {
                return Err(SocketError::NotConnected);
            }
            let have = isize::try_from(len).unwrap_or(isize::MAX);
            let waited = turn.wait(need, patience);
            waited.map_err(|not_now| refused(not_now, left, have))?;
        }
    }
}

/// How many bytes there have to be.
fn enough(sb: &SockBuf, left: usize, flags: ReceiveFlags) -> usize {
    if flags.contains(ReceiveFlags::WAITALL) && left <= sb.hiwat() {
        return left;
    }
    left.min(sb.side().lowat().max(1))
}
