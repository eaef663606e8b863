//! What is said of a packet besides its bytes: how it was received, VLAN, time, flow, priority.
//!
//! It lies in the second line of the header, which neither allocation nor free touches: each part
//! is there only once it was set, and gone with the mbuf.

use crate::handle::Mbuf;
use crate::header::{Meta, SegFlags};
use crate::packet::Packet;
use crate::plain::PlainMut;
use bitflags::bitflags;
use std::fmt;

bitflags! {
    /// What a receiving device, or a parser, found in a packet.
    #[doc(alias = "rte_mbuf_ptype")]
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct PacketType: u16 {
        /// An Ethernet header.
        const ETHERNET = 1;
        /// A VLAN tag in the packet.
        const VLAN = 1 << 1;
        /// ARP.
        const ARP = 1 << 2;
        /// IPv4.
        const IPV4 = 1 << 3;
        /// IPv6.
        const IPV6 = 1 << 4;
        /// IP options or extension headers.
        const IP_OPTIONS = 1 << 5;
        /// A fragment of an IP packet.
        const FRAGMENT = 1 << 6;
        /// TCP.
        const TCP = 1 << 7;
        /// UDP.
        const UDP = 1 << 8;
        /// SCTP.
        const SCTP = 1 << 9;
        /// ICMP or ICMPv6.
        const ICMP = 1 << 10;
        /// Another packet within this one.
        const TUNNEL = 1 << 11;
    }
}

impl fmt::Display for PacketType {
    /// Names with `|` between them, `0` for none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        named(self.iter_names().map(|(name, _)| name), f)
    }
}

pub(crate) fn named<'a>(
    names: impl Iterator<Item = &'a str>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let mut any = false;
    for name in names {
        write!(f, "{}{name}", if any { "|" } else { "" })?;
        any = true;
    }
    if any { Ok(()) } else { f.write_str("0") }
}

/// What a receiving device found of a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Checksum {
    /// It did not look, or could not tell.
    #[default]
    #[doc(alias = "RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN")]
    Unknown,
    /// It is right.
    #[doc(alias = "M_TCP_CSUM_IN_OK")]
    #[doc(alias = "RTE_MBUF_F_RX_L4_CKSUM_GOOD")]
    Good,
    /// It is wrong.
    #[doc(alias = "M_TCP_CSUM_IN_BAD")]
    #[doc(alias = "RTE_MBUF_F_RX_L4_CKSUM_BAD")]
    Bad,
}

impl Checksum {
    fn from_bits(bits: u8) -> Self {
        match bits & 0xf {
            1 => Self::Good,
            2 => Self::Bad,
            _ => Self::Unknown,
        }
    }
}

/// What the receiving device says of a packet. The default says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Which device.
    #[doc(alias = "ph_ifidx")]
    pub port: u16,
    /// Which of its queues.
    pub queue: u16,
    /// What it found in the packet.
    pub packet_type: PacketType,
    /// The IPv4 header's checksum.
    pub ip_checksum: Checksum,
    /// The TCP or UDP checksum.
    pub l4_checksum: Checksum,
}

/// What tells the packets of one flow from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flow {
    /// A device's hash over addresses and ports.
    #[doc(alias = "RTE_MBUF_F_RX_RSS_HASH")]
    Hash(u32),
    /// An id that the stack gave.
    #[doc(alias = "ph_flowid")]
    Id(u32),
}

impl Flow {
    /// The number, whichever it is: what a queue is chosen by.
    pub const fn value(self) -> u32 {
        match self {
            Self::Hash(value) | Self::Id(value) => value,
        }
    }
}

/// All that this module's flags stand for.
pub(crate) const META: SegFlags = SegFlags::RECEIVED
    .union(SegFlags::VLAN)
    .union(SegFlags::TIMESTAMP)
    .union(SegFlags::FLOW)
    .union(SegFlags::HASHED)
    .union(SegFlags::PRIORITY);

/// Line 1 of a packet if all of `flags` are set.
#[inline]
pub(crate) fn said<P: Packet + ?Sized>(packet: &P, flags: SegFlags) -> Option<&Meta> {
    let seg = packet.first();
    // SAFETY: line 1 was written when the flag was set; the borrow keeps writers away.
    (seg.fields().flags.contains(flags)).then(|| unsafe { seg.ptr().meta() })
}

#[inline]
pub(crate) fn received<P: Packet + ?Sized>(packet: &P) -> Option<Received> {
    let meta = said(packet, SegFlags::RECEIVED)?;
    Some(Received {
        port: meta.port,
        queue: meta.queue,
        packet_type: PacketType::from_bits_retain(meta.packet_type),
        ip_checksum: Checksum::from_bits(meta.checksums),
        l4_checksum: Checksum::from_bits(meta.checksums >> 4),
    })
}

#[inline]
pub(crate) fn flow<P: Packet + ?Sized>(packet: &P) -> Option<Flow> {
    let value = said(packet, SegFlags::FLOW)?.flow;
    Some(match said(packet, SegFlags::HASHED) {
        Some(_) => Flow::Hash(value),
        None => Flow::Id(value),
    })
}

