//! An arriving segment, in the order of RFC 9293, 3.10.7.

use mbuf::Mbuf;

use super::{Connection, Events};
use crate::flags::TcbFlags;
use crate::input::{AckNumber, CongestionControl, Expected, Incoming, OnReset};
use crate::policy::CopyPolicy;
use crate::seq::Seq;
use crate::state::State;
use crate::time::Time;
use crate::wire::TcpFlags;

impl<P: CopyPolicy, C: CongestionControl> Connection<P, C> {
    /// Takes in a segment that was [parsed](Incoming::parse) from `packet`, which is consumed
    /// whatever comes of it. Output follows.
    #[doc(alias = "tcp_input")]
    pub fn on_segment(&mut self, segment: &Incoming, packet: Mbuf, now: Time) -> Events {
        let events = match self.state() {
            State::Closed | State::Listen => Events::UNWANTED,
            State::SynSent => self.on_answer(segment, packet, now),
            _ => self.on_known(*segment, packet, now),
        };
        self.debug_check();
        events
    }

    /// We have sent a SYN.
    fn on_answer(&mut self, segment: &Incoming, packet: Mbuf, now: Time) -> Events {
        let tcb = self.sender.tcb();
        let acks = segment.flags.contains(TcpFlags::ACK);
        if acks && (segment.ack.leq(tcb.iss) || tcb.send.max.lt(segment.ack)) {
            return Events::UNWANTED;
        }
        if segment.flags.contains(TcpFlags::RST) {
            return match acks {
                true => Events::RESET | self.ended(),
                false => Events::empty(),
            };
        }
        if !segment.flags.contains(TcpFlags::SYN) {
            return Events::empty();
        }
        self.take_syn(segment, now);
        if !acks {
            self.answer_syn();
            return Events::empty();
        }
        self.acknowledge(segment, now);
        self.owe_ack();
        let events = self.established(now);
        let mut behind = *segment;
        behind.seq += 1;
        events | self.take_payload(&behind, packet, now)
    }

    /// The peer's SYN: what it offers, and where its numbers begin.
    pub(super) fn take_syn(&mut self, syn: &Incoming, now: Time) {
        let tcb = self.sender.tcb_mut();
        tcb.on_syn(syn);
        tcb.rcv.last = now;
        self.wl1 = syn.seq;
        self.last_ack_sent = syn.seq + 1;
        if let Some(timestamps) = syn.options.timestamps {
            self.echo(timestamps.value, syn.seq, now);
        }
    }

    /// Both sides have sent a SYN without knowing of the other's, or the peer has not seen ours: it
    /// goes, again, with an ACK.
    fn answer_syn(&mut self) {
        let tcb = self.sender.tcb_mut();
        tcb.state = State::SynReceived;
        tcb.send.nxt = tcb.una;
        tcb.send.rexmt = None;
        self.owe_ack();
    }

    /// The peer's SYN has been taken in before.
    fn on_known(&mut self, mut segment: Incoming, packet: Mbuf, now: Time) -> Events {
        if self.makes_way_for(&segment, now) {
            return Events::REPLACED | self.ended();
        }
        if self.is_old_duplicate(&segment, now) {
            self.challenge(now);
            return Events::empty();
        }
        if segment.flags.contains(TcpFlags::RST) {
            return self.on_reset(&segment, now);
        }
        if segment.flags.contains(TcpFlags::SYN) && !self.strip_syn(&mut segment, now) {
            return Events::empty();
        }
        let fin = segment.flags.contains(TcpFlags::FIN);
        let len = segment.payload_len();
        let Some(kept) = self.expected().cut(segment.seq, len, fin) else {
            self.challenge(now);
            return Events::empty();
        };
        if kept.owes_ack {
            self.owe_ack();
        }
        if let Some(timestamps) = segment.options.timestamps {
            self.echo(timestamps.value, segment.seq, now);
        }
        if !segment.flags.contains(TcpFlags::ACK) {
            return Events::empty();
        }
        self.sender.tcb_mut().rcv.last = now;
        match self.take_acknowledgment(&segment, now) {
            Ok(events) => events | self.take_kept(&segment, kept, packet, now),
            Err(events) => events,
        }
    }

