//! The Internet checksum: ones-complement sums over pieces of any length, and pseudo headers.
//!
//! A sum is kept as two's complement in 64 bits and folded at the end, so that adding a piece is a
//! run of plain additions. A piece that starts at an odd position of the summed text contributes
//! with its bytes swapped; [`Sum`] remembers the position, so chains of odd pieces come out right.

use crate::endpoints::Endpoints;

/// A running ones-complement sum over a text that arrives in pieces.
///
/// ```
/// use tcp_output::checksum::Sum;
///
/// let mut whole = Sum::new();
/// whole.add(&[1, 2, 3, 4, 5]);
/// let mut pieces = Sum::new();
/// pieces.add(&[1]);
/// pieces.add(&[2, 3, 4]);
/// pieces.add(&[5]);
/// assert_eq!(whole.checksum(), pieces.checksum());
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[doc(alias = "in_cksum")]
pub struct Sum {
    acc: u64,
    odd: bool,
}

/// Whether a pseudo header sum counts the segment's length.
///
/// Hardware that cuts a TSO frame adds each frame's own length and wants it left out; hardware that
/// only sums wants it in. Both consumers exist, so it is a choice by type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PseudoLength {
    /// The length of TCP header and payload is part of the sum (plain checksum offload).
    Included,
    /// The length is left out (TSO).
    Left,
}

/// What is written into the TCP checksum field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChecksumMode {
    /// The full checksum over pseudo header, header and payload. TSO frames cannot have one: they
    /// carry [`Partial`](ChecksumMode::Partial) without length whatever is chosen here.
    Software,
    /// The folded, not complemented sum of the pseudo header; the NIC does the rest.
    Partial(PseudoLength),
    /// Nothing, and nothing is asked of the NIC: for ways that lose and garble nothing.
    None,
}

impl Default for ChecksumMode {
    fn default() -> Self {
        ChecksumMode::Partial(PseudoLength::Included)
    }
}

impl Sum {
    /// The empty sum, at an even position.
    #[must_use]
    pub const fn new() -> Self {
        Sum { acc: 0, odd: false }
    }

    /// Adds the next piece of the text.
    pub fn add(&mut self, piece: &[u8]) {
        let part = sum_even(piece);
        self.acc += u64::from(if self.odd { part.swap_bytes() } else { part });
        self.odd ^= piece.len() % 2 == 1;
    }

    /// Adds a 16-bit word in host order, as if it stood at an even position. Does not move the position.
    pub fn add_word(&mut self, word: u16) {
        self.acc += u64::from(word);
    }

    /// Adds a short text of whole 32-bit words, as if it stood at an even position: headers, for
    /// which setting up the long loop costs more than running it. Does not move the position.
    #[inline]
    pub(crate) fn add_words<const N: usize>(&mut self, text: &[u8; N]) {
        const { assert!(N.is_multiple_of(4)) };
        for word in text.chunks_exact(4) {
            // The upper half weighs 2^16, which is 1 to a ones-complement sum.
            self.acc += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
        }
    }

    /// The folded sum, not complemented: what a partial checksum is.
    #[must_use]
    pub fn folded(self) -> u16 {
        fold(self.acc)
    }

    /// The checksum: the folded sum's complement.
    #[must_use]
    pub fn checksum(self) -> u16 {
        !self.folded()
    }

    /// The sum of a TCP pseudo header. `tcp_len` is header plus payload, in bytes.
    #[must_use]
    pub fn pseudo(ends: &Endpoints, tcp_len: u32, length: PseudoLength) -> Sum {
        let mut sum = Sum::new();
        match ends {
            Endpoints::V4 { source, dest, .. } => {
                sum.add_words(&source.octets());
                sum.add_words(&dest.octets());
            }
            Endpoints::V6 { source, dest, .. } => {
                sum.add_words(&source.octets());
                sum.add_words(&dest.octets());
            }
        }
        sum.add_word(u16::from(crate::wire::PROTO_TCP));
        if length == PseudoLength::Included {
            sum.add_word((tcp_len >> 16) as u16);
            sum.add_word(tcp_len as u16);
        }
        sum
    }
}

/// Big-endian 16-bit words of a piece at an even position, folded, the odd last byte padded by a zero.
#[inline]
fn sum_even(piece: &[u8]) -> u16 {
    // Summing native words and swapping the folded result once equals summing swapped words, so
    // the loop is nothing but loads and additions. Eight lanes keep the additions independent.
    let mut lanes = [0u64; 8];
    let (blocks, rest) = piece.as_chunks::<32>();
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<4>().0) {
            *lane += u64::from(u32::from_ne_bytes(*word));
        }
    }
    // A lane has room for 2^32 words, so that all together have room for a piece of 16 GB.
    let mut acc: u64 = lanes.iter().sum();
    let (words, rest) = rest.as_chunks::<4>();
    for word in words {
        acc += u64::from(u32::from_ne_bytes(*word));
    }
    let (pair, last) = rest.as_chunks::<2>();
    if let [pair] = pair {
        acc += u64::from(u16::from_ne_bytes(*pair));
    }
    if let [last] = last {
        acc += u64::from(u16::from_ne_bytes([*last, 0]));
    }
    u16::from_be(fold(acc))
}

/// Adds the carries back in until 16 bits are left. A half added to the other one by a rotation
/// brings its own carry around.
#[inline]
fn fold(acc: u64) -> u16 {
    let half = (acc.wrapping_add(acc.rotate_left(32)) >> 32) as u32;
    (half.wrapping_add(half.rotate_left(16)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, word by word (RFC 1071).
    fn slow(text: &[u8]) -> u16 {
        let mut acc: u32 = 0;
        for pair in text.chunks(2) {
            acc += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            acc = (acc & 0xffff) + (acc >> 16);
        }
        !(acc as u16)
    }

    fn of(pieces: &[&[u8]]) -> u16 {
        let mut sum = Sum::new();
        for piece in pieces {
            sum.add(piece);
        }
        sum.checksum()
    }

    #[test]
    fn rfc_1071_example() {
        assert_eq!(
            of(&[&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]]),
            !0xddf2
        );
    }

    #[test]
    fn every_length_equals_the_definition() {
        let text: Vec<u8> = (0..200u32).map(|i| (i * 151 + 7) as u8).collect();
        for len in 0..text.len() {
            assert_eq!(of(&[&text[..len]]), slow(&text[..len]), "length {len}");
        }
        let high = vec![0xff; 65536];
        assert_eq!(of(&[&high]), slow(&high));
    }

    #[test]
    fn fault_i1_every_split_of_64_bytes_into_four_pieces() {
        let text: Vec<u8> = (0..64u32).map(|i| (i * 89 + 3) as u8).collect();
        let want = slow(&text);
        for a in 0..=64 {
            for b in a..=64 {
                for c in b..=64 {
                    let got = of(&[&text[..a], &text[a..b], &text[b..c], &text[c..]]);
                    assert_eq!(got, want, "split at {a}, {b}, {c}");
                }
            }
        }
    }

    #[test]
    fn fault_i11_odd_piece_reads_nothing_behind_it() {
        let text = [1u8, 2, 3, 0xff];
        assert_eq!(of(&[&text[..3]]), !(0x0102 + 0x0300));
    }
}
