//! The states of a connection, and which control bits a segment may carry in each.

use crate::wire::TcpFlags;

/// Where a connection is in its life (RFC 9293, 3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[doc(alias = "t_state")]
pub enum State {
    /// There is none: whatever arrives is answered by a reset.
    #[doc(alias = "TCPS_CLOSED")]
    Closed,
    /// Waiting for a peer.
    #[doc(alias = "TCPS_LISTEN")]
    Listen,
    /// We asked, no answer yet.
    #[doc(alias = "TCPS_SYN_SENT")]
    SynSent,
    /// We were asked, or asked at the same time; our SYN is not acknowledged yet.
    #[doc(alias = "TCPS_SYN_RECEIVED")]
    SynReceived,
    /// Data flows both ways.
    #[doc(alias = "TCPS_ESTABLISHED")]
    Established,
    /// The peer has closed, we have not.
    #[doc(alias = "TCPS_CLOSE_WAIT")]
    CloseWait,
    /// We have closed; our FIN is not acknowledged yet.
    #[doc(alias = "TCPS_FIN_WAIT_1")]
    FinWait1,
    /// Both closed at the same time; our FIN is not acknowledged yet.
    #[doc(alias = "TCPS_CLOSING")]
    Closing,
    /// The peer closed, then we; our FIN is not acknowledged yet.
    #[doc(alias = "TCPS_LAST_ACK")]
    LastAck,
    /// Our FIN is acknowledged, the peer has not closed.
    #[doc(alias = "TCPS_FIN_WAIT_2")]
    FinWait2,
    /// Both sides are done; what is still on its way may arrive.
    #[doc(alias = "TCPS_TIME_WAIT")]
    TimeWait,
}

impl State {
    /// The control bits that a segment sent in this state may carry. FIN is dropped from those that
    /// do not end the data.
    ///
    /// ```
    /// use tcp_output::State;
    /// use tcp_output::wire::TcpFlags;
    ///
    /// assert_eq!(State::LastAck.offers(), TcpFlags::FIN | TcpFlags::ACK);
    /// assert!(State::Listen.offers().is_empty());
    /// ```
    #[doc(alias = "tcp_outflags")]
    #[inline]
    #[must_use]
    pub const fn offers(self) -> TcpFlags {
        match self {
            State::Closed => TcpFlags::RST.union(TcpFlags::ACK),
            State::Listen => TcpFlags::empty(),
            State::SynSent => TcpFlags::SYN,
            State::SynReceived => TcpFlags::SYN.union(TcpFlags::ACK),
            State::Established | State::CloseWait | State::FinWait2 | State::TimeWait => {
                TcpFlags::ACK
            }
            State::FinWait1 | State::Closing | State::LastAck => TcpFlags::FIN.union(TcpFlags::ACK),
        }
    }

    /// Both sides have agreed on sequence numbers: data and FIN may go.
    #[doc(alias = "TCPS_HAVEESTABLISHED")]
    #[inline]
    #[must_use]
    pub const fn synchronized(self) -> bool {
        self as u8 >= State::Established as u8
    }

    /// The peer's SYN has arrived: it knows of the connection, and is told when it ends.
    #[doc(alias = "TCPS_HAVERCVDSYN")]
    #[must_use]
    pub const fn received_syn(self) -> bool {
        self as u8 >= State::SynReceived as u8
    }
}
