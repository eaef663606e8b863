//! What an arriving segment brings: bytes, a FIN, a congestion mark.

use mbuf::{Mbuf, Packet};

use super::{Connection, Events};
use crate::flags::TcbFlags;
use crate::input::{CongestionControl, Incoming, Kept};
use crate::options::MAX_SACK_BLOCKS;
use crate::policy::CopyPolicy;
use crate::seq::Seq;
use crate::state::State;
use crate::time::Time;
use crate::timer::{MAX_IDLE, MAX_SEGMENT_LIFETIME, Timers};
use crate::wire::TcpFlags;

impl<P: CopyPolicy, C: CongestionControl> Connection<P, C> {
    /// A segment that has not been cut to the window yet.
    pub(super) fn take_payload(&mut self, segment: &Incoming, packet: Mbuf, now: Time) -> Events {
        let fin = segment.flags.contains(TcpFlags::FIN);
        let window = crate::input::Expected {
            nxt: self.tcb().rcv.nxt,
            window: self.tcb().rcv.space,
        };
        match window.cut(segment.seq, segment.payload_len(), fin) {
            Some(kept) => self.take_kept(segment, kept, packet, now),
            None => Events::empty(),
        }
    }

    /// What was kept of a segment.
    pub(super) fn take_kept(
        &mut self,
        segment: &Incoming,
        kept: Kept,
        packet: Mbuf,
        now: Time,
    ) -> Events {
        self.note_congestion(segment);
        if !self.peer_may_send() {
            if self.state() == State::TimeWait && segment.flags.contains(TcpFlags::FIN) {
                self.wait_for_strays(now);
            }
            return Events::empty();
        }
        let mut events = Events::empty();
        if let Some(data) = cut_out(segment, &kept, packet) {
            if self.left {
                self.reset_due = true;
                return self.ended();
            }
            events |= self.take_data(segment, &kept, data, now);
        }
        let fin = segment.seq + segment.payload_len();
        if kept.fin && self.ends_stream(fin) {
            self.fin_at = Some(fin);
            // Out of order it is answered at once, as data is.
            self.owe_ack();
        }
        if self.fin_at == Some(self.tcb().rcv.nxt) {
            events |= self.take_fin(now);
        }
        events
    }

    /// Nothing has arrived from behind `fin`: a FIN in front of something is a lie, or that was.
    fn ends_stream(&self, fin: Seq) -> bool {
        let mut runs = self.queue.blocks();
        self.tcb().rcv.nxt.leq(fin) && runs.all(|run| run.end.leq(fin))
    }

    fn take_data(&mut self, segment: &Incoming, kept: &Kept, data: Mbuf, now: Time) -> Events {
        let tcb = self.sender.tcb_mut();
        let waiting = !self.queue.is_empty();
        let arrived = self
            .queue
            .arrive(segment.seq + kept.front, data, tcb.rcv.nxt);
        let in_order = arrived.unwrap_or(None);
        let len = in_order.as_ref().map_or(0, Packet::pkt_len) as u32;
        tcb.rcv.nxt += len;
        // What fills a gap, and what leaves one, is answered at once (RFC 5681, 4.2).
        if len == 0 || waiting {
            tcb.flags |= TcbFlags::ACK_NOW;
        } else {
            tcb.acknowledge_soon(len, now);
        }
        self.tell_blocks();
        let Some(data) = in_order else {
            return Events::empty();
        };
        self.rcv.append_stream(data);
        self.tell_space();
        Events::READABLE
    }

    /// What is out of order, for the SACK option.
    fn tell_blocks(&mut self) {
        let rcv = &mut self.sender.tcb_mut().rcv;
        let mut sacks = 0;
        for (slot, block) in rcv.sack_blocks.iter_mut().zip(self.queue.blocks()) {
            *slot = block;
            sacks += 1;
        }
        debug_assert!(sacks <= MAX_SACK_BLOCKS);
        rcv.sacks = sacks as u8;
    }

    /// All that the peer sent has arrived.
    fn take_fin(&mut self, now: Time) -> Events {
        self.fin_at = None;
        let tcb = self.sender.tcb_mut();
        tcb.rcv.nxt += 1;
        tcb.flags |= TcbFlags::ACK_NOW;
        match tcb.state {
            State::SynReceived | State::Established => tcb.state = State::CloseWait,
            State::FinWait1 => tcb.state = State::Closing,
            State::FinWait2 => self.wait_for_strays(now),
            _ => {}
        }
        Events::PEER_CLOSED
    }

    /// Both sides are done: until stray segments have died out.
    pub(super) fn wait_for_strays(&mut self, now: Time) {
        let tcb = self.sender.tcb_mut();
        tcb.state = State::TimeWait;
        (tcb.send.rexmt, tcb.send.persist) = (None, None);
        tcb.timers = Timers {
            time_wait: Some(now + 2 * MAX_SEGMENT_LIFETIME),
            ..Timers::default()
        };
    }

    /// The peer's FIN is all that is missing: without anybody to read it is not waited for for ever.
    pub(super) fn wait_for_fin(&mut self, now: Time) {
        if self.left {
            self.sender.tcb_mut().timers.fin_wait2 = Some(now + MAX_IDLE);
        }
    }

    fn peer_may_send(&self) -> bool {
        matches!(
            self.state(),
            State::SynReceived | State::Established | State::FinWait1 | State::FinWait2
        )
    }

    /// The peer hears of congestion until it says that it slowed down (RFC 3168, 6.1.3).
    fn note_congestion(&mut self, segment: &Incoming) {
        let flags = &mut self.sender.tcb_mut().flags;
        if !flags.contains(TcbFlags::ECN) {
            return;
        }
        if segment.flags.contains(TcpFlags::CWR) {
            flags.remove(TcbFlags::CE_SEEN);
        }
        if segment.congested {
            *flags |= TcbFlags::CE_SEEN;
        }
    }
}

/// The payload without headers and without what lies outside of the window.
fn cut_out(segment: &Incoming, kept: &Kept, packet: Mbuf) -> Option<Mbuf> {
    let mut data = segment.into_payload(packet)?;
    data.trim_back(kept.back as usize).ok()?;
    data.trim_front(kept.front as usize).ok()?;
    (data.pkt_len() > 0).then_some(data)
}
