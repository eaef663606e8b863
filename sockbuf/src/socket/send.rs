//! Sending: from the user into the send buffer, as much at a time as there is space for.

use std::io::IoSlice;

use mbuf::{AllocError, Mbuf, Packet};

use super::error::{SocketError, Unsent};
use super::flags::SendFlags;
use super::half::{Buffer, Sending};
use super::source::{Slices, Source, Whole};
use super::{Shared, Socket};
use crate::buf::SockBuf;
use crate::wait::{NotNow, Patience, Turn};

/// How much more an urgent byte may take than there is space for.
const URGENT_ALLOWANCE: isize = 1024;

impl Socket {
    /// Sends bytes: copies them into the send buffer, as many at a time as there is space for, and
    /// waits for more space in between. So a send of any length goes through, and sends of several
    /// threads do not mix.
    ///
    /// It waits until there is space for all of the rest, or for as much as the low-water mark says.
    /// While a part goes to the protocol and more follows, the send side's
    /// [`more_to_come`](crate::Side::more_to_come) says so. Returns the bytes that are in the
    /// buffer: fewer than there are if it does not wait, or something happened on the way, which the next
    /// call tells.
    ///
    /// # Errors
    /// When not one byte went in. In this order: [`NoRecords`](SocketError::NoRecords);
    /// [`Shut`](SocketError::Shut); what the protocol reported, once;
    /// [`NotConnected`](SocketError::NotConnected); [`WouldBlock`](SocketError::WouldBlock) or
    /// [`TimedOut`](SocketError::TimedOut); [`Alloc`](SocketError::Alloc).
    ///
    /// ```
    /// use mbuf::BufferSet;
    /// use sockbuf::{SendFlags, Side, Socket, SocketError};
    /// let set = BufferSet::bsd(64, 8)?;
    /// let socket = Socket::new(&set, (Side::sending(1000), Side::receiving(1000)), ());
    /// let end = socket.protocol_end();
    /// assert_eq!(socket.send(b"early", SendFlags::empty()), Err(SocketError::NotConnected));
    /// end.connected();
    /// assert_eq!(socket.send(&[1; 1500], SendFlags::DONTWAIT)?, 1000);
    /// end.acknowledge(600)?;
    /// end.with_send(|sb| assert_eq!((sb.len(), sb.space()), (400, 600)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "sosend")]
    pub fn send(&self, bytes: &[u8], flags: SendFlags) -> Result<usize, SocketError> {
        self.send_vectored(&[IoSlice::new(bytes)], flags)
    }

    /// As [`send`](Self::send), from several slices.
    ///
    /// # Errors
    /// As there.
    #[doc(alias = "sendmsg")]
    pub fn send_vectored(
        &self,
        slices: &[IoSlice<'_>],
        flags: SendFlags,
    ) -> Result<usize, SocketError> {
        let patience = self.send_patience(flags);
        self.send_source(&mut Slices::new(slices), flags, patience)
    }

    /// Sends a packet's mbufs without copying a byte. Returns its length.
    ///
    /// # Errors
    /// [`Unsent`] when not all of it went in: how much did, the rest from that byte on, and why it
    /// stopped; the reasons are those of [`send`](Self::send).
    ///
    /// ```
    /// use mbuf::{BufferSet, Packet};
    /// use sockbuf::{SendFlags, Side, Socket};
    /// let set = BufferSet::bsd(64, 8)?;
    /// let socket = Socket::new(&set, (Side::sending(1000), Side::receiving(1000)), ());
    /// socket.protocol_end().connected();
    /// let packet = set.copy_in(&[7; 1448], 0)?;
    /// let unsent = socket.send_mbuf(packet, SendFlags::DONTWAIT).unwrap_err();
    /// assert_eq!((unsent.sent, unsent.rest.pkt_len()), (1000, 448));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "sosend")]
    pub fn send_mbuf(&self, packet: Mbuf, flags: SendFlags) -> Result<usize, Unsent> {
        let all = packet.pkt_len();
        let mut source = Whole(Some(packet));
        let patience = self.send_patience(flags);
        let (sent, ended) = self.send_passes(&mut source, flags, patience);
        match (source.0, ended) {
            (Some(rest), Err(error)) => Err(Unsent { sent, rest, error }),
            _ => Ok(all),
        }
    }

    /// Sends shared bytes: many by reference, few by copy. What was sent is gone from `bytes`; with
    /// the feature `bytes`.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    #[cfg(feature = "bytes")]
    pub fn send_bytes(
        &self,
        bytes: &mut bytes::Bytes,
        flags: SendFlags,
    ) -> Result<usize, SocketError> {
        let patience = self.send_patience(flags);
        self.send_source(&mut super::source::Shared(bytes), flags, patience)
    }

    /// The bytes that went in, or why none did.
    pub(super) fn send_source(
        &self,
        source: &mut impl Source,
        flags: SendFlags,
        patience: Patience<'_>,
    ) -> Result<usize, SocketError> {
        match self.send_passes(source, flags, patience) {
            (0, Err(error)) => Err(error),
            (sent, _) => Ok(sent),
        }
    }

    /// The bytes that went in, and why no more did.
    fn send_passes(
        &self,
        source: &mut impl Source,
        flags: SendFlags,
        patience: Patience<'_>,
    ) -> (usize, Result<(), SocketError>) {
        let all = source.left();
        if flags.contains(SendFlags::EOR) {
            return (0, Err(SocketError::NoRecords));
        }
        let shared = self.shared();
        let turn = match shared.send.turn(patience) {
            Ok(turn) => turn,
            Err(not_now) => return (0, Err(refused(not_now, all, 0))),
        };
        let mut pass = Pass {
            socket: self,
            turn,
            urgent: flags.contains(SendFlags::OOB),
            untold: false,
        };
        let ended = loop {
            match pass.run(source, all, patience) {
                Ok(()) if source.left() > 0 => {}
                ended => break ended,
            }
        };
        pass.end();
        (all - source.left(), ended)
    }
}

/// What is there between two waits.
struct Pass<'a> {
    socket: &'a Socket,
    turn: Turn<'a, Sending<SockBuf>>,
    urgent: bool,
    /// The protocol does not know yet of what was appended last.
    untold: bool,
}

