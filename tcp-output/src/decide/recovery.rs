//! What a scoreboard changes: a hole is filled before anything else goes, and what is sent again
//! leaves out what the peer holds.

use super::Cut;
use crate::flags::TcbFlags;
use crate::scoreboard::LOSS_THRESHOLD;
use crate::tcb::{SendState, Tcb};

/// Moves the next number over what the peer holds, and finds the hole to be filled: at most one
/// segment of it, and only in the `first` pass of a call.
#[cold]
pub(super) fn hole(tcb: &Tcb, first: bool, next: &mut SendState) -> Option<Cut> {
    if next.nxt.lt(next.max) {
        next.nxt = tcb.scoreboard.skip(next.nxt);
    }
    if !first || tcb.dup_acks < LOSS_THRESHOLD || !tcb.flags.contains(TcbFlags::SACK) {
        return None;
    }
    let (place, hole) = tcb.scoreboard.due(tcb.una)?;
    // What is lost has left the network, and this segment takes its place there.
    let mss = tcb.max_segment();
    if tcb.una.lt(tcb.recover) {
        // Not down to nothing: a window that is closed is the peer's alone.
        next.cwnd = next.cwnd.saturating_sub(mss).max(mss.min(next.cwnd));
    }
    Some(Cut {
        off: (hole.rxmit - tcb.una) as usize,
        len: (hole.end - hole.rxmit).min(mss) as usize,
        hole: Some(place as u16),
        ..Cut::NONE
    })
}
