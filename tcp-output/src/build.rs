//! From a decided segment to a packet: storage, payload, headers in place, checksum, offload wishes.

mod headers;

use mbuf::{BufferSet, Mbuf, OffloadFlags, Packet, TxOffload};
use sockbuf::SockBuf;

use crate::MAX_LINK_HEADER;
use crate::checksum::{ChecksumMode, Sum};
use crate::decide::Segment;
use crate::error::BuildError;
use crate::plan::SendPlan;
use crate::policy::{CopyPolicy, How, Placement};
use crate::tcb::Tcb;
use crate::wire::TCP_CHECKSUM_OFFSET;

/// A packet, and how it came by its payload.
#[derive(Debug)]
pub struct Built {
    /// IP header, TCP header, payload; at least [`MAX_LINK_HEADER`] bytes are free in front.
    pub packet: Mbuf,
    /// How the payload is held.
    pub payload: Payload,
}

/// How a packet holds its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Payload {
    /// There is none.
    None,
    /// Copied into the header mbuf because it fits there.
    Inline,
    /// Copied because the policy said so.
    Copied,
    /// Referred to.
    Referenced,
}

/// Builds the packet for `segment`.
///
/// The IP packet starts at the first byte; the link header is the driver's business, as is
/// [`TxOffload::l2_len`].
///
/// # Errors
/// [`BuildError`]: for want of memory, or when segment and send buffer do not belong together.
/// Everything taken until then is freed; the send buffer is unchanged.
pub fn build<P: CopyPolicy>(
    tcb: &Tcb,
    segment: &Segment,
    sb: &SockBuf,
    policy: &P,
    set: &BufferSet,
    mode: ChecksumMode,
) -> Result<Built, BuildError> {
    let header_len = segment.header_len(tcb);
    headers::check_length(tcb, header_len + segment.len)?;
    if segment.len == 0 {
        let mut packet = set.header_with(MAX_LINK_HEADER + header_len)?;
        packet.set_lead(MAX_LINK_HEADER)?;
        headers::write(packet.append(header_len)?, tcb, segment, mode);
        finish(&mut packet, tcb, segment, mode);
        return Ok(Built {
            packet,
            payload: Payload::None,
        });
    }
    let (mut packet, payload) = with_payload(tcb, segment, sb, policy, set, mode)?;
    finish(&mut packet, tcb, segment, mode);
    Ok(Built { packet, payload })
}

/// Storage, headers and payload.
fn with_payload<P: CopyPolicy>(
    tcb: &Tcb,
    segment: &Segment,
    sb: &SockBuf,
    policy: &P,
    set: &BufferSet,
    mode: ChecksumMode,
) -> Result<(Mbuf, Payload), BuildError> {
    let len = segment.len;
    let header_len = segment.header_len(tcb);
    let plan = SendPlan::of(tcb, segment, sb);
    let need = MAX_LINK_HEADER + header_len;
    let copy = policy.choose(&plan) == How::Copy && holds(set, need + len);
    let mut packet = set.header_with(if copy { need + len } else { need })?;
    // Whoever got the room copies: that is how the large cluster selects copying in the original,
    // and how a few bytes ride in the header mbuf.
    let inline = packet.first().capacity() >= need + len;
    let body = if inline { len } else { 0 };
    match policy.placement() {
        Placement::Front => packet.set_lead(MAX_LINK_HEADER)?,
        Placement::End => packet.align_end(header_len + body)?,
    }
    let (head, room) = packet.append(header_len + body)?.split_at_mut(header_len);
    headers::write(head, tcb, segment, mode);
    if inline {
        sb.copy_to(segment.off, room)?;
        return Ok((
            packet,
            if copy {
                Payload::Copied
            } else {
                Payload::Inline
            },
        ));
    }
    packet.cat(sb.ref_copy(segment.off, len, set)?);
    Ok((packet, Payload::Referenced))
}

/// Whether one storage of this set can hold `bytes`.
fn holds(set: &BufferSet, bytes: usize) -> bool {
    bytes <= set.header_room() || set.largest_class().is_some_and(|largest| bytes <= largest)
}

/// The full checksum if software makes it, and what is asked of the hardware.
fn finish(packet: &mut Mbuf, tcb: &Tcb, segment: &Segment, mode: ChecksumMode) {
    let l3_len = tcb.ends.ip_header_len();
    let family = if tcb.ends.is_v6() {
        OffloadFlags::IPV6
    } else {
        OffloadFlags::IPV4
    };
    let mut offload = TxOffload {
        flags: family,
        l3_len: l3_len as u16,
        l4_len: (segment.header_len(tcb) - l3_len) as u16,
        ..TxOffload::default()
    };
    if let Some(mss) = segment.tso_mss {
        offload.flags |= OffloadFlags::TCP_CSUM | OffloadFlags::TSO;
        offload.tso_mss = mss;
    } else if mode == ChecksumMode::Software {
        store_checksum(packet, l3_len);
    } else {
        offload.flags |= OffloadFlags::TCP_CSUM;
    }
    packet.set_offload(offload);
}

/// Sums TCP header and payload over the pseudo header sum that stands in the field, and replaces it.
fn store_checksum(packet: &mut Mbuf, l3_len: usize) {
    let mut sum = Sum::new();
    let mut skip = l3_len;
    for seg in packet.segments() {
        sum.add(&seg.data()[skip..]);
        skip = 0;
    }
    let at = l3_len + TCP_CHECKSUM_OFFSET;
    // The header's storage is new and nobody else's.
    if let Some(field) = packet.data_mut().and_then(|data| data.get_mut(at..at + 2)) {
        field.copy_from_slice(&sum.checksum().to_be_bytes());
    }
}
