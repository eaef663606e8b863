//! Round trip estimate, retransmission timeout, persist interval: arithmetic in milliseconds.

use crate::seq::Seq;
use crate::time::Time;

/// Most times that a timer backs off; one more expiry ends the connection.
#[doc(alias = "TCP_MAXRXTSHIFT")]
pub const MAX_BACKOFF: u8 = 12;

/// Shortest retransmission timeout, ms.
pub const MIN_RTO: u32 = 1000;
/// Longest retransmission timeout, ms.
pub const MAX_RTO: u32 = 64_000;

const PERSIST_MIN: u32 = 5_000;
const PERSIST_MAX: u32 = 60_000;

/// Smoothed round trip time and the timeouts that follow from it (Jacobson's estimator in BSD's
/// fixed point).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rtt {
    /// Smoothed round trip time, ms × 32; 0 before the first sample.
    #[doc(alias = "t_srtt")]
    pub srtt: u32,
    /// Smoothed deviation, ms × 16.
    #[doc(alias = "t_rttvar")]
    pub var: u32,
    /// Floor of every timeout, ms.
    #[doc(alias = "t_rttmin")]
    pub min: u32,
    /// Retransmission timeout without backoff, ms.
    pub base: u32,
    /// Retransmission timeout now, backed off, ms.
    #[doc(alias = "t_rxtcur")]
    pub rto: u32,
    /// The byte being timed and when it was sent.
    pub timed: Option<(Seq, Time)>,
}

impl Default for Rtt {
    fn default() -> Self {
        // A deviation of 1.5 s with no round trip gives the 6 s that RFC 1122 starts from.
        Rtt {
            srtt: 0,
            var: 24_000,
            min: MIN_RTO,
            base: 6_000,
            rto: 6_000,
            timed: None,
        }
    }
}

impl Rtt {
    /// Takes a measured round trip in, in ms, and ends any backoff.
    #[doc(alias = "tcp_xmit_timer")]
    pub fn sample(&mut self, ms: u64) {
        let ms = u32::try_from(ms).unwrap_or(u32::MAX).clamp(1, MAX_RTO);
        if self.srtt == 0 {
            self.srtt = ms << 5;
            self.var = ms << 3;
        } else {
            let error = (ms << 2) as i32 - (self.srtt >> 3) as i32;
            self.srtt = (self.srtt as i32 + error).max(1) as u32;
            let spread = error.abs() - (self.var >> 2) as i32;
            self.var = (self.var as i32 + spread).max(1) as u32;
        }
        let timeout = ((self.srtt >> 3) + self.var) >> 2;
        self.base = timeout.clamp(self.min.max(ms + 2).min(MAX_RTO), MAX_RTO);
        self.rto = self.base;
        self.timed = None;
    }

    /// Backs the retransmission timeout off to `shift` doublings.
    pub fn back_off(&mut self, shift: u8) {
        self.rto = backed_off(self.base, shift).clamp(self.min.min(MAX_RTO), MAX_RTO);
    }

    /// The estimate led to timeout after timeout: the round trip time is folded into the deviation,
    /// so that the next sample starts over while the timeout stays what it is.
    pub(crate) fn distrust(&mut self) {
        self.var += self.srtt >> 3;
        self.srtt = 0;
    }

    /// The persist timer's next interval at `shift` doublings, ms.
    #[must_use]
    pub fn persist_interval(&self, shift: u8) -> u32 {
        let base = (((self.srtt >> 2) + self.var) >> 3).max(self.min);
        backed_off(base, shift).clamp(PERSIST_MIN, PERSIST_MAX)
    }
}

/// `ms` doubled `shift` times, at most 64-fold.
fn backed_off(ms: u32, shift: u8) -> u32 {
    ms.saturating_mul(1 << shift.min(6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_j7_persist_intervals_without_a_sample() {
        let rtt = Rtt::default();
        let seconds: Vec<u32> = (0..8)
            .map(|shift| rtt.persist_interval(shift) / 1000)
            .collect();
        assert_eq!(seconds, [5, 6, 12, 24, 48, 60, 60, 60]);
    }

    #[test]
    fn steady_round_trips_settle_on_themselves() {
        let mut rtt = Rtt::default();
        for _ in 0..100 {
            rtt.sample(2_000);
        }
        assert_eq!(rtt.srtt >> 5, 2_000);
        assert!((2_002..2_100).contains(&rtt.rto), "{}", rtt.rto);
        rtt.back_off(3);
        assert_eq!(rtt.rto, rtt.base * 8);
        rtt.back_off(12);
        assert_eq!(rtt.rto, MAX_RTO);
    }

    #[test]
    fn absurd_samples_stay_in_range() {
        for ms in [0, 1, u64::MAX] {
            let mut rtt = Rtt::default();
            for _ in 0..10 {
                rtt.sample(ms);
            }
            assert!((MIN_RTO..=MAX_RTO).contains(&rtt.rto));
        }
    }
}
