//! An arriving IP packet, read as a TCP segment.
//!
//! Nothing is believed: every length is checked against the one that holds it, and what counts is
//! the length in the IP header, never that of the frame, which a link may have padded.

use std::ops::Range;

use mbuf::{Checksum, Mbuf, Packet, Received};
use thiserror::Error;
use zerocopy::FromBytes;

use super::options::PeerOptions;
use crate::checksum::{PseudoLength, Sum};
use crate::endpoints::Endpoints;
use crate::seq::Seq;
use crate::wire::{Ipv4Header, Ipv6Header, PROTO_TCP, TCP_HEADER_LEN, TcpFlags, TcpHeader};

/// The longest headers there can be: IPv4 with options, TCP with options.
const MAX_HEADERS: usize = 60 + 60;

/// More fragments follow, or this is not the first.
const FRAGMENT: u16 = 0x3fff;

/// An arriving segment: all that its headers say, and where its payload stands in the packet.
///
/// ```
/// use mbuf::BufferSet;
/// use tcp_output::input::{Incoming, ParseError};
///
/// let set = BufferSet::standard(64, 8)?;
/// let noise = set.copy_in(&[0x45; 64], 0)?;
/// assert_eq!(Incoming::parse(&noise), Err(ParseError::IpLength { said: 0x4545, least: 40, have: 64 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Incoming {
    /// Who sent it to whom: the peer is the source here.
    pub ends: Endpoints,
    /// Sequence number of the first byte, or of the SYN.
    pub seq: Seq,
    /// The acknowledgment number; means something with the ACK bit only.
    pub ack: Seq,
    /// Control bits.
    pub flags: TcpFlags,
    /// The window field, not scaled.
    pub window: u16,
    /// The urgent pointer; means something with the URG bit only.
    pub urgent: u16,
    /// Congestion was met on the way (RFC 3168: the codepoint CE).
    pub congested: bool,
    /// Options.
    pub options: PeerOptions,
    start: u16,
    len: u32,
}

/// Why a packet is no TCP segment that may be looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ParseError {
    /// It ends within a header.
    #[error("{have} bytes, the headers need {need}")]
    Short {
        /// Bytes needed.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
    /// Neither IPv4 nor IPv6.
    #[error("IP version {0}")]
    Version(u8),
    /// The IPv4 header says that it is shorter than any is.
    #[error("IPv4 header of {said} bytes, the least is 20")]
    IpHeaderLength {
        /// The length it claims, bytes.
        said: usize,
    },
    /// The packet is longer than the frame that brought it, or shorter than its own headers.
    #[error("IP packet of {said} bytes, not within {least}..={have}")]
    IpLength {
        /// The length it claims, IP header included, bytes.
        said: usize,
        /// The least, IP header and fixed TCP header.
        least: usize,
        /// Bytes there are.
        have: usize,
    },
    /// A fragment; reassembling IP is done elsewhere.
    #[error("IPv4 fragment, field {0:#06x}")]
    Fragment(u16),
    /// Not TCP, or TCP behind IPv6 extension headers.
    #[error("protocol {0}, TCP is 6")]
    Protocol(u8),
    /// The TCP header is shorter than any is, or longer than the packet.
    #[error("TCP header of {said} bytes, not within 20..={have}")]
    TcpHeaderLength {
        /// The length it claims, bytes.
        said: usize,
        /// Bytes that the packet has for it.
        have: usize,
    },
    /// A checksum is wrong.
    #[error("wrong {0} checksum")]
    Checksum(Summed),
}

/// What a checksum is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Summed {
    /// The IPv4 header.
    Ip,
    /// TCP header, payload and pseudo header.
    Tcp,
}

impl std::fmt::Display for Summed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Summed::Ip => "IPv4 header",
            Summed::Tcp => "TCP",
        })
    }
}

/// What the IP header says.
struct Ip {
    addresses: Address,
    header_len: usize,
    /// IP header included.
    packet_len: usize,
    congested: bool,
}

/// Source and destination.
enum Address {
    V4([[u8; 4]; 2]),
    V6([[u8; 16]; 2]),
}

