//! What sending a segment changes, and what failing to send it changes.

use crate::decide::{Kind, Segment};
use crate::error::OutputError;
use crate::flags::TcbFlags;
use crate::state::State;
use crate::tcb::Tcb;
use crate::time::Time;
use crate::timer::DELAYED_ACK;
use crate::wire::{TCP_HEADER_LEN, TcpFlags};

impl Tcb {
    /// Counts a segment by its kind, also one that could not be built, as BSD does.
    pub fn count(&mut self, segment: &Segment) {
        let len = segment.len as u64;
        let stats = &mut self.stats;
        match segment.kind {
            Kind::Data => {
                stats.data_packets += 1;
                stats.data_bytes += len;
            }
            Kind::Retransmission => {
                stats.rexmit_packets += 1;
                stats.rexmit_bytes += len;
            }
            Kind::HoleFilled => {
                stats.rexmit_packets += 1;
                stats.rexmit_bytes += len;
                stats.sack_rexmit_packets += 1;
                stats.sack_rexmit_bytes += len;
            }
            Kind::Probe => stats.probes += 1,
            Kind::Ack => stats.acks += 1,
            Kind::Control => stats.control += 1,
            Kind::Urgent => stats.urgent += 1,
            Kind::WindowUpdate => stats.window_updates += 1,
            Kind::KeepAlive => stats.keep_probes += 1,
        }
    }

    /// Moves the send state past a segment that left, or may have left.
    pub fn advance(&mut self, segment: &Segment, now: Time) {
        if segment.flags.contains(TcpFlags::RST) || segment.kind == Kind::KeepAlive {
            return;
        }
        if segment.probing {
            self.send.max = self.send.max.max(self.send.nxt + segment.seq_len());
            return;
        }
        match segment.hole {
            Some(place) => self.scoreboard.filled(place.into(), segment.len as u32),
            None => self.pass_by(segment, now),
        }
        let out = self.send.nxt != self.una || segment.hole.is_some();
        if self.send.rexmt.is_none() && out {
            self.send.start_rexmt(&self.rtt, now);
        } else if segment.len == 0 && segment.queued && self.send.no_timer() {
            self.send.backoff = 0;
            self.send.start_persist(&self.rtt, now);
        }
    }

    /// Moves the next number past a segment, and times it if it is new from its first byte (Karn):
    /// the answer to a probe byte sent again would say nothing about this round trip.
    fn pass_by(&mut self, segment: &Segment, now: Time) {
        let start = self.send.nxt;
        self.send.nxt += segment.seq_len();
        if segment.flags.contains(TcpFlags::FIN) {
            self.flags |= TcbFlags::FIN_SENT;
        }
        if self.send.max.lt(self.send.nxt) {
            if self.rtt.timed.is_none() && self.send.max.leq(start) {
                self.rtt.timed = Some((start, now));
                self.stats.timed += 1;
            }
            self.send.max = self.send.nxt;
        }
    }

    /// Takes note of what the peer learns from a segment that left.
    pub fn note_sent(&mut self, segment: &Segment) {
        self.stats.sent += 1;
        let told = self.rcv.nxt + segment.window_bytes;
        if self.rcv.adv.lt(told) {
            self.rcv.adv = told;
        }
        self.timers.delayed_ack = None;
        self.flags.remove(TcbFlags::ACK_NOW);
        if segment.flags.contains(TcpFlags::CWR) {
            self.flags.remove(TcbFlags::CWR_DUE);
        }
    }

    /// A segment did not leave for want of memory: the next one shall be small, and what wanted to
    /// go has a timer. An acknowledgment that did not leave stays owed and is tried again by the
    /// timer of delayed ones; it arms no retransmission.
    #[cold]
    pub fn could_not_send(&mut self, segment: &Segment, now: Time) {
        self.stats.no_buffers += 1;
        self.send.cwnd = self.max_segment();
        self.see_to_timers(segment, now);
    }

    /// Whatever stopped a segment: something will try again.
    #[cold]
    pub(crate) fn see_to_timers(&mut self, segment: &Segment, now: Time) {
        if self.state == State::Closed {
            return;
        }
        if self.send.no_timer() {
            if segment.seq_len() > 0 || self.outstanding() {
                self.send.start_rexmt(&self.rtt, now);
            } else if segment.queued {
                self.send.backoff = 0;
                self.send.start_persist(&self.rtt, now);
            }
        }
        if self.flags.contains(TcbFlags::ACK_NOW) && self.timers.delayed_ack.is_none() {
            self.timers.delayed_ack = Some(now + DELAYED_ACK);
        }
    }

    /// The way out refused a packet, or lost its way after taking it. Says whether that is to be
    /// kept from the user, because the retransmission timer tries again.
    #[cold]
    pub fn refused(&mut self, segment: &Segment, error: OutputError, now: Time) -> bool {
        match error {
            OutputError::NoBuffers => self.could_not_send(segment, now),
            OutputError::TooLong { .. } => self.see_to_timers(segment, now),
            OutputError::Unreachable | OutputError::Other(_) => {
                self.advance(segment, now);
                self.see_to_timers(segment, now);
            }
        }
        let soft = error == OutputError::Unreachable && self.state.received_syn();
        if soft {
            self.soft_error = Some(error);
        }
        soft
    }

    /// Makes segments small enough for a path of `mtu` bytes and sends again what is outstanding.
    /// Says whether anything changed: not if they were small enough, or cannot be made so.
    #[doc(alias = "tcp_mtudisc")]
    pub fn shrink_to(&mut self, mtu: u32) -> bool {
        let headers = (self.ends.ip_header_len() + TCP_HEADER_LEN) as u32;
        let opd = mtu.saturating_sub(headers);
        let smaller = opd < self.max_opd() && self.set_max_opd(opd).is_ok();
        if smaller {
            self.send.nxt = self.una;
        }
        smaller
    }
}
