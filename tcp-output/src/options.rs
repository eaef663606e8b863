//! TCP options of an established connection: timestamps and SACK blocks.

use crate::seq::Seq;

/// Most bytes of options that a TCP header holds.
pub const MAX_OPTIONS_LEN: usize = 40;

/// Bytes that the timestamps option takes, with the two fillers in front of it (RFC 7323, appendix A).
pub const TIMESTAMPS_LEN: usize = 12;

/// Bytes kept for a signature, with the two fillers in front of it (RFC 2385).
pub const SIGNATURE_LEN: usize = 20;

/// Most SACK blocks that are sent in one segment.
#[doc(alias = "TCP_MAX_SACK")]
pub const MAX_SACK_BLOCKS: usize = 3;

const KIND_NOP: u8 = 1;
const KIND_SACK: u8 = 5;
const KIND_TIMESTAMPS: u8 = 8;

/// The timestamps option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timestamps {
    /// Our clock.
    pub value: u32,
    /// The peer's clock, echoed.
    pub echo: u32,
}

/// A range of bytes that arrived out of order: `start` inclusive, `end` exclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlock {
    /// First byte held.
    pub start: Seq,
    /// The byte behind the last one held.
    pub end: Seq,
}

/// The options of one segment. `Default` is none.
///
/// ```
/// use tcp_output::options::{Options, SackBlock, Timestamps};
/// use tcp_output::Seq;
///
/// let mut options = Options::default();
/// options.set_timestamps(Timestamps { value: 1, echo: 2 });
/// options.set_sack(&[SackBlock { start: Seq(10), end: Seq(20) }]);
/// assert_eq!(options.len(), 24);
/// let mut bytes = [0; 24];
/// options.write(&mut bytes);
/// assert_eq!(bytes[..4], [1, 1, 8, 10]);
/// assert_eq!(bytes[12..16], [1, 1, 5, 10]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    timestamps: Option<Timestamps>,
    sack: [SackBlock; MAX_SACK_BLOCKS],
    sacks: u8,
}

impl Options {
    /// Asks for the timestamps option.
    pub fn set_timestamps(&mut self, timestamps: Timestamps) {
        self.timestamps = Some(timestamps);
    }

    /// Asks for as many of `blocks`, from the front, as have room: at most three. Replaces blocks
    /// set before; no blocks means no option, never an empty one.
    pub fn set_sack(&mut self, blocks: &[SackBlock]) {
        self.sacks = 0;
        let room = (MAX_OPTIONS_LEN - self.len()).saturating_sub(4) / 8;
        let n = blocks.len().min(room).min(MAX_SACK_BLOCKS);
        self.sack[..n].copy_from_slice(&blocks[..n]);
        self.sacks = n as u8;
    }

    /// The timestamps, if asked for.
    #[must_use]
    pub fn timestamps(&self) -> Option<Timestamps> {
        self.timestamps
    }

    /// The SACK blocks.
    #[must_use]
    pub fn sack(&self) -> &[SackBlock] {
        &self.sack[..usize::from(self.sacks)]
    }

    /// Bytes the options take, a multiple of 4, at most [`MAX_OPTIONS_LEN`].
    #[must_use]
    pub fn len(&self) -> usize {
        let timestamps = if self.timestamps.is_some() {
            TIMESTAMPS_LEN
        } else {
            0
        };
        let sack = if self.sacks > 0 {
            4 + 8 * usize::from(self.sacks)
        } else {
            0
        };
        timestamps + sack
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the options into the first [`len`](Self::len) bytes of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than that.
    pub fn write(&self, out: &mut [u8]) {
        let mut out = &mut out[..self.len()];
        if let Some(timestamps) = self.timestamps {
            let (here, rest) = out.split_at_mut(TIMESTAMPS_LEN);
            here[..4].copy_from_slice(&[KIND_NOP, KIND_NOP, KIND_TIMESTAMPS, 10]);
            here[4..8].copy_from_slice(&timestamps.value.to_be_bytes());
            here[8..].copy_from_slice(&timestamps.echo.to_be_bytes());
            out = rest;
        }
        if self.sacks > 0 {
            let (head, blocks) = out.split_at_mut(4);
            head.copy_from_slice(&[KIND_NOP, KIND_NOP, KIND_SACK, 2 + 8 * self.sacks]);
            for (bytes, block) in blocks.chunks_exact_mut(8).zip(self.sack()) {
                bytes[..4].copy_from_slice(&block.start.0.to_be_bytes());
                bytes[4..].copy_from_slice(&block.end.0.to_be_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_x8_timestamps_are_in_network_order() {
        let mut options = Options::default();
        options.set_timestamps(Timestamps {
            value: 0x0102_0304,
            echo: 0x0506_0708,
        });
        let mut bytes = [0; 12];
        options.write(&mut bytes);
        assert_eq!(bytes, [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn blocks_beyond_the_room_are_left_out() {
        let blocks = [SackBlock {
            start: Seq(1),
            end: Seq(2),
        }; 5];
        let mut options = Options::default();
        options.set_sack(&blocks);
        assert_eq!((options.sack().len(), options.len()), (3, 28));
        options.set_timestamps(Timestamps { value: 0, echo: 0 });
        options.set_sack(&blocks);
        assert_eq!((options.sack().len(), options.len()), (3, 40));
        options.set_sack(&[]);
        assert_eq!(options.len(), 12, "no empty SACK option");
    }
}
