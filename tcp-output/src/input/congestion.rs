//! How much may be in flight: the congestion window, and who moves it.

/// The congestion window with what bounds it, all in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CongestionWindow {
    /// How much may be in flight.
    #[doc(alias = "snd_cwnd")]
    pub cwnd: u32,
    /// Slow start at and below, congestion avoidance above.
    #[doc(alias = "snd_ssthresh")]
    pub ssthresh: u32,
    /// Data of a full segment.
    #[doc(alias = "t_maxseg")]
    pub max_segment: u32,
    /// What the peer's window field can express; more is of no use.
    pub limit: u32,
}

/// Ten segments, or fewer large ones (RFC 6928).
///
/// ```
/// use tcp_output::input::initial_window;
///
/// assert_eq!([536, 1448, 8948].map(initial_window), [5360, 14480, 17896]);
/// ```
#[must_use]
pub fn initial_window(max_segment: u32) -> u32 {
    let segments = max_segment.saturating_mul(10);
    segments.min(max_segment.saturating_mul(2).max(14_600))
}

impl CongestionWindow {
    /// Opens the window, not beyond the limit.
    pub fn open(&mut self, bytes: u32) {
        self.cwnd = self.cwnd.saturating_add(bytes).min(self.limit);
    }

    /// Half of `flight` in whole segments, at least two of them (RFC 5681, equation 4).
    #[must_use]
    pub fn half(&self, flight: u32) -> u32 {
        let segment = self.max_segment.max(1);
        (flight / 2 / segment).max(2) * segment
    }
}

/// A congestion control algorithm.
///
/// Two functions make one: what an acknowledgment earns, and what is left after a loss. The others
/// are what TCP does around them whatever the algorithm, and may be replaced. `flight` is the
/// lesser of the peer's window and the congestion window, as in BSD.
///
/// ```
/// use tcp_output::input::{CongestionControl, CongestionWindow};
///
/// /// Backs off by 30 % as CUBIC does, grows as Reno.
/// struct Gentle;
/// impl CongestionControl for Gentle {
///     fn on_ack(&mut self, window: &mut CongestionWindow, acked: u32) {
///         tcp_output::input::Reno.on_ack(window, acked);
///     }
///     fn reduced(&mut self, window: &CongestionWindow, flight: u32) -> u32 {
///         (flight / 10 * 7).max(2 * window.max_segment)
///     }
/// }
/// let mut window = CongestionWindow { cwnd: 100_000, ssthresh: u32::MAX, max_segment: 1000, limit: 1 << 20 };
/// Gentle.on_ecn(&mut window, 100_000);
/// assert_eq!((window.cwnd, window.ssthresh), (70_000, 70_000));
/// ```
pub trait CongestionControl {
    /// `acked` bytes were acknowledged, outside of recovery.
    fn on_ack(&mut self, window: &mut CongestionWindow, acked: u32);

    /// What to send into the network after it has shown that `flight` was too much.
    fn reduced(&mut self, window: &CongestionWindow, flight: u32) -> u32;

    /// Three duplicate acknowledgments: recovery begins. What has left the network since is let
    /// in (RFC 5681, 3.2).
    fn on_loss(&mut self, window: &mut CongestionWindow, flight: u32) {
        window.ssthresh = self.reduced(window, flight);
        window.cwnd = window.ssthresh;
        window.open(3 * window.max_segment);
    }

    /// Another duplicate during recovery: one more segment has left the network.
    fn on_duplicate(&mut self, window: &mut CongestionWindow) {
        window.open(window.max_segment);
    }

    /// `acked` bytes were acknowledged during recovery, but not all that was in flight when it began
    /// (RFC 6582, 3.2, step 3).
    fn on_partial_ack(&mut self, window: &mut CongestionWindow, acked: u32) {
        window.cwnd = window.cwnd.saturating_sub(acked);
        window.open(window.max_segment);
    }

    /// Recovery is over with `outstanding` bytes in flight: no burst (RFC 6582, 3.2, step 3, case 1).
    ///
    /// Two segments at least: a single one would wait for the peer's delayed acknowledgment, and its
    /// loss for the retransmission timer. BSD leaves one.
    fn on_recovered(&mut self, window: &mut CongestionWindow, outstanding: u32) {
        let segment = window.max_segment;
        let gentle = outstanding.max(segment).saturating_add(segment);
        window.cwnd = window.ssthresh.min(gentle);
    }

