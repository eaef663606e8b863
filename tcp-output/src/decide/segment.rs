//! What was decided: the segment, as data.

use crate::options::Options;
use crate::seq::Seq;
use crate::tcb::Tcb;
use crate::wire::{TCP_HEADER_LEN, TcpFlags};

/// Why a segment goes, for the counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// New data.
    Data,
    /// Data that went before.
    Retransmission,
    /// Data that went before and that the peer lacks, by its own report.
    HoleFilled,
    /// One byte into a closed window.
    Probe,
    /// No data, an acknowledgment that was owed.
    Ack,
    /// No data, a SYN, FIN or RST.
    Control,
    /// No data, word of urgent data to come.
    Urgent,
    /// No data, a larger window.
    WindowUpdate,
    /// No data, a question whether the peer is still there.
    KeepAlive,
}

/// A segment or TSO frame to be built and sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Sequence number of the first byte.
    pub seq: Seq,
    /// Where its data stands in the send buffer, bytes from the front.
    pub off: usize,
    /// Bytes of data.
    pub len: usize,
    /// Data in each frame that the hardware shall cut, or none when this is one segment.
    pub tso_mss: Option<u16>,
    /// Control bits.
    pub flags: TcpFlags,
    /// Options.
    pub options: Options,
    /// The acknowledgment number.
    pub ack: Seq,
    /// The window field, scaled down.
    pub window: u16,
    /// The window as the peer will see it, bytes.
    pub window_bytes: u32,
    /// The urgent pointer; 0 without [`TcpFlags::URG`].
    pub urgent: u16,
    /// Routers may mark it instead of dropping it (ECT).
    pub ect: bool,
    /// Why it goes.
    pub kind: Kind,
    /// Another pass may find more to send.
    pub again: bool,
    /// Its place among the holes, if it fills one.
    pub(crate) hole: Option<u16>,
    /// A forced probe under the persist timer: does not move the next sequence number.
    pub(crate) probing: bool,
    /// The send buffer holds something.
    pub(crate) queued: bool,
}

impl Segment {
    /// Bytes of IP and TCP header with options.
    #[must_use]
    pub fn header_len(&self, tcb: &Tcb) -> usize {
        tcb.ends.ip_header_len() + TCP_HEADER_LEN + self.options.len()
    }

    /// Sequence numbers that it takes: one for each byte, one for SYN, one for FIN.
    #[inline]
    #[must_use]
    pub fn seq_len(&self) -> u32 {
        let one_for = |bit| u32::from(self.flags.contains(bit));
        self.len as u32 + one_for(TcpFlags::SYN) + one_for(TcpFlags::FIN)
    }

    /// Leaves it `len` bytes, when it has more: what comes behind goes with another pass.
    pub(crate) fn shorten(&mut self, len: usize) {
        self.len = len;
        self.flags -= TcpFlags::FIN | TcpFlags::PSH;
        self.again = self.hole.is_none();
        self.tso_mss = self.tso_mss.filter(|&mss| len > usize::from(mss));
    }
}
