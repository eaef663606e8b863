//! The timers of a connection, as data: when each expires, and what that does to the state.
//!
//! Retransmission and persist timer stand in [`SendState`](crate::SendState), since the send decision
//! moves them; the others stand in [`Timers`]. [`Tcb::timer`] reads all of them, and
//! [`Tcb::next_timeout`] says when to call [`Tcb::on_timer`].

use crate::error::Dropped;
use crate::flags::TcbFlags;
use crate::rtt::MAX_BACKOFF;
use crate::state::State;
use crate::tcb::Tcb;
use crate::time::Time;

/// Longest that an acknowledgment waits for company, ms.
#[doc(alias = "tcp_delack_msecs")]
pub const DELAYED_ACK: u32 = 200;
/// Silence after which the peer is probed, ms. Also the longest that a closed window is probed
/// without an answer.
#[doc(alias = "TCPTV_KEEP_IDLE")]
pub const KEEP_IDLE: u32 = 7_200_000;
/// Time between two such probes, ms.
#[doc(alias = "TCPTV_KEEPINTVL")]
pub const KEEP_INTERVAL: u32 = 75_000;
/// Probes without an answer that end the connection.
#[doc(alias = "TCPTV_KEEPCNT")]
pub const KEEP_PROBES: u32 = 8;
/// Longest that a segment lives in the network, ms.
#[doc(alias = "TCPTV_MSL")]
pub const MAX_SEGMENT_LIFETIME: u32 = 30_000;

/// Silence after which a peer that does not answer probes is given up, ms.
#[doc(alias = "tcp_maxidle")]
pub(crate) const MAX_IDLE: u32 = KEEP_PROBES * KEEP_INTERVAL;

/// Names a timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Timer {
    /// Unacknowledged data, SYN or FIN is sent again.
    #[doc(alias = "TCPT_REXMT")]
    Retransmit,
    /// A closed window is probed. Never runs together with the former.
    #[doc(alias = "TCPT_PERSIST")]
    Persist,
    /// An acknowledgment has waited long enough.
    #[doc(alias = "TCPT_DELACK")]
    DelayedAck,
    /// A silent peer is probed; before the connection stands, it is given up.
    #[doc(alias = "TCPT_KEEP")]
    KeepAlive,
    /// The peer does not close after we did.
    FinWait2,
    /// Stray segments have died out.
    #[doc(alias = "TCPT_2MSL")]
    TimeWait,
}

impl Timer {
    /// All of them, in the order in which those that expire together are handled.
    pub const ALL: [Timer; 6] = [
        Timer::Retransmit,
        Timer::Persist,
        Timer::DelayedAck,
        Timer::KeepAlive,
        Timer::FinWait2,
        Timer::TimeWait,
    ];
}

/// When the timers expire that the send decision does not move; `None` for those that do not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timers {
    /// [`Timer::DelayedAck`].
    pub delayed_ack: Option<Time>,
    /// [`Timer::KeepAlive`].
    pub keep_alive: Option<Time>,
    /// [`Timer::FinWait2`].
    pub fin_wait2: Option<Time>,
    /// [`Timer::TimeWait`].
    pub time_wait: Option<Time>,
}

/// What an expired timer asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expired {
    /// Unacknowledged data is to be sent again: output follows.
    Retransmit,
    /// The window is still closed: a forced output follows.
    Persist,
    /// An acknowledgment is owed: output follows.
    DelayedAck,
    /// The peer is to be asked whether it is still there: a keep-alive
    /// segment follows.
    KeepAlive,
    /// The connection is over, and nothing follows. If it was given up, [`Tcb::dropped`] says why.
    Closed,
    /// The peer has not answered for too long: the connection is given up, [`Tcb::dropped`] says
    /// why, and the output that follows tells the peer.
    GiveUp,
}

impl Tcb {
    /// When a timer expires, if it runs.
    #[must_use]
    pub fn timer(&self, timer: Timer) -> Option<Time> {
        match timer {
            Timer::Retransmit => self.send.rexmt,
            Timer::Persist => self.send.persist,
            Timer::DelayedAck => self.timers.delayed_ack,
            Timer::KeepAlive => self.timers.keep_alive,
            Timer::FinWait2 => self.timers.fin_wait2,
            Timer::TimeWait => self.timers.time_wait,
        }
    }

    /// Sets a timer to a moment, or stops it. Starting one of retransmission and persist stops the
    /// other.
    pub fn set_timer(&mut self, timer: Timer, at: Option<Time>) {
        match timer {
            Timer::Retransmit => {
                self.send.rexmt = at;
                self.send.persist = self.send.persist.filter(|_| at.is_none());
            }
            Timer::Persist => {
                self.send.persist = at;
                self.send.rexmt = self.send.rexmt.filter(|_| at.is_none());
            }
            Timer::DelayedAck => self.timers.delayed_ack = at,
            Timer::KeepAlive => self.timers.keep_alive = at,
            Timer::FinWait2 => self.timers.fin_wait2 = at,
            Timer::TimeWait => self.timers.time_wait = at,
        }
    }

