//! Loss recovery: what acknowledgments, new and duplicate, do to the sending side (RFC 5681, RFC 6582,
//! RFC 6675; the windows as BSD moves them).

use super::congestion::{CongestionControl, CongestionWindow};
use crate::ack::Ack;
use crate::flags::TcbFlags;
use crate::scoreboard::LOSS_THRESHOLD;
use crate::tcb::Tcb;
use crate::time::Time;

/// What is to be sent again before anything else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resend {
    /// One segment from the oldest outstanding byte.
    First,
    /// The first hole of the scoreboard.
    Hole,
}

impl Tcb {
    /// Three duplicate acknowledgments have come, and not all that was outstanding then has been
    /// acknowledged yet.
    #[must_use]
    pub fn in_recovery(&self) -> bool {
        self.dup_acks >= LOSS_THRESHOLD
    }

    /// What may be in flight: the lesser of the peer's window and the congestion window, bytes.
    #[must_use]
    pub fn flight_limit(&self) -> u32 {
        self.wnd.min(self.send.cwnd)
    }

    /// Lets a congestion control algorithm move the window.
    pub fn congest(&mut self, change: impl FnOnce(&mut CongestionWindow)) {
        let mut window = CongestionWindow {
            cwnd: self.send.cwnd,
            ssthresh: self.ssthresh,
            max_segment: self.max_segment(),
            limit: 65535 << self.wnd_scale.min(14),
        };
        change(&mut window);
        (self.send.cwnd, self.ssthresh) = (window.cwnd, window.ssthresh);
    }

    /// A duplicate acknowledgment. The third one begins recovery, unless it is about data that was
    /// outstanding at the last loss already: that was paid for.
    pub fn on_duplicate_ack(&mut self, control: &mut impl CongestionControl) -> Option<Resend> {
        self.dup_acks = self.dup_acks.saturating_add(1);
        if self.dup_acks < LOSS_THRESHOLD {
            return None;
        }
        if self.dup_acks > LOSS_THRESHOLD || self.una.lt(self.recover) {
            if self.una.lt(self.recover) && self.dup_acks == LOSS_THRESHOLD {
                self.dup_acks = 0;
            }
            self.congest(|window| control.on_duplicate(window));
            return None;
        }
        let flight = self.flight_limit();
        self.congest(|window| control.on_loss(window, flight));
        self.recover = self.send.max;
        self.rtt.timed = None;
        self.send.rexmt = None;
        if self.flags.contains(TcbFlags::ECN) {
            self.flags |= TcbFlags::CWR_DUE;
        }
        let known = self.flags.contains(TcbFlags::SACK) && self.scoreboard.due(self.una).is_some();
        Some(if known { Resend::Hole } else { Resend::First })
    }

    /// An acknowledgment of something new, judged before. During recovery it may ask for the next
    /// segment that is missing.
    pub fn on_new_ack(
        &mut self,
        arrived: &Ack,
        control: &mut impl CongestionControl,
        now: Time,
    ) -> Option<Resend> {
        let acked = arrived.ack - self.una;
        let opens = !self.state.synchronized();
        self.take_sample(arrived, now);
        self.una = arrived.ack;
        self.send.nxt = self.send.nxt.max(self.una);
        self.up = self.up.max(self.una);
        self.wnd = self.wnd.saturating_sub(acked);
        // That a SYN arrived says nothing about how much the network carries.
        let resend = if opens {
            None
        } else {
            self.progress(acked, control)
        };
        self.recover = self.recover.max(self.una);
        self.restart_rexmt(now);
        resend
    }

