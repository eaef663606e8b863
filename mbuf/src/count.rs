//! The reference count of a cluster. It rests at 1, so that neither taking a cluster from its
//! pool nor putting an unshared one back writes it.

use crate::sync::{AtomicU32, Ordering};
use crate::word::too_many;

/// References to one cluster.
pub(crate) struct Count(AtomicU32);

impl Count {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(1))
    }

    /// One more reference; the caller holds one.
    #[inline(always)]
    pub(crate) fn retain(&self) {
        if self.0.fetch_add(1, Ordering::Relaxed) > i32::MAX as u32 {
            too_many();
        }
    }

    /// True when the caller's reference is the only one: it sees all that former holders did.
    #[inline(always)]
    pub(crate) fn is_one(&self) -> bool {
        self.0.load(Ordering::Acquire) == 1
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Gives up the caller's reference; true when it was the last, and then the count rests again.
    #[inline(always)]
    pub(crate) fn release(&self) -> bool {
        self.is_one() || self.release_shared()
    }

    #[inline]
    fn release_shared(&self) -> bool {
        if self.0.fetch_sub(1, Ordering::Release) != 1 {
            return false;
        }
        self.0.load(Ordering::Acquire);
        self.0.store(1, Ordering::Relaxed);
        true
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
        assert!(!count.release());
        assert!(count.release());
        assert!(count.is_one());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;

    fn let_go(shared: &(Count, UnsafeCell<u32>)) {
        shared.1.with(|p| unsafe { *p });
        if shared.0.release() {
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

    /// A holder that sees itself alone may write, whatever the other did before it let go.
    #[test]
    fn loom_sole_holder_may_write() {
        loom::model(|| {
            let shared = Arc::new((Count::new(), UnsafeCell::new(0)));
            shared.0.retain();
            let other = shared.clone();
            let t = loom::thread::spawn(move || {
                other.1.with(|p| unsafe { *p });
                other.0.release();
            });
            if shared.0.is_one() {
                shared.1.with_mut(|p| unsafe { *p = 7 });
            }
            t.join().unwrap();
        });
    }
}