    /// Both sides are done, and a SYN comes that is no stray: its numbers, or its clock, are later
    /// than those of this connection (RFC 1122, 4.2.2.13; RFC 6191).
    fn makes_way_for(&self, segment: &Incoming, now: Time) -> bool {
        let opening = TcpFlags::SYN | TcpFlags::ACK | TcpFlags::RST | TcpFlags::FIN;
        if self.state() != State::TimeWait || segment.flags & opening != TcpFlags::SYN {
            return false;
        }
        let clocks = segment.options.timestamps.zip(self.recent.at);
        let later_clock = clocks.is_some_and(|(clocks, _)| {
            clocks.value != self.recent.value && !self.recent.is_old(clocks.value, now)
        });
        later_clock || self.tcb().rcv.nxt.lt(segment.seq)
    }

    /// A retransmitted SYN while ours is not acknowledged is taken off its segment; what is without an
    /// ACK is answered. Any other is not believed (RFC 5961, 4.2). Whether the segment counts.
    fn strip_syn(&mut self, segment: &mut Incoming, now: Time) -> bool {
        let tcb = self.sender.tcb();
        let ours = tcb.state == State::SynReceived && segment.seq + 1 == tcb.rcv.nxt;
        if !ours {
            self.challenge(now);
            return false;
        }
        segment.seq += 1;
        segment.flags.remove(TcpFlags::SYN);
        if !segment.flags.contains(TcpFlags::ACK) {
            self.answer_syn();
            return false;
        }
        self.owe_ack();
        true
    }

    fn on_reset(&mut self, segment: &Incoming, now: Time) -> Events {
        match self.expected().on_reset(segment.seq) {
            OnReset::Close => Events::RESET | self.ended(),
            OnReset::Challenge => {
                self.challenge(now);
                Events::empty()
            }
            OnReset::Ignore => Events::empty(),
        }
    }

    /// The acknowledgment number, and what it opens or closes. `Err` when the rest of the segment
    /// does not count.
    fn take_acknowledgment(&mut self, segment: &Incoming, now: Time) -> Result<Events, Events> {
        let tcb = self.sender.tcb();
        let verdict = AckNumber::judge(segment.ack, tcb.una, tcb.send.max, tcb.max_wnd);
        let opens = !tcb.state.synchronized();
        if opens && verdict != AckNumber::New {
            return Err(Events::UNWANTED);
        }
        if verdict == AckNumber::Absurd {
            self.challenge(now);
            return Err(Events::empty());
        }
        let events = self.acknowledge(segment, now);
        Ok(match opens {
            true => events | self.established(now),
            false => events,
        })
    }

    /// What is taken: the window that was offered, or the room there is if it is more; nothing
    /// behind a FIN.
    fn expected(&self) -> Expected {
        let rcv = &self.sender.tcb().rcv;
        let offered = rcv.nxt.distance(rcv.adv).max(0) as u32;
        let before_fin = self.fin_at.map_or(u32::MAX, |at| at - rcv.nxt);
        Expected {
            nxt: rcv.nxt,
            window: offered.max(rcv.space).min(before_fin),
        }
    }

    fn is_old_duplicate(&self, segment: &Incoming, now: Time) -> bool {
        let Some(timestamps) = segment.options.timestamps else {
            return false;
        };
        self.sender.tcb().flags.contains(TcbFlags::TIMESTAMPS)
            && !segment.flags.contains(TcpFlags::RST)
            && self.recent.is_old(timestamps.value, now)
    }

    /// Remembers the timestamp if it is the one to be echoed.
    fn echo(&mut self, timestamp: u32, seq: Seq, now: Time) {
        self.recent.update(timestamp, seq, self.last_ack_sent, now);
        self.sender.tcb_mut().ts_recent = self.recent.value;
    }

    /// An acknowledgment goes with the next output.
    pub(super) fn owe_ack(&mut self) {
        self.sender.tcb_mut().flags |= TcbFlags::ACK_NOW;
    }

    /// An acknowledgment to what is not believed, if not too many went lately.
    fn challenge(&mut self, now: Time) {
        if self.challenges.allow(now) {
            self.owe_ack();
        }
    }
}

#[cfg(test)]
mod tests {
    use mbuf::BufferSet;

