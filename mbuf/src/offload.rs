//! What a transmitted packet asks of the hardware.

use bitflags::bitflags;

bitflags! {
    /// Offload requests of a packet to be sent.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct OffloadFlags: u16 {
        /// Fill in the IPv4 header checksum.
        const IPV4_CSUM = 1;
        /// Finish the TCP checksum; the field holds the pseudo-header sum.
        const TCP_CSUM = 1 << 1;
        /// Finish the UDP checksum; the field holds the pseudo-header sum.
        const UDP_CSUM = 1 << 2;
        /// Cut into frames of [`TxOffload::tso_mss`] payload bytes each.
        const TSO = 1 << 3;
        /// The packet is IPv4.
        const IPV4 = 1 << 4;
        /// The packet is IPv6.
        const IPV6 = 1 << 5;
    }
}

/// Offload requests and the header lengths that they need. The default asks for nothing.
#[doc(alias = "rte_mbuf_tx_offload")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TxOffload {
    /// What is asked.
    pub flags: OffloadFlags,
    /// Bytes of link header in front.
    pub l2_len: u16,
    /// Bytes of IP header, options included.
    pub l3_len: u16,
    /// Bytes of TCP or UDP header, options included.
    pub l4_len: u16,
    /// Payload bytes per frame under TSO.
    #[doc(alias = "ph_mss")]
    #[doc(alias = "tso_segsz")]
    pub tso_mss: u16,
}
