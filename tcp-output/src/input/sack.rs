//! What SACK blocks make of the holes that the sender remembers (RFC 2018, RFC 6675).
//!
//! A block is believed only within what is outstanding. Offsets from the oldest outstanding byte are
//! compared, modulo 2³², so that no block, wherever it points, comes to lie inside by wrapping.

use crate::options::SackBlock;
use crate::scoreboard::{Hole, LOSS_THRESHOLD, MAX_HOLES, Scoreboard};
use crate::seq::Seq;

/// What is outstanding, and in what pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outstanding {
    /// Oldest byte not acknowledged.
    pub una: Seq,
    /// One past the highest byte sent.
    pub max: Seq,
    /// Data of a full segment, bytes.
    pub max_segment: u32,
}

impl Outstanding {
    /// Whether the block is a range of what is outstanding.
    fn holds(&self, block: &SackBlock) -> bool {
        let (start, end) = (block.start - self.una, block.end - self.una);
        start < end && end <= self.max - self.una
    }
}

/// What an acknowledgment told of ranges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackNews {
    /// Bytes that the peer was not known to hold before.
    pub bytes: u32,
    /// Blocks not believed: reversed, acknowledged already, never sent.
    pub refused: usize,
}

impl Scoreboard {
    /// Takes in an acknowledgment: `sent.una` is its number, `blocks` what it reports.
    ///
    /// Holes below the number are closed. A hole counts one report more if the acknowledgment tells
    /// news of bytes above it, and counts as lost at once when the peer holds three segments above
    /// it. There are never more than [`MAX_HOLES`]: a block that would make another one is passed
    /// over, so that its bytes may be sent once more than needed.
    ///
    /// ```
    /// use tcp_output::input::Outstanding;
    /// use tcp_output::options::SackBlock;
    /// use tcp_output::{Scoreboard, Seq};
    ///
    /// let mut board = Scoreboard::default();
    /// let sent = Outstanding { una: Seq(0), max: Seq(5000), max_segment: 1000 };
    /// let news = board.on_sack(&[SackBlock { start: Seq(1000), end: Seq(4000) }], &sent);
    /// assert_eq!((news.bytes, board.last_sack()), (3000, Seq(4000)));
    /// let hole = board.holes()[0];
    /// assert_eq!((hole.start, hole.end, hole.is_due()), (Seq(0), Seq(1000), true));
    /// ```
    #[doc(alias = "tcp_sack_option")]
    #[doc(alias = "tcp_update_sack_snd_nxt")]
    pub fn on_sack(&mut self, blocks: &[SackBlock], sent: &Outstanding) -> SackNews {
        self.on_acked(sent.una);
        if blocks.is_empty() {
            return SackNews::default();
        }
        let before = self.held(sent.una);
        let mut news = SackNews::default();
        for block in blocks {
            if sent.holds(block) {
                self.report(block);
            } else {
                news.refused += 1;
            }
        }
        news.bytes = self.held(sent.una) - before;
        if news.bytes > 0 {
            self.count_reports(blocks, sent);
        }
        news
    }

    /// Closes what lies below an acknowledgment.
    #[doc(alias = "tcp_del_sackholes")]
    pub fn on_acked(&mut self, una: Seq) {
        if self.holes.is_empty() {
            // Without holes there is nothing to remember: a peer acknowledges what it holds in order.
            self.last_sack = una;
            return;
        }
        let closed = self.holes.partition_point(|hole| hole.end.leq(una));
        self.holes.drain(..closed);
        if let Some(first) = self.holes.first_mut() {
            first.start = first.start.max(una);
            first.rxmit = first.rxmit.max(una);
        }
        self.last_sack = self.last_sack.max(una);
    }

    /// Bytes above `una` that the peer is known to hold.
    fn held(&self, una: Seq) -> u32 {
        let holes: u32 = self.holes.iter().map(|hole| hole.end - hole.start).sum();
        (self.last_sack - una) - holes
    }

    /// The peer holds this block.
    fn report(&mut self, block: &SackBlock) {
        if self.last_sack.lt(block.start) {
            if self.holes.len() >= MAX_HOLES {
                return;
            }
            self.holes.push(Hole::new(self.last_sack, block.start));
        } else {
            self.fill(block);
        }
        self.last_sack = self.last_sack.max(block.end);
    }

