//! Time as it comes in from outside: milliseconds on the caller's clock.

use std::ops::{Add, Sub};

/// A point in time, in milliseconds since whatever moment the caller's clock started at.
///
/// Nothing in this crate reads a clock; every call that needs the time is given one of these.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Time(
    /// Milliseconds.
    pub u64,
);

impl Add<u32> for Time {
    type Output = Time;
    fn add(self, ms: u32) -> Time {
        Time(self.0.saturating_add(u64::from(ms)))
    }
}

/// Milliseconds from `earlier` to `self`; 0 when `earlier` is in fact later.
impl Sub for Time {
    type Output = u64;
    fn sub(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
