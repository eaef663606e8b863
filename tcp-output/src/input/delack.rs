//! When data that arrived is acknowledged.

use crate::time::Time;

/// The longest that an acknowledgment is held back, ms.
#[doc(alias = "TCP_DELACK_TICKS")]
pub const DELAY: u32 = 200;

/// The delayed acknowledgment (RFC 9293, 3.8.6.3; RFC 5681, 4.2).
///
/// The first segment waits for a second one, for data to ride on or for 200 ms, whatever is first.
/// What a receive offload has merged counts as the segments it was.
///
/// ```
/// use tcp_output::Time;
/// use tcp_output::input::DelayedAck;
///
/// let mut delayed = DelayedAck::default();
/// assert!(!delayed.on_data(1448, 1448, Time(0)), "the first waits");
/// assert_eq!(delayed.deadline(), Some(Time(200)));
/// assert!(delayed.on_data(1448, 1448, Time(1)), "the second does not");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DelayedAck {
    deadline: Option<Time>,
}

impl DelayedAck {
    /// Data arrived in order. Whether its acknowledgment is owed at once.
    #[doc(alias = "TCP_SETUP_ACK")]
    pub fn on_data(&mut self, len: u32, max_segment: u32, now: Time) -> bool {
        if self.deadline.is_some() || len >= 2 * max_segment {
            return true;
        }
        self.deadline = Some(now + DELAY);
        false
    }

    /// When the acknowledgment is owed, if one is held back.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Whether the time has come; the timer stops then.
    #[doc(alias = "tcp_timer_delack")]
    pub fn expire(&mut self, now: Time) -> bool {
        self.deadline.take_if(|at| *at <= now).is_some()
    }

    /// Something that carries an acknowledgment left.
    pub fn sent(&mut self) {
        self.deadline = None;
    }

    /// An acknowledgment that is owed did not leave: it is tried again.
    pub fn not_sent(&mut self, now: Time) {
        self.deadline = Some(now + DELAY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_segment_and_every_large_one_is_acknowledged_at_once() {
        let mut delayed = DelayedAck::default();
        assert!(delayed.on_data(2896, 1448, Time(0)), "two in one");
        let mut owed = 0;
        for i in 0..10 {
            if delayed.on_data(1448, 1448, Time(i)) {
                delayed.sent();
                owed += 1;
            }
        }
        assert_eq!(owed, 5);
    }

    #[test]
    fn row_j9_the_timer_expires_once() {
        let mut delayed = DelayedAck::default();
        assert!(!delayed.on_data(1, 1448, Time(50)));
        assert!(!delayed.expire(Time(249)));
        assert!(delayed.expire(Time(250)));
        assert!(!delayed.expire(Time(1000)) && delayed.deadline().is_none());
    }

    #[test]
    fn row_g6_an_acknowledgment_that_did_not_leave_is_tried_again() {
        let mut delayed = DelayedAck::default();
        assert!(!delayed.on_data(1, 1448, Time(0)) && delayed.expire(Time(200)));
        delayed.not_sent(Time(200));
        assert!(!delayed.expire(Time(399)) && delayed.expire(Time(400)));
    }
}
