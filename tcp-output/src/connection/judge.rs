//! What an acknowledgment does: to the send buffer, to loss recovery, to the peer's window.

use super::{Connection, Events};
use crate::ack::Ack;
use crate::flags::TcbFlags;
use crate::input::{CongestionControl, Incoming, Outstanding, WindowNews};
use crate::policy::CopyPolicy;
use crate::state::State;
use crate::time::Time;
use crate::wire::TcpFlags;

impl<P: CopyPolicy, C: CongestionControl> Connection<P, C> {
    /// Takes in an acknowledgment number that was judged before, with blocks and window.
    pub(super) fn acknowledge(&mut self, segment: &Incoming, now: Time) -> Events {
        let tcb = self.sender.tcb();
        let news = tcb.una.lt(segment.ack);
        let sacked = self.take_blocks(segment);
        let events = if news {
            self.take_new(segment, now)
        } else {
            self.take_duplicate(segment, sacked);
            Events::empty()
        };
        self.take_echo(segment);
        self.take_window(segment);
        events
    }

    /// Bytes that the peer was not known to hold before.
    fn take_blocks(&mut self, segment: &Incoming) -> u32 {
        let tcb = self.sender.tcb_mut();
        if !tcb.flags.contains(TcbFlags::SACK) {
            return 0;
        }
        let sent = Outstanding {
            una: tcb.una.max(segment.ack),
            max: tcb.send.max,
            max_segment: tcb.max_segment(),
        };
        tcb.scoreboard.on_sack(segment.options.sack(), &sent).bytes
    }

    fn take_new(&mut self, segment: &Incoming, now: Time) -> Events {
        let tcb = self.sender.tcb_mut();
        let arrived = Ack {
            ack: segment.ack,
            window: 0,
            echo: segment.options.timestamps.map(|clocks| clocks.echo),
        };
        let syn = u32::from(!tcb.state.synchronized());
        let acked = (segment.ack - tcb.una - syn) as usize;
        let resend = tcb.on_new_ack(&arrived, &mut self.control, now);
        // A number that nobody moves would lie ahead again after half of all numbers.
        self.echo_until = self.echo_until.max(tcb.una);
        self.resend = resend.or(self.resend.filter(|_| tcb.in_recovery()));
        // One more than there are: our FIN.
        let fin_acked = acked > self.snd.len();
        let cut = self.snd.cut(acked.min(self.snd.len()));
        debug_assert!(cut.is_ok(), "{cut:?}");
        drop(cut);
        let writable = if acked > 0 {
            Events::WRITABLE
        } else {
            Events::empty()
        };
        if fin_acked {
            self.fin_acknowledged(now)
        } else {
            writable
        }
    }

    /// The peer has all that we sent, our FIN included.
    fn fin_acknowledged(&mut self, now: Time) -> Events {
        match self.state() {
            State::FinWait1 => {
                self.sender.tcb_mut().state = State::FinWait2;
                self.wait_for_fin(now);
            }
            State::Closing => self.wait_for_strays(now),
            State::LastAck => return self.ended(),
            _ => {}
        }
        Events::empty()
    }

    /// Without SACK a duplicate is an acknowledgment that says nothing at all; with it, one that tells
    /// of more bytes held.
    fn take_duplicate(&mut self, segment: &Incoming, sacked: u32) {
        let tcb = self.sender.tcb_mut();
        if segment.ack != tcb.una || !tcb.outstanding() || tcb.send.persist.is_some() {
            return;
        }
        let silent = segment.seq_len() == 0 && tcb.window_of(segment) == tcb.wnd;
        let duplicate = match tcb.flags.contains(TcbFlags::SACK) {
            true => sacked > 0,
            false => silent,
        };
        if duplicate && let Some(resend) = tcb.on_duplicate_ack(&mut self.control) {
            self.resend = Some(resend);
        }
    }

    /// The peer echoes a congestion mark: once in a window of data it halves ours (RFC 3168, 6.1.2).
    fn take_echo(&mut self, segment: &Incoming) {
        let tcb = self.sender.tcb_mut();
        let echoed = segment.flags & (TcpFlags::ECE | TcpFlags::SYN) == TcpFlags::ECE;
        let paid = tcb.una.lt(self.echo_until) || tcb.in_recovery();
        if !echoed || !tcb.flags.contains(TcbFlags::ECN) || paid || !tcb.outstanding() {
            return;
        }
        let flight = tcb.flight_limit();
        let control = &mut self.control;
        tcb.congest(|window| control.on_ecn(window, flight));
        tcb.flags |= TcbFlags::CWR_DUE;
        self.echo_until = tcb.send.max;
    }

    fn take_window(&mut self, segment: &Incoming) {
        let tcb = self.sender.tcb_mut();
        let news = WindowNews {
            seq: segment.seq,
            ack: segment.ack,
            window: tcb.window_of(segment),
        };
        let known = WindowNews {
            seq: self.wl1,
            ack: tcb.wl2,
            window: tcb.wnd,
        };
        if news.replaces(&known) {
            tcb.wnd = news.window;
            tcb.max_wnd = tcb.max_wnd.max(news.window);
            (self.wl1, tcb.wl2) = (news.seq, news.ack);
        }
    }
}
