//! Rules that hold between any two calls, whatever arrived: the first that is broken is named.

use thiserror::Error;

use crate::options::MAX_SACK_BLOCKS;
use crate::rtt::{MAX_BACKOFF, MAX_RTO};
use crate::scoreboard;
use crate::seq::Seq;
use crate::state::State;
use crate::tcb::Tcb;
use crate::timer::Timer;

/// A rule that does not hold, with the numbers most of the rules are about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{rule} ({state:?}: una {una:?}, nxt {nxt:?}, max {max:?}, {queued} bytes queued)")]
pub struct BrokenRule {
    /// The rule.
    pub rule: &'static str,
    /// The connection's state.
    pub state: State,
    /// Oldest number not acknowledged.
    pub una: Seq,
    /// Next number to send.
    pub nxt: Seq,
    /// One past the highest number sent.
    pub max: Seq,
    /// Bytes in the send buffer.
    pub queued: usize,
}

impl Tcb {
    /// Whether the parts of the state agree with each other and with a send buffer of `queued` bytes.
    ///
    /// Holds at any time between calls of a [`Connection`](crate::connection::Connection), which
    /// checks it after each of them in debug builds.
    ///
    /// # Errors
    /// The first rule that is broken.
    ///
    /// ```
    /// # use tcp_output::{Endpoints, Seq, Tcb, TcbFlags};
    /// # let ends = Endpoints::V4 { source: [10, 0, 0, 1].into(), dest: [10, 0, 0, 2].into(), source_port: 1, dest_port: 2 };
    /// let mut tcb = Tcb::new(ends, 1460, TcbFlags::empty(), Seq(0), Seq(0))?;
    /// assert_eq!(tcb.check(0), Ok(()));
    /// tcb.send.max = Seq(100);
    /// let broken = tcb.check(50).expect_err("100 bytes sent out of 50");
    /// assert_eq!(broken.rule, "what is outstanding is queued, or our SYN or FIN");
    /// # Ok::<(), tcp_output::BadSegmentSize>(())
    /// ```
    pub fn check(&self, queued: usize) -> Result<(), BrokenRule> {
        let broken = match self.state {
            State::Closed => self.broken_when_closed(queued),
            _ => self.broken_when_open(queued),
        };
        broken.map_or(Ok(()), |rule| Err(self.broken(rule, queued)))
    }

    pub(crate) fn broken(&self, rule: &'static str, queued: usize) -> BrokenRule {
        BrokenRule {
            rule,
            state: self.state,
            una: self.una,
            nxt: self.send.nxt,
            max: self.send.max,
            queued,
        }
    }

    fn broken_when_closed(&self, queued: usize) -> Option<&'static str> {
        let running = Timer::ALL.iter().any(|&timer| self.timer(timer).is_some());
        first_broken(&[
            (!running, "no timer runs without a connection"),
            (queued == 0, "nothing is queued without a connection"),
            (self.scoreboard.is_empty(), "no hole without a connection"),
        ])
    }

    fn broken_when_open(&self, queued: usize) -> Option<&'static str> {
        let send = &self.send;
        let outstanding = (send.max - self.una) as usize;
        let holes = scoreboard::check(
            self.scoreboard.holes(),
            self.scoreboard.last_sack(),
            self.una,
            send.max,
        );
        let exclusive = send.rexmt.is_none() || send.persist.is_none();
        first_broken(&[
            (self.una.leq(send.nxt), "una <= nxt"),
            (send.nxt.leq(send.max), "nxt <= max"),
            (
                outstanding <= queued + 1,
                "what is outstanding is queued, or our SYN or FIN",
            ),
            (
                self.una.leq(self.recover) && self.recover.leq(send.max),
                "recovery ends within what is outstanding",
            ),
            (
                self.scoreboard.is_empty() || holes.is_ok(),
                "holes are in order, within what is outstanding and below what the peer holds",
            ),
            (
                exclusive,
                "retransmission and persist timer exclude each other",
            ),
            (
                send.backoff <= MAX_BACKOFF,
                "a timer backs off twelve times",
            ),
            (self.rtt.rto <= MAX_RTO, "a timeout is 64 s at most"),
            (send.cwnd > 0, "the congestion window is never closed"),
            (self.wnd <= self.max_wnd, "no window above the largest seen"),
            (
                usize::from(self.rcv.sacks) <= MAX_SACK_BLOCKS,
                "no more SACK blocks than fit",
            ),
            (
                (self.rcv.owed_sacks().iter()).all(|block| self.rcv.nxt.lt(block.start)),
                "SACK blocks are beyond what is acknowledged",
            ),
        ])
    }
}

/// The name of the first rule that does not hold.
pub(crate) fn first_broken(rules: &[(bool, &'static str)]) -> Option<&'static str> {
    rules
        .iter()
        .find(|(holds, _)| !holds)
        .map(|(_, rule)| *rule)
}
