//! Reading TCP options: element by element, and what of them a connection wants to know.

use thiserror::Error;
use zerocopy::byteorder::network_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::options::{
    KIND_MSS, KIND_NOP, KIND_SACK, KIND_SACK_PERMITTED, KIND_TIMESTAMPS, KIND_WINDOW_SCALE,
    SackBlock, Timestamps,
};
use crate::seq::Seq;

/// Most SACK blocks that fit the options of one segment.
pub const MAX_BLOCKS_HEARD: usize = 4;

/// The largest shift of a window field (RFC 7323, 2.3); larger ones are taken for this one.
#[doc(alias = "TCP_MAX_WINSHIFT")]
pub const MAX_WINDOW_SHIFT: u8 = 14;

const KIND_END: u8 = 0;

/// A SACK block as it stands in a header, network order.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct WireBlock {
    start: U32,
    end: U32,
}

impl From<WireBlock> for SackBlock {
    fn from(wire: WireBlock) -> Self {
        SackBlock {
            start: Seq(wire.start.get()),
            end: Seq(wire.end.get()),
        }
    }
}

/// One option of a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TcpOption<'a> {
    /// The end of the options; what stands behind it is padding.
    End,
    /// A filler.
    Nop,
    /// The largest segment that the sender of the SYN takes, bytes of data and options.
    MaxSegment(u16),
    /// The shift of the sender's window field, as it stands.
    WindowScale(u8),
    /// SACK blocks may be sent to the sender.
    SackPermitted,
    /// Ranges that arrived out of order.
    Sack(&'a [WireBlock]),
    /// Timestamps.
    Timestamps(Timestamps),
    /// Any other kind, and known kinds with a length that is not theirs.
    Other {
        /// Its number.
        kind: u8,
        /// What stands behind kind and length.
        data: &'a [u8],
    },
}

/// An option whose length is impossible. Nothing behind it can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("TCP option {kind} says it is {said} bytes long, {have} are left")]
pub struct BadOption {
    /// Its number.
    pub kind: u8,
    /// The length it claims, 0 when the length is missing.
    pub said: u8,
    /// Bytes that are left, kind and length included.
    pub have: usize,
}

/// The options of a header, one after the other.
///
/// Ends behind [`TcpOption::End`] and behind an error.
///
/// ```
/// use tcp_output::input::{TcpOption, TcpOptions};
///
/// let mut options = TcpOptions::new(&[2, 4, 0x05, 0xb4, 1, 3, 3, 7, 9, 1]);
/// assert_eq!(options.next(), Some(Ok(TcpOption::MaxSegment(1460))));
/// assert_eq!(options.next(), Some(Ok(TcpOption::Nop)));
/// assert_eq!(options.next(), Some(Ok(TcpOption::WindowScale(7))));
/// assert!(options.next().is_some_and(|last| last.is_err()), "no option is one byte long");
/// assert_eq!(options.next(), None);
/// ```
#[derive(Clone, Debug)]
pub struct TcpOptions<'a> {
    rest: &'a [u8],
    over: bool,
}

impl<'a> TcpOptions<'a> {
    /// The options in `bytes`, all that stands behind the fixed part of a TCP header.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        TcpOptions {
            rest: bytes,
            over: false,
        }
    }

    /// What has not been read: behind [`TcpOption::End`] the padding, after an error the option
    /// that it is about.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for TcpOptions<'a> {
    type Item = Result<TcpOption<'a>, BadOption>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let have = self.rest.len();
        let (&kind, behind) = self.rest.split_first()?;
        if kind == KIND_END || kind == KIND_NOP {
            self.over = kind == KIND_END;
            self.rest = behind;
            let filler = [TcpOption::End, TcpOption::Nop][usize::from(kind)];
            return Some(Ok(filler));
        }
        let said = behind.first().copied().unwrap_or(0);
        let len = usize::from(said);
        if len < 2 || len > have {
            self.over = true;
            return Some(Err(BadOption { kind, said, have }));
        }
        let (option, rest) = self.rest.split_at(len);
        self.rest = rest;
        Some(Ok(TcpOption::of(kind, &option[2..])))
    }
}

impl<'a> TcpOption<'a> {
    fn of(kind: u8, data: &'a [u8]) -> Self {
        let known = match (kind, data) {
            (KIND_MSS, &[a, b]) => Some(TcpOption::MaxSegment(u16::from_be_bytes([a, b]))),
            (KIND_WINDOW_SCALE, &[shift]) => Some(TcpOption::WindowScale(shift)),
            (KIND_SACK_PERMITTED, []) => Some(TcpOption::SackPermitted),
            (KIND_SACK, blocks) => <[WireBlock]>::ref_from_bytes(blocks)
                .ok()
                .filter(|blocks| !blocks.is_empty())
                .map(TcpOption::Sack),
            (KIND_TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                Some(TcpOption::Timestamps(Timestamps {
                    value: u32::from_be_bytes([a, b, c, d]),
                    echo: u32::from_be_bytes([e, f, g, h]),
                }))
            }
            _ => None,
        };
        known.unwrap_or(TcpOption::Other { kind, data })
    }

