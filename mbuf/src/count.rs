//! The reference count of storage that mbufs share: a cluster, or an external record. It rests at
//! 1, so that neither taking a cluster from its pool nor putting an unshared one back writes it.
//!
//! The wish that the storage be wiped is one bit of the same word: no holder can lose it, and a count
//! that is exactly 1 says at once that nobody else is there and nothing is to be wiped.

use crate::sync::{AtomicU32, Ordering};
use crate::word::too_many;

/// Somebody wants the storage wiped when the last reference goes.
const WIPE: u32 = 1 << 31;
/// Above this a count is taken for a leak loop; the process ends before it reaches the wish.
const LIMIT: u32 = 1 << 30;

/// References to one piece of storage, and the wish that it be wiped.
pub(crate) struct Count(AtomicU32);

/// What became of a reference that was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Released {
    /// Others hold the storage.
    Shared,
    /// It was the last one: the storage is the caller's.
    Last,
    /// So it was, and the storage is to be wiped.
    LastToWipe,
}

impl Count {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(1))
    }

    /// One more reference; the caller holds one.
    #[inline(always)]
    pub(crate) fn retain(&self) {
        if self.0.fetch_add(1, Ordering::Relaxed) & !WIPE > LIMIT {
            too_many();
        }
    }

    /// True when the caller's reference is the only one: it sees all that former holders did.
    #[inline(always)]
    pub(crate) fn is_one(&self) -> bool {
        self.get() == 1
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::Acquire) & !WIPE
    }

    /// Asks that the storage be wiped; the caller holds a reference.
    ///
    /// Relaxed is enough: the wish lies in the word that the last holder decrements, before the
    /// asker's own decrement.
    pub(crate) fn ask_wipe(&self) {
        self.0.fetch_or(WIPE, Ordering::Relaxed);
    }

    /// True when the storage will be wiped.
    pub(crate) fn wipes(&self) -> bool {
        self.0.load(Ordering::Relaxed) & WIPE != 0
    }

    /// Gives up `n` references, at least one, all of them the caller's.
    #[inline(always)]
    pub(crate) fn release(&self, n: u32) -> Released {
        if self.0.load(Ordering::Acquire) != n {
            return self.release_shared(n);
        }
        // All there are, so nobody is left to make another.
        if n != 1 {
            self.0.store(1, Ordering::Relaxed);
        }
        Released::Last
    }

    #[inline]
    fn release_shared(&self, n: u32) -> Released {
        let before = self.0.fetch_sub(n, Ordering::Release);
        if before & !WIPE != n {
            return Released::Shared;
        }
        // A load rather than a fence, so that race detectors see the edge.
        self.0.load(Ordering::Acquire);
        self.0.store(1, Ordering::Relaxed);
        if before & WIPE == 0 {
            Released::Last
        } else {
            Released::LastToWipe
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn rests_at_one_after_the_last_release() {
        let count = Count::new();
        count.retain();
        assert_eq!(count.get(), 2);
        assert_eq!(count.release(1), Released::Shared);
        assert_eq!(count.release(1), Released::Last);
        assert!(count.is_one());
    }

    #[test]
    fn many_references_are_given_up_at_once() {
        let count = Count::new();
        for _ in 0..4 {
            count.retain();
        }
        assert_eq!(count.release(3), Released::Shared);
        assert_eq!(count.get(), 2);
        assert_eq!(count.release(2), Released::Last);
        assert!(count.is_one());
        count.retain();
        count.ask_wipe();
        assert_eq!(count.release(2), Released::LastToWipe);
        assert!(count.is_one() && !count.wipes());
    }

    #[test]
    fn a_wish_is_kept_until_the_last_release_and_ends_with_it() {
        let count = Count::new();
        count.retain();
        count.ask_wipe();
        assert_eq!(
            (count.get(), count.is_one(), count.wipes()),
            (2, false, true)
        );
        assert_eq!(count.release(1), Released::Shared);
        assert!(count.is_one() && count.wipes());
        assert_eq!(count.release(1), Released::LastToWipe);
        assert!(count.is_one() && !count.wipes());
        assert_eq!(count.release(1), Released::Last);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;

    fn let_go(shared: &(Count, UnsafeCell<u32>)) {
        shared.1.with(|p| unsafe { *p });
        if shared.0.release(1) != Released::Shared {
            shared.1.with_mut(|p| unsafe { *p += 1 });
        }
    }

    #[test]
    fn loom_cluster_is_freed_once_by_an_exclusive_holder() {
        loom::model(|| {
            let shared = Arc::new((Count::new(), UnsafeCell::new(0)));
            shared.0.retain();
            shared.0.retain();
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let shared = shared.clone();
                    loom::thread::spawn(move || let_go(&shared))
                })
                .collect();
            let_go(&shared);
            for t in threads {
                t.join().unwrap();
            }
            assert_eq!(shared.1.with(|p| unsafe { *p }), 1);
            assert!(shared.0.is_one(), "resting state is restored");
        });
    }

    /// Two threads give up two references each, by one subtraction.
    #[test]
    fn loom_last_of_many_references_is_exclusive() {
        loom::model(|| {
            let shared = Arc::new((Count::new(), UnsafeCell::new(0)));
            for _ in 0..3 {
                shared.0.retain();
            }
            let go = |shared: &(Count, UnsafeCell<u32>)| {
                shared.1.with(|p| unsafe { *p });
                if shared.0.release(2) != Released::Shared {
                    shared.1.with_mut(|p| unsafe { *p += 1 });
                }
            };
            let other = shared.clone();
            let t = loom::thread::spawn(move || go(&other));
            go(&shared);
            t.join().unwrap();
            assert_eq!(shared.1.with(|p| unsafe { *p }), 1);
            assert!(shared.0.is_one(), "resting state is restored");
        });
    }

    /// A holder that sees itself alone may write, whatever the other did before it let go.
    #[test]
    fn loom_sole_holder_may_write() {
        loom::model(|| {
            let shared = Arc::new((Count::new(), UnsafeCell::new(0)));
            shared.0.retain();
            let other = shared.clone();
            let t = loom::thread::spawn(move || {
                other.1.with(|p| unsafe { *p });
                other.0.release(1);
            });
            if shared.0.is_one() {
                shared.1.with_mut(|p| unsafe { *p = 7 });
            }
            t.join().unwrap();
        });
    }
    /// Three hold one cluster; one of them, on its own thread, wants it wiped.
    #[test]
    fn loom_fault_c7_a_wish_of_one_sharer_is_kept_whoever_is_last() {
        loom::model(|| {
            let shared = Arc::new((Count::new(), UnsafeCell::new(0)));
            shared.0.retain();
            shared.0.retain();
            let go = |shared: &(Count, UnsafeCell<u32>), asks: bool| {
                if asks {
                    shared.0.ask_wipe();
                }
                match shared.0.release(1) {
                    Released::Shared => {}
                    Released::Last => panic!("the wish is lost"),
                    Released::LastToWipe => shared.1.with_mut(|p| unsafe { *p += 1 }),
                }
            };
            let threads: Vec<_> = [true, false]
                .into_iter()
                .map(|asks| {
                    let shared = shared.clone();
                    loom::thread::spawn(move || go(&shared, asks))
                })
                .collect();
            go(&shared, false);
            for t in threads {
                t.join().unwrap();
            }
            assert_eq!(shared.1.with(|p| unsafe { *p }), 1, "wiped once");
        });
    }
}
