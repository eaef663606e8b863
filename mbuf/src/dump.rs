//! Printers: packets segment by segment, lists, queues, and bytes as hex. None allocates.

use crate::handle::Mbuf;
use crate::history::LifeEvents;
use crate::list::PacketList;
use crate::packet::Packet;
use crate::queue::PacketQueue;
use crate::segment::{Segment, Segments};
use std::fmt;

/// Bytes on a line of a hex dump.
const LINE: usize = 16;

impl fmt::Display for Segment<'_> {
    /// One line: lead, data, trail, where the bytes are and how many refer to them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lead, len) = (self.lead(), self.len());
        let trail = self.capacity().saturating_sub(lead.saturating_add(len));
        write!(
            f,
            "{:p} {}lead {lead} len {len} trail {trail} {:?} refs {}",
            self.ptr().0,
            if self.is_header() { "header " } else { "" },
            self.storage(),
            self.storage_refs(),
        )
    }
}

/// A packet on its way to be printed: a line for the whole, then one per segment. Made by
/// [`Packet::dump`].
#[doc(alias = "m_print_packet")]
#[doc(alias = "rte_pktmbuf_dump")]
pub struct Dump<'a, P: ?Sized>(pub(crate) &'a P);

impl<P: Packet + ?Sized> fmt::Display for Dump<'_, P> {
    #[doc(alias = "m_print_chain")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        one_line(self.0, f)?;
        for (at, seg) in self.0.segments().enumerate() {
            write!(f, "\n  {at}: {seg}")?;
        }
        for tag in self.0.tags() {
            write!(f, "\n  tag {}: {} bytes", tag.id, tag.data.len())?;
        }
        let history = LifeEvents::of(self.0);
        if history.clone().next().is_some() {
            write!(f, "\n  history: {history}")?;
        }
        Ok(())
    }
}

/// The packet as a whole, and what is said of it.
fn one_line<P: Packet + ?Sized>(packet: &P, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "packet {:p} len {} segs {} owners {}",
        packet.raw().0.0,
        packet.pkt_len(),
        packet.nsegs(),
        packet.references(),
    )?;
    if let Some(said) = packet.received() {
        write!(
            f,
            " port {}.{} type {} ip {:?} l4 {:?}",
            said.port, said.queue, said.packet_type, said.ip_checksum, said.l4_checksum
        )?;
    }
    if let Some(tag) = packet.vlan() {
        write!(f, " vlan {tag:#06x}")?;
    }
    if let Some(time) = packet.timestamp() {
        write!(f, " time {time}")?;
    }
    if let Some(flow) = packet.flow() {
        write!(f, " flow {flow:x?}")?;
    }
    if let Some(priority) = packet.priority() {
        write!(f, " priority {priority}")?;
    }
    let offload = packet.offload();
    if !offload.flags.is_empty() {
        write!(f, " offload {} mss {}", offload.flags, offload.tso_mss)?;
    }
    Ok(())
}

impl fmt::Display for PacketList {
    /// A line for the whole, then one per packet.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packets of {} bytes", self.len(), self.bytes())?;
        self.iter().try_for_each(|packet: &Mbuf| {
            f.write_str("\n  ")?;
            one_line(packet, f)
        })
    }
}

impl fmt::Display for PacketQueue {
    /// A line for the whole, then one per packet. The queue is locked meanwhile: what is printed to
    /// must not use it.
    #[doc(alias = "m_print_queue")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.print(f)
    }
}

/// A range of a packet's bytes, on its way to be printed as hex and text. Made by
/// [`Packet::hexdump`].
pub struct Hexdump<'a> {
    pub(crate) segments: Segments<'a>,
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

impl Hexdump<'_> {
    /// Copies the next bytes from `segments`, of which `skip` are passed over, into `line`.
    fn fill(segments: &mut Segments<'_>, skip: &mut usize, line: &mut [u8]) -> usize {
        let mut have = 0;
        while have < line.len() {
            let Some(seg) = segments.0 else { break };
            let data = seg.data().get(*skip..).unwrap_or_default();
            let n = data.len().min(line.len() - have);
            line[have..have + n].copy_from_slice(&data[..n]);
            have += n;
            if n == data.len() {
                *skip = skip.saturating_sub(seg.len());
                segments.next();
            } else {
                *skip += n;
            }
        }
        have
    }
}

impl fmt::Display for Hexdump<'_> {
    #[doc(alias = "rte_hexdump")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut segments = self.segments.clone();
        let (mut skip, mut at, mut left) = (self.offset, self.offset, self.len);
        while left > 0 {
            let mut line = [0; LINE];
            let have = Self::fill(&mut segments, &mut skip, &mut line[..left.min(LINE)]);
            if have == 0 {
                break;
            }
            print_line(at, &line[..have], f)?;
            (at, left) = (at.saturating_add(have), left - have);
        }
        Ok(())
    }
}

fn print_line(at: usize, bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{at:08x} ")?;
    for slot in 0..LINE {
        match bytes.get(slot) {
            Some(byte) => write!(f, " {byte:02x}")?,
            None => f.write_str("   ")?,
        }
    }
    f.write_str("  ")?;
    for &byte in bytes {
        let shown = byte.is_ascii_graphic() || byte == b' ';
        write!(f, "{}", if shown { byte as char } else { '.' })?;
    }
    writeln!(f)
}
