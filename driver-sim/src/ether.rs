//! The Ethernet header: put in front of IP packets before they go to a queue.
//!
//! Queues take whatever frame they are given; bare IP packets go over the wire as they are and
//! into a capture file as link type "raw". Who wants Ethernet frames calls [`encap`] first.

use mbuf::{AllocError, BufferSet, Mbuf, NoRoom, Packet};

/// What an Ethernet frame carries, as far as anybody here wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// An IPv4 packet.
    Ipv4,
    /// An IPv6 packet.
    Ipv6,
    /// A question for an address, or an answer.
    Arp,
}

/// A frame that nobody here wants. It is freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotCarried {
    /// Another Ethernet type.
    #[error("Ethernet type {0:#06x}")]
    Type(u16),
    /// It ends within its header.
    #[error("frame of {have} bytes, its header needs {HEADER_LEN}")]
    Short {
        /// Bytes there are.
        have: usize,
    },
}

/// Bytes of an Ethernet header without tags.
pub const HEADER_LEN: usize = 14;

/// Addresses of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EtherAddrs {
    /// Receiver.
    pub dst: [u8; 6],
    /// Sender.
    pub src: [u8; 6],
}

/// Why no header could be put in front. The packet comes back as it was.
#[derive(Debug, thiserror::Error)]
pub enum EncapError {
    /// No mbuf for the header, and no room in the packet.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// Header mbufs of this set are too small for an Ethernet header.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// The packet's first byte is not that of an IP header.
    #[error("IP version {found}")]
    Version {
        /// High half of the first byte; 0 for a packet without bytes.
        found: u8,
    },
}

/// Puts an Ethernet header in front of an IP packet: into its headroom where there is room, else
/// into a header mbuf of its own. The offload request goes with it, `l2_len` grown by
/// [`HEADER_LEN`].
///
/// # Errors
///
/// The packet, unchanged, and why.
///
/// ```
/// use driver_sim::ether::{EtherAddrs, encap};
/// use mbuf::{BufferSet, Packet};
///
/// let set = BufferSet::standard(64, 16)?;
/// let mut m = set.header()?;
/// m.set_lead(16)?;
/// m.append(20)?.fill(0x45);
/// let frame = encap(m, EtherAddrs { dst: [2; 6], src: [4; 6] }, &set).map_err(|(_, e)| e)?;
/// assert_eq!((frame.nsegs(), frame.pkt_len()), (1, 34));
/// assert_eq!(frame.to_vec()[12..15], [0x08, 0x00, 0x45]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "ether_output")]
pub fn encap(m: Mbuf, addrs: EtherAddrs, set: &BufferSet) -> Result<Mbuf, (Mbuf, EncapError)> {
    let mut m = m;
    let ether_type: [u8; 2] = match first_byte(&m) >> 4 {
        4 => [0x08, 0x00],
        6 => [0x86, 0xdd],
        found => return Err((m, EncapError::Version { found })),
    };
    if let Ok(header) = m.prepend(HEADER_LEN) {
        write(header, addrs, ether_type);
    } else {
        m = match header_mbuf(addrs, ether_type, set) {
            Ok(mut front) => {
                front.set_offload(m.offload());
                front.cat(m);
                front
            }
            Err(e) => return Err((m, e)),
        };
    }
    let mut ask = m.offload();
    if !ask.flags.is_empty() {
        ask.l2_len += HEADER_LEN as u16;
        m.set_offload(ask);
    }
    Ok(m)
}

/// Takes the Ethernet header off a received frame. What was [said](Packet::received) of the frame
/// stays said.
///
/// # Errors
///
/// [`NotCarried`]; the frame is freed then, all of its chain.
///
/// ```
/// use driver_sim::ether::{Carried, NotCarried, decap};
/// use mbuf::{BufferSet, Packet};
///
/// let set = BufferSet::standard(64, 16)?;
/// let mut frame = [0; 60];
/// frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
/// let (carried, packet) = decap(set.copy_in(&frame, 0)?)?;
/// assert_eq!((carried, packet.pkt_len()), (Carried::Ipv4, 46));
/// frame[12] = 0x09;
/// assert_eq!(decap(set.copy_in(&frame, 0)?).unwrap_err(), NotCarried::Type(0x0900));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "ether_input")]
pub fn decap(frame: Mbuf) -> Result<(Carried, Mbuf), NotCarried> {
    let mut frame = frame;
    let have = frame.pkt_len();
    let mut header = [0; HEADER_LEN];
    if frame.copy_to(0, &mut header).is_err() || frame.trim_front(HEADER_LEN).is_err() {
        return Err(NotCarried::Short { have });
    }
    let carried = match u16::from_be_bytes([header[12], header[13]]) {
        0x0800 => Carried::Ipv4,
        0x86dd => Carried::Ipv6,
        0x0806 => Carried::Arp,
        other => return Err(NotCarried::Type(other)),
    };
    Ok((carried, frame))
}

fn header_mbuf(
    addrs: EtherAddrs,
    ether_type: [u8; 2],
    set: &BufferSet,
) -> Result<Mbuf, EncapError> {
    let mut front = set.header()?;
    write(front.append(HEADER_LEN)?, addrs, ether_type);
    Ok(front)
}

fn write(header: &mut [u8], addrs: EtherAddrs, ether_type: [u8; 2]) {
    header[..6].copy_from_slice(&addrs.dst);
    header[6..12].copy_from_slice(&addrs.src);
    header[12..14].copy_from_slice(&ether_type);
}

fn first_byte(m: &Mbuf) -> u8 {
    let mut bytes = m.segments().flat_map(|s| s.data().first().copied());
    bytes.next().unwrap_or(0)
}
