//! What the hardware does to a packet on its way out: cutting a TSO packet into frames, filling in
//! checksums.
//!
//! The stack leaves a seed in the TCP (or UDP) checksum field, as real hardware wants it: the
//! pseudo-header sum with the length when only the checksum is asked for, and without the length
//! under TSO, since each frame has its own. The seed is used as it stands: a stack that writes a
//! wrong one gets wrong checksums on the wire.

use mbuf::{OffloadFlags, TxOffload};

use crate::checksum::Checksum;
use crate::header::{CWR, FIN, PSH, TCP};
use crate::wire::FrameSink;

/// Why hardware refuses a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    /// Less bytes than the headers that the request announces.
    #[error("packet of {have} bytes is shorter than its {need} bytes of headers")]
    Short {
        /// Bytes of headers announced.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
    /// IP version 4 or 6 was announced, the header says another.
    #[error("header of IP version {found} does not fit the flags {flags:?}")]
    Version {
        /// What the request said.
        flags: OffloadFlags,
        /// What the header says.
        found: u8,
    },
    /// The header's own length field is not what the request says.
    #[error("{layer} header of {found} bytes, announced {said}")]
    HeaderLength {
        /// `"IP"` or `"TCP"`.
        layer: &'static str,
        /// What the request said.
        said: usize,
        /// What the header says.
        found: usize,
    },
    /// The IP length does not end with the packet.
    #[error("IP length {said}, packet has {have} bytes behind the link header")]
    IpLength {
        /// What the IP header says.
        said: usize,
        /// Bytes behind the link header.
        have: usize,
    },
    /// TSO with frames of no payload.
    #[error("TSO with a segment size of 0")]
    ZeroMss,
    /// TSO with frames longer than an IP packet can be.
    #[error("TSO frame of {len} bytes is longer than an IP packet can be")]
    FrameTooLong {
        /// Bytes behind the link header.
        len: usize,
    },
    /// TSO for a packet that is not TCP, or for a fragment.
    #[error("TSO for IP protocol {protocol}, fragment field {fragment:#06x}")]
    NotTcp {
        /// IPv4 protocol or IPv6 next header.
        protocol: u8,
        /// IPv4 fragment field (0 for IPv6).
        fragment: u16,
    },
}

/// Where the headers of a packet lie, checked against the packet itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) v6: bool,
    l3: usize,
    pub(crate) l4: usize,
    pub(crate) payload: usize,
}

impl Layout {
    pub(crate) fn of(packet: &[u8], ask: &TxOffload) -> Result<Self, SegmentError> {
        let l3 = usize::from(ask.l2_len);
        let l4 = l3 + usize::from(ask.l3_len);
        let payload = l4 + usize::from(ask.l4_len);
        let l4_needs = if ask
            .flags
            .intersects(OffloadFlags::TSO | OffloadFlags::TCP_CSUM)
        {
            20
        } else if ask.flags.contains(OffloadFlags::UDP_CSUM) {
            8
        } else {
            0
        };
        let need = payload.max(l4 + l4_needs).max(l3 + 20);
        if packet.len() < need {
            return Err(SegmentError::Short {
                need,
                have: packet.len(),
            });
        }
        let version = packet[l3] >> 4;
        let v6 = version == 6;
        let excluded = match version {
            4 => OffloadFlags::IPV6,
            6 => OffloadFlags::IPV4 | OffloadFlags::IPV4_CSUM,
            _ => OffloadFlags::all(),
        };
        if ask.flags.intersects(excluded) {
            return Err(SegmentError::Version {
                flags: ask.flags,
                found: version,
            });
        }
        let layout = Layout {
            v6,
            l3,
            l4,
            payload,
        };
        layout.check_lengths(packet, ask)?;
        Ok(layout)
    }

    fn check_lengths(&self, packet: &[u8], ask: &TxOffload) -> Result<(), SegmentError> {
        let said = self.l4 - self.l3;
        let found = match self.v6 {
            // Extension headers may follow the 40 bytes.
            true => said.max(40),
            false => usize::from(packet[self.l3] & 0xf) * 4,
        };
        if said != found {
            return Err(SegmentError::HeaderLength {
                layer: "IP",
                said,
                found,
            });
        }
        if ask
            .flags
            .intersects(OffloadFlags::TSO | OffloadFlags::TCP_CSUM)
        {
            let said = self.payload - self.l4;
            let found = usize::from(packet[self.l4 + 12] >> 4) * 4;
            if said != found || found < 20 {
                return Err(SegmentError::HeaderLength {
                    layer: "TCP",
                    said,
                    found,
                });
            }
        }
        Ok(())
    }

