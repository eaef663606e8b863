//! The rules of a whole connection.

use super::Connection;
use crate::check::{BrokenRule, first_broken};
use crate::input::CongestionControl;
use crate::policy::CopyPolicy;
use crate::state::State;

impl<P: CopyPolicy, C: CongestionControl> Connection<P, C> {
    /// Whether all parts agree: the [control block](crate::Tcb::check), buffers, what waits out of
    /// order.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), BrokenRule> {
        let tcb = self.tcb();
        tcb.check(self.snd.len())?;
        let open = tcb.state != State::Closed;
        let beyond = |number: crate::Seq| tcb.rcv.nxt.leq(number);
        let rule = first_broken(&[
            (
                i64::from(tcb.rcv.space) == self.rcv.space().clamp(0, 1 << 30) as i64,
                "the window is the receive buffer's room",
            ),
            (
                self.queue.blocks().all(|run| tcb.rcv.nxt.lt(run.start)),
                "what is in order is not kept out of order",
            ),
            (
                !open || self.fin_at.is_none_or(beyond),
                "the peer's FIN is not behind us",
            ),
            (
                !tcb.state.received_syn() || self.last_ack_sent.leq(tcb.rcv.nxt),
                "nothing was acknowledged that has not arrived",
            ),
            (
                open || (self.queue.is_empty() && self.resend.is_none()),
                "nothing waits without a connection",
            ),
            (
                open || !(self.force || self.keep_alive),
                "nothing is asked of the peer without a connection",
            ),
        ]);
        rule.map_or(Ok(()), |rule| Err(tcb.broken(rule, self.snd.len())))
    }

    /// In debug builds, that all is well.
    #[inline]
    pub(super) fn debug_check(&self) {
        #[cfg(debug_assertions)]
        if let Err(broken) = self.check() {
            panic!("{broken}");
        }
    }
}
