//! Before the connection stands: SYN, SYN with ACK, and the reset that answers for no connection.

use super::{Cut, Decision, Pass, SendView, compose};
use crate::flags::TcbFlags;
use crate::state::State;
use crate::tcb::Tcb;
use crate::time::Time;

/// Decides in the states that are not synchronized. No data goes with a SYN.
#[cold]
pub(super) fn decide(tcb: &Tcb, view: &SendView, now: Time) -> Decision {
    let mut next = tcb.send;
    let due = match tcb.state {
        State::Closed => true,
        State::SynSent | State::SynReceived => {
            // A SYN that is out is repeated by its timer, or when the peer repeats its own.
            let repeat = tcb.flags.contains(TcbFlags::ACK_NOW);
            let due = repeat || next.nxt == tcb.una;
            if due {
                next.nxt = tcb.iss;
            }
            due
        }
        _ => false,
    };
    let segment = if due {
        Some(compose::compose(tcb, view, &mut next, Cut::NONE, now))
    } else {
        super::arm_what_waits(tcb, view, now, &mut next);
        None
    };
    Decision {
        next,
        segment,
        pass: Pass { idle: false },
    }
}
