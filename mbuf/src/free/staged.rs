//! `staged`: freeable segments are gathered in an array of 64, which is put when it is full or
//! the pool changes. Chains and packets of any pool take the same way.

use super::{Later, restore, successor};
use crate::header::HeaderPtr;
use crate::word::{self, resting_of};
use mempool::PoolRef;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

const PENDING: usize = 64;

/// Frees the packets in `slots`.
///
/// # Safety
/// Every `Some` owns one reference of a packet, and no slot is read again.
#[inline(always)]
pub(super) unsafe fn free(slots: &[Option<HeaderPtr>], later: &mut Later) {
    // What is pending is owned, rests, and is of `pool`. Count and pool stay in registers.
    let mut pending = [const { MaybeUninit::<NonNull<u8>>::uninit() }; PENDING];
    let mut len = 0;
    let mut pool: Option<PoolRef> = None;
    for &ptr in slots.iter().flatten() {
        // SAFETY: the slot's reference is given up here; when it was the last, the chain is ours.
        unsafe {
            let word = ptr.word().load();
            if !ptr.word().release(word) {
                continue;
            }
            let mut next = Some((ptr, word));
            while let Some((seg, word)) = next {
                next = successor(seg, word);
                if word & word::STORAGE != 0 {
                    detach(seg, word, later);
                } else if word != resting_of(word) {
                    seg.word().set(resting_of(word));
                }
                let here = Some(seg.fields().pool);
                if pool != here || len == PENDING {
                    put(pool, &pending[..len]);
                    (pool, len) = (here, 0);
                }
                pending.get_unchecked_mut(len).write(seg.0.cast());
                len += 1;
            }
        }
    }
    // SAFETY: as above.
    unsafe { put(pool, &pending[..len]) };
}

/// # Safety
/// All of `objects` is written, owned, rests, and is of `pool`, which is `Some` unless there are
/// none.
#[inline(never)]
unsafe fn put(pool: Option<PoolRef>, objects: &[MaybeUninit<NonNull<u8>>]) {
    if let Some(pool) = pool {
        // SAFETY: by contract.
        unsafe { pool.put_bulk(objects.assume_init_ref()) };
    }
}

/// Brings a segment that has storage besides its room, or is to be wiped, to rest.
///
/// # Safety
/// The caller owns the segment; `word` is its word.
#[inline(never)]
unsafe fn detach(seg: HeaderPtr, word: u64, later: &mut Later) {
    // SAFETY: by contract.
    unsafe { restore(seg, word, later) };
}
