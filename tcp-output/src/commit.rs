//! What sending a segment changes, and what failing to send it changes.

use crate::decide::{Kind, Segment};
use crate::flags::TcbFlags;
use crate::tcb::Tcb;
use crate::time::Time;

impl Tcb {
    /// Counts a segment by its kind. Done before it is built, as BSD does.
    pub fn count(&mut self, segment: &Segment) {
        let len = segment.len as u64;
        match segment.kind {
            Kind::Data => {
                self.stats.data_packets += 1;
                self.stats.data_bytes += len;
            }
            Kind::Retransmission => {
                self.stats.rexmit_packets += 1;
                self.stats.rexmit_bytes += len;
            }
            Kind::Probe => self.stats.probes += 1,
            Kind::Ack => self.stats.acks += 1,
            Kind::WindowUpdate => self.stats.window_updates += 1,
        }
    }

    /// Moves the send state past a segment that left, or may have left.
    pub fn advance(&mut self, segment: &Segment, now: Time) {
        let len = segment.len as u32;
        if segment.probing {
            self.send.max = self.send.max.max(self.send.nxt + len);
            return;
        }
        let start = self.send.nxt;
        self.send.nxt += len;
        if self.send.max.lt(self.send.nxt) {
            // Only a segment that is new from its first byte may be timed (Karn): the answer to a
            // probe byte sent again would say nothing about this round trip.
            if self.rtt.timed.is_none() && self.send.max.leq(start) {
                self.rtt.timed = Some((start, now));
                self.stats.timed += 1;
            }
            self.send.max = self.send.nxt;
        }
        if self.send.rexmt.is_none() && self.send.nxt != self.una {
            self.send.start_rexmt(&self.rtt, now);
        } else if len == 0 && segment.queued && self.send.no_timer() {
            self.send.backoff = 0;
            self.send.start_persist(&self.rtt, now);
        }
    }

    /// Takes note of what the peer learns from a segment that left.
    pub fn note_sent(&mut self, segment: &Segment) {
        self.stats.sent += 1;
        let told = self.rcv.nxt + segment.window_bytes;
        if self.rcv.adv.lt(told) {
            self.rcv.adv = told;
        }
        self.flags.remove(TcbFlags::ACK_NOW);
    }

    /// A segment did not leave for want of memory: the next one shall be small, and data that waits
    /// has a timer. An acknowledgment that did not leave stays owed; it arms none.
    pub fn could_not_send(&mut self, segment: &Segment, now: Time) {
        self.stats.no_buffers += 1;
        self.send.cwnd = self.max_segment();
        if segment.len > 0 && self.send.no_timer() {
            self.send.start_rexmt(&self.rtt, now);
        }
    }
}
