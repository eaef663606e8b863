//! The free word: one 64-bit word that says all that freeing an mbuf must know.
//!
//! ```text
//!  63                              36  35    34    33    32   31             0
//!  ┌─────────────────────────────────┬─────┬─────┬─────┬─────┬────────────────┐
//!  │ pool id                         │ WIP │ EXT │ CLU │ NXT │ reference count│
//!  └─────────────────────────────────┴─────┴─────┴─────┴─────┴────────────────┘
//! ```
//!
//! In the pool, and whenever an mbuf is exclusive, unchained, uses its own room and need not be
//! wiped, the word is `pool id | 1`: the *resting word*. A burst is checked by loading one word per mbuf and
//! comparing it. The word is always read and written whole.

use crate::sync::{AtomicU64, Ordering};

/// One reference in the count, which is the low half of the word.
const ONE: u64 = 1;
/// Where the count is.
pub(crate) const COUNT: u64 = u32::MAX as u64;
/// Above this a count is taken for a leak loop; the process ends before it can wrap.
const COUNT_LIMIT: u64 = i32::MAX as u64;
/// `next` of the header is not null.
pub(crate) const NEXT: u64 = 1 << 32;
/// Storage is a cluster.
pub(crate) const CLUSTER: u64 = 1 << 33;
/// Storage is external.
pub(crate) const EXTERN: u64 = 1 << 34;
/// The room is to be wiped when the mbuf goes back.
pub(crate) const WIPE: u64 = 1 << 35;
/// All that freeing has to do besides putting the mbuf, its chain aside.
pub(crate) const STORAGE: u64 = CLUSTER | EXTERN | WIPE;
const POOL_SHIFT: u32 = 36;
/// How many pool ids there are in the life of a process.
pub(crate) const POOL_IDS: u64 = 1 << (64 - POOL_SHIFT);

/// The word of an mbuf of pool `id` that is exclusive, unchained and inline.
#[inline(always)]
pub(crate) const fn resting(id: u64) -> u64 {
    (id << POOL_SHIFT) | ONE
}

/// The resting word of the pool that `word` names.
#[inline(always)]
pub(crate) const fn resting_of(word: u64) -> u64 {
    (word >> POOL_SHIFT << POOL_SHIFT) | ONE
}

/// References in `word`.
#[inline(always)]
pub(crate) const fn count(word: u64) -> u64 {
    word & COUNT
}

/// `word` with one reference.
#[inline(always)]
pub(crate) const fn sole(word: u64) -> u64 {
    word & !COUNT | ONE
}

/// The free word of one header.
pub(crate) struct FreeWord(AtomicU64);

impl FreeWord {
    pub(crate) fn new(word: u64) -> Self {
        Self(AtomicU64::new(word))
    }

    /// The whole word; sees all that former holders did when the count in it is 1.
    #[inline(always)]
    pub(crate) fn load(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Replaces the word. Only the exclusive holder may.
    #[inline(always)]
    pub(crate) fn set(&self, word: u64) {
        self.0.store(word, Ordering::Relaxed);
    }

    /// One more holder.
    ///
    /// Relaxed is enough: the new holder gets the packet from an old one, by whatever carries it.
    #[inline]
    pub(crate) fn retain(&self) {
        let before = self.0.fetch_add(ONE, Ordering::Relaxed);
        if count(before) > COUNT_LIMIT {
            too_many();
        }
    }

    /// Gives up one reference of an mbuf whose word was seen as `seen`; true when it was the last
    /// one, and then the caller is exclusive.
    ///
    /// At count 1 nothing is written: only a holder can make another holder, and the caller is
    /// the only one.
    #[inline(always)]
    pub(crate) fn release(&self, seen: u64) -> bool {
        count(seen) == 1 || self.release_shared()
    }

    #[inline]
    fn release_shared(&self) -> bool {
        if count(self.0.fetch_sub(ONE, Ordering::Release)) != 1 {
            return false;
        }
        // A load rather than a fence, so that race detectors see the edge.
        self.0.load(Ordering::Acquire);
        true
    }
}

#[cold]
#[inline(never)]
pub(crate) fn too_many() -> ! {
    // Unwinding could be caught and the count driven on to zero; there is no way back from here.
    std::process::abort()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn resting_word_is_one_reference_and_the_pool_alone() {
        let word = resting(77);
        assert_eq!(count(word), 1);
        assert_eq!(word & (NEXT | STORAGE), 0);
        assert_eq!(resting_of(word | NEXT | STORAGE | 5), word);
        assert_eq!((NEXT | STORAGE).count_ones(), 4, "one bit each");
        const { assert!(NEXT > COUNT && STORAGE < 1 << POOL_SHIFT) };
        assert_ne!(resting(1), resting(2));
        assert_eq!(resting_of(resting(POOL_IDS - 1)), resting(POOL_IDS - 1));
    }

    #[test]
    fn release_is_true_for_the_last_holder_only() {
        let word = FreeWord::new(resting(3));
        word.retain();
        word.retain();
        assert!(!word.release(word.load()));
        assert!(!word.release(word.load()));
        assert!(word.release(word.load()));
        assert_eq!(word.load(), resting(3), "the last release writes nothing");
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;

    /// Three holders write what only the last may: loom reports the race if `release` lets two
    /// through or gives the last one no view of what the others did.
    #[test]
    fn loom_last_holder_is_exclusive() {
        loom::model(|| {
            let shared = Arc::new((FreeWord::new(resting(1)), UnsafeCell::new(0u32)));
            shared.0.retain();
            shared.0.retain();
            let let_go = |shared: Arc<(FreeWord, UnsafeCell<u32>)>| {
                shared.1.with(|p| unsafe { *p });
                if shared.0.release(shared.0.load()) {
                    shared.1.with_mut(|p| unsafe { *p += 1 });
                }
            };
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let shared = shared.clone();
                    loom::thread::spawn(move || let_go(shared))
                })
                .collect();
            let_go(shared.clone());
            for t in threads {
                t.join().unwrap();
            }
            assert_eq!(shared.1.with(|p| unsafe { *p }), 1);
        });
    }
}