impl Pass<'_> {
    /// Appends what there is space for; or copies much ahead; or waits for space.
    fn run(
        &mut self,
        source: &mut impl Source,
        all: usize,
        patience: Patience<'_>,
    ) -> Result<(), SocketError> {
        let left = source.left();
        let shared = self.socket.shared();
        let sb = &mut self.turn.0;
        admit(shared, sb.side().is_shut(), left, left == all)?;
        if shared.needs_connection && !shared.status.is_connected() {
            return Err(SocketError::NotConnected);
        }
        if left == 0 {
            return Ok(());
        }
        let allowance = if self.urgent { URGENT_ALLOWANCE } else { 0 };
        let space = sb.space().saturating_add(allowance);
        let usable = usize::try_from(space).unwrap_or(0);
        let least = if sb.is_empty() {
            1
        } else {
            sb.side().lowat().max(1)
        };
        let need = left.min(least);
        if usable < need {
            let need = need.saturating_sub(allowance.unsigned_abs());
            let waited = self.turn.wait(need, patience);
            return waited.map_err(|not_now| refused(not_now, left, space));
        }
        let now = left.min(usable);
        match source.put_tail_of_long(sb, now) {
            None => source.put(sb, now, &shared.set)?,
            Some(0) => {}
            Some(long) => return Ok(self.copy_ahead(source, long, now - long)?),
        }
        self.appended(source.left() > 0);
        Ok(())
    }

    /// Copies without the lock what `run` will append when it is called again. `done` bytes found room
    /// in the last mbuf already.
    #[cold]
    fn copy_ahead(
        &mut self,
        source: &mut impl Source,
        long: usize,
        done: usize,
    ) -> Result<(), AllocError> {
        if done > 0 {
            self.mark(true);
        }
        let set = &self.socket.shared().set;
        let copied = self.turn.unlocked(|| source.copy_ahead(long, set));
        self.turn.0.side_mut().set_more_to_come(false);
        copied
    }

    /// Says of what was appended whether more follows at once, and that it is urgent.
    fn mark(&mut self, more: bool) {
        let sb = &mut self.turn.0;
        if self.urgent {
            sb.set_urgent(sb.len() - 1);
        }
        sb.side_mut().set_more_to_come(more);
        self.untold = true;
    }

    fn appended(&mut self, more: bool) {
        self.mark(more);
        if more {
            let (socket, urgent) = (self.socket, self.urgent);
            self.turn.unlocked(|| tell(socket, urgent));
            self.turn.0.side_mut().set_more_to_come(false);
            self.untold = false;
        }
    }

    /// Gives up the turn, and tells the protocol of what came last.
    fn end(self) {
        let (socket, urgent, untold) = (self.socket, self.urgent, self.untold);
        drop(self.turn);
        if untold {
            tell(socket, urgent);
        }
    }
}

fn tell(socket: &Socket, urgent: bool) {
    let end = &socket.0.end;
    if urgent {
        end.0.protocol.send_urgent(end);
    } else {
        end.0.protocol.send(end);
    }
}

/// What stands in the way of any send, whatever its size.
pub(super) fn admit<B: Buffer>(
    shared: &Shared<B>,
    shut: bool,
    asked: usize,
    first: bool,
) -> Result<(), SocketError> {
    if shut {
        return Err(SocketError::Shut { asked });
    }
    let pending = if first {
        shared.status.take_error()
    } else {
        shared.status.error()
    };
    pending.map_or(Ok(()), Err)
}

/// Why a wait came to nothing.
#[cold]
pub(super) fn refused(not_now: NotNow, asked: usize, available: isize) -> SocketError {
    match not_now {
        NotNow::WouldBlock => SocketError::WouldBlock { asked, available },
        NotNow::TimedOut => SocketError::TimedOut { asked, available },
    }
}
