//! Whether to send, and what: the decision of BSD's `tcp_output`, as a pure function made of small
//! steps. Nothing is allocated and nothing changed here.
//!
//! The common path is in this file, for connections that stand and lose nothing; what comes before a
//! connection stands is in `handshake`, what follows a loss in `recovery`, what a segment says in
//! `compose`.

mod compose;
mod handshake;
mod recovery;
mod segment;

pub use segment::{Kind, Segment};

use crate::flags::TcbFlags;
use crate::tcb::{SendState, Tcb};
use crate::time::Time;
use crate::wire::TcpFlags;

/// What the decision must know of the send buffer and of the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendView {
    /// Bytes in the send buffer, sent or not.
    #[doc(alias = "sb_cc")]
    pub queued: usize,
    /// The send buffer's limit, bytes.
    #[doc(alias = "sb_hiwat")]
    pub hiwat: usize,
    /// A write is going on and will append more.
    #[doc(alias = "SS_ISSENDING")]
    pub more_coming: bool,
    /// Send even into a closed window: the persist timer's probe, or urgent data.
    #[doc(alias = "t_force")]
    pub force: bool,
    /// The way out can cut large frames.
    pub tso: bool,
}

/// What the passes of one call share: later segments of a burst go out on the first one's idleness.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pass {
    idle: bool,
}

/// What to do now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// State to take over before acting, also when nothing is sent.
    pub next: SendState,
    /// The segment to send, or none.
    pub segment: Option<Segment>,
    /// To be handed in again when the segment asks for another pass.
    pub pass: Pass,
}

/// What is up for sending: a range of the send buffer, or nothing of it.
#[derive(Clone, Copy)]
struct Cut {
    off: usize,
    len: usize,
    /// One frame for the NIC to cut.
    tso: bool,
    /// More may follow.
    again: bool,
    /// It fills this hole.
    hole: Option<u16>,
    /// FIN goes with it.
    fin: bool,
}

impl Cut {
    /// No data.
    const NONE: Cut = Cut {
        off: 0,
        len: 0,
        tso: false,
        again: false,
        hole: None,
        fin: false,
    };

    /// Its first `len` bytes, when it has more: what comes behind waits for another pass, which a
    /// hole does not get.
    fn shorten(&mut self, len: usize) {
        self.len = len;
        self.again = self.hole.is_none();
        self.fin = false;
    }
}

/// Decides for one segment or TSO frame.
///
/// Pure: the same arguments give the same answer. The caller takes [`Decision::next`] over, builds
/// and sends the segment, [commits](crate::Tcb::advance) it and, if [`Segment::again`] says so,
/// calls again with `pass`.
///
/// The order of the steps is that of BSD's `tcp_output`, which matters: who comes first decides
/// between a segment and a timer.
///
/// ```
/// use tcp_output::{decide, Endpoints, SendView, Seq, Tcb, TcbFlags, Time};
/// # let ends = Endpoints::V4 { source: [10, 0, 0, 1].into(), dest: [10, 0, 0, 2].into(), source_port: 1, dest_port: 2 };
/// let tcb = Tcb::new(ends, 1460, TcbFlags::TIMESTAMPS, Seq(0), Seq(0))?;
/// let view = SendView { queued: 1500, hiwat: 65536, more_coming: false, force: false, tso: true };
/// let decision = decide(&tcb, &view, Time(0), None);
/// let segment = decision.segment.expect("an idle connection sends at once");
/// assert_eq!((segment.len, segment.again), (1448, true));
/// # Ok::<(), tcp_output::BadSegmentSize>(())
/// ```
#[doc(alias = "tcp_output")]
#[must_use]
pub fn decide(tcb: &Tcb, view: &SendView, now: Time, again: Option<Pass>) -> Decision {
    if !tcb.state.synchronized() {
        return handshake::decide(tcb, view, now);
    }
    let mut next = tcb.send;
    let pass = again.unwrap_or_else(|| begin(tcb, view, now, &mut next));
    let lost = if tcb.scoreboard.is_empty() {
        None
    } else {
        recovery::hole(tcb, again.is_none(), &mut next)
    };
    let window = usable_window(tcb, view, &mut next);
    let full = full_segment(tcb, view);
    let cut = match lost {
        None => {
            let (off, len) = sendable(tcb, view, window, now, &mut next);
            segment_or_tso(tcb, view, off, len, full)
        }
        Some(cut) => cut,
    };
    let cut = Cut {
        fin: fin_goes(tcb, view, cut),
        ..cut
    };
    let wanted = data_goes(tcb, view, &next, pass, cut, full)
        || window_update_due(tcb)
        || control_due(tcb, &next, cut);
    let segment = if wanted {
        Some(compose::compose(tcb, view, &mut next, cut, now))
    } else {
        arm_what_waits(tcb, view, now, &mut next);
        None
    };
    Decision {
        next,
        segment,
        pass,
    }
}

