//! How many acknowledgments a connection gives to segments that it does not believe.

use crate::time::Time;

/// A limit on challenge acknowledgments (RFC 5961, 7).
///
/// One for each connection: a limit that connections share tells an attacker on one of them what
/// happens on the others.
///
/// ```
/// use tcp_output::Time;
/// use tcp_output::input::ChallengeLimit;
///
/// let mut limit = ChallengeLimit::new(2);
/// assert_eq!([(); 3].map(|()| limit.allow(Time(100))), [true, true, false]);
/// assert!(limit.allow(Time(1100)), "another second");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[doc(alias = "tcp_challenge_ack_limit")]
pub struct ChallengeLimit {
    per_second: u32,
    since: Time,
    used: u32,
}

impl Default for ChallengeLimit {
    /// Ten in a second.
    fn default() -> Self {
        Self::new(10)
    }
}

impl ChallengeLimit {
    /// At most `per_second` in any second that begins with the first of them.
    #[must_use]
    pub fn new(per_second: u32) -> Self {
        ChallengeLimit {
            per_second,
            since: Time::default(),
            used: 0,
        }
    }

    /// Whether one more may go at `now`; it is counted if so.
    pub fn allow(&mut self, now: Time) -> bool {
        if now - self.since >= 1000 || self.used == 0 {
            (self.since, self.used) = (now, 0);
        }
        let allowed = self.used < self.per_second;
        self.used += u32::from(allowed);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_hundred_in_a_second_the_limit_goes() {
        let mut limit = ChallengeLimit::new(5);
        let allowed = (0..100)
            .filter(|i| limit.allow(Time(5_000 + i * 9)))
            .count();
        assert_eq!(allowed, 5);
        assert!(!limit.allow(Time(5_999)) && limit.allow(Time(6_000)));
    }
}