    pub(crate) fn check_tso(&self, packet: &[u8], ask: &TxOffload) -> Result<(), SegmentError> {
        let (protocol, fragment) = match self.v6 {
            // Behind extension headers the protocol is not looked up.
            true if self.l4 - self.l3 > 40 => (TCP, 0),
            true => (packet[self.l3 + 6], 0),
            false => (packet[self.l3 + 9], u16_at(packet, self.l3 + 6) & 0x3fff),
        };
        if protocol != TCP || fragment != 0 {
            return Err(SegmentError::NotTcp { protocol, fragment });
        }
        let mss = usize::from(ask.tso_mss);
        if mss == 0 {
            return Err(SegmentError::ZeroMss);
        }
        let len = self.payload - self.l3 + mss;
        if len > 65_535 {
            return Err(SegmentError::FrameTooLong { len });
        }
        Ok(())
    }

    /// Length field, identification and header sum of the IP header of one frame.
    fn fix_ip(&self, frame: &mut [u8], index: u32) {
        let len = frame.len() - self.l3;
        if self.v6 {
            put_u16(frame, self.l3 + 4, (len - 40) as u16);
            return;
        }
        put_u16(frame, self.l3 + 2, len as u16);
        let id = u16_at(frame, self.l3 + 4).wrapping_add(index as u16);
        put_u16(frame, self.l3 + 4, id);
        self.sum_ip(frame);
    }

    pub(crate) fn sum_ip(&self, frame: &mut [u8]) {
        put_u16(frame, self.l3 + 10, 0);
        let mut sum = Checksum::default();
        sum.add(&frame[self.l3..self.l4]);
        put_u16(frame, self.l3 + 10, sum.finish());
    }

    /// Sequence number and flags of one frame's TCP header.
    fn fix_tcp(&self, frame: &mut [u8], index: u32, mss: u16, last: bool) {
        let seq = &mut frame[self.l4 + 4..self.l4 + 8];
        let first = u32::from_be_bytes([seq[0], seq[1], seq[2], seq[3]]);
        let step = index.wrapping_mul(u32::from(mss));
        seq.copy_from_slice(&first.wrapping_add(step).to_be_bytes());
        let flags = &mut frame[self.l4 + 13];
        if !last {
            *flags &= !(FIN | PSH);
        }
        if index > 0 {
            *flags &= !CWR;
        }
    }

    /// Completes the sum whose seed stands `field` bytes into the TCP or UDP header.
    fn sum_l4(&self, frame: &mut [u8], end: usize, field: usize, extra: u16) -> u16 {
        let mut sum = Checksum::default();
        sum.add(&frame[self.l4..end]);
        sum.add_u16(extra);
        put_u16(frame, self.l4 + field, sum.finish());
        sum.finish()
    }
}

/// Cuts packets into frames; keeps its buffers from packet to packet.
#[derive(Debug, Default)]
pub struct Segmenter {
    header: Vec<u8>,
    frame: Vec<u8>,
}