    /// Appends the option as it stands in a header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            TcpOption::End => out.push(KIND_END),
            TcpOption::Nop => out.push(KIND_NOP),
            TcpOption::MaxSegment(mss) => encode(out, KIND_MSS, &mss.to_be_bytes()),
            TcpOption::WindowScale(shift) => encode(out, KIND_WINDOW_SCALE, &[shift]),
            TcpOption::SackPermitted => encode(out, KIND_SACK_PERMITTED, &[]),
            TcpOption::Sack(blocks) => encode(out, KIND_SACK, blocks.as_bytes()),
            TcpOption::Timestamps(Timestamps { value, echo }) => {
                let clocks = u64::from(value) << 32 | u64::from(echo);
                encode(out, KIND_TIMESTAMPS, &clocks.to_be_bytes());
            }
            TcpOption::Other { kind, data } => encode(out, kind, data),
        }
    }
}

fn encode(out: &mut Vec<u8>, kind: u8, data: &[u8]) {
    out.extend([kind, 2 + data.len() as u8]);
    out.extend(data);
}

/// The options that a connection acts on. `Default` is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PeerOptions {
    /// The largest segment that the peer takes, bytes; as it stands, also when absurd.
    pub max_segment: Option<u16>,
    /// Shift of the peer's window field, at most [`MAX_WINDOW_SHIFT`].
    pub window_scale: Option<u8>,
    /// SACK blocks may be sent to the peer.
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    blocks: [SackBlock; MAX_BLOCKS_HEARD],
    count: u8,
}

impl PeerOptions {
    /// Reads all that stands behind the fixed part of a TCP header. What comes behind an impossible
    /// length is ignored, as is a known option of a wrong length (RFC 9293, MUST-7).
    #[doc(alias = "tcp_dooptions")]
    #[must_use]
    pub fn read(bytes: &[u8]) -> PeerOptions {
        let mut heard = PeerOptions::default();
        // What nearly all segments of a connection carry, in the layout of RFC 7323, appendix A.
        if let &[KIND_NOP, KIND_NOP, KIND_TIMESTAMPS, 10, ref clocks @ ..] = bytes
            && let TcpOption::Timestamps(timestamps) = TcpOption::of(KIND_TIMESTAMPS, clocks)
        {
            heard.timestamps = Some(timestamps);
            return heard;
        }
        for option in TcpOptions::new(bytes).map_while(Result::ok) {
            heard.take(&option);
        }
        heard
    }

    fn take(&mut self, option: &TcpOption<'_>) {
        match *option {
            TcpOption::MaxSegment(mss) => self.max_segment = Some(mss),
            TcpOption::WindowScale(shift) => {
                self.window_scale = Some(shift.min(MAX_WINDOW_SHIFT));
            }
            TcpOption::SackPermitted => self.sack_permitted = true,
            TcpOption::Timestamps(timestamps) => self.timestamps = Some(timestamps),
            TcpOption::Sack(blocks) => {
                let n = blocks.len().min(MAX_BLOCKS_HEARD);
                for (block, wire) in self.blocks.iter_mut().zip(blocks) {
                    *block = (*wire).into();
                }
                self.count = n as u8;
            }
            TcpOption::End | TcpOption::Nop | TcpOption::Other { .. } => {}
        }
    }

    /// The SACK blocks, as they stand: neither ordered nor checked.
    #[must_use]
    pub fn sack(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.count)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_x8_timestamps_are_read_in_network_order() {
        let asymmetric = Some(Timestamps {
            value: 0x0102_0304,
            echo: 0x0506_0708,
        });
        for bytes in [
            &[1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8][..],
            &[8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1],
            &[4, 2, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8],
        ] {
            assert_eq!(PeerOptions::read(bytes).timestamps, asymmetric, "{bytes:?}");
        }
    }

    #[test]
    fn a_wrong_length_is_ignored_and_an_impossible_one_ends_the_reading() {
        let wrong = PeerOptions::read(&[2, 3, 5, 3, 3, 7, 4, 2]);
        assert_eq!(wrong.max_segment, None);
        assert_eq!((wrong.window_scale, wrong.sack_permitted), (Some(7), true));
        for impossible in [0, 1, 9] {
            let heard = PeerOptions::read(&[3, 3, 5, 2, impossible, 5, 4, 2]);
            assert_eq!((heard.window_scale, heard.sack_permitted), (Some(5), false));
        }
        assert_eq!(PeerOptions::read(&[0, 4, 2]), PeerOptions::default());
        let torn = PeerOptions::read(&[5, 9, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(torn.sack(), [], "not whole blocks");
    }

    #[test]
    fn a_shift_above_14_is_taken_for_14() {
        assert_eq!(PeerOptions::read(&[3, 3, 255]).window_scale, Some(14));
    }

    #[test]
    fn random_bytes_are_read_and_come_out_again() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..rng.usize(0..=40)).map(|_| rng.u8(0..12)).collect();
            let mut out = Vec::new();
            let mut options = TcpOptions::new(&bytes);
            for option in options.by_ref().map_while(Result::ok) {
                option.encode(&mut out);
            }
            out.extend(options.rest());
            assert_eq!(out, bytes);
            let _ = PeerOptions::read(&bytes);
        }
    }
}
