//! Decisions out of a string of bytes.

/// What is left of the bytes. When they have run out every decision is 0.
pub struct Source<'a> {
    left: &'a [u8],
    /// Fills packets: what they hold decides nothing, so it takes no decision each.
    fill: u8,
}

impl<'a> Source<'a> {
    pub fn new(left: &'a [u8]) -> Self {
        Self { left, fill: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        match self.left.split_first() {
            Some((&byte, left)) => {
                self.left = left;
                byte
            }
            None => 0,
        }
    }

    /// A number below `n`; 0 for `n` of 0.
    pub fn below(&mut self, n: usize) -> usize {
        let mut number = self.byte() as usize;
        if n > 256 {
            number = number << 8 | self.byte() as usize;
        }
        number % n.max(1)
    }

    /// A number from 0 to `n`, the ends more often than others.
    pub fn up_to(&mut self, n: usize) -> usize {
        match self.byte() % 8 {
            0 => 0,
            1 => n,
            _ => self.below(n + 1),
        }
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A range within `have` bytes: start and length.
    pub fn range(&mut self, have: usize) -> (usize, usize) {
        let start = self.up_to(have);
        (start, self.up_to(have - start))
    }

    /// Mostly few bytes, now and then none, or more than a small mbuf holds.
    pub fn some_bytes(&mut self) -> Vec<u8> {
        let n = match self.below(8) {
            0 => 0,
            1 => self.below(3000),
            _ => self.below(100),
        };
        self.bytes(n)
    }

    /// `n` bytes that differ from those before.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        let mut next = || {
            self.fill = self.fill.wrapping_mul(5).wrapping_add(17);
            self.fill
        };
        (0..n).map(|_| next()).collect()
    }
}
