//! Whether to send, and what: the decision of BSD's `tcp_output` for an established connection, as a
//! pure function made of small steps. Nothing is allocated and nothing changed here.

mod segment;

pub use segment::{Kind, Segment};

use crate::flags::TcbFlags;
use crate::tcb::{SendState, Tcb};
use crate::time::Time;

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
    /// Send even into a closed window: the persist timer's probe.
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

/// How much goes, and as what.
#[derive(Clone, Copy)]
struct Cut {
    off: usize,
    len: usize,
    tso: bool,
    again: bool,
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
    let mut next = tcb.send;
    let pass = again.unwrap_or_else(|| begin(tcb, view, now, &mut next));
    let window = usable_window(tcb, view, &mut next);
    let (off, len) = sendable(tcb, view, window, now, &mut next);
    let full = full_segment(tcb, view);
    let cut = segment_or_tso(tcb, view, off, len, full);
    let wanted = data_goes(tcb, view, &next, pass, cut, full)
        || window_update_due(tcb)
        || tcb.flags.contains(TcbFlags::ACK_NOW);
    let segment = if wanted {
        Some(segment::compose(tcb, view, &next, cut, now))
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

/// The lesser of the two windows; a forced probe finds one byte of room in a closed one.
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
fn sendable(
    tcb: &Tcb,
    view: &SendView,
    window: u32,
    now: Time,
    next: &mut SendState,
) -> (usize, usize) {
    let off = (next.nxt - tcb.una) as usize;
    let allowed = view.queued.min(window as usize);
    if off <= allowed {
        return (off, allowed - off);
    }
    if window > 0 {
        return (off, 0);
    }
    // The peer took its window back: start over from what it acknowledged, once it reopens.
    next.rexmt = None;
    next.backoff = 0;
    next.nxt = tcb.una;
    if next.persist.is_none() {
        next.start_persist(&tcb.rtt, now);
    }
    (0, 0)
}

/// A full segment; no more than half of the send buffer, so that two can be in flight.
fn full_segment(tcb: &Tcb, view: &SendView) -> usize {
    (view.hiwat / 2).clamp(1, tcb.max_segment() as usize)
}

/// One segment, or as many whole ones as there are in one TSO frame.
fn segment_or_tso(tcb: &Tcb, view: &SendView, off: usize, len: usize, full: usize) -> Cut {
    if len <= full {
        return Cut {
            off,
            len,
            tso: false,
            again: false,
        };
    }
    let mss = tcb.max_segment() as usize;
    if view.tso && tcb.rcv.sacks == 0 && len >= 2 * mss {
        let whole = len / mss * mss;
        return Cut {
            off,
            len: whole,
            tso: true,
            again: whole < len,
        };
    }
    Cut {
        off,
        len: full,
        tso: false,
        again: true,
    }
}

/// Sender's silly window avoidance (RFC 1122, 4.2.3.4) with Nagle's rule.
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
}

/// Receiver's side of it: tell the peer of more room only when it is worth a packet.
fn window_update_due(tcb: &Tcb) -> bool {
    let rcv = &tcb.rcv;
    if rcv.space == 0 {
        return false;
    }
    let offered = i64::from(rcv.nxt.distance(rcv.adv));
    let more = i64::from(rcv.space.min(segment::max_window(rcv.scale))) - offered;
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
