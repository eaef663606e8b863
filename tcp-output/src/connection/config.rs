//! What a connection is opened with.

use thiserror::Error;

use crate::checksum::ChecksumMode;
use crate::endpoints::Endpoints;
use crate::flags::TcbFlags;
use crate::input::{Limits, MAX_WINDOW_SHIFT};
use crate::seq::Seq;
use crate::tcb::{BadSegmentSize, Tcb};
use crate::time::Time;
use crate::timer::KEEP_INTERVAL;
use crate::wire::TcpFlags;

/// How a connection is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Segment size that is announced, data plus options, bytes.
    pub max_segment: u32,
    /// What is asked for and wished: the `ASK_` flags, no delay, keep-alive.
    pub flags: TcbFlags,
    /// Limit of the send buffer, bytes.
    pub send_buffer: u32,
    /// Limit of the receive buffer, bytes. The window's shift follows from it.
    pub receive_buffer: u32,
    /// How much is kept out of order.
    pub reassembly: Limits,
    /// Acknowledgments in a second for segments that are not believed.
    pub challenges_per_second: u32,
    /// Who makes the TCP checksum.
    pub checksum: ChecksumMode,
    /// The way out can cut large frames.
    pub tso: bool,
    /// Added to the clock to make our timestamps; different for each connection (RFC 7323, 5.4).
    pub timestamp_offset: u32,
}

impl Default for Config {
    /// An Ethernet over IPv4, timestamps, SACK and window scaling, 64 KB each way, nothing left to
    /// the NIC.
    fn default() -> Self {
        Config {
            max_segment: 1460,
            flags: TcbFlags::ASK_TIMESTAMPS | TcbFlags::ASK_SACK | TcbFlags::ASK_SCALE,
            send_buffer: 65536,
            receive_buffer: 65536,
            reassembly: Limits::default(),
            challenges_per_second: 10,
            checksum: ChecksumMode::Software,
            tso: false,
            timestamp_offset: 0,
        }
    }
}

impl Config {
    /// A control block that is about to send its SYN.
    pub(super) fn tcb(&self, ends: Endpoints, iss: Seq, now: Time) -> Result<Tcb, BadSegmentSize> {
        let mut tcb = Tcb::connecting(ends, self.max_segment, self.flags, iss)?;
        (tcb.rcv.space, tcb.rcv.hiwat) = (self.receive_buffer, self.receive_buffer);
        tcb.rcv.scale = self.window_shift();
        tcb.rcv.last = now;
        tcb.ts_offset = self.timestamp_offset;
        tcb.timers.keep_alive = Some(now + KEEP_INTERVAL);
        Ok(tcb)
    }

    /// The least shift with which the window field can say how large the buffer is.
    fn window_shift(&self) -> u8 {
        let shifts = 0..MAX_WINDOW_SHIFT;
        let fits = |shift: &u8| self.receive_buffer >> shift <= 65535;
        shifts.clone().find(fits).unwrap_or(shifts.end)
    }
}

/// A connection cannot be accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum AcceptError {
    /// The segment is not the first of a connection.
    #[error("a segment with the flags {0:?} opens no connection")]
    NoSyn(TcpFlags),
    /// The configured segment size cannot be.
    #[error(transparent)]
    Size(#[from] BadSegmentSize),
}

pub(super) fn check_syn(flags: TcpFlags) -> Result<(), AcceptError> {
    let opening = flags & (TcpFlags::SYN | TcpFlags::ACK | TcpFlags::RST | TcpFlags::FIN);
    if opening == TcpFlags::SYN {
        Ok(())
    } else {
        Err(AcceptError::NoSyn(flags))
    }
}