    /// Takes the block out of the holes.
    fn fill(&mut self, block: &SackBlock) {
        let at = self.holes.partition_point(|hole| hole.end.leq(block.start));
        let Some(&hole) = self.holes.get(at) else {
            return;
        };
        let front = hole.start.lt(block.start).then(|| Hole {
            end: block.start,
            rxmit: hole.rxmit.min(block.start),
            ..hole
        });
        // Holes that the block covers to their end: this one, if nothing of its front is left, too.
        let covered = self.holes[at..].partition_point(|hole| hole.end.leq(block.end)) + at;
        if let Some(front) = front {
            if covered == at {
                self.split(at, front, block.end);
                return;
            }
            self.holes[at] = front;
        }
        self.holes.drain(at + usize::from(front.is_some())..covered);
        let behind = at + usize::from(front.is_some());
        if let Some(last) = self.holes.get_mut(behind)
            && last.start.lt(block.end)
        {
            last.start = block.end;
            last.rxmit = last.rxmit.max(block.end);
        }
    }

    /// The block lies inside one hole and makes two of it, if there may be one more.
    fn split(&mut self, at: usize, front: Hole, block_end: Seq) {
        if self.holes.len() >= MAX_HOLES {
            return;
        }
        let hole = self.holes[at];
        self.holes[at] = front;
        let back = Hole {
            start: block_end,
            rxmit: hole.rxmit.max(block_end),
            ..hole
        };
        self.holes.insert(at + 1, back);
    }

