//! Records: a send is one record, whole or not at all, and so is a receive.

use mbuf::{Mbuf, Packet, free_bulk};

use super::RecordSocket;
use super::error::SocketError;
use super::flags::{ReceiveFlags, SendFlags};
use super::half::{Receiving, Sending};
use super::send::{admit, refused};
use crate::error::AppendError;
use crate::records::{OwnedRecord, Record, RecordBuf};
use crate::wait::{Patience, Turn};

/// A record to send.
///
/// ```
/// use sockbuf::Outgoing;
/// let datagram = Outgoing { address: Some(b"192.0.2.1"), ..Outgoing::default() };
/// assert!(datagram.control.is_none() && datagram.data.is_none());
/// ```
#[derive(Debug, Default)]
pub struct Outgoing<'a> {
    /// Where to.
    pub address: Option<&'a [u8]>,
    /// Control messages.
    pub control: Option<Mbuf>,
    /// Data.
    pub data: Option<Mbuf>,
}

impl Outgoing<'_> {
    fn len(&self) -> usize {
        let parts = [&self.control, &self.data].into_iter().flatten();
        self.address.map_or(0, <[u8]>::len) + parts.map(Packet::pkt_len).sum::<usize>()
    }
}

/// What [`RecordSocket::receive`] copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Received {
    /// Bytes copied.
    pub len: usize,
    /// Bytes of data that the record has.
    #[doc(alias = "MSG_TRUNC")]
    pub whole: usize,
    /// Whether the sender's record ends with it.
    #[doc(alias = "MSG_EOR")]
    pub eor: bool,
}

impl RecordSocket {
    /// Sends bytes as one record. A copy of the bytes is made first.
    ///
    /// # Errors
    /// As [`send_record`](Self::send_record).
    #[doc(alias = "sosend")]
    pub fn send(&self, bytes: &[u8], flags: SendFlags) -> Result<usize, SocketError> {
        let record = Outgoing {
            data: Some(self.copied(bytes)?),
            ..Outgoing::default()
        };
        self.send_record(record, flags)
    }

    /// Sends a record: waits until there is space for all of it. Returns its bytes, those of address and
    /// control messages included. The record is freed if it is not sent.
    ///
    /// # Errors
    /// In this order: [`Shut`](SocketError::Shut); what the protocol reported, once;
    /// [`NotConnected`](SocketError::NotConnected) if the protocol needs a connection,
    /// [`NoDestination`](SocketError::NoDestination) if it does not and there is no address either;
    /// [`Connected`](SocketError::Connected) if there are both; [`TooLong`](SocketError::TooLong);
    /// [`WouldBlock`](SocketError::WouldBlock) or [`TimedOut`](SocketError::TimedOut);
    /// [`Alloc`](SocketError::Alloc).
    ///
    /// ```
    /// use mbuf::BufferSet;
    /// use sockbuf::{Outgoing, RecordSocket, SendFlags, Side, SocketError};
    /// let set = BufferSet::bsd(64, 8)?;
    /// let socket = RecordSocket::new(&set, (Side::sending(100), Side::receiving(100)), ());
    /// let end = socket.protocol_end();
    /// end.connected();
    /// assert_eq!(socket.send(b"datagram", SendFlags::empty())?, 8);
    /// let long = Outgoing { data: Some(set.copy_in(&[0; 101], 0)?), ..Outgoing::default() };
    /// let refused = socket.send_record(long, SendFlags::empty());
    /// assert_eq!(refused, Err(SocketError::TooLong { asked: 101, max: 100 }));
    /// assert_eq!(end.with_send(|rb| rb.nrecords()), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "sosend")]
    #[doc(alias = "sendmsg")]
    pub fn send_record(
        &self,
        record: Outgoing<'_>,
        flags: SendFlags,
    ) -> Result<usize, SocketError> {
        let patience = self.send_patience(flags);
        self.send_record_with(record, flags, patience)
    }

    pub(super) fn send_record_with(
        &self,
        mut record: Outgoing<'_>,
        flags: SendFlags,
        patience: Patience<'_>,
    ) -> Result<usize, SocketError> {
        let len = record.len();
        if flags.contains(SendFlags::EOR)
            && let Some(data) = &mut record.data
        {
            data.set_eor(true);
        }
        let shared = self.shared();
        let turn = shared.send.turn(patience);
        let mut turn = turn.map_err(|not_now| refused(not_now, len, 0))?;
        self.wait_for_space(&mut turn, record.address.is_some(), len, patience)?;
        let appended = put(&mut turn.0, record, &shared.set);
        drop(turn);
        appended.map_err(|error| match error {
            AppendError::Alloc(error) => SocketError::Alloc(error),
            AppendError::AddressTooLong { asked, max } => SocketError::TooLong { asked, max },
            AppendError::NoSpace { asked, space } => SocketError::WouldBlock {
                asked,
                available: space,
            },
        })?;
        shared.protocol.send(&self.0.end);
        Ok(len)
    }

    fn wait_for_space(
        &self,
        turn: &mut Turn<'_, Sending<RecordBuf>>,
        addressed: bool,
        len: usize,
        patience: Patience<'_>,
    ) -> Result<(), SocketError> {
        let shared = self.shared();
        loop {
            let side = turn.0.side();
            admit(shared, side.is_shut(), len, true)?;
            match (shared.status.is_connected(), addressed) {
                (false, _) if shared.needs_connection => return Err(SocketError::NotConnected),
                (false, false) => return Err(SocketError::NoDestination),
                (true, true) => return Err(SocketError::Connected),
                _ => {}
            }
            let max = side.hiwat().min(side.mbmax());
            if len > max {
                return Err(SocketError::TooLong { asked: len, max });
            }
            let space = turn.0.space();
            if isize::try_from(len).is_ok_and(|len| len <= space) {
                return Ok(());
            }
            let waited = turn.wait(len, patience);
            waited.map_err(|not_now| refused(not_now, len, space))?;
        }
    }

