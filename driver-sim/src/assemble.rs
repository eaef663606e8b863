//! Putting the bytes of a stream in order: overlaps and repetitions once, early pieces kept.

use std::collections::BTreeMap;

/// Bytes of one stream, in order, from pieces that come in any order.
///
/// Where pieces overlap, the first that came wins. Offsets count from the start of the stream.
///
/// ```
/// use driver_sim::Assembler;
///
/// let mut a = Assembler::default();
/// a.insert(3, b"defg");
/// a.insert(0, b"abcd");
/// assert_eq!(a.bytes(), b"abcdefg");
/// assert_eq!((a.repeated(), a.beyond_gap()), (1, 0));
/// ```
#[derive(Debug, Default, Clone)]
pub struct Assembler {
    ready: Vec<u8>,
    /// Pieces beyond the first gap; they neither overlap nor touch `ready`.
    early: BTreeMap<u64, Vec<u8>>,
    repeated: u64,
}

impl Assembler {
    /// Takes a piece that starts `offset` bytes into the stream.
    pub fn insert(&mut self, offset: u64, piece: &[u8]) {
        let Some(end) = offset.checked_add(piece.len() as u64) else {
            return;
        };
        let mut at = offset;
        while at < end {
            // Placing a piece may make earlier ones ready, so this is looked at each time.
            let (from, to) = match self.len().min(end) {
                ready if ready > at => (ready, ready),
                _ => self.first_hole(at, end),
            };
            self.repeated += from - at;
            if from < to {
                let bytes = &piece[(from - offset) as usize..(to - offset) as usize];
                self.place(from, bytes);
            }
            at = to;
        }
    }

    /// The first range in `[at, end)` that no early piece covers; empty at `end` if there is none.
    fn first_hole(&self, at: u64, end: u64) -> (u64, u64) {
        let covered_to = |(start, bytes): (&u64, &Vec<u8>)| start + bytes.len() as u64;
        let before = self.early.range(..=at).next_back().map_or(at, covered_to);
        let mut from = before.max(at);
        for (start, bytes) in self.early.range(at..end) {
            if *start > from {
                return (from.min(end), *start);
            }
            from = from.max(start + bytes.len() as u64);
        }
        (from.min(end), end)
    }

    fn place(&mut self, offset: u64, bytes: &[u8]) {
        if offset != self.len() {
            self.early.insert(offset, bytes.to_vec());
            return;
        }
        self.ready.extend_from_slice(bytes);
        while let Some(next) = self.early.remove(&self.len()) {
            self.ready.extend_from_slice(&next);
        }
    }

    fn len(&self) -> u64 {
        self.ready.len() as u64
    }

    /// The bytes from the start of the stream to the first gap.
    pub fn bytes(&self) -> &[u8] {
        &self.ready
    }

    /// Like [`bytes`](Self::bytes), owned.
    pub fn into_bytes(self) -> Vec<u8> {
        self.ready
    }

    /// Bytes that came more than once, each further time counted.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Bytes that wait behind a gap.
    pub fn beyond_gap(&self) -> u64 {
        self.early.values().map(|b| b.len() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_pieces_equal_a_byte_by_byte_model() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..300 {
            let mut a = Assembler::default();
            let mut model = [None::<u8>; 80];
            let mut repeated = 0;
            for _ in 0..rng.usize(1..20) {
                let from = rng.usize(0..80);
                let to = rng.usize(from..=80.min(from + 24));
                let piece: Vec<u8> = (from..to).map(|_| rng.u8(..)).collect();
                a.insert(from as u64, &piece);
                for (slot, byte) in model[from..to].iter_mut().zip(&piece) {
                    repeated += u64::from(slot.is_some());
                    slot.get_or_insert(*byte);
                }
            }
            let ready: Vec<u8> = model.iter().map_while(|b| *b).collect();
            let all = model.iter().flatten().count();
            assert_eq!(a.bytes(), ready);
            assert_eq!(a.beyond_gap(), (all - ready.len()) as u64);
            assert_eq!(a.repeated(), repeated);
        }
    }
}
