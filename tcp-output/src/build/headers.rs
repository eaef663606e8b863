//! IP and TCP headers, written in place.

use zerocopy::FromBytes;

use crate::checksum::{ChecksumMode, PseudoLength, Sum};
use crate::decide::Segment;
use crate::endpoints::Endpoints;
use crate::error::BuildError;
use crate::tcb::Tcb;
use crate::wire::{Ipv4Header, Ipv6Header, PROTO_TCP, TCP_HEADER_LEN, TcpHeader};

/// Do not fragment: the path's limit is what segment sizes are made from.
const DONT_FRAGMENT: u16 = 0x4000;

/// ECN-capable transport, the lower two bits of TOS or traffic class (RFC 3168, 5).
const ECT_0: u8 = 2;

/// Refuses what the length fields cannot say.
pub(super) fn check_length(tcb: &Tcb, packet_len: usize) -> Result<(), BuildError> {
    let uncounted = if tcb.ends.is_v6() {
        tcb.ends.ip_header_len()
    } else {
        0
    };
    let most = usize::from(u16::MAX) + uncounted;
    if packet_len <= most {
        Ok(())
    } else {
        Err(BuildError::TooLong {
            asked: packet_len,
            most,
        })
    }
}

/// Writes IP header, TCP header and options into `out`, which is as long as they are.
///
/// The checksum field gets the pseudo header's sum: with what length, if any, is for the NIC or for
/// the software sum that follows to say.
pub(super) fn write(out: &mut [u8], tcb: &Tcb, segment: &Segment, mode: ChecksumMode) {
    let l4_len = out.len() - tcb.ends.ip_header_len() + segment.len;
    let ecn = if segment.ect { ECT_0 } else { 0 };
    let (ip, tcp) = out.split_at_mut(tcb.ends.ip_header_len());
    match tcb.ends {
        Endpoints::V4 { source, dest, .. } => {
            if let Ok(header) = Ipv4Header::mut_from_bytes(ip) {
                write_v4(header, tcb, [source.octets(), dest.octets()], l4_len, ecn);
            }
        }
        Endpoints::V6 { source, dest, .. } => {
            if let Ok(header) = Ipv6Header::mut_from_bytes(ip) {
                write_v6(header, tcb, [source.octets(), dest.octets()], l4_len, ecn);
            }
        }
    }
    let length = match (segment.tso_mss, mode) {
        (Some(_), _) => Some(PseudoLength::Left),
        (None, ChecksumMode::Partial(length)) => Some(length),
        (None, ChecksumMode::Software) => Some(PseudoLength::Included),
        (None, ChecksumMode::None) => None,
    };
    let pseudo = length.map(|length| Sum::pseudo(&tcb.ends, l4_len as u32, length).folded());
    write_tcp(tcp, tcb, segment, pseudo.unwrap_or(0));
}

fn write_v4(
    header: &mut Ipv4Header,
    tcb: &Tcb,
    [source, dest]: [[u8; 4]; 2],
    l4_len: usize,
    ecn: u8,
) {
    *header = Ipv4Header {
        version_ihl: 0x45,
        tos: ecn,
        total_len: ((size_of::<Ipv4Header>() + l4_len) as u16).into(),
        id: tcb.ip_id.into(),
        fragment: DONT_FRAGMENT.into(),
        ttl: tcb.ttl,
        protocol: PROTO_TCP,
        checksum: 0.into(),
        source,
        dest,
    };
    let mut sum = Sum::new();
    let bytes: [u8; size_of::<Ipv4Header>()] = zerocopy::transmute!(*header);
    sum.add_words(&bytes);
    header.checksum = sum.checksum().into();
}

fn write_v6(
    header: &mut Ipv6Header,
    tcb: &Tcb,
    [source, dest]: [[u8; 16]; 2],
    l4_len: usize,
    ecn: u8,
) {
    *header = Ipv6Header {
        version_class_flow: (6 << 28 | u32::from(ecn) << 20).into(),
        payload_len: (l4_len as u16).into(),
        next_header: PROTO_TCP,
        hop_limit: tcb.ttl,
        source,
        dest,
    };
}

fn write_tcp(out: &mut [u8], tcb: &Tcb, segment: &Segment, checksum: u16) {
    let words = (out.len() / 4) as u8;
    let (fixed, options) = out.split_at_mut(TCP_HEADER_LEN);
    let (source_port, dest_port) = tcb.ends.ports();
    if let Ok(header) = TcpHeader::mut_from_bytes(fixed) {
        *header = TcpHeader {
            source_port: source_port.into(),
            dest_port: dest_port.into(),
            seq: segment.seq.0.into(),
            ack: segment.ack.0.into(),
            data_offset: words << 4,
            flags: segment.flags.bits(),
            window: segment.window.into(),
            checksum: checksum.into(),
            urgent: segment.urgent.into(),
        };
    }
    segment.options.write(options);
}