/// Moves a full segment that went to the place behind it, where [`decide`] would come to just that: in
/// the midst of new data, with nothing to be said that it did not say.
#[inline]
pub(crate) fn follow(
    tcb: &Tcb,
    view: &SendView,
    now: Time,
    pass: Pass,
    segment: &mut Segment,
) -> bool {
    let full = full_segment(tcb, view);
    let plain = segment.kind == Kind::Data
        && segment.flags == TcpFlags::ACK
        && segment.len == full
        && !segment.ect
        && !view.force
        && !view.tso
        && tcb.scoreboard.is_empty();
    let (seq, off) = (segment.seq + full as u32, segment.off + full);
    let new = seq == tcb.send.nxt && seq == tcb.send.max;
    // More lies behind: the last one of what may go is decided on its own.
    let allowed = view.queued.min(tcb.wnd.min(tcb.send.cwnd) as usize);
    if !plain || !new || allowed <= off + full {
        return false;
    }
    (segment.seq, segment.off) = (seq, off);
    debug_assert_eq!(
        decide(tcb, view, now, Some(pass)),
        Decision {
            next: tcb.send,
            segment: Some(*segment),
            pass
        }
    );
    true
}

/// Idle or not, congestion window after a long silence, and what the next call shall remember.
fn begin(tcb: &Tcb, view: &SendView, now: Time, next: &mut SendState) -> Pass {
    let mut idle = next.last_idle || next.max == tcb.una;
    if idle && now - tcb.rcv.last >= u64::from(tcb.rtt.rto) {
        next.cwnd = 2 * tcb.max_segment();
    }
    // The tail of a write in progress is judged when the write has ended.
    next.last_idle = idle && view.more_coming;
    idle &= !view.more_coming;
    Pass { idle }
}

/// The lesser of the two windows; forced, there is one byte of room in a closed one.
fn usable_window(tcb: &Tcb, view: &SendView, next: &mut SendState) -> u32 {
    let window = tcb.wnd.min(next.cwnd);
    if !view.force {
        return window;
    }
    if window == 0 {
        return 1;
    }
    next.stop_persist();
    window
}

/// Offset into the send buffer and how much of it the window lets out.
#[inline]
fn sendable(
    tcb: &Tcb,
    view: &SendView,
    window: u32,
    now: Time,
    next: &mut SendState,
) -> (usize, usize) {
    let off = (next.nxt - tcb.una) as usize;
    let allowed = view.queued.min(window as usize);
    if off <= allowed && (window > 0 || view.queued == 0) {
        return (off, allowed - off);
    }
    if window > 0 || view.queued == 0 {
        return (off, 0);
    }
    window_closed(tcb, off, now, next)
}

/// There is data and no window for it. What was sent into the window before it closed is sent again
/// once it reopens: until then it is the persist timer that runs, not the other.
///
/// The offset is that of the number pulled back. BSD goes on with the one before, and sends a FIN in
/// front of data that the peer never took.
#[cold]
fn window_closed(tcb: &Tcb, off: usize, now: Time, next: &mut SendState) -> (usize, usize) {
    let sent_again_in_vain = next.rexmt.is_some() && tcb.wnd == 0;
    if off > 0 || sent_again_in_vain {
        next.rexmt = None;
        next.backoff = 0;
        next.nxt = tcb.una;
        if next.persist.is_none() {
            next.start_persist(&tcb.rtt, now);
        }
    }
    (0, 0)
}

