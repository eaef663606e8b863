//! The Internet checksum over bytes that come in pieces.
//!
//! A piece of odd length leaves half a 16-bit word behind; the next piece completes it, so the
//! result never depends on where the bytes were cut.

/// A running ones-complement sum.
///
/// ```
/// use driver_sim::checksum::Checksum;
///
/// let mut whole = Checksum::default();
/// whole.add(&[0x45, 0x00, 0x00, 0x1c]);
/// let mut cut = Checksum::default();
/// cut.add(&[0x45]);
/// cut.add(&[]);
/// cut.add(&[0x00, 0x00]);
/// cut.add(&[0x1c]);
/// assert_eq!(whole.finish(), cut.finish());
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[doc(alias = "in_cksum")]
pub struct Checksum {
    sum: u64,
    /// The bytes so far are odd in number: the next one is a low half.
    odd: bool,
}

impl Checksum {
    /// Adds the bytes of one piece.
    pub fn add(&mut self, mut piece: &[u8]) {
        if self.odd {
            let Some((&low, rest)) = piece.split_first() else {
                return;
            };
            self.sum += u64::from(low);
            self.odd = false;
            piece = rest;
        }
        // Four bytes at a time: a 64-bit sum of 32-bit words folds to the same 16-bit sum and
        // has room for 2^32 of them.
        let (words, rest) = piece.as_chunks::<4>();
        self.sum += words
            .iter()
            .map(|w| u64::from(u32::from_be_bytes(*w)))
            .sum::<u64>();
        let (halves, rest) = rest.as_chunks::<2>();
        self.sum += halves
            .iter()
            .map(|h| u64::from(u16::from_be_bytes(*h)))
            .sum::<u64>();
        if let [high] = rest {
            self.sum += u64::from(*high) << 8;
            self.odd = true;
        }
        // Folded once per piece, so that the sum cannot overflow whatever the number of pieces.
        self.sum = (self.sum & 0xffff_ffff) + (self.sum >> 32);
    }

    /// Adds one 16-bit number, as if its two bytes stood at an even offset.
    pub fn add_u16(&mut self, n: u16) {
        self.sum += u64::from(n);
    }

    /// The folded sum, not complemented: what a pseudo-header seed is.
    pub fn partial(&self) -> u16 {
        let mut sum = self.sum;
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// The checksum to store: the complement of [`partial`](Self::partial).
    ///
    /// Over bytes that contain a right checksum it is 0.
    pub fn finish(&self) -> u16 {
        !self.partial()
    }
}

/// Sum over the addresses and protocol number of an IP header, not complemented, and without the
/// length: the seed that segmenting hardware expects in the checksum field.
///
/// `ip` starts at the IP header; a header too short gives a sum over what is there.
pub(crate) fn pseudo_header(ip: &[u8], protocol: u8) -> Checksum {
    let mut sum = Checksum::default();
    let addresses = match ip.first().map(|b| b >> 4) {
        Some(4) => ip.get(12..20),
        _ => ip.get(8..40),
    };
    sum.add(addresses.unwrap_or_default());
    sum.add_u16(u16::from(protocol));
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Straight from the definition, over linear bytes.
    fn plain(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn fault_i1_every_split_in_up_to_four_pieces_gives_the_linear_sum() {
        let bytes: Vec<u8> = (0..64u32).map(|i| (i * 97 + 13) as u8).collect();
        let want = plain(&bytes);
        for a in 0..=64 {
            for b in a..=64 {
                for c in b..=64 {
                    let mut sum = Checksum::default();
                    for piece in [&bytes[..a], &bytes[a..b], &bytes[b..c], &bytes[c..]] {
                        sum.add(piece);
                    }
                    assert_eq!(sum.finish(), want, "cut at {a}, {b}, {c}");
                }
            }
        }
    }

    #[test]
    fn large_pieces_of_ones_do_not_lose_carries() {
        let bytes = vec![0xff; 65_535];
        let mut sum = Checksum::default();
        sum.add(&bytes);
        assert_eq!(sum.finish(), plain(&bytes));
    }
}
