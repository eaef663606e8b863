//! Reading the headers of a frame: link layer, IPv4 or IPv6, TCP.
//!
//! Nothing here trusts the frame: every length is checked, and what is not TCP, or is cut short,
//! is an answer of its own and never a panic.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::checksum::{Checksum, pseudo_header};

/// TCP FIN bit.
pub(crate) const FIN: u8 = 0x01;
/// TCP SYN bit.
pub(crate) const SYN: u8 = 0x02;
/// TCP PSH bit.
pub(crate) const PSH: u8 = 0x08;
/// TCP CWR bit.
pub(crate) const CWR: u8 = 0x80;
/// IP protocol number of TCP.
pub(crate) const TCP: u8 = 6;

/// What stands in front of the IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Ethernet, with any number of VLAN tags.
    Ethernet,
    /// Nothing: the frame starts with the IP header.
    Raw,
    /// Linux "cooked" capture, 16 bytes.
    LinuxSll,
    /// Linux "cooked" capture, second version, 20 bytes.
    LinuxSll2,
}

impl Link {
    /// The link type of a capture file's number, `None` for those not known here.
    ///
    /// 1 is Ethernet, 101 and 12 raw IP, 228 and 229 raw IPv4 and IPv6, 113 and 276 Linux cooked.
    pub fn from_linktype(number: u32) -> Option<Self> {
        match number {
            1 => Some(Link::Ethernet),
            12 | 101 | 228 | 229 => Some(Link::Raw),
            113 => Some(Link::LinuxSll),
            276 => Some(Link::LinuxSll2),
            _ => None,
        }
    }

    /// The bytes behind the link header, when they are said to be IP.
    fn ip(self, frame: &[u8]) -> Result<&[u8], NotTcp> {
        let (protocol, rest) = match self {
            Link::Raw => return Ok(frame),
            Link::Ethernet => return ethernet(frame),
            Link::LinuxSll => (u16_at(frame, 14)?, tail(frame, 16)?),
            Link::LinuxSll2 => (u16_at(frame, 0)?, tail(frame, 20)?),
        };
        match protocol {
            0x0800 | 0x86dd => Ok(rest),
            other => Err(NotTcp::Protocol { number: other }),
        }
    }
}

fn ethernet(frame: &[u8]) -> Result<&[u8], NotTcp> {
    let mut at = 12;
    loop {
        match u16_at(frame, at)? {
            0x8100 | 0x88a8 => at += 4,
            0x0800 | 0x86dd => return tail(frame, at + 2),
            other => return Err(NotTcp::Protocol { number: other }),
        }
    }
}

/// One direction of a TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// Who sends.
    pub src: SocketAddr,
    /// Who receives.
    pub dst: SocketAddr,
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}", self.src, self.dst)
    }
}

/// Why a frame gave no TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotTcp {
    /// A header ends behind the frame's end.
    #[error("frame of {have} bytes ends before byte {need}")]
    Short {
        /// Bytes needed for the next header.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
    /// Neither IPv4 nor IPv6 follows, or not TCP: the Ethernet type or IP protocol number.
    #[error("carries protocol {number:#06x}, not TCP")]
    Protocol {
        /// What it carries.
        number: u16,
    },
    /// A header's own length field is out of its range.
    #[error("header of {layer} says a length of {len} bytes")]
    HeaderLength {
        /// `"IPv4"` or `"TCP"`.
        layer: &'static str,
        /// What it says.
        len: usize,
    },
    /// A fragment of an IP packet other than a whole one.
    #[error("is an IP fragment")]
    Fragment,
}

/// A TCP segment found in a frame.
///
/// ```
/// use driver_sim::{Link, TcpSegment};
///
/// assert!(TcpSegment::parse(&[0x45, 0, 0, 20], Link::Raw).is_err(), "cut short");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSegment<'a> {
    /// Its direction.
    pub key: FlowKey,
    /// Sequence number of its first byte, or of the SYN.
    pub seq: u32,
    /// The TCP flag bits, FIN being 1.
    pub flags: u8,
    /// The payload that the frame holds; link padding is cut off.
    pub payload: &'a [u8],
    /// Payload bytes that the IP length announces but the capture left out.
    pub missing: usize,
    /// From the first byte of the IP header to the last one in the frame.
    ip: &'a [u8],
    /// Where the TCP header starts in `ip`.
    at: usize,
}

impl<'a> TcpSegment<'a> {
    /// Reads link, IP and TCP headers.
    ///
    /// # Errors
    ///
    /// [`NotTcp`] when there is no whole TCP header in the frame.
    pub fn parse(frame: &'a [u8], link: Link) -> Result<Self, NotTcp> {
        let ip = link.ip(frame)?;
        match byte(ip, 0)? >> 4 {
            4 => Self::parse_v4(ip),
            6 => Self::parse_v6(ip),
            other => Err(NotTcp::Protocol {
                number: u16::from(other),
            }),
        }
    }

