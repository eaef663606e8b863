//! The Ethernet header: put in front of IP packets before they go to a queue.
//!
//! Queues take whatever frame they are given; bare IP packets go over the wire as they are and
//! into a capture file as link type "raw". Who wants Ethernet frames calls [`encap`] first.

use mbuf::{AllocError, BufferSet, Mbuf, NoRoom, Packet};

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
