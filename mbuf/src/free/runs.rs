//! `runs`: contiguous runs of the caller's own array go to the pool as they stand.

use super::{Later, restore, staged};
use crate::header::HeaderPtr;
use crate::word;
use mempool::PoolRef;
use std::ptr::NonNull;

/// Frees the packets in `slots`.
///
/// A null, an mbuf that is still referenced, and a change of pool end a run; a chained mbuf hands
/// itself and all behind it to `staged`.
///
/// # Safety
/// Every `Some` owns one reference of a packet, and no slot is read again.
#[inline(always)]
pub(super) unsafe fn free(slots: &[Option<HeaderPtr>], later: &mut Later) {
    let mut at = 0;
    while let Some(&slot) = slots.get(at) {
        let Some(head) = slot else {
            at += 1;
            continue;
        };
        // SAFETY: the slots' references are given up in order. A run holds only mbufs that are
        // owned and rest, all of `pool`, which they keep alive.
        unsafe {
            let pool = head.fields().pool;
            let run = &slots[at..];
            let (len, end) = run_of(pool, run, later);
            put(pool, &run[..len]);
            at += len;
            match end {
                End::Chained => return staged::free(&slots[at..], later),
                End::StillReferenced => at += 1,
                End::Other => {}
            }
        }
    }
}

/// What comes behind a run.
enum End {
    /// An mbuf that others still refer to; the slot's reference has been given up.
    StillReferenced,
    /// The head of a chain, untouched.
    Chained,
    /// A null, an mbuf of another pool, untouched, or nothing.
    Other,
}

/// How many of the leading mbufs can be put to `pool` as they stand now, and what ends them.
///
/// # Safety
/// As for [`free`].
#[inline(always)]
unsafe fn run_of(pool: PoolRef, slots: &[Option<HeaderPtr>], later: &mut Later) -> (usize, End) {
    for (len, slot) in slots.iter().enumerate() {
        // SAFETY: the slot owns its packet.
        unsafe {
            let Some(mbuf) = *slot else {
                return (len, End::Other);
            };
            let seen = mbuf.word().load();
            if seen & word::NEXT != 0 {
                return (len, End::Chained);
            }
            if mbuf.fields().pool != pool {
                return (len, End::Other);
            }
            if seen != word::resting_of(seen) && !release(mbuf, seen, later) {
                return (len, End::StillReferenced);
            }
        }
    }
    (slots.len(), End::Other)
}

/// Gives up one reference of an unchained mbuf that is shared or has storage besides its room; true when it rests
/// now and is the caller's to put.
///
/// # Safety
/// The caller owns the reference; `seen` is the mbuf's word.
#[inline(never)]
unsafe fn release(mbuf: HeaderPtr, seen: u64, later: &mut Later) -> bool {
    // SAFETY: by contract.
    unsafe {
        let last = mbuf.word().release(seen);
        if last {
            restore(mbuf, seen, later);
        }
        last
    }
}

/// # Safety
/// All of `run` is `Some`, owned, rests, and is of `pool`.
#[inline(always)]
unsafe fn put(pool: PoolRef, run: &[Option<HeaderPtr>]) {
    if !run.is_empty() {
        // SAFETY: `Some(HeaderPtr)` and `NonNull<u8>` have the same layout, and none is `None`.
        unsafe {
            pool.put_bulk(&*(std::ptr::from_ref(run) as *const [NonNull<u8>]));
        }
    }
}