impl Mbuf {
    /// Line 1, for writing what `flag` stands for, which is said from now on.
    #[inline]
    pub(crate) fn line1(&mut self, flag: SegFlags) -> &mut Meta {
        // SAFETY: exclusive handle, mutably borrowed; fields and line 1 are disjoint.
        unsafe {
            self.ptr().fields_mut().flags |= flag;
            self.ptr().meta_mut()
        }
    }

    #[inline]
    fn say_no_more(&mut self, flags: SegFlags) {
        // SAFETY: exclusive handle, mutably borrowed.
        unsafe { self.ptr().fields_mut() }.flags.remove(flags);
    }

    /// Says how the packet was received.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::standard(64, 8)?;
    /// use mbuf::{Checksum, Packet, PacketType, Received};
    /// let mut m = set.header()?;
    /// assert_eq!(m.received(), None);
    /// m.set_received(Received {
    ///     port: 3,
    ///     packet_type: PacketType::IPV4 | PacketType::TCP,
    ///     l4_checksum: Checksum::Good,
    ///     ..Received::default()
    /// });
    /// assert_eq!(m.received().unwrap().packet_type.to_string(), "IPV4|TCP");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn set_received(&mut self, said: Received) {
        let meta = self.line1(SegFlags::RECEIVED);
        meta.port = said.port;
        meta.queue = said.queue;
        meta.packet_type = said.packet_type.bits();
        meta.checksums = said.ip_checksum as u8 | (said.l4_checksum as u8) << 4;
    }

    /// Sets or removes the VLAN tag: priority, drop eligibility and VLAN id, as in the frame.
    #[doc(alias = "ether_vtag")]
    #[doc(alias = "vlan_tci")]
    #[inline]
    pub fn set_vlan(&mut self, tag: Option<u16>) {
        match tag {
            Some(tag) => self.line1(SegFlags::VLAN).vlan = tag,
            None => self.say_no_more(SegFlags::VLAN),
        }
    }

    /// Sets or removes the timestamp, in nanoseconds; since when is the caller's business.
    #[doc(alias = "ph_timestamp")]
    #[inline]
    pub fn set_timestamp(&mut self, nanoseconds: Option<u64>) {
        match nanoseconds {
            Some(time) => self.line1(SegFlags::TIMESTAMP).timestamp = time,
            None => self.say_no_more(SegFlags::TIMESTAMP),
        }
    }

    /// Sets or removes the flow.
    #[inline]
    pub fn set_flow(&mut self, flow: Option<Flow>) {
        self.say_no_more(SegFlags::FLOW | SegFlags::HASHED);
        match flow {
            Some(Flow::Hash(hash)) => self.line1(SegFlags::FLOW | SegFlags::HASHED).flow = hash,
            Some(Flow::Id(id)) => self.line1(SegFlags::FLOW).flow = id,
            None => {}
        }
    }

    /// Sets or removes the priority. BSD's are 0 to 7, and 3 stands for none.
    #[doc(alias = "pf.prio")]
    #[inline]
    pub fn set_priority(&mut self, priority: Option<u8>) {
        match priority {
            Some(priority) => self.line1(SegFlags::PRIORITY).priority = priority,
            None => self.say_no_more(SegFlags::PRIORITY),
        }
    }

    /// Takes over how `from` was received, its VLAN tag, timestamp, flow and priority; what it does
    /// not say, this packet does not say any more either.
    /// [`copy_header_from`](Self::copy_header_from) takes over the rest too.
    pub fn copy_metadata_from(&mut self, from: &(impl Packet + ?Sized)) {
        self.clear_metadata();
        let flags = from.first().fields().flags & META;
        if let Some(&theirs) = said(from, SegFlags::empty()) {
            let ours = self.line1(flags);
            *ours = Meta {
                offload: ours.offload,
                user: ours.user,
                next_packet: ours.next_packet,
                ..theirs
            };
        }
    }

    /// Takes back all that [`copy_metadata_from`](Self::copy_metadata_from) copies.
    pub fn clear_metadata(&mut self) {
        self.say_no_more(META);
    }
}

impl PlainMut<'_> {
    /// As [`Mbuf::set_received`].
    #[inline]
    pub fn set_received(&mut self, said: Received) {
        self.mbuf().set_received(said);
    }

    /// As [`Mbuf::set_vlan`].
    #[inline]
    pub fn set_vlan(&mut self, tag: Option<u16>) {
        self.mbuf().set_vlan(tag);
    }

    /// As [`Mbuf::set_timestamp`].
    #[inline]
    pub fn set_timestamp(&mut self, nanoseconds: Option<u64>) {
        self.mbuf().set_timestamp(nanoseconds);
    }

    /// As [`Mbuf::set_flow`].
    #[inline]
    pub fn set_flow(&mut self, flow: Option<Flow>) {
        self.mbuf().set_flow(flow);
    }
}
