//! The holes between the ranges that the peer holds (RFC 2018), as the sender remembers them.
//!
//! Whoever processes acknowledgments keeps the holes in order and within bounds; the send decision
//! asks two questions: what is to be filled next, and where do bytes follow that the peer lacks.

use thiserror::Error;

use crate::seq::Seq;

/// Most holes that are remembered for one connection: bounds what one acknowledgment can cost.
#[doc(alias = "TCP_SACKHOLE_LIMIT")]
pub const MAX_HOLES: usize = 128;

/// Duplicate acknowledgments after which data is taken for lost.
#[doc(alias = "tcprexmtthresh")]
pub const LOSS_THRESHOLD: u32 = 3;

/// A range that the peer lacks, below something that it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[doc(alias = "sackhole")]
pub struct Hole {
    /// Its first byte.
    pub start: Seq,
    /// The byte behind its last one.
    pub end: Seq,
    /// Next byte of it to be sent again; `end` when all of it was.
    pub rxmit: Seq,
    /// Acknowledgments that reported data above it.
    pub dups: u32,
}

impl Hole {
    /// A hole of which nothing was sent again yet.
    #[must_use]
    pub fn new(start: Seq, end: Seq) -> Hole {
        Hole {
            start,
            end,
            rxmit: start,
            dups: 0,
        }
    }

    /// It counts as lost and has not all been sent again.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.dups >= LOSS_THRESHOLD && self.rxmit.lt(self.end)
    }
}

/// Holes that cannot be: the scoreboard refused them and is unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum BadHole {
    /// Empty, backwards, or with its next byte outside of it.
    #[error("no range: {0:?}")]
    Range(Hole),
    /// It starts before the end of the hole in front of it, or of what is acknowledged.
    #[error("{hole:?} starts before {least:?}")]
    Order {
        /// The hole.
        hole: Hole,
        /// Where it could start.
        least: Seq,
    },
    /// Nothing above it is held by the peer, so it is no hole.
    #[error("{hole:?} is not below {last_sack:?}, the end of what the peer holds")]
    Open {
        /// The hole.
        hole: Hole,
        /// One past the highest byte that the peer reported.
        last_sack: Seq,
    },
    /// The peer would hold what was never sent.
    #[error("the peer holds up to {last_sack:?}, but {max:?} is the end of what was sent")]
    Beyond {
        /// One past the highest byte that the peer reported.
        last_sack: Seq,
        /// One past the highest number sent.
        max: Seq,
    },
    /// More holes than are remembered.
    #[error("{asked} holes, at most {MAX_HOLES} are kept")]
    Full {
        /// Holes that there would be.
        asked: usize,
    },
}

/// All holes of a connection, in order, and the end of what the peer holds.
///
/// ```
/// use tcp_output::{Hole, Scoreboard, Seq};
///
/// let mut board = Scoreboard::default();
/// let hole = Hole { dups: 3, ..Hole::new(Seq(0), Seq(1448)) };
/// board.replace(&[hole], Seq(5000), Seq(0), Seq(5000))?;
/// assert_eq!(board.due(Seq(0)), Some((0, hole)));
/// assert_eq!(board.skip(Seq(1448)), Seq(5000), "the peer holds what follows");
/// # Ok::<(), tcp_output::BadHole>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[doc(alias = "snd_holes")]
pub struct Scoreboard {
    pub(crate) holes: Vec<Hole>,
    pub(crate) last_sack: Seq,
}

impl Scoreboard {
    /// The peer reported nothing, or all of it was acknowledged since.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.holes.is_empty()
    }

    /// The holes, in order.
    #[must_use]
    pub fn holes(&self) -> &[Hole] {
        &self.holes
    }

    /// One past the highest byte that the peer reported. Means nothing without holes.
    #[doc(alias = "rcv_lastsack")]
    #[must_use]
    pub fn last_sack(&self) -> Seq {
        self.last_sack
    }

    /// Forgets everything.
    #[doc(alias = "tcp_freeq")]
    pub fn clear(&mut self) {
        self.holes.clear();
    }

    /// Takes over holes that were found elsewhere. `una` and `max` bound what is outstanding.
    ///
    /// # Errors
    /// [`BadHole`] if they cannot be; the scoreboard is unchanged then.
    pub fn replace(
        &mut self,
        holes: &[Hole],
        last_sack: Seq,
        una: Seq,
        max: Seq,
    ) -> Result<(), BadHole> {
        check(holes, last_sack, una, max)?;
        self.holes.clear();
        self.holes.extend_from_slice(holes);
        self.last_sack = last_sack;
        Ok(())
    }

    /// The first hole that is to be filled, with its place among the holes. Holes whose next byte
    /// is already acknowledged are passed over.
    #[doc(alias = "tcp_sack_output")]
    #[must_use]
    pub fn due(&self, una: Seq) -> Option<(usize, Hole)> {
        let mut holes = self.holes.iter().copied().enumerate();
        holes.find(|(_, hole)| hole.is_due() && una.leq(hole.rxmit))
    }

    /// The first byte from `nxt` on that the peer is not known to hold.
    #[doc(alias = "tcp_sack_adjust")]
    #[must_use]
    pub fn skip(&self, nxt: Seq) -> Seq {
        let behind = self.holes.iter().position(|hole| nxt.lt(hole.end));
        match behind {
            None if self.holes.is_empty() => nxt,
            None => nxt.max(self.last_sack),
            // What lies in front of the first hole is not the peer's by its own report.
            Some(0) => nxt,
            Some(i) => nxt.max(self.holes[i].start),
        }
    }

    /// Notes that `len` bytes of the hole at `place` were sent again.
    pub(crate) fn filled(&mut self, place: usize, len: u32) {
        if let Some(hole) = self.holes.get_mut(place) {
            hole.rxmit += len;
        }
    }
}