    /// One report more for each hole below a block of this acknowledgment; enough of them for those
    /// with three segments held above (RFC 6675, IsLost).
    fn count_reports(&mut self, blocks: &[SackBlock], sent: &Outstanding) {
        let believed = blocks.iter().filter(|block| sent.holds(block));
        let Some(highest) = believed.map(|block| block.end - sent.una).max() else {
            return;
        };
        let mut held_above = 0;
        let mut above = self.last_sack;
        for hole in self.holes.iter_mut().rev() {
            held_above += above - hole.end;
            above = hole.start;
            if held_above >= LOSS_THRESHOLD * sent.max_segment {
                hole.dups = hole.dups.max(LOSS_THRESHOLD);
            }
            if hole.end - sent.una < highest {
                hole.dups = hole.dups.saturating_add(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASES: [u32; 5] = [0, 0x7fff_ff80, 0x8000_0000, 0xffff_ff80, 12345];

    fn sent(base: u32, max: u32) -> Outstanding {
        Outstanding {
            una: Seq(base),
            max: Seq(base) + max,
            max_segment: 1000,
        }
    }

    fn block(base: u32, start: u32, end: u32) -> SackBlock {
        SackBlock {
            start: Seq(base) + start,
            end: Seq(base) + end,
        }
    }

    /// Offsets of the bytes below `last_sack` that no hole covers.
    fn held(board: &Scoreboard, base: u32, len: u32) -> Vec<bool> {
        let inside = |at: Seq| {
            board
                .holes()
                .iter()
                .any(|h| h.start.leq(at) && at.lt(h.end))
        };
        let known = !board.is_empty();
        (0..len)
            .map(|n| Seq(base) + n)
            .map(|at| known && at.lt(board.last_sack()) && !inside(at))
            .collect()
    }

    fn sound(board: &Scoreboard, sent: &Outstanding) {
        let mut copy = Scoreboard::default();
        copy.replace(board.holes(), board.last_sack(), sent.una, sent.max)
            .expect("in order and within");
    }

    #[test]
    fn fault_u2_the_board_knows_what_was_reported_across_every_wrap() {
        let mut rng = fastrand::Rng::with_seed(5);
        for round in 0..400 {
            let base = BASES[round % BASES.len()];
            let len = 256;
            let mut board = Scoreboard::default();
            let mut model = vec![false; len as usize];
            let mut una = 0;
            while una < len {
                let blocks: Vec<SackBlock> = (0..rng.usize(0..4))
                    .map(|_| {
                        let start = rng.u32(una..len);
                        let end = rng.u32(start..=len.min(start + 30));
                        model[start as usize..end as usize].fill(true);
                        block(base, start, end)
                    })
                    .collect();
                if rng.u8(0..4) == 0 {
                    una = rng.u32(una..=len.min(una + 20));
                }
                una += (una..len).take_while(|n| model[*n as usize]).count() as u32;
                model[..una as usize].fill(true);
                let now = Outstanding {
                    una: Seq(base) + una,
                    ..sent(base, len)
                };
                let known: usize = held(&board, base, len)[una as usize..]
                    .iter()
                    .filter(|h| **h)
                    .count();
                let news = board.on_sack(&blocks, &now);
                sound(&board, &now);
                let seen = held(&board, base, len);
                // A block that reached below `una` was refused whole.
                if news.refused == 0 {
                    assert_eq!(seen[una as usize..], model[una as usize..], "round {round}");
                }
                let holds = seen[una as usize..].iter().filter(|h| **h).count();
                assert_eq!(news.bytes as usize, holds - known);
                model.clone_from(&seen);
            }
            assert!(board.is_empty());
        }
    }

    #[test]
    fn blocks_that_cannot_be_are_refused() {
        for base in BASES {
            let sent = sent(base, 10_000);
            let absurd = [
                (5, 5),
                (6, 5),
                (0, 10_001),
                (9_999, 0x8000_0000),
                (u32::MAX, 1),
                (u32::MAX - 10, u32::MAX),
                (0x7fff_ffff, 0x8000_0400),
                (10_000, 10_001),
            ];
            for (start, end) in absurd {
                let mut board = Scoreboard::default();
                let news = board.on_sack(&[block(base, start, end)], &sent);
                assert_eq!((news.bytes, news.refused), (0, 1), "{start}..{end}");
                assert!(board.is_empty());
            }
        }
    }

    #[test]
    fn row_c7x_no_hole_reaches_the_end_of_what_was_sent() {
        let sent = sent(0, 14_480);
        let mut board = Scoreboard::default();
        board.on_sack(&[block(0, 13_000, 14_480)], &sent);
        assert!(board.holes().iter().all(|hole| hole.end.lt(sent.max)));
        sound(&board, &sent);
    }

    #[test]
    fn fault_l2_holes_are_capped_and_nothing_is_held_that_was_not_reported() {
        let sent = sent(0xff00_0000, 10_000_000);
        let mut board = Scoreboard::default();
        for n in (0..10_000).rev().filter(|n| n % 2 == 1) {
            board.on_sack(&[block(0xff00_0000, n * 1000, (n + 1) * 1000)], &sent);
            assert!(board.holes().len() <= MAX_HOLES);
        }
        sound(&board, &sent);
        for n in (1..10_000).step_by(2) {
            board.on_sack(&[block(0xff00_0000, n * 1000, (n + 1) * 1000)], &sent);
            assert!(board.holes().len() <= MAX_HOLES);
        }
        for n in (0..9_999).step_by(2) {
            let lacks = sent.una + n * 1000;
            assert_eq!(board.skip(lacks), lacks, "segment {n} never arrived");
        }
    }

    #[test]
    fn fault_l4_each_hole_counts_the_reports_above_it() {
        let mut board = Scoreboard::default();
        let sent = sent(0, 10_000);
        let dups =
            |board: &Scoreboard| -> Vec<u32> { board.holes().iter().map(|h| h.dups).collect() };
        // Segments 1 to 10; 3 and 5 to 8 arrive.
        let mut report = |start, end| {
            board.on_sack(&[block(0, start, end), block(0, 2_000, 3_000)], &sent);
            dups(&board)
        };
        assert_eq!(report(2_000, 3_000), [1]);
        assert_eq!(report(4_000, 5_000), [2, 1]);
        assert_eq!(
            report(4_000, 6_000),
            [4, 2],
            "three segments held above the first"
        );
        assert_eq!(report(4_000, 6_000), [4, 2], "nothing new");
        assert_eq!(report(4_000, 7_000), [5, 4]);
    }

    #[test]
    fn a_hole_in_the_middle_of_being_filled_keeps_its_place() {
        let sent = sent(0, 10_000);
        let mut board = Scoreboard::default();
        board.on_sack(&[block(0, 5_000, 9_000)], &sent);
        board.filled(0, 2_000);
        board.on_sack(&[block(0, 1_000, 1_500)], &sent);
        let places: Vec<[u32; 3]> = board
            .holes()
            .iter()
            .map(|h| [h.start.0, h.rxmit.0, h.end.0])
            .collect();
        assert_eq!(places, [[0, 1_000, 1_000], [1_500, 2_000, 5_000]]);
        let later = Outstanding {
            una: Seq(3_000),
            ..sent
        };
        board.on_sack(&[], &later);
        assert_eq!(board.holes()[0].rxmit, Seq(3_000));
    }

    #[test]
    fn when_all_is_acknowledged_nothing_is_remembered() {
        let mut board = Scoreboard::default();
        board.on_sack(&[block(0, 5_000, 9_000)], &sent(0, 10_000));
        board.on_acked(Seq(10_000));
        assert!(board.is_empty());
        let later = Outstanding {
            una: Seq(10_000),
            max: Seq(20_000),
            max_segment: 1000,
        };
        board.on_sack(&[block(0, 12_000, 13_000)], &later);
        assert_eq!(board.holes().len(), 1);
        assert_eq!(board.holes()[0].start, Seq(10_000));
    }
}
