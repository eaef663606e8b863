//! Sequence numbers: 32 bits that wrap, compared by signed distance.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A TCP sequence number.
///
/// There is deliberately no `Ord`: "before" is only meaningful for numbers less than 2³¹ apart,
/// so comparisons are the named methods below.
///
/// ```
/// use tcp_output::Seq;
///
/// let near_the_wrap = Seq(u32::MAX - 9);
/// let after = near_the_wrap + 20;
/// assert_eq!(after, Seq(10));
/// assert!(near_the_wrap.lt(after));
/// assert_eq!(after - near_the_wrap, 20);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Seq(
    /// The number as it stands in the header, host order.
    pub u32,
);

impl Seq {
    /// `self` is before `other`.
    #[doc(alias = "SEQ_LT")]
    #[must_use]
    pub const fn lt(self, other: Seq) -> bool {
        self.distance(other) > 0
    }

    /// `self` is before `other`, or the same.
    #[doc(alias = "SEQ_LEQ")]
    #[must_use]
    pub const fn leq(self, other: Seq) -> bool {
        self.distance(other) >= 0
    }

    /// The later of the two.
    #[doc(alias = "SEQ_MAX")]
    #[must_use]
    pub const fn max(self, other: Seq) -> Seq {
        if self.lt(other) { other } else { self }
    }

    /// The earlier of the two.
    #[doc(alias = "SEQ_MIN")]
    #[must_use]
    pub const fn min(self, other: Seq) -> Seq {
        if self.lt(other) { self } else { other }
    }

    /// How far `other` lies ahead of `self`: negative when it lies behind.
    #[must_use]
    pub const fn distance(self, other: Seq) -> i32 {
        other.0.wrapping_sub(self.0) as i32
    }
}

impl Add<u32> for Seq {
    type Output = Seq;
    fn add(self, n: u32) -> Seq {
        Seq(self.0.wrapping_add(n))
    }
}

impl AddAssign<u32> for Seq {
    fn add_assign(&mut self, n: u32) {
        *self = *self + n;
    }
}

/// Bytes from `earlier` to `self`, modulo 2³².
impl Sub for Seq {
    type Output = u32;
    fn sub(self, earlier: Seq) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seq({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_the_wrap() {
        for base in [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
            let a = Seq(base);
            let b = a + 0x7fff_ffff;
            assert!(a.lt(b) && a.leq(b) && !b.lt(a) && !b.leq(a));
            assert!(a.leq(a) && !a.lt(a));
            assert_eq!(a.max(b), b);
            assert_eq!(b.max(a), b);
            assert_eq!([a.min(b), b.min(a)], [a, a]);
        }
    }
}