    /// The retransmission timer expired.
    fn on_timeout(&mut self, window: &mut CongestionWindow, flight: u32) {
        window.ssthresh = self.reduced(window, flight);
        window.cwnd = window.max_segment;
    }

    /// The peer echoes a congestion mark; called once in a window of data (RFC 3168, 6.1.2).
    fn on_ecn(&mut self, window: &mut CongestionWindow, flight: u32) {
        window.ssthresh = self.reduced(window, flight);
        window.cwnd = window.ssthresh;
    }
}

/// Reno with the changes of NewReno (RFC 5681, RFC 6582).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reno;

impl CongestionControl for Reno {
    fn on_ack(&mut self, window: &mut CongestionWindow, acked: u32) {
        let (segment, cwnd) = (u64::from(window.max_segment), u64::from(window.cwnd));
        // Not more than what was acknowledged: a receiver that acknowledges each byte by itself
        // earns nothing by it.
        let more = if window.cwnd <= window.ssthresh {
            window.max_segment.min(acked)
        } else {
            (segment * segment / cwnd.max(1)).max(1) as u32
        };
        window.open(more);
    }

    fn reduced(&mut self, window: &CongestionWindow, flight: u32) -> u32 {
        window.half(flight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(cwnd: u32) -> CongestionWindow {
        CongestionWindow {
            cwnd,
            ssthresh: u32::MAX,
            max_segment: 1448,
            limit: 65535 << 7,
        }
    }

    #[test]
    fn row_j1_j2_timeout_then_slow_start() {
        let mut w = window(14480);
        Reno.on_timeout(&mut w, 14480);
        assert_eq!((w.ssthresh, w.cwnd), (7240, 1448));
        Reno.on_ack(&mut w, 1448);
        assert_eq!(w.cwnd, 2896);
    }

    #[test]
    fn row_j4_j5_fast_retransmit_then_inflation() {
        let mut w = window(14480);
        Reno.on_loss(&mut w, 14480);
        assert_eq!((w.ssthresh, w.cwnd), (7240, 11584));
        Reno.on_duplicate(&mut w);
        assert_eq!(w.cwnd, 13032);
    }

    #[test]
    fn partial_acks_deflate_and_the_last_one_leaves_no_burst() {
        let mut w = window(14480);
        Reno.on_loss(&mut w, 14480);
        Reno.on_partial_ack(&mut w, 2896);
        assert_eq!(w.cwnd, 11584 - 2896 + 1448);
        Reno.on_partial_ack(&mut w, u32::MAX);
        assert_eq!(w.cwnd, 1448);
        for outstanding in [0, 100, 1448] {
            Reno.on_recovered(&mut w, outstanding);
            assert_eq!(w.cwnd, 2896, "max(FlightSize, SMSS) + SMSS");
        }
        Reno.on_recovered(&mut w, 2000);
        assert_eq!(w.cwnd, 3448);
        Reno.on_recovered(&mut w, 1 << 20);
        assert_eq!(w.cwnd, 7240);
    }

    #[test]
    fn avoidance_earns_a_segment_in_a_round_trip() {
        let mut w = window(144_800);
        w.ssthresh = 100_000;
        for _ in 0..100 {
            Reno.on_ack(&mut w, 1448);
        }
        assert!(
            (144_800 + 1400..=144_800 + 1448).contains(&w.cwnd),
            "{}",
            w.cwnd
        );
    }

    #[test]
    fn acknowledging_in_crumbs_earns_crumbs() {
        let mut w = window(14480);
        for _ in 0..1448 {
            Reno.on_ack(&mut w, 1);
        }
        assert_eq!(w.cwnd, 14480 + 1448);
    }

    #[test]
    fn extremes_neither_overflow_nor_close_the_window() {
        for (cwnd, max_segment) in [(0, 1), (u32::MAX, 65_475), (1, 64)] {
            let mut w = CongestionWindow {
                cwnd,
                max_segment,
                ..window(0)
            };
            Reno.on_ack(&mut w, u32::MAX);
            Reno.on_loss(&mut w, u32::MAX);
            Reno.on_duplicate(&mut w);
            Reno.on_ecn(&mut w, 0);
            Reno.on_timeout(&mut w, u32::MAX);
            assert!(w.cwnd >= max_segment && w.ssthresh >= 2 * max_segment);
        }
    }
}
