//! How far a splice has come.

use std::time::Instant;

use super::gather::Gather;
use super::options::SpliceOptions;
use super::verdict::Verdict;

/// Packets that were passed on so often run in a circle.
#[doc(alias = "M_MAXLOOP")]
const MOST_HOPS: u8 = 128;

/// How far a splice has come, and how far it may go.
///
/// ```
/// use std::time::{Duration, Instant};
/// use sockbuf::splice::{Progress, SpliceOptions, Verdict};
///
/// let now = Instant::now();
/// let second = Duration::from_secs(1);
/// let options = SpliceOptions { idle: Some(second), ..SpliceOptions::default() };
/// let mut progress = Progress::new(options, now);
/// progress.moved(7, now + second / 2);
/// assert_eq!((progress.bytes(), progress.idle_at(now + second)), (7, None));
/// assert_eq!(progress.idle_at(now + second * 2), Some(Verdict::Idle { idle: second }));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    options: SpliceOptions,
    bytes: u64,
    most_hops: u8,
    deadline: Option<Instant>,
}

impl Progress {
    /// Nothing was moved yet.
    #[must_use]
    pub fn new(options: SpliceOptions, now: Instant) -> Self {
        let mut progress = Self {
            options,
            bytes: 0,
            most_hops: MOST_HOPS,
            deadline: None,
        };
        progress.arm(now);
        progress
    }

    /// Packets that were passed on `hops` times run in a circle; 128 unless told otherwise.
    #[must_use]
    pub fn with_most_hops(mut self, hops: u8) -> Self {
        self.most_hops = hops;
        self
    }

    /// Bytes moved.
    #[doc(alias = "so_splicelen")]
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Notes that `bytes` were moved, and begins to wait anew.
    pub fn moved(&mut self, bytes: usize, now: Instant) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        self.arm(now);
    }

    fn arm(&mut self, now: Instant) {
        // A time beyond what the clock can count never comes.
        self.deadline = self.options.idle.and_then(|idle| now.checked_add(idle));
    }

    /// When it will have been idle for too long.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Whether it has been idle for too long by `now`.
    #[doc(alias = "soidle")]
    #[must_use]
    pub fn idle_at(&self, now: Instant) -> Option<Verdict> {
        let idle = self.options.idle?;
        (self.deadline? <= now).then_some(Verdict::Idle { idle })
    }

    /// How many of `len` bytes may be moved.
    pub(super) fn allowed(&self, len: usize) -> usize {
        self.left().map_or(len, |left| {
            usize::try_from(left).map_or(len, |left| left.min(len))
        })
    }

    fn left(&self) -> Option<u64> {
        Some(self.options.max?.saturating_sub(self.bytes))
    }

    /// Whether `len` bytes more are all that may be moved.
    pub(super) fn reached_by(&self, len: usize) -> bool {
        self.left().is_some_and(|left| left <= len as u64)
    }

    /// Whether as many bytes were moved as were asked for.
    pub(super) fn reached(&self) -> Option<Verdict> {
        let max = self.options.max?;
        (self.bytes >= max).then_some(Verdict::MaxReached { max })
    }

    pub(super) const fn most_hops(&self) -> u8 {
        self.most_hops
    }

    pub(super) const fn gather(&self) -> Gather {
        self.options.gather
    }
}
