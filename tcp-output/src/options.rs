//! TCP options: segment size, window scale, SACK, timestamps, and room for a signature.

use bitflags::bitflags;

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

pub(crate) const KIND_NOP: u8 = 1;
pub(crate) const KIND_MSS: u8 = 2;
pub(crate) const KIND_WINDOW_SCALE: u8 = 3;
pub(crate) const KIND_SACK_PERMITTED: u8 = 4;
pub(crate) const KIND_SACK: u8 = 5;
pub(crate) const KIND_TIMESTAMPS: u8 = 8;
const KIND_SIGNATURE: u8 = 19;

/// The timestamps option.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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

/// The options of one segment. `Default` is none. What has no room left in the
/// [40 bytes](MAX_OPTIONS_LEN) that there are is left out.
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
    timestamps: Timestamps,
    sack: [SackBlock; MAX_SACK_BLOCKS],
    max_segment: u16,
    window_scale: u8,
    sacks: u8,
    there: There,
    /// Bytes of all of them.
    len: u8,
}

bitflags! {
    /// Which options there are, but for SACK blocks, which have a number.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    struct There: u8 {
        const MAX_SEGMENT = 1;
        const SACK_PERMITTED = 2;
        const WINDOW_SCALE = 4;
        const TIMESTAMPS = 8;
        const SIGNATURE = 16;
        const OF_A_SYN = 1 | 2 | 4;
    }
}

impl Options {
    /// What nearly every segment carries: timestamps and nothing else.
    #[inline]
    pub(crate) fn only_timestamps(timestamps: Timestamps) -> Options {
        Options {
            timestamps,
            there: There::TIMESTAMPS,
            len: TIMESTAMPS_LEN as u8,
            ..Options::default()
        }
    }

    /// Announces the largest segment that we take, options not counted (a SYN's).
    #[doc(alias = "TCPOPT_MAXSEG")]
    pub fn set_max_segment(&mut self, bytes: u16) {
        if self.add(There::MAX_SEGMENT, 4) {
            self.max_segment = bytes;
        }
    }

    /// Says that we understand SACK (a SYN's).
    #[doc(alias = "TCPOPT_SACK_PERMITTED")]
    pub fn set_sack_permitted(&mut self) {
        self.add(There::SACK_PERMITTED, 4);
    }

    /// Announces the shift of our window fields (a SYN's).
    #[doc(alias = "TCPOPT_WINDOW")]
    pub fn set_window_scale(&mut self, shift: u8) {
        if self.add(There::WINDOW_SCALE, 4) {
            self.window_scale = shift;
        }
    }

    /// Asks for the timestamps option.
    #[doc(alias = "TCPOPT_TIMESTAMP")]
    pub fn set_timestamps(&mut self, timestamps: Timestamps) {
        if self.add(There::TIMESTAMPS, TIMESTAMPS_LEN) {
            self.timestamps = timestamps;
        }
    }

    /// Keeps room for a signature; its digest is written as zeros, for whoever holds the key to fill.
    #[doc(alias = "TCPOPT_SIGNATURE")]
    pub fn set_signature(&mut self) {
        self.add(There::SIGNATURE, SIGNATURE_LEN);
    }

    /// Makes room for an option, unless it has some, and says whether it has.
    fn add(&mut self, option: There, bytes: usize) -> bool {
        if self.there.contains(option) {
            return true;
        }
        let fits = self.len() + bytes <= MAX_OPTIONS_LEN;
        if fits {
            self.there |= option;
            self.len += bytes as u8;
        }
        fits
    }

    /// Asks for as many of `blocks`, from the front, as have room: at most three. Replaces blocks
    /// set before; no blocks means no option, never an empty one.
    pub fn set_sack(&mut self, blocks: &[SackBlock]) {
        self.len -= self.sack_len() as u8;
        let room = (MAX_OPTIONS_LEN - self.len()).saturating_sub(4) / 8;
        let n = blocks.len().min(room).min(MAX_SACK_BLOCKS);
        self.sack[..n].copy_from_slice(&blocks[..n]);
        self.sacks = n as u8;
        self.len += self.sack_len() as u8;
    }