    /// A packet of these bytes; but nothing is copied in vain that would never fit.
    pub(super) fn copied(&self, bytes: &[u8]) -> Result<Mbuf, SocketError> {
        let shared = self.shared();
        let side = shared.send.look(|half| *half.0.side());
        let (asked, max) = (bytes.len(), side.hiwat().min(side.mbmax()));
        if asked > max && !side.is_shut() {
            return Err(SocketError::TooLong { asked, max });
        }
        Ok(shared.set.copy_in(bytes, 0)?)
    }

    /// Takes the first record out, and waits until there is one. `None` when none will come.
    ///
    /// # Errors
    /// In this order: what the protocol reported, once; [`NotConnected`](SocketError::NotConnected) if the
    /// protocol needs a connection; [`WouldBlock`](SocketError::WouldBlock) or
    /// [`TimedOut`](SocketError::TimedOut).
    ///
    /// ```
    /// use mbuf::{BufferSet, Packet};
    /// use sockbuf::{ReceiveFlags, RecordSocket, Side};
    /// let set = BufferSet::bsd(64, 8)?;
    /// let socket = RecordSocket::new(&set, (Side::sending(100), Side::receiving(100)), ());
    /// socket.protocol_end().with_receive(|rb| {
    ///     rb.append_address(b"192.0.2.1", Some(set.copy_in(b"ping", 0)?), None, &set)?;
    ///     Ok::<(), Box<dyn std::error::Error>>(())
    /// })?;
    /// let record = socket.receive_record(ReceiveFlags::empty())?.expect("one");
    /// assert_eq!(record.data.expect("data").to_vec(), b"ping");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "soreceive")]
    pub fn receive_record(&self, flags: ReceiveFlags) -> Result<Option<OwnedRecord>, SocketError> {
        let patience = self.receive_patience(flags);
        let record = self.take_record_with(flags, patience)?;
        Ok(record.map(OwnedRecord::from))
    }

    /// Copies the data of the first record into `room`; what does not fit is lost with the rest of the
    /// record. `None` when no record will come. With [`PEEK`](ReceiveFlags::PEEK) the record stays.
    ///
    /// # Errors
    /// As [`receive_record`](Self::receive_record).
    #[doc(alias = "soreceive")]
    pub fn receive(
        &self,
        room: &mut [u8],
        flags: ReceiveFlags,
    ) -> Result<Option<Received>, SocketError> {
        let patience = self.receive_patience(flags);
        if flags.contains(ReceiveFlags::PEEK) {
            let shared = self.shared();
            let turn = shared.receive.turn(patience);
            let mut turn = turn.map_err(|not_now| refused(not_now, 1, 0))?;
            let any = self.wait_for_record(&mut turn, flags, patience)?;
            let front = turn.buf.front().filter(|_| any);
            return Ok(front.map(|record| copy_out(record, room)));
        }
        let Some(record) = self.take_record_with(flags, patience)? else {
            return Ok(None);
        };
        let received = copy_out(Record::from(record.first()), room);
        free_bulk(&mut [Some(record)]);
        Ok(Some(received))
    }

    pub(super) fn take_record_with(
        &self,
        flags: ReceiveFlags,
        patience: Patience<'_>,
    ) -> Result<Option<Mbuf>, SocketError> {
        let shared = self.shared();
        let turn = shared.receive.turn(patience);
        let mut turn = turn.map_err(|not_now| refused(not_now, 1, 0))?;
        self.wait_for_record(&mut turn, flags, patience)?;
        let record = turn.buf.cut_record();
        drop(turn);
        if let Some(record) = &record {
            let end = &self.0.end;
            end.0.protocol.received(end, record.pkt_len());
        }
        Ok(record)
    }

    /// Whether there is a record; false when none will come.
    fn wait_for_record(
        &self,
        turn: &mut Turn<'_, Receiving<RecordBuf>>,
        flags: ReceiveFlags,
        patience: Patience<'_>,
    ) -> Result<bool, SocketError> {
        let shared = self.shared();
        while turn.buf.is_empty() {
            let pending = if flags.contains(ReceiveFlags::PEEK) {
                shared.status.error()
            } else {
                shared.status.take_error()
            };
            if let Some(error) = pending {
                return Err(error);
            }
            if turn.buf.side().is_shut() {
                return Ok(false);
            }
            if shared.needs_connection && !shared.status.has_peer() {
                return Err(SocketError::NotConnected);
            }
            let waited = turn.wait(1, patience);
            waited.map_err(|not_now| refused(not_now, 1, 0))?;
        }
        Ok(true)
    }
}

fn put(rb: &mut RecordBuf, record: Outgoing<'_>, set: &mbuf::BufferSet) -> Result<(), AppendError> {
    match record {
        Outgoing {
            address: Some(address),
            control,
            data,
        } => rb.append_address(address, data, control, set),
        Outgoing {
            control: Some(control),
            data,
            ..
        } => rb.append_control(control, data),
        Outgoing { data, .. } => {
            let data = match data {
                Some(data) => data,
                None => set.plain()?,
            };
            rb.append_record(data);
            Ok(())
        }
    }
}

fn copy_out(record: Record<'_>, room: &mut [u8]) -> Received {
    let whole = record.data_len();
    let len = whole.min(room.len());
    let copied = record.copy_to(0, &mut room[..len]);
    debug_assert!(copied.is_ok(), "{len} bytes of {whole}");
    Received {
        len,
        whole,
        eor: record.is_eor(),
    }
}
