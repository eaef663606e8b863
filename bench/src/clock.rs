//! Time stamps: the processor's counter, calibrated, with the cost of an empty pair.
//!
//! A burst of free calls takes a few dozen nanoseconds, as long as one call of
//! `Instant::now`; so bursts are timed in ticks of the time stamp counter, fenced on
//! both sides so that no measured instruction slips out of the pair.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// The rate of the counter and what a pair of stamps costs.
///
/// ```
/// let clock = bench::Clock::calibrate();
/// let start = bench::clock::start();
/// let sum: u64 = std::hint::black_box(0..1000_u64).sum();
/// let ticks = bench::clock::stop() - start;
/// assert_eq!(sum, 499_500);
/// assert!(clock.ns(ticks, 1) >= 0.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    hz: f64,
    /// Ticks that an empty [`start`]–[`stop`] pair takes: the median of many.
    empty: f64,
}

impl Clock {
    /// Compares the counter with the system's monotonic clock for 40 ms and measures an
    /// empty pair of stamps.
    pub fn calibrate() -> Self {
        let hz = ticks::rate(Duration::from_millis(40));
        Clock {
            hz,
            empty: empty_pair(),
        }
    }

    /// Ticks per second of the counter behind [`start`] and [`stop`].
    pub fn hz(&self) -> f64 {
        self.hz
    }

    /// Nanoseconds of `ticks` that were collected by `pairs` pairs of stamps, less what
    /// the pairs themselves cost; never below zero.
    pub fn ns(&self, ticks: u64, pairs: u64) -> f64 {
        let net = ticks as f64 - self.empty * pairs as f64;
        (net * 1e9 / self.hz).max(0.0)
    }
}

/// The stamp before the measured part.
#[inline(always)]
pub fn start() -> u64 {
    ticks::start()
}

/// The stamp after the measured part.
#[inline(always)]
pub fn stop() -> u64 {
    ticks::stop()
}

fn empty_pair() -> f64 {
    const PAIRS: usize = 4001;
    let mut costs: Vec<u64> = Vec::with_capacity(PAIRS);
    for _ in 0..PAIRS {
        let at = start();
        black_box(());
        costs.push(stop().wrapping_sub(at));
    }
    let (_, middle, _) = costs.select_nth_unstable(PAIRS / 2);
    *middle as f64
}

#[cfg(target_arch = "x86_64")]
mod ticks {
    //! The time stamp counter (leaf module: the intrinsics are unsafe).
    #![allow(unsafe_code)]

    use super::{Duration, Instant};
    use std::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};

    #[inline(always)]
    pub(super) fn start() -> u64 {
        // SAFETY: every x86-64 processor has RDTSC and (SSE2) LFENCE; neither touches
        // memory.
        unsafe {
            _mm_lfence();
            let now = _rdtsc();
            _mm_lfence();
            now
        }
    }

    #[inline(always)]
    pub(super) fn stop() -> u64 {
        let mut cpu = 0;
        // SAFETY: RDTSCP is there on every x86-64 processor since 2008 and writes only
        // the local it is given; LFENCE as above.
        unsafe {
            let now = __rdtscp(&raw mut cpu);
            _mm_lfence();
            now
        }
    }

    /// Counter ticks per second, by the tightest of a few readings at both ends.
    pub(super) fn rate(over: Duration) -> f64 {
        let (ticks_a, at_a) = both();
        while at_a.elapsed() < over {
            std::hint::spin_loop();
        }
        let (ticks_b, at_b) = both();
        (ticks_b - ticks_a) as f64 / (at_b - at_a).as_secs_f64()
    }

    fn both() -> (u64, Instant) {
        let tightest = (0..16).map(|_| {
            let before = start();
            let at = Instant::now();
            let after = stop();
            (after - before, before + (after - before) / 2, at)
        });
        let (_, ticks, at) = tightest.min_by_key(|t| t.0).expect("sixteen readings");
        (ticks, at)
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod ticks {
    //! Nanoseconds of the monotonic clock, where there is no counter that we know.
    use super::{Duration, Instant};
    use std::sync::OnceLock;

    static ORIGIN: OnceLock<Instant> = OnceLock::new();

    #[inline(always)]
    pub(super) fn start() -> u64 {
        ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }

    #[inline(always)]
    pub(super) fn stop() -> u64 {
        start()
    }

    pub(super) fn rate(_over: Duration) -> f64 {
        1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_agrees_with_the_monotonic_clock() {
        let clock = Clock::calibrate();
        let (at, from) = (Instant::now(), start());
        while at.elapsed() < Duration::from_millis(20) {}
        let (ns, wall) = (clock.ns(stop() - from, 1), at.elapsed().as_nanos() as f64);
        assert!(
            (ns / wall - 1.0).abs() < 0.2,
            "{ns} ns by the counter, {wall} by the clock"
        );
    }

    #[test]
    fn an_empty_pair_is_taken_off_and_nothing_goes_below_zero() {
        let clock = Clock {
            hz: 2e9,
            empty: 40.0,
        };
        assert_eq!(clock.ns(240, 1), 100.0);
        assert_eq!(clock.ns(10, 1), 0.0);
    }
}
