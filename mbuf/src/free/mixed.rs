//! `direct` for arrays in which packets of two pools take turns, and for short ones: no cache is
//! opened, but where the caches are is remembered.

use super::{Later, free_each, free_owned};
use crate::header::HeaderPtr;
use crate::word::{self, resting_of};
use mempool::NearCache;

/// A pool whose cache is at hand.
#[derive(Clone, Copy)]
struct Near {
    /// The free word of its resting mbufs.
    rests: u64,
    cache: Option<NearCache>,
}

/// True when the first two packets rest and are of different pools.
///
/// # Safety
/// Every `Some` owns one reference of a packet.
#[inline(always)]
pub(super) unsafe fn takes_turns(slots: &[Option<HeaderPtr>]) -> bool {
    let &[Some(first), Some(second), ..] = slots else {
        return false;
    };
    // SAFETY: the slots own their packets.
    let (first, second) = unsafe { (first.word().load(), second.word().load()) };
    first != second && first == resting_of(first) && second == resting_of(second)
}

/// Frees the packets in `slots`: those of the two pools met last go straight to their caches, all
/// others one by one.
///
/// # Safety
/// Every `Some` owns one reference of a packet, and no slot is read again.
#[inline(never)]
pub(super) unsafe fn free(slots: &[Option<HeaderPtr>], later: &mut Later) {
    let (mut first, mut second) = (Near::NONE, Near::NONE);
    for &mbuf in slots.iter().flatten() {
        // SAFETY: the slot's reference is given up here. A word that equals a pool's resting word
        // names the mbuf's pool. What is odd is dealt with out of line, so that the two pools
        // stay in registers.
        unsafe {
            let word = mbuf.word().load();
            let pushed = if word == first.rests {
                first.try_push(mbuf)
            } else if word == second.rests {
                second.try_push(mbuf)
            } else if word == resting_of(word) {
                second = first;
                first = Near::of(mbuf, word);
                first.try_push(mbuf)
            } else {
                if word::count(word) == 1 || mbuf.word().release(word) {
                    free_compound(mbuf, word, later);
                }
                true
            };
            if !pushed {
                put(mbuf);
            }
        }
    }
}

/// Frees the packets in `slots` one after another: where nothing can be foretold, the way with the fewest
/// branches is the fastest.
///
/// # Safety
/// Every `Some` owns one reference of a packet, and no slot is read again.
#[inline(never)]
pub(super) unsafe fn free_singly(slots: &[Option<HeaderPtr>], later: &mut Later) {
    // SAFETY: by contract.
    unsafe { free_each(slots, later) };
}

/// # Safety
/// The caller owns the packet, whose head's word was `word`.
#[inline(never)]
unsafe fn free_compound(head: HeaderPtr, word: u64, later: &mut Later) {
    // SAFETY: by contract.
    unsafe { free_owned(head, word, later) };
}

/// # Safety
/// The caller owns the mbuf, which rests.
#[cold]
#[inline(never)]
unsafe fn put(mbuf: HeaderPtr) {
    // SAFETY: by contract.
    unsafe { mbuf.fields().pool.put(mbuf.0.cast()) };
}

impl Near {
    /// Nobody's: no word is 0.
    const NONE: Self = Self {
        rests: 0,
        cache: None,
    };

    /// # Safety
    /// The caller owns the mbuf, which rests with `word`.
    #[inline(always)]
    unsafe fn of(mbuf: HeaderPtr, word: u64) -> Self {
        Self {
            rests: word,
            // SAFETY: the mbuf keeps its pool alive.
            cache: unsafe { mbuf.fields().pool.near_cache() },
        }
    }

    /// # Safety
    /// The caller owns the mbuf, which rests and is of this pool, and gives it up if the answer
    /// is true.
    #[inline(always)]
    unsafe fn try_push(self, mbuf: HeaderPtr) -> bool {
        // SAFETY: by contract; the cache was found in this very call of `free`, during which no
        // thread-local is dropped.
        self.cache
            .is_some_and(|cache| unsafe { cache.try_push(mbuf.0.cast()) })
    }
}
