//! What a connection has agreed to, was asked for, or has to remember, one bit each.

use bitflags::bitflags;

bitflags! {
    /// What was agreed with the peer, asked for by the user, or is to be remembered.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct TcbFlags: u32 {
        /// Both sides send timestamps (RFC 7323).
        #[doc(alias = "TF_RCVD_TSTMP")]
        const TIMESTAMPS = 0x01;
        /// The peer may be told of ranges that arrived out of order (RFC 2018).
        #[doc(alias = "TF_SACK_PERMIT")]
        const SACK = 0x02;
        /// Small segments do not wait for an acknowledgment (Nagle off).
        #[doc(alias = "TF_NODELAY")]
        const NODELAY = 0x04;
        /// Less than a full segment waits until more is written or the persist timer flushes it.
        #[doc(alias = "TF_NOPUSH")]
        const NOPUSH = 0x08;
        /// An acknowledgment is owed at once.
        #[doc(alias = "TF_ACKNOW")]
        const ACK_NOW = 0x10;
        /// Both sides scale their windows (RFC 7323).
        #[doc(alias = "TF_RCVD_SCALE")]
        const SCALE = 0x20;
        /// Our SYN asks for timestamps.
        #[doc(alias = "TF_REQ_TSTMP")]
        const ASK_TIMESTAMPS = 0x40;
        /// Our SYN offers to understand SACK.
        #[doc(alias = "sack_enable")]
        const ASK_SACK = 0x80;
        /// Our SYN asks for window scaling.
        #[doc(alias = "TF_REQ_SCALE")]
        const ASK_SCALE = 0x100;
        /// No options at all, but for the signature.
        #[doc(alias = "TF_NOOPT")]
        const NO_OPTIONS = 0x200;
        /// Room is kept in each segment for a signature (RFC 2385): 20 bytes, the digest left zero
        /// for whoever holds the key.
        #[doc(alias = "TF_SIGNATURE")]
        const SIGNATURE = 0x400;
        /// The way out puts options into the IP header: no frames for the NIC to cut.
        const IP_OPTIONS = 0x800;
        /// Our FIN has been sent.
        #[doc(alias = "TF_SENTFIN")]
        const FIN_SENT = 0x1000;
        /// Our SYN asks for ECN (RFC 3168). Taken off when a SYN has to be sent again.
        #[doc(alias = "tcp_do_ecn")]
        const ASK_ECN = 0x2000;
        /// Both sides understand ECN.
        #[doc(alias = "TF_ECN_PERMIT")]
        const ECN = 0x4000;
        /// Congestion was experienced on the way to us: echoed until the peer says that it slowed down.
        #[doc(alias = "TF_RCVD_CE")]
        const CE_SEEN = 0x8000;
        /// We slowed down: the next segment with new data says so.
        #[doc(alias = "TF_SEND_CWR")]
        const CWR_DUE = 0x1_0000;
        /// Nothing is sent for now: calls of output are only remembered.
        #[doc(alias = "TF_BLOCKOUTPUT")]
        const BLOCKED = 0x2_0000;
        /// Output was asked for while it was blocked, or is due for another reason.
        #[doc(alias = "TF_NEEDOUTPUT")]
        const NEED_OUTPUT = 0x4_0000;
        /// The peer is probed when nothing has arrived for long.
        #[doc(alias = "SO_KEEPALIVE")]
        const KEEP_ALIVE = 0x8_0000;
    }
}