pub(crate) fn check(holes: &[Hole], last_sack: Seq, una: Seq, max: Seq) -> Result<(), BadHole> {
    if holes.len() > MAX_HOLES {
        return Err(BadHole::Full { asked: holes.len() });
    }
    if max.lt(last_sack) {
        return Err(BadHole::Beyond { last_sack, max });
    }
    let mut least = una;
    for &hole in holes {
        if !hole.start.lt(hole.end) || hole.rxmit.lt(hole.start) || hole.end.lt(hole.rxmit) {
            return Err(BadHole::Range(hole));
        }
        if hole.start.lt(least) {
            return Err(BadHole::Order { hole, least });
        }
        if !hole.end.lt(last_sack) {
            return Err(BadHole::Open { hole, last_sack });
        }
        least = hole.end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hole(start: u32, end: u32) -> Hole {
        Hole {
            dups: 3,
            ..Hole::new(Seq(start), Seq(end))
        }
    }

    #[test]
    fn fault_u2_next_to_send_skips_what_the_peer_holds_across_the_wrap() {
        for base in [0u32, 0x7fff_fff0, u32::MAX - 20] {
            let at = |n: u32| Seq(base) + n;
            let shift = |n: u32| base.wrapping_add(n);
            let mut board = Scoreboard::default();
            assert_eq!(board.skip(at(7)), at(7));
            let holes = [hole(shift(10), shift(20)), hole(shift(30), shift(40))];
            board
                .replace(&holes, at(50), at(0), at(60))
                .expect("in order");
            for (from, to) in [(0, 0), (10, 10), (19, 19), (20, 30), (29, 30), (35, 35)] {
                assert_eq!(board.skip(at(from)), at(to), "{from}");
            }
            for (from, to) in [(40, 50), (49, 50), (50, 50), (55, 55)] {
                assert_eq!(board.skip(at(from)), at(to), "{from}");
            }
        }
    }

    #[test]
    fn first_hole_with_three_reports_and_bytes_left_is_due() {
        let mut board = Scoreboard::default();
        let young = Hole {
            dups: 2,
            ..hole(0, 10)
        };
        let done = Hole {
            rxmit: Seq(30),
            ..hole(20, 30)
        };
        let holes = [young, done, hole(40, 50)];
        board
            .replace(&holes, Seq(60), Seq(0), Seq(60))
            .expect("in order");
        assert_eq!(board.due(Seq(0)), Some((2, holes[2])));
        assert_eq!(board.due(Seq(45)), None, "acknowledged past its next byte");
        board.filled(2, 10);
        assert_eq!(board.due(Seq(0)), None);
    }

    #[test]
    fn holes_that_cannot_be_are_refused_and_change_nothing() {
        let mut board = Scoreboard::default();
        board
            .replace(&[hole(10, 20)], Seq(30), Seq(0), Seq(30))
            .expect("in order");
        let before = board.clone();
        let far = vec![hole(0, 1); MAX_HOLES + 1];
        let refused: [(&[Hole], u32); 6] = [
            (&[hole(10, 10)], 30),
            (&[hole(20, 10)], 30),
            (&[hole(10, 20), hole(15, 25)], 30),
            (&[hole(10, 30)], 30),
            (&[hole(10, 20)], 31),
            (&far, 30),
        ];
        for (holes, last) in refused {
            let error = board.replace(holes, Seq(last), Seq(0), Seq(30));
            assert!(error.is_err(), "{holes:?}");
            assert_eq!(board, before);
        }
    }
}
