//! From a decided segment to a packet: storage, payload, headers in place, checksum, offload wishes.

mod headers;
mod storage;

use storage::Storage;

use mbuf::{BufferSet, Mbuf, OffloadFlags, Packet, TxOffload};
use sockbuf::SockBuf;

use crate::MAX_LINK_HEADER;
use crate::checksum::{ChecksumMode, Sum};
use crate::decide::Segment;
use crate::error::BuildError;
use crate::plan::SendPlan;
use crate::policy::{CopyPolicy, Placement};
use crate::tcb::Tcb;
use crate::wire::TCP_CHECKSUM_OFFSET;

/// A packet, and how it came by its payload.
#[derive(Debug)]
pub struct Built {
    /// IP header, TCP header, payload; at least [`MAX_LINK_HEADER`] bytes are free in front.
    pub packet: Mbuf,
    /// How the payload is held.
    pub payload: Payload,
    /// For want of memory it is not as the policy chose.
    pub fell_back: bool,
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
/// When memory is short, what can be had is used (see [`CopyPolicy`]): the segment may come out
/// shorter than it went in, and then asks for another pass.
///
/// # Errors
/// [`BuildError`]: for want of memory, or when segment and send buffer do not belong together.
/// Everything taken until then is freed; send buffer and segment are unchanged.
pub fn build<P: CopyPolicy>(
    tcb: &Tcb,
    segment: &mut Segment,
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
            fell_back: false,
        });
    }
    let plan = SendPlan::of(tcb, segment, sb);
    let storage = storage::find(&plan, segment.tso_mss, policy, set)?;
    let mut built = place(storage, tcb, segment, sb, policy.placement(), mode)?;
    finish(&mut built.packet, tcb, segment, mode);
    Ok(built)
}

/// Headers and payload into the storage that was found. Inlined, as is finding it, so that the storage
/// stays in registers from one to the other: 9 ns of a small packet's 60.
#[inline(always)]
fn place(
    storage: Storage,
    tcb: &Tcb,
    segment: &mut Segment,
    sb: &SockBuf,
    placement: Placement,
    mode: ChecksumMode,
) -> Result<Built, BuildError> {
    let Storage {
        mut packet,
        tail,
        len,
        payload,
        fell_back,
    } = storage;
    if len < segment.len {
        segment.shorten(len);
    }
    let header_len = segment.header_len(tcb);
    let body = if tail.is_none() { len } else { 0 };
    match placement {
        Placement::Front => packet.set_lead(MAX_LINK_HEADER)?,
        Placement::End => packet.align_end(header_len + body)?,
    }
    let (head, room) = packet.append(header_len + body)?.split_at_mut(header_len);
    headers::write(head, tcb, segment, mode);
    match tail {
        Some(tail) => packet.cat(tail),
        None => sb.copy_to(segment.off, room)?,
    }
    Ok(Built {
        packet,
        payload,
        fell_back,
    })
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
    } else {
        match mode {
            ChecksumMode::Software => store_checksum(packet, l3_len),
            ChecksumMode::Partial(_) => offload.flags |= OffloadFlags::TCP_CSUM,
            ChecksumMode::None => {}
        }
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