    /// When the first of the running timers expires.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Time> {
        let running = Timer::ALL.iter().filter_map(|&timer| self.timer(timer));
        running.min()
    }

    /// Handles one timer that has expired at `now`, if one has. Called again it handles the next.
    pub fn on_timer(&mut self, now: Time) -> Option<Expired> {
        let due = |&timer: &Timer| self.timer(timer).is_some_and(|at| at <= now);
        let timer = Timer::ALL.into_iter().find(due)?;
        match timer {
            Timer::Retransmit => Some(self.rexmt_expired(now)),
            Timer::Persist => Some(self.persist_expired(now)),
            Timer::DelayedAck => {
                self.timers.delayed_ack = None;
                self.flags |= TcbFlags::ACK_NOW;
                Some(Expired::DelayedAck)
            }
            Timer::KeepAlive => self.keep_alive_expired(now),
            Timer::FinWait2 => self.fin_wait2_expired(now),
            Timer::TimeWait => Some(self.close()),
        }
    }

    #[doc(alias = "tcp_timer_rexmt")]
    fn rexmt_expired(&mut self, now: Time) -> Expired {
        self.scoreboard.clear();
        if self.send.backoff >= MAX_BACKOFF {
            return self.give_up();
        }
        self.send.backoff += 1;
        self.rtt.back_off(self.send.backoff);
        if self.send.backoff > MAX_BACKOFF / 4 {
            self.rtt.distrust();
        }
        self.send.rexmt = Some(now + self.rtt.rto);
        self.rtt.timed = None;
        let mss = self.max_segment();
        self.ssthresh = (self.wnd.min(self.send.cwnd) / 2 / mss).max(2) * mss;
        self.send.cwnd = mss;
        self.send.nxt = self.una;
        self.recover = self.send.max;
        self.dup_acks = 0;
        self.slow_down();
        Expired::Retransmit
    }

    /// What ECN makes of a loss: the peer hears of it, or the SYN goes without asking for ECN.
    fn slow_down(&mut self) {
        if !self.state.synchronized() {
            self.flags.remove(TcbFlags::ASK_ECN);
        } else if self.flags.contains(TcbFlags::ECN) {
            self.flags |= TcbFlags::CWR_DUE;
        }
    }

    #[doc(alias = "tcp_timer_persist")]
    fn persist_expired(&mut self, now: Time) -> Expired {
        let silent = now - self.rcv.last;
        // 511 is what the twelve backoffs of a retransmission add up to.
        let patience = (511 * u64::from(self.rtt.base)).min(KEEP_IDLE.into());
        if self.send.backoff >= MAX_BACKOFF && silent >= patience {
            return self.give_up();
        }
        self.send.start_persist(&self.rtt, now);
        Expired::Persist
    }

    #[doc(alias = "tcp_timer_keep")]
    fn keep_alive_expired(&mut self, now: Time) -> Option<Expired> {
        if !self.state.synchronized() {
            return Some(self.give_up());
        }
        let probed = self.flags.contains(TcbFlags::KEEP_ALIVE) && self.state <= State::Closing;
        if !probed {
            self.timers.keep_alive = Some(now + KEEP_IDLE);
            return None;
        }
        let silent = now - self.rcv.last;
        if silent >= u64::from(KEEP_IDLE + MAX_IDLE) {
            return Some(self.give_up());
        }
        if silent >= u64::from(KEEP_IDLE) {
            self.timers.keep_alive = Some(now + KEEP_INTERVAL);
            return Some(Expired::KeepAlive);
        }
        // Something arrived since the timer was set: the silence counts from there.
        self.timers.keep_alive = Some(self.rcv.last + KEEP_IDLE);
        None
    }

    fn fin_wait2_expired(&mut self, now: Time) -> Option<Expired> {
        if now - self.rcv.last >= u64::from(MAX_IDLE) {
            return Some(self.close());
        }
        self.timers.fin_wait2 = Some(now + KEEP_INTERVAL);
        None
    }

    #[doc(alias = "tcp_close")]
    fn close(&mut self) -> Expired {
        self.end();
        Expired::Closed
    }

    #[doc(alias = "tcp_drop")]
    fn give_up(&mut self) -> Expired {
        self.dropped = Some(match self.soft_error {
            Some(error) => Dropped::Unreachable(error),
            None => Dropped::TimedOut,
        });
        // A peer that never answered our SYN knows of no connection.
        let known = self.state.received_syn();
        self.end();
        if known {
            Expired::GiveUp
        } else {
            Expired::Closed
        }
    }

    /// No connection any more: no timer runs, nothing is remembered of the peer's holes.
    fn end(&mut self) {
        self.state = State::Closed;
        self.send.rexmt = None;
        self.send.persist = None;
        self.timers = Timers::default();
        self.scoreboard.clear();
    }
}