impl Segmenter {
    /// Sends the packet whose bytes are `pieces` into `sink` as the frame or frames that `ask`
    /// makes of it, and says how many frames and bytes those were.
    ///
    /// Under TSO each frame gets the packet's headers with its own lengths and sums, the sequence
    /// number advanced, the IPv4 identification one more each; FIN and PSH stay on the last frame
    /// only, CWR on the first.
    ///
    /// # Errors
    ///
    /// [`SegmentError`] when the request does not fit the packet; then no frame went out.
    pub fn emit<'a>(
        &mut self,
        pieces: impl Iterator<Item = &'a [u8]>,
        ask: &TxOffload,
        sink: &mut impl FrameSink,
    ) -> Result<(u64, u64), SegmentError> {
        if ask.flags.contains(OffloadFlags::TSO) {
            return self.cut(pieces, ask, sink);
        }
        self.frame.clear();
        pieces.for_each(|piece| self.frame.extend_from_slice(piece));
        if !ask.flags.is_empty() {
            fill_sums(&mut self.frame, ask)?;
        }
        sink.frame(&self.frame);
        Ok((1, self.frame.len() as u64))
    }

    fn cut<'a>(
        &mut self,
        pieces: impl Iterator<Item = &'a [u8]>,
        ask: &TxOffload,
        sink: &mut impl FrameSink,
    ) -> Result<(u64, u64), SegmentError> {
        let length = usize::from(ask.l2_len) + usize::from(ask.l3_len) + usize::from(ask.l4_len);
        let mut pieces = pieces;
        let mut rest = self.gather_header(&mut pieces, length);
        let layout = Layout::of(&self.header, ask)?;
        layout.check_tso(&self.header, ask)?;
        let full = length + usize::from(ask.tso_mss);
        let (mut frames, mut bytes) = (0, 0);
        self.frame.clear();
        self.frame.extend_from_slice(&self.header);
        loop {
            while !rest.is_empty() {
                if self.frame.len() == full {
                    // More is to come, so this one is not the last.
                    bytes += self.send(&layout, frames, ask, false, sink);
                    frames += 1;
                }
                let n = rest.len().min(full - self.frame.len());
                let (now, later) = rest.split_at(n);
                self.frame.extend_from_slice(now);
                rest = later;
            }
            match pieces.next() {
                Some(piece) => rest = piece,
                None => break,
            }
        }
        bytes += self.send(&layout, frames, ask, true, sink);
        Ok((u64::from(frames) + 1, bytes))
    }

    /// Copies the first `length` bytes into `header`; gives back what is left of the last piece.
    fn gather_header<'a>(
        &mut self,
        pieces: &mut impl Iterator<Item = &'a [u8]>,
        length: usize,
    ) -> &'a [u8] {
        self.header.clear();
        let mut rest: &[u8] = &[];
        while self.header.len() < length {
            let Some(piece) = pieces.next() else { break };
            let n = piece.len().min(length - self.header.len());
            self.header.extend_from_slice(&piece[..n]);
            rest = &piece[n..];
        }
        rest
    }

    /// Finishes the frame at hand, sends it, and starts the next with a fresh header.
    fn send(
        &mut self,
        layout: &Layout,
        index: u32,
        ask: &TxOffload,
        last: bool,
        sink: &mut impl FrameSink,
    ) -> u64 {
        let frame = &mut self.frame;
        layout.fix_ip(frame, index);
        layout.fix_tcp(frame, index, ask.tso_mss, last);
        let end = frame.len();
        layout.sum_l4(frame, end, 16, (end - layout.l4) as u16);
        sink.frame(frame);
        frame.truncate(self.header.len());
        frame.copy_from_slice(&self.header);
        end as u64
    }
}

/// Checksums of a packet that goes out as one frame.
fn fill_sums(frame: &mut [u8], ask: &TxOffload) -> Result<(), SegmentError> {
    let layout = Layout::of(frame, ask)?;
    let have = frame.len() - layout.l3;
    let said = match layout.v6 {
        true => 40 + usize::from(u16_at(frame, layout.l3 + 4)),
        false => usize::from(u16_at(frame, layout.l3 + 2)),
    };
    // Behind the IP packet may be padding, which no sum covers.
    if said > have || said < layout.payload - layout.l3 {
        return Err(SegmentError::IpLength { said, have });
    }
    let end = layout.l3 + said;
    if ask.flags.contains(OffloadFlags::TCP_CSUM) {
        layout.sum_l4(frame, end, 16, 0);
    } else if ask.flags.contains(OffloadFlags::UDP_CSUM) {
        // To UDP a sum of 0 means that there is none.
        if layout.sum_l4(frame, end, 6, 0) == 0 {
            put_u16(frame, layout.l4 + 6, 0xffff);
        }
    }
    if ask.flags.contains(OffloadFlags::IPV4_CSUM) {
        layout.sum_ip(frame);
    }
    Ok(())
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put_u16(bytes: &mut [u8], at: usize, n: u16) {
    bytes[at..at + 2].copy_from_slice(&n.to_be_bytes());
}
