//! How long a socket's user waits unless he says otherwise.

use std::time::{Duration, Instant};

use crate::sync::{AtomicU32, Mutex, Ordering};
use crate::wait::Patience;

const NONBLOCKING: u32 = 1;

/// The direction that a time limit is for.
#[derive(Clone, Copy)]
pub(super) enum Way {
    Send,
    Receive,
}

#[derive(Debug)]
pub(super) struct Options {
    word: AtomicU32,
    /// Time limits of sending and receiving.
    limits: Mutex<[Option<Duration>; 2]>,
}

impl Options {
    pub(super) fn new() -> Self {
        Self {
            word: AtomicU32::new(0),
            limits: Mutex::new([None; 2]),
        }
    }

    pub(super) fn set_nonblocking(&self, on: bool) {
        self.word.store(u32::from(on), Ordering::Relaxed);
    }

    pub(super) fn set_limit(&self, way: Way, limit: Option<Duration>) {
        self.limits.lock()[way as usize] = limit;
    }

    pub(super) fn limit(&self, way: Way) -> Option<Duration> {
        self.limits.lock()[way as usize]
    }

    /// For a call that begins now.
    pub(super) fn patience(&self, way: Way, dont_wait: bool) -> Patience<'static> {
        if dont_wait || self.word.load(Ordering::Relaxed) & NONBLOCKING != 0 {
            return Patience::None;
        }
        // A limit beyond what the clock can count is none.
        let limit = self.limit(way);
        Patience::Until(limit.and_then(|limit| Instant::now().checked_add(limit)))
    }
}
