//! Giving packets back: one at a time on drop, and in bulk by one of four strategies.
//!
//! The array that a bulk free is handed *is* an array of pool pointers. What a strategy does with
//! it is what this project measures:
//!
//! | strategy | way |
//! |---|---|
//! | `each` | one packet after another |
//! | `staged` | up to 64 freeable segments gathered in an array of its own, then put |
//! | `runs` | runs of the caller's array, put without being gathered first |
//! | `direct` | pointers written straight into the pool's thread cache, one comparison per mbuf |

mod direct;
mod held;
mod lane;
mod later;
mod mixed;
mod odd;
pub mod raw;
mod runs;
mod staged;

use crate::cluster::StoragePtr;
use crate::header::HeaderPtr;
use crate::history::{self, LifeEvent};
use crate::packet::Packet;
use crate::wipe;
use crate::word;
pub(crate) use later::Later;
use raw::Slots;
use std::fmt;

/// How [`free_bulk_with`] goes about it. All leave every slot `None` and the pools alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FreeStrategy {
    /// One packet after another, as drivers of the BSDs do.
    #[doc(alias = "m_freem")]
    Each,
    /// Freeable segments of one pool are gathered in an array of 64 and put from there, as DPDK's
    /// bulk free has it.
    #[doc(alias = "rte_pktmbuf_free_bulk")]
    Staged,
    /// Contiguous runs of the caller's array that go to one pool are put as they stand: a null,
    /// an mbuf that is still referenced and a change of pool end a run, a chained mbuf hands the
    /// rest to [`Staged`](Self::Staged). From a patch to DPDK, "bulk free without a temporary
    /// array".
    Runs,
    /// Each mbuf's free word is compared with its pool's resting word, and the pointer is written
    /// into the pool's thread cache in place; what differs (chained, shared, clusters, another
    /// pool) costs that packet only. No temporary array on any path.
    Direct,
}

impl FreeStrategy {
    /// All of them, in the order in which they were thought of.
    pub const ALL: [Self; 4] = [Self::Each, Self::Staged, Self::Runs, Self::Direct];

    /// The name that benchmarks use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Each => "each",
            Self::Staged => "staged",
            Self::Runs => "runs",
            Self::Direct => "direct",
        }
    }
}

impl fmt::Display for FreeStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Frees all packets in `slots`, which end as `None`.
///
/// Slots may be `None` already; packets may be chained, shared, from several pools.
#[doc(alias = "rte_pktmbuf_free_bulk")]
#[inline]
pub fn free_bulk<P: Packet>(slots: &mut [Option<P>]) {
    free_bulk_with(FreeStrategy::Direct, slots);
}

/// [`free_bulk`] by the strategy named.
///
/// ```
/// use mbuf::{BufferSet, FreeStrategy, free_bulk_with};
/// let set = BufferSet::standard(64, 8)?;
/// for how in FreeStrategy::ALL {
///     let mut burst: [Option<mbuf::Mbuf>; 32] = [const { None }; 32];
///     set.header_bulk(&mut burst)?;
///     free_bulk_with(how, &mut burst);
///     assert!(burst.iter().all(Option::is_none) && set.is_full());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Owners of external storage are let go last, after all packets were freed and all slots are `None`.
///
/// # Panics
/// Where a pool's own backend panics; what was not freed by then is leaked. And where an owner of
/// external storage does when it is dropped, when all packets are free.
#[inline(always)]
pub fn free_bulk_with<P: Packet>(how: FreeStrategy, slots: &mut [Option<P>]) {
    // Dropped last.
    let mut later = Later::new();
    let slots = Slots::new(slots);
    // SAFETY: every `Some` owns one reference of a packet, which is given up here: `Slots` empties
    // the array whatever happens.
    unsafe {
        if mempool::CHECKED {
            for &ptr in slots.iter().flatten() {
                history::note(ptr, LifeEvent::Free);
            }
        }
        match how {
            FreeStrategy::Each => free_each(&slots, &mut later),
            FreeStrategy::Staged => staged::free(&slots, &mut later),
            FreeStrategy::Runs => runs::free(&slots, &mut later),
            FreeStrategy::Direct => direct::free(slots, &mut later),
        }
    }
}

/// # Safety
/// Every `Some` owns one reference of a packet, and no slot is read again.
#[inline(always)]
unsafe fn free_each(slots: &[Option<HeaderPtr>], later: &mut Later) {
    for &ptr in slots.iter().flatten() {
        // SAFETY: the slot's reference is given up here.
        unsafe { free_noted(ptr, later) };
    }
}

/// Gives up one reference of the packet at `ptr`.
///
/// # Safety
/// The caller owns that reference and does not use it again.
#[inline]
pub(crate) unsafe fn free_packet(ptr: HeaderPtr) {
    // SAFETY: the reference keeps the element out of its pool until it is put.
    unsafe {
        history::note(ptr, LifeEvent::Free);
        let word = ptr.word().load();
        if word == word::resting_of(word) {
            ptr.fields().pool.put(ptr.0.cast());
        } else {
            free_odd(ptr, word);
        }
    }
}

