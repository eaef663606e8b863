//! How long a cell is measured, and which placement's turn it is.

use std::time::{Duration, Instant};

use fastrand::Rng;

/// When a cell should stop, and when it must.
pub(super) struct Deadlines {
    start: Instant,
    pub(super) share: Duration,
}

impl Deadlines {
    pub(super) fn new(share: Duration) -> Self {
        Deadlines {
            start: Instant::now(),
            share,
        }
    }

    /// The share is used up: stop if there are enough rounds.
    pub(super) fn soft(&self) -> bool {
        self.start.elapsed() >= self.share
    }

    /// Half of the share is used up: no more warming up.
    pub(super) fn warm(&self) -> bool {
        self.start.elapsed() > self.share / 2
    }

    /// Twice the share is used up: stop with what there is.
    pub(super) fn hard(&self) -> bool {
        self.start.elapsed() >= self.share * 2
    }
}

/// Placements in shuffled blocks: each gets the same share of the rounds.
pub(super) struct Turns {
    pub(super) count: usize,
    block: Vec<usize>,
}

impl Turns {
    pub(super) fn new(count: usize) -> Self {
        Turns {
            count,
            block: Vec::new(),
        }
    }

    pub(super) fn next(&mut self, rng: &mut Rng) -> usize {
        if self.block.is_empty() {
            self.block.extend(0..self.count);
            rng.shuffle(&mut self.block);
        }
        self.block.pop().unwrap_or(0)
    }
}