/// A full segment; no more than half of the send buffer, so that two can be in flight.
fn full_segment(tcb: &Tcb, view: &SendView) -> usize {
    (view.hiwat / 2).clamp(1, tcb.max_segment() as usize)
}

/// One segment, or as many whole ones as there are in one TSO frame. The segment with FIN stays out
/// of the frame.
#[inline]
fn segment_or_tso(tcb: &Tcb, view: &SendView, off: usize, len: usize, full: usize) -> Cut {
    let all = Cut {
        off,
        len,
        ..Cut::NONE
    };
    if len <= full {
        return all;
    }
    let mss = tcb.max_segment() as usize;
    let hindered = TcbFlags::SIGNATURE.union(TcbFlags::IP_OPTIONS);
    if view.tso && tcb.rcv.sacks == 0 && len >= 2 * mss && !tcb.flags.intersects(hindered) {
        let mut whole = len / mss * mss;
        if off + whole >= view.queued && tcb.state.offers().contains(TcpFlags::FIN) {
            whole -= mss;
        }
        if whole >= 2 * mss {
            return Cut {
                len: whole,
                tso: true,
                again: whole < len,
                ..all
            };
        }
    }
    Cut {
        len: full,
        again: true,
        ..all
    }
}

/// FIN goes with the last byte, or when all of them have gone; not with what is forced into a closed
/// window.
#[inline]
fn fin_goes(tcb: &Tcb, view: &SendView, cut: Cut) -> bool {
    if !tcb.state.offers().contains(TcpFlags::FIN) || cut.off + cut.len < view.queued {
        return false;
    }
    let closed = tcb.wnd == 0 || tcb.send.cwnd == 0;
    !(view.force && closed && cut.off < view.queued)
}

/// Sender's silly window avoidance (RFC 1122, 4.2.3.4) with Nagle's rule.
#[inline]
fn data_goes(
    tcb: &Tcb,
    view: &SendView,
    next: &SendState,
    pass: Pass,
    cut: Cut,
    full: usize,
) -> bool {
    if cut.len == 0 {
        return false;
    }
    let may_be_small = pass.idle || tcb.flags.contains(TcbFlags::NODELAY);
    let empties = cut.off + cut.len >= view.queued;
    cut.len >= full
        || (may_be_small && empties && !view.more_coming && !tcb.flags.contains(TcbFlags::NOPUSH))
        || view.force
        || (tcb.max_wnd > 0 && cut.len >= (tcb.max_wnd / 2) as usize)
        || next.nxt.lt(next.max)
        || cut.hole.is_some()
}

/// What goes without data: an acknowledgment that is owed, word of urgent data that cannot go yet, a
/// FIN that was not sent or whose number was pulled back.
#[inline]
fn control_due(tcb: &Tcb, next: &SendState, cut: Cut) -> bool {
    tcb.flags.contains(TcbFlags::ACK_NOW)
        || next.nxt.lt(tcb.up)
        || (cut.fin && (!tcb.flags.contains(TcbFlags::FIN_SENT) || next.nxt == tcb.una))
}

/// Receiver's side of silly window avoidance: tell the peer of more room only when it is worth a packet.
fn window_update_due(tcb: &Tcb) -> bool {
    let rcv = &tcb.rcv;
    if rcv.space == 0 {
        return false;
    }
    let offered = i64::from(rcv.nxt.distance(rcv.adv));
    let more = i64::from(rcv.space.min(compose::max_window(rcv.scale))) - offered;
    more >= i64::from(2 * tcb.max_segment()) || 2 * more >= i64::from(rcv.hiwat)
}

/// Nothing goes out: see that what is outstanding or queued has a timer.
fn arm_what_waits(tcb: &Tcb, view: &SendView, now: Time, next: &mut SendState) {
    if !next.no_timer() {
        return;
    }
    if tcb.una.lt(next.max) {
        next.start_rexmt(&tcb.rtt, now);
    } else if view.queued > 0 {
        next.backoff = 0;
        next.start_persist(&tcb.rtt, now);
    }
}