impl Incoming {
    /// Reads a packet that starts with its IP header. Headers need not be contiguous; they are where
    /// they cost nothing more.
    ///
    /// Checksums are believed to be what the packet's [`Received`] says, and computed when it says
    /// nothing.
    ///
    /// # Errors
    /// [`ParseError`] when it is not a whole TCP segment with right checksums.
    pub fn parse<P: Packet>(packet: &P) -> Result<Incoming, ParseError> {
        let first = packet.first().data();
        match parse(packet, first) {
            Err(ParseError::Short { .. }) if first.len() < packet.pkt_len() => {
                gather_and_parse(packet)
            }
            result => result,
        }
    }

    /// Where the payload stands in the packet, bytes.
    #[must_use]
    pub fn payload(&self) -> Range<usize> {
        let start = usize::from(self.start);
        start..start + self.len as usize
    }

    /// Bytes of payload.
    #[doc(alias = "ti_len")]
    #[must_use]
    pub fn payload_len(&self) -> u32 {
        self.len
    }

    /// Sequence numbers that the segment takes: its payload, SYN and FIN.
    #[doc(alias = "SEG.LEN")]
    #[must_use]
    pub fn seq_len(&self) -> u32 {
        let bit = |flag| u32::from(self.flags.contains(flag));
        self.len + bit(TcpFlags::SYN) + bit(TcpFlags::FIN)
    }

    /// The packet without headers and padding; it is freed when nothing is left of it.
    #[must_use]
    pub fn into_payload(&self, mut packet: Mbuf) -> Option<Mbuf> {
        let Range { start, end } = self.payload();
        if self.len == 0 {
            return None;
        }
        let padding = packet.pkt_len().checked_sub(end)?;
        packet.trim_back(padding).ok()?;
        packet.trim_front(start).ok()?;
        Some(packet)
    }
}

#[cold]
fn gather_and_parse<P: Packet>(packet: &P) -> Result<Incoming, ParseError> {
    let mut scratch = [0; MAX_HEADERS];
    let n = packet.pkt_len().min(MAX_HEADERS);
    // Within the packet and within the scratch, so this cannot fail.
    let head = packet.read(0, n, &mut scratch).unwrap_or_default();
    parse(packet, head)
}

/// `head` is the packet's front, with all headers in it if the packet has them.
fn parse<P: Packet>(packet: &P, head: &[u8]) -> Result<Incoming, ParseError> {
    let received = packet.received().unwrap_or_default();
    let ip = match head.first().map(|byte| byte >> 4) {
        Some(4) => parse_v4(head, packet.pkt_len(), &received)?,
        Some(6) => parse_v6(head, packet.pkt_len())?,
        Some(other) => return Err(ParseError::Version(other)),
        None => return Err(ParseError::Short { need: 20, have: 0 }),
    };
    let (tcp, rest) = front::<TcpHeader>(head, ip.header_len)?;
    let header_len = usize::from(tcp.data_offset >> 4) * 4;
    let room = ip.packet_len - ip.header_len;
    if header_len < TCP_HEADER_LEN || header_len > room {
        return Err(ParseError::TcpHeaderLength {
            said: header_len,
            have: room,
        });
    }
    let Some(options) = rest.get(..header_len - TCP_HEADER_LEN) else {
        return Err(ParseError::Short {
            need: ip.header_len + header_len,
            have: head.len(),
        });
    };
    let ends = ip.ends(tcp);
    verify_tcp(packet, &ends, &ip, received.l4_checksum)?;
    Ok(Incoming {
        ends,
        seq: Seq(tcp.seq.get()),
        ack: Seq(tcp.ack.get()),
        flags: TcpFlags::from_bits_retain(tcp.flags),
        window: tcp.window.get(),
        urgent: tcp.urgent.get(),
        congested: ip.congested,
        options: PeerOptions::read(options),
        start: (ip.header_len + header_len) as u16,
        len: (room - header_len) as u32,
    })
}