    use super::*;
    use crate::connection::Config;
    use crate::policy::Reference;
    use crate::{Endpoints, Sender, Tcb};

    /// A connection in the middle of its life, with numbers of the test's.
    fn old(state: State, una: Seq, iss: Seq) -> (BufferSet, Connection<Reference>) {
        let ends = Endpoints::V4 {
            source: [10, 0, 0, 1].into(),
            dest: [10, 0, 0, 2].into(),
            source_port: 1,
            dest_port: 2,
        };
        let config = Config::default();
        let mut tcp = Connection::connect(ends, &config, Reference, iss, Time(0)).expect("size");
        let tcb = tcp.sender.tcb_mut();
        (tcb.state, tcb.una, tcb.recover, tcb.up) = (state, una, una, una);
        (tcb.send.nxt, tcb.send.max, tcb.wl2) = (una, una, una);
        (tcb.wnd, tcb.max_wnd) = (60_000, 60_000);
        (BufferSet::bsd(64, 8).expect("pools"), tcp)
    }

    fn ack(set: &BufferSet, tcp: &Connection<Reference>) -> (Incoming, Mbuf) {
        let (ends, tcb) = (tcp.tcb().ends.reversed(), tcp.tcb());
        let peer = Tcb::new(ends, 1460, TcbFlags::ACK_NOW, tcb.rcv.nxt, tcb.send.max);
        let mut sender = Sender::new(peer.expect("size"), Reference)
            .with_checksum(crate::ChecksumMode::Software);
        let mut sent = None;
        let mut out = |packet| {
            sent = Some(packet);
            Ok(())
        };
        let nothing = sockbuf::SockBuf::new(1);
        sender
            .output(&nothing, set, Time(0), &mut out)
            .expect("buffers");
        let packet = sent.expect("an acknowledgment");
        (Incoming::parse(&packet).expect("right"), packet)
    }

    #[test]
    fn fault_u2_the_number_of_our_syn_comes_again_after_4_gb() {
        let (set, mut tcp) = old(State::CloseWait, Seq(77), Seq(77));
        let (segment, packet) = ack(&set, &tcp);
        assert_eq!(tcp.on_segment(&segment, packet, Time(5)), Events::empty());
        assert_eq!(tcp.state(), State::CloseWait);
        tcp.write(&[1; 10], &set).expect("space");
        tcp.poll_output(&set, Time(5), &mut |_| Ok(()))
            .expect("buffers");
        let (segment, packet) = ack(&set, &tcp);
        assert_eq!(tcp.on_segment(&segment, packet, Time(6)), Events::WRITABLE);
        assert!(tcp.send_buffer().is_empty());
        assert_eq!(tcp.state(), State::CloseWait);
    }

    #[test]
    fn fault_u2_a_mark_echoed_long_ago_does_not_hide_the_next() {
        let (set, mut tcp) = old(State::Established, Seq(0x7fff_0000), Seq(0));
        tcp.echo_until = Seq(5);
        tcp.sender.tcb_mut().flags |= TcbFlags::ECN;
        write_a_segment(&set, &mut tcp);
        let (segment, packet) = ack(&set, &tcp);
        tcp.on_segment(&segment, packet, Time(6));
        // On by half of all numbers.
        let (tcb, una) = (tcp.sender.tcb_mut(), Seq(0x8000_1000));
        (tcb.una, tcb.recover, tcb.up) = (una, una, una);
        (tcb.send.nxt, tcb.send.max) = (una, una);
        write_a_segment(&set, &mut tcp);
        let (mut segment, packet) = ack(&set, &tcp);
        segment.flags |= TcpFlags::ECE;
        // Something must still be outstanding for an echo to be about it.
        write_a_segment(&set, &mut tcp);
        tcp.on_segment(&segment, packet, Time(6));
        assert_eq!(tcp.tcb().send.cwnd, 8_760, "half of 17520");
    }

    fn write_a_segment(set: &BufferSet, tcp: &mut Connection<Reference>) {
        tcp.write(&[1; 1460], set).expect("space");
        let sent = tcp.poll_output(set, Time(5), &mut |_| Ok(()));
        assert_eq!(sent.expect("buffers").packets, 1);
    }
}
