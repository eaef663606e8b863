//! Headers as they stand in memory: plain structs laid over the bytes of a packet and written in
//! place. Every field is in network order.

use bitflags::bitflags;
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// IP protocol number of TCP.
pub const PROTO_TCP: u8 = 6;

bitflags! {
    /// The control bits of a TCP header.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct TcpFlags: u8 {
        /// No more data.
        const FIN = 0x01;
        /// Synchronise sequence numbers.
        const SYN = 0x02;
        /// Reset.
        const RST = 0x04;
        /// Push.
        const PSH = 0x08;
        /// The acknowledgment number is valid.
        const ACK = 0x10;
        /// The urgent pointer is valid.
        const URG = 0x20;
        /// Congestion experienced, echoed.
        const ECE = 0x40;
        /// Congestion window reduced.
        const CWR = 0x80;
    }
}

/// An IPv4 header without options, 20 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ipv4Header {
    /// Version 4 and header length in words: `0x45`.
    pub version_ihl: u8,
    /// DSCP and ECN.
    pub tos: u8,
    /// Header plus payload, in bytes; of the big frame when it is TSO.
    pub total_len: U16,
    /// Identification.
    pub id: U16,
    /// Flags and fragment offset.
    pub fragment: U16,
    /// Time to live.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Header checksum.
    pub checksum: U16,
    /// Source address.
    pub source: [u8; 4],
    /// Destination address.
    pub dest: [u8; 4],
}

/// An IPv6 header, 40 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ipv6Header {
    /// Version 6, traffic class, flow label.
    pub version_class_flow: U32,
    /// Bytes behind this header.
    pub payload_len: U16,
    /// Protocol of what follows.
    pub next_header: u8,
    /// Hops left.
    pub hop_limit: u8,
    /// Source address.
    pub source: [u8; 16],
    /// Destination address.
    pub dest: [u8; 16],
}

/// A TCP header without its options, 20 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct TcpHeader {
    /// Source port.
    pub source_port: U16,
    /// Destination port.
    pub dest_port: U16,
    /// Sequence number of the first byte.
    pub seq: U32,
    /// Next sequence number expected from the peer.
    pub ack: U32,
    /// Header length in words, in the upper four bits.
    pub data_offset: u8,
    /// Control bits.
    pub flags: u8,
    /// Receive window, scaled down.
    pub window: U16,
    /// Checksum, or the pseudo header's sum for the NIC to finish.
    pub checksum: U16,
    /// Urgent pointer.
    pub urgent: U16,
}

/// Bytes of a TCP header without options.
pub const TCP_HEADER_LEN: usize = size_of::<TcpHeader>();

/// Where the checksum stands in a TCP header.
pub const TCP_CHECKSUM_OFFSET: usize = 16;

const _: () = assert!(size_of::<Ipv4Header>() == 20);
const _: () = assert!(size_of::<Ipv6Header>() == 40);
const _: () = assert!(TCP_HEADER_LEN == 20);