/// A header at `at`, and what stands behind it.
fn front<T: FromBytes + zerocopy::KnownLayout + zerocopy::Immutable + zerocopy::Unaligned>(
    head: &[u8],
    at: usize,
) -> Result<(&T, &[u8]), ParseError> {
    let short = ParseError::Short {
        need: at + size_of::<T>(),
        have: head.len(),
    };
    let bytes = head.get(at..).ok_or(short)?;
    T::ref_from_prefix(bytes).map_err(|_| short)
}

fn parse_v4(head: &[u8], have: usize, received: &Received) -> Result<Ip, ParseError> {
    let (header, _) = front::<Ipv4Header>(head, 0)?;
    let header_len = usize::from(header.version_ihl & 0xf) * 4;
    if header_len < size_of::<Ipv4Header>() {
        return Err(ParseError::IpHeaderLength { said: header_len });
    }
    let packet_len = usize::from(header.total_len.get());
    check_length(packet_len, header_len, have)?;
    let Some(bytes) = head.get(..header_len) else {
        let need = header_len;
        let have = head.len();
        return Err(ParseError::Short { need, have });
    };
    verify_ip(bytes, received.ip_checksum)?;
    let fragment = header.fragment.get();
    if fragment & FRAGMENT != 0 {
        return Err(ParseError::Fragment(fragment));
    }
    if header.protocol != PROTO_TCP {
        return Err(ParseError::Protocol(header.protocol));
    }
    Ok(Ip {
        addresses: Address::V4([header.source, header.dest]),
        header_len,
        packet_len,
        congested: header.tos & 3 == 3,
    })
}

fn parse_v6(head: &[u8], have: usize) -> Result<Ip, ParseError> {
    let (header, _) = front::<Ipv6Header>(head, 0)?;
    let header_len = size_of::<Ipv6Header>();
    let packet_len = header_len + usize::from(header.payload_len.get());
    if header.next_header != PROTO_TCP {
        return Err(ParseError::Protocol(header.next_header));
    }
    check_length(packet_len, header_len, have)?;
    Ok(Ip {
        addresses: Address::V6([header.source, header.dest]),
        header_len,
        packet_len,
        congested: header.version_class_flow.get() >> 20 & 3 == 3,
    })
}

fn check_length(said: usize, header_len: usize, have: usize) -> Result<(), ParseError> {
    let least = header_len + TCP_HEADER_LEN;
    if (least..=have).contains(&said) {
        Ok(())
    } else {
        Err(ParseError::IpLength { said, least, have })
    }
}

impl Ip {
    fn ends(&self, tcp: &TcpHeader) -> Endpoints {
        let (source_port, dest_port) = (tcp.source_port.get(), tcp.dest_port.get());
        match self.addresses {
            Address::V4([source, dest]) => Endpoints::V4 {
                source: source.into(),
                dest: dest.into(),
                source_port,
                dest_port,
            },
            Address::V6([source, dest]) => Endpoints::V6 {
                source: source.into(),
                dest: dest.into(),
                source_port,
                dest_port,
            },
        }
    }
}

fn verify_ip(header: &[u8], found: Checksum) -> Result<(), ParseError> {
    let right = match found {
        Checksum::Good => true,
        Checksum::Bad => false,
        Checksum::Unknown => {
            let mut sum = Sum::new();
            match header.as_array::<20>() {
                Some(header) => sum.add_words(header),
                None => sum.add(header),
            }
            sum.folded() == 0xffff
        }
    };
    right.then_some(()).ok_or(ParseError::Checksum(Summed::Ip))
}

fn verify_tcp<P: Packet>(
    packet: &P,
    ends: &Endpoints,
    ip: &Ip,
    found: Checksum,
) -> Result<(), ParseError> {
    let right = match found {
        Checksum::Good => true,
        Checksum::Bad => false,
        Checksum::Unknown => {
            let len = ip.packet_len - ip.header_len;
            let mut sum = Sum::pseudo(ends, len as u32, PseudoLength::Included);
            // The length was checked against the packet's.
            for piece in packet.pieces(ip.header_len, len).into_iter().flatten() {
                sum.add(piece);
            }
            sum.folded() == 0xffff
        }
    };
    right.then_some(()).ok_or(ParseError::Checksum(Summed::Tcp))
}
