//! What an expired timer does to the sending side.

use crate::rtt::MAX_BACKOFF;
use crate::tcb::Tcb;
use crate::time::Time;

/// Which timer expired, and what is to follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expired {
    /// Unacknowledged data is to be sent again: output follows.
    Retransmit,
    /// The window is still closed: a forced output follows.
    Persist,
    /// The peer has not answered for too long: the connection is to be given up.
    GiveUp,
}

impl Tcb {
    /// Handles a timer that has expired at `now`, if one has.
    pub fn on_timer(&mut self, now: Time) -> Option<Expired> {
        if self.send.rexmt.is_some_and(|at| at <= now) {
            return Some(self.rexmt_expired(now));
        }
        if self.send.persist.is_some_and(|at| at <= now) {
            return Some(self.persist_expired(now));
        }
        None
    }

    #[doc(alias = "tcp_timer_rexmt")]
    fn rexmt_expired(&mut self, now: Time) -> Expired {
        if self.send.backoff >= MAX_BACKOFF {
            self.send.rexmt = None;
            return Expired::GiveUp;
        }
        self.send.backoff += 1;
        self.rtt.back_off(self.send.backoff);
        self.send.rexmt = Some(now + self.rtt.rto);
        self.rtt.timed = None;
        let mss = self.max_segment();
        self.ssthresh = (self.wnd.min(self.send.cwnd) / 2 / mss).max(2) * mss;
        self.send.cwnd = mss;
        self.send.nxt = self.una;
        Expired::Retransmit
    }

    #[doc(alias = "tcp_timer_persist")]
    fn persist_expired(&mut self, now: Time) -> Expired {
        let silent = now - self.rcv.last;
        // 511 is what the twelve backoffs of a retransmission add up to.
        if self.send.backoff >= MAX_BACKOFF && silent >= 511 * u64::from(self.rtt.base) {
            self.send.persist = None;
            return Expired::GiveUp;
        }
        self.send.start_persist(&self.rtt, now);
        Expired::Persist
    }
}