    /// The congestion window after `acked` new bytes, and whether recovery goes on.
    fn progress(&mut self, acked: u32, control: &mut impl CongestionControl) -> Option<Resend> {
        if !self.in_recovery() {
            self.dup_acks = 0;
            self.congest(|window| control.on_ack(window, acked));
            return None;
        }
        if !self.una.lt(self.recover) {
            self.dup_acks = 0;
            let outstanding = self.send.max - self.una;
            self.congest(|window| control.on_recovered(window, outstanding));
            return None;
        }
        self.rtt.timed = None;
        self.congest(|window| control.on_partial_ack(window, acked));
        // What follows a partial acknowledgment is missing; the scoreboard's own way if it knows.
        match self.scoreboard.holes.first_mut() {
            Some(hole) if hole.start == self.una => {
                hole.dups = hole.dups.max(LOSS_THRESHOLD);
                None
            }
            _ => Some(Resend::First),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{Outstanding, Reno};
    use crate::options::SackBlock;
    use crate::{Endpoints, Seq};

    /// Row J4's connection: 14480 bytes outstanding.
    fn tcb(flags: TcbFlags) -> Tcb {
        let ends = Endpoints::V4 {
            source: [10, 0, 0, 1].into(),
            dest: [10, 0, 0, 2].into(),
            source_port: 1,
            dest_port: 2,
        };
        let flags = flags | TcbFlags::TIMESTAMPS;
        let mut tcb = Tcb::new(ends, 1460, flags, Seq(0), Seq(0)).expect("size");
        (tcb.wnd, tcb.max_wnd, tcb.wnd_scale) = (262_144, 262_144, 7);
        (tcb.send.nxt, tcb.send.max) = (Seq(14_480), Seq(14_480));
        tcb.send.rexmt = Some(Time(1000));
        tcb
    }

    #[test]
    fn row_j4_the_third_duplicate_sends_the_first_again() {
        let mut tcb = tcb(TcbFlags::empty());
        let resend: Vec<_> = (0..3).map(|_| tcb.on_duplicate_ack(&mut Reno)).collect();
        assert_eq!(resend, [None, None, Some(Resend::First)]);
        assert_eq!((tcb.send.cwnd, tcb.ssthresh), (11_584, 7_240));
        assert_eq!((tcb.recover, tcb.send.nxt), (Seq(14_480), Seq(14_480)));
        assert_eq!(tcb.on_duplicate_ack(&mut Reno), None);
        assert_eq!(tcb.send.cwnd, 13_032, "row J5");
    }

    #[test]
    fn row_j6_with_sack_the_third_duplicate_fills_the_hole() {
        let mut tcb = tcb(TcbFlags::SACK);
        let sent = Outstanding {
            una: tcb.una,
            max: tcb.send.max,
            max_segment: tcb.max_segment(),
        };
        let mut resend = None;
        for n in 2..5 {
            let (start, end) = (Seq(1448), Seq(1448 * n));
            tcb.scoreboard.on_sack(&[SackBlock { start, end }], &sent);
            resend = tcb.on_duplicate_ack(&mut Reno);
        }
        assert_eq!(resend, Some(Resend::Hole));
        assert_eq!(tcb.send.cwnd, 7_240 + 4_344);
    }

    #[test]
    fn duplicates_about_what_timed_out_cut_nothing_again() {
        let mut tcb = tcb(TcbFlags::empty());
        tcb.on_timer(Time(1000)).expect("due");
        let (cwnd, ssthresh) = (tcb.send.cwnd, tcb.ssthresh);
        for _ in 0..3 {
            assert_eq!(tcb.on_duplicate_ack(&mut Reno), None);
        }
        assert_eq!((tcb.send.cwnd, tcb.ssthresh), (cwnd + 1448, ssthresh));
        assert_eq!(tcb.dup_acks, 0);
    }

    #[test]
    fn fault_l10_recovery_goes_segment_by_segment_and_ends() {
        let mut tcb = tcb(TcbFlags::empty());
        for _ in 0..9 {
            tcb.on_duplicate_ack(&mut Reno);
        }
        let partial = Ack::new(Seq(2_896), 262_144);
        assert_eq!(
            tcb.on_new_ack(&partial, &mut Reno, Time(5)),
            Some(Resend::First)
        );
        assert!(tcb.in_recovery());
        let whole = Ack::new(Seq(14_480), 262_144);
        assert_eq!(tcb.on_new_ack(&whole, &mut Reno, Time(9)), None);
        assert!(!tcb.in_recovery() && tcb.send.rexmt.is_none());
        assert_eq!(tcb.send.cwnd, 2896, "nothing is outstanding: no burst");
    }
}