    /// Whether the SYN bit is set.
    pub fn is_syn(&self) -> bool {
        self.flags & SYN != 0
    }

    /// Whether the IPv4 header sum (IPv6 has none) and the TCP sum are right.
    ///
    /// Never so for a segment of which the capture left bytes out.
    pub fn checksums_good(&self) -> bool {
        let mut header = Checksum::default();
        if self.key.src.is_ipv4() {
            header.add(&self.ip[..self.at]);
        } else {
            header.add_u16(0xffff);
        }
        let tcp = &self.ip[self.at..];
        let mut sum = pseudo_header(self.ip, TCP);
        sum.add_u16(tcp.len() as u16);
        // What exceeds 16 bits counts too: jumbo segments have a 32-bit length.
        sum.add_u16((tcp.len() >> 16) as u16);
        sum.add(tcp);
        self.missing == 0 && header.finish() == 0 && sum.finish() == 0
    }

    fn parse_v4(ip: &'a [u8]) -> Result<Self, NotTcp> {
        let header = usize::from(byte(ip, 0)? & 0xf) * 4;
        if header < 20 {
            return Err(NotTcp::HeaderLength {
                layer: "IPv4",
                len: header,
            });
        }
        // A frame captured before the hardware cut it up may say 0: then all of it counts.
        let total = match usize::from(u16_at(ip, 2)?) {
            0 => ip.len(),
            n => n,
        };
        let protocol = byte(ip, 9)?;
        if protocol != TCP {
            return Err(NotTcp::Protocol {
                number: u16::from(protocol),
            });
        }
        // More-fragments or an offset.
        if u16_at(ip, 6)? & 0x3fff != 0 {
            return Err(NotTcp::Fragment);
        }
        let src = Ipv4Addr::from(array::<4>(ip, 12)?);
        let dst = Ipv4Addr::from(array::<4>(ip, 16)?);
        Self::parse_tcp(ip, header, total, src.into(), dst.into())
    }

    fn parse_v6(ip: &'a [u8]) -> Result<Self, NotTcp> {
        let total = match usize::from(u16_at(ip, 4)?) {
            0 => ip.len(),
            n => 40 + n,
        };
        let src = Ipv6Addr::from(array::<16>(ip, 8)?);
        let dst = Ipv6Addr::from(array::<16>(ip, 24)?);
        let mut next = byte(ip, 6)?;
        let mut at = 40;
        while next != TCP {
            match next {
                // Hop-by-hop, routing, destination options.
                0 | 43 | 60 => {
                    next = byte(ip, at)?;
                    at += 8 + usize::from(byte(ip, at + 1)?) * 8;
                }
                44 => return Err(NotTcp::Fragment),
                other => {
                    return Err(NotTcp::Protocol {
                        number: u16::from(other),
                    });
                }
            }
        }
        Self::parse_tcp(ip, at, total, src.into(), dst.into())
    }

    /// `at` is where TCP starts, `total` the length of the IP packet as its header says.
    fn parse_tcp(
        ip: &'a [u8],
        at: usize,
        total: usize,
        src: IpAddr,
        dst: IpAddr,
    ) -> Result<Self, NotTcp> {
        let end = total.min(ip.len());
        let tcp = ip.get(at..end).ok_or(NotTcp::Short {
            need: at + 20,
            have: end,
        })?;
        let header = usize::from(byte(tcp, 12)? >> 4) * 4;
        if header < 20 {
            return Err(NotTcp::HeaderLength {
                layer: "TCP",
                len: header,
            });
        }
        Ok(TcpSegment {
            key: FlowKey {
                src: SocketAddr::new(src, u16_at(tcp, 0)?),
                dst: SocketAddr::new(dst, u16_at(tcp, 2)?),
            },
            seq: u32::from_be_bytes(array::<4>(tcp, 4)?),
            flags: byte(tcp, 13)?,
            payload: tail(tcp, header)?,
            missing: total - end,
            ip: &ip[..end],
            at,
        })
    }
}

fn byte(bytes: &[u8], at: usize) -> Result<u8, NotTcp> {
    Ok(array::<1>(bytes, at)?[0])
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, NotTcp> {
    Ok(u16::from_be_bytes(array::<2>(bytes, at)?))
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], NotTcp> {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk::<N>())
        .copied()
        .ok_or(NotTcp::Short {
            need: at + N,
            have: bytes.len(),
        })
}

fn tail(bytes: &[u8], at: usize) -> Result<&[u8], NotTcp> {
    bytes.get(at..).ok_or(NotTcp::Short {
        need: at,
        have: bytes.len(),
    })
}