    fn sack_len(&self) -> usize {
        match self.sacks {
            0 => 0,
            n => 4 + 8 * usize::from(n),
        }
    }

    /// The timestamps, if asked for.
    #[must_use]
    pub fn timestamps(&self) -> Option<Timestamps> {
        let there = self.there.contains(There::TIMESTAMPS);
        there.then_some(self.timestamps)
    }

    /// The SACK blocks.
    #[must_use]
    pub fn sack(&self) -> &[SackBlock] {
        &self.sack[..usize::from(self.sacks)]
    }

    /// Bytes the options take, a multiple of 4, at most [`MAX_OPTIONS_LEN`].
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.len)
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
    #[inline]
    pub fn write(&self, out: &mut [u8]) {
        let mut out = &mut out[..self.len()];
        if self.there.intersects(There::OF_A_SYN) {
            out = self.write_syn(out);
        }
        if let Some(timestamps) = self.timestamps() {
            let (here, rest) = out.split_at_mut(TIMESTAMPS_LEN);
            here[..4].copy_from_slice(&[KIND_NOP, KIND_NOP, KIND_TIMESTAMPS, 10]);
            here[4..8].copy_from_slice(&timestamps.value.to_be_bytes());
            here[8..].copy_from_slice(&timestamps.echo.to_be_bytes());
            out = rest;
        }
        if !out.is_empty() {
            self.write_rare(out);
        }
    }

    /// Writes what only a SYN carries, and returns what is left of `out`.
    #[cold]
    fn write_syn<'a>(&self, out: &'a mut [u8]) -> &'a mut [u8] {
        let [high, low] = self.max_segment.to_be_bytes();
        let options = [
            (There::MAX_SEGMENT, [KIND_MSS, 4, high, low]),
            (
                There::SACK_PERMITTED,
                [KIND_NOP, KIND_NOP, KIND_SACK_PERMITTED, 2],
            ),
            (
                There::WINDOW_SCALE,
                [KIND_NOP, KIND_WINDOW_SCALE, 3, self.window_scale],
            ),
        ];
        let there = options.iter().filter(|(bit, _)| self.there.contains(*bit));
        let mut rest = out;
        for (_, option) in there {
            let (here, behind) = rest.split_at_mut(4);
            here.copy_from_slice(option);
            rest = behind;
        }
        rest
    }

    /// Writes signature and SACK blocks, which fill the rest.
    fn write_rare(&self, mut out: &mut [u8]) {
        if self.there.contains(There::SIGNATURE) {
            let (here, rest) = out.split_at_mut(SIGNATURE_LEN);
            here.fill(0);
            here[..4].copy_from_slice(&[KIND_NOP, KIND_NOP, KIND_SIGNATURE, 18]);
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
        options.set_signature();
        assert!(
            !options.there.contains(There::SIGNATURE),
            "no room beside three blocks"
        );
        options.set_sack(&[]);
        assert_eq!(options.len(), 12, "no empty SACK option");
        options.set_signature();
        options.set_sack(&blocks);
        assert_eq!(
            (options.sack().len(), options.len()),
            (0, 32),
            "signature and timestamps leave 8 bytes, which hold no block"
        );
    }

    #[test]
    fn options_of_a_syn_with_a_signature_stay_inside_the_header() {
        let mut options = Options::default();
        options.set_signature();
        options.set_max_segment(1460);
        options.set_sack_permitted();
        options.set_window_scale(7);
        options.set_timestamps(Timestamps { value: 1, echo: 0 });
        assert_eq!((options.len(), options.timestamps()), (32, None));
        let mut bytes = [0xff; 32];
        options.write(&mut bytes);
        assert_eq!(bytes[..12], [2, 4, 5, 180, 1, 1, 4, 2, 1, 3, 3, 7]);
        assert_eq!(bytes[12..18], [1, 1, 19, 18, 0, 0]);
    }
}