/// [`free_packet`] for a packet that is shared, chained, or has storage besides its room.
///
/// # Safety
/// As [`free_packet`]; `seen` is its word.
#[inline(never)]
unsafe fn free_odd(ptr: HeaderPtr, seen: u64) {
    let mut later = Later::new();
    // SAFETY: by contract.
    unsafe { free_odd_with(ptr, seen, &mut later) };
}

/// [`free_packet`] as a part of something larger: owners of external storage are left to `later`.
///
/// # Safety
/// As for [`free_packet`].
#[inline]
pub(crate) unsafe fn free_packet_with(ptr: HeaderPtr, later: &mut Later) {
    // SAFETY: as in `free_packet`.
    unsafe {
        history::note(ptr, LifeEvent::Free);
        free_noted(ptr, later);
    }
}

/// [`free_packet_with`] for a packet whose history has it already.
///
/// # Safety
/// As for [`free_packet`].
#[inline]
unsafe fn free_noted(ptr: HeaderPtr, later: &mut Later) {
    // SAFETY: as in `free_packet`.
    unsafe {
        let word = ptr.word().load();
        if word == word::resting_of(word) {
            ptr.fields().pool.put(ptr.0.cast());
        } else {
            free_odd_with(ptr, word, later);
        }
    }
}

/// # Safety
/// As for [`free_odd`].
#[inline(never)]
unsafe fn free_odd_with(ptr: HeaderPtr, seen: u64, later: &mut Later) {
    // SAFETY: once the last reference of the head is given up, the packet is ours.
    unsafe {
        if ptr.word().release(seen) {
            free_owned(ptr, seen, later);
        }
    }
}

/// Frees a packet whose last reference has been given up.
///
/// # Safety
/// The caller owns the packet, whose head's word was `word` before.
#[inline(always)]
unsafe fn free_owned(ptr: HeaderPtr, word: u64, later: &mut Later) {
    // SAFETY: the head's count owned the chain, and the caller does now.
    unsafe {
        let mut next = Some((ptr, word));
        while let Some((seg, word)) = next {
            next = successor(seg, word);
            restore(seg, word, later);
            seg.fields().pool.put(seg.0.cast());
        }
    }
}

/// The segment behind `seg`, whose word is `word`, and that one's word.
///
/// # Safety
/// The caller owns the chain.
#[inline(always)]
unsafe fn successor(seg: HeaderPtr, word: u64) -> Option<(HeaderPtr, u64)> {
    if word & word::NEXT == 0 {
        return None;
    }
    // SAFETY: owned, and linked as the word says.
    unsafe {
        let next = seg.fields().next?;
        Some((next, next.word().load()))
    }
}

/// Brings a segment whose last reference has been given up back to its resting state. A cluster
/// that it was the last to refer to is put, the owner of external storage left to `later`.
///
/// # Safety
/// The caller owns the segment, `word` was its word, and it goes to its pool next.
#[inline(always)]
unsafe fn restore(seg: HeaderPtr, word: u64, later: &mut Later) {
    // SAFETY: owned.
    unsafe {
        if word & word::STORAGE != 0 {
            if word & word::STORAGE != word::CLUSTER {
                return restore_rare(seg, word, later);
            }
            if let Some(storage) = seg.fields().storage {
                let cluster = storage.cluster();
                if cluster.release(1) {
                    cluster.get().pool.put(cluster.object());
                }
            }
        }
        seg.word().set(word::resting_of(word));
    }
}

/// What [`restore`] does for segments with external storage, and for those that are to be wiped.
///
/// # Safety
/// As for [`restore`].
#[cold]
#[inline(never)]
unsafe fn restore_rare(seg: HeaderPtr, word: u64, later: &mut Later) {
    // SAFETY: owned.
    unsafe {
        if word & word::WIPE != 0 {
            wipe::room(seg);
        }
        if word & (word::CLUSTER | word::EXTERN) != 0
            && let Some(storage) = seg.fields().storage
        {
            release_storage(storage, word, later);
        }
        seg.word().set(word::resting_of(word));
    }
}

/// Gives up one reference to storage outside of an mbuf.
///
/// # Safety
/// The caller owns the reference; `word` says which of the two kinds it is.
pub(crate) unsafe fn release_storage(storage: StoragePtr, word: u64, later: &mut Later) {
    // SAFETY: by contract.
    unsafe {
        if word & word::EXTERN == 0 {
            let cluster = storage.cluster();
            if cluster.release(1) {
                cluster.get().pool.put(cluster.object());
            }
        } else if storage.record().release(1) {
            later.push(storage.record());
        }
    }
}
