//! The virtio-net header: what either side leaves to the other.

use mbuf::{Checksum, OffloadFlags, Received, TxOffload};

use crate::checksum::Checksum as Sum;
use crate::segment::{Layout, SegmentError};

/// Bytes of the header as Linux has it by default, in the machine's byte order.
pub(super) const LEN: usize = 10;

const NEEDS_CSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;

/// All requests that change a frame; the others say what it is.
pub(super) const WORK: OffloadFlags = OffloadFlags::TSO
    .union(OffloadFlags::TCP_CSUM)
    .union(OffloadFlags::UDP_CSUM)
    .union(OffloadFlags::IPV4_CSUM);

/// Bytes of packet headers that a request may cover: Ethernet with two tags, IP and TCP with all
/// their options, some extension headers.
const MOST: usize = 256 - LEN;

/// A virtio-net header, and behind it the packet's own headers where these had to be changed.
pub(super) struct Front {
    bytes: [u8; LEN + MOST],
    /// Bytes of the packet that stand here and not in its mbufs.
    pub(super) taken: usize,
}

impl Front {
    /// For a packet that asks for nothing.
    pub(super) fn plain() -> Self {
        Front {
            bytes: [0; LEN + MOST],
            taken: 0,
        }
    }

    /// Virtio-net header and what follows.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..LEN + self.taken]
    }

    /// For a packet of `len` bytes that asks for `ask`; `read` copies its first bytes.
    pub(super) fn of(
        ask: &TxOffload,
        len: usize,
        read: impl FnOnce(&mut [u8]),
    ) -> Result<Self, SegmentError> {
        let mut front = Self::plain();
        let need = usize::from(ask.l2_len) + usize::from(ask.l3_len) + usize::from(ask.l4_len);
        // Fields that are read or written lie within what was announced, or 20 bytes behind it.
        let taken = (need + 20).min(len);
        if taken > MOST || need > len {
            return Err(SegmentError::Short { need, have: len });
        }
        let (virtio, headers) = front.bytes.split_at_mut(LEN);
        let headers = &mut headers[..taken];
        read(headers);
        let layout = Layout::of(headers, ask)?;
        if ask.flags.contains(OffloadFlags::IPV4_CSUM) {
            layout.sum_ip(headers);
        }
        if ask.flags.contains(OffloadFlags::TSO) {
            layout.check_tso(headers, ask)?;
            add_length(headers, layout.l4 + 16, len - layout.l4);
            virtio[1] = if layout.v6 { GSO_TCPV6 } else { GSO_TCPV4 };
            put(virtio, 2, layout.payload as u16);
            put(virtio, 4, ask.tso_mss);
        }
        let field = match ask.flags {
            f if f.intersects(OffloadFlags::TSO | OffloadFlags::TCP_CSUM) => 16,
            f if f.contains(OffloadFlags::UDP_CSUM) => 6,
            _ => 0,
        };
        if field > 0 {
            virtio[0] = NEEDS_CSUM;
            put(virtio, 6, layout.l4 as u16);
            put(virtio, 8, field);
        }
        front.taken = taken;
        Ok(front)
    }
}

/// Under TSO our seed is without the length, as hardware wants it; the kernel's has the packet's.
fn add_length(headers: &mut [u8], at: usize, len: usize) {
    let field = &mut headers[at..at + 2];
    let mut sum = Sum::default();
    sum.add(field);
    // More than 16 bits where the packet is as long as the link header allows.
    sum.add_u16((len >> 16) as u16);
    sum.add_u16(len as u16);
    field.copy_from_slice(&sum.partial().to_be_bytes());
}

fn put(header: &mut [u8], at: usize, n: u16) {
    header[at..at + 2].copy_from_slice(&n.to_ne_bytes());
}

/// What a virtio-net header says of a received frame. A checksum that was never made, since the
/// frame came from this very machine, counts as right.
pub(super) fn received(header: &[u8; LEN]) -> Received {
    let l4_checksum = match header[0] & (NEEDS_CSUM | DATA_VALID) {
        0 => Checksum::Unknown,
        _ => Checksum::Good,
    };
    Received {
        l4_checksum,
        ..Received::default()
    }
}
