//! Caches out of use: when a pool is closed, when somebody waits for objects, and for a while after
//! a get that failed although caches had enough.
//!
//! Suspending is one store to the word that every fast path compares with: the next operation of
//! each thread falls into its cold path, gives back what the thread had cached, and goes to the
//! backend. A thread that is idle keeps what it has; nobody else may touch its cache.
//!
//! A failed get may never be tried again. So its *recall* ends when a get of as many objects has
//! succeeded, or after so many operations; the next failing get begins another.

use crate::pool_ref::PoolRef;
use crate::sync::{AtomicUsize, Mutex, Ordering};
use crate::worker;

/// Operations after which a recall ends in any case.
const RECALL: u32 = 256;

/// Why caches are out of use.
#[derive(Default)]
struct Reasons {
    closed: bool,
    waiters: u32,
    /// Operations that a recall still lasts.
    recall: u32,
    /// Objects that were asked for.
    recall_for: usize,
}

/// The word that fast paths compare with, and what decides on it.
pub(crate) struct Gate {
    /// Bytes of the table of slots that are in use: 0 while caches are not.
    end: AtomicUsize,
    /// Its value when caches are in use.
    open_end: usize,
    reasons: Mutex<Reasons>,
}

impl Gate {
    pub(crate) fn new(open_end: usize) -> Self {
        Self {
            end: AtomicUsize::new(open_end),
            open_end,
            reasons: Mutex::new(Reasons::default()),
        }
    }

    /// Slots at offsets below this are in use.
    #[inline(always)]
    pub(crate) fn end(&self) -> usize {
        self.end.load(Ordering::Relaxed)
    }

    /// Whether there are caches, but not in use.
    pub(crate) fn is_suspended(&self) -> bool {
        self.end() == 0 && self.open_end != 0
    }

    fn change(&self, change: impl FnOnce(&mut Reasons)) {
        let mut reasons = self.reasons.lock();
        change(&mut reasons);
        let suspended = reasons.closed || reasons.waiters > 0 || reasons.recall > 0;
        let end = if suspended { 0 } else { self.open_end };
        // Relaxed: which caches are used is nobody's proof of anything; slots have their owners.
        self.end.store(end, Ordering::Relaxed);
    }

    /// For good.
    pub(crate) fn close(&self) {
        self.change(|reasons| reasons.closed = true);
    }

    pub(crate) fn enter(&self) {
        self.change(|reasons| reasons.waiters += 1);
    }

    pub(crate) fn leave(&self) {
        self.change(|reasons| reasons.waiters -= 1);
    }

    /// A get of `asked` objects failed though caches have enough.
    #[cold]
    pub(crate) fn recall(&self, asked: usize) {
        self.change(|reasons| {
            reasons.recall = RECALL;
            reasons.recall_for = asked;
        });
    }

    /// An operation found caches out of use.
    fn tick(&self) {
        self.change(|reasons| reasons.recall = reasons.recall.saturating_sub(1));
    }

    /// A get of `n` objects that found caches out of use has succeeded.
    pub(crate) fn served(&self, n: usize) {
        self.change(|reasons| {
            if n >= reasons.recall_for {
                reasons.recall = 0;
            }
        });
    }
}

impl PoolRef {
    /// What an operation does first that finds caches out of use: gives back this thread's.
    ///
    /// # Safety
    /// The pool lives during the call, whatever this thread's cache holds.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn give_back_cache(self) {
        // SAFETY: the pool lives; the slot at our own offset is ours.
        unsafe {
            self.flush_at(worker::current());
            self.inner().gate.tick();
        }
    }
}
