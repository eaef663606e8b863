//! The least that any correct free must do: touch each header once, restore what our design
//! restores on free, copy the pointers, empty the slots. Each floor knows its shape beforehand.

#![allow(unsafe_code)]

use super::Free;
use mbuf::Packet;
use mbuf::raw::{Raw, resting_of, slots_of};
use std::ptr::NonNull;

/// One pool, nothing odd.
pub(in crate::cases) struct Flat;
/// One pool, every fourth slot null.
pub(in crate::cases) struct Nulls;
/// Two pools in turns of `BLOCK`.
pub(in crate::cases) struct Pools<const BLOCK: usize>;
/// One pool, chains of `SEGMENTS`.
pub(in crate::cases) struct Chains<const SEGMENTS: usize>;
/// One pool, every fourth packet has another owner.
pub(in crate::cases) struct Shared;

/// Every packet has another owner.
pub(in crate::cases) struct Clones;

/// A burst that is not copied through a full cache, but past it.
const LARGE: usize = 256;

/// Ends the process: a floor that met what it does not expect has corrupted a pool.
#[cold]
#[inline(never)]
fn wrong_shape() -> ! {
    std::process::abort()
}

impl Free for Flat {
    #[inline(always)]
    unsafe fn free<P: Packet>(slots: &mut [Option<P>]) {
        // SAFETY: every slot holds a packet of one pool, of which it owns the only reference;
        // words are compared below. Slots are emptied, and what they owned is put.
        unsafe {
            let slots = slots_of(slots);
            let first = slots[0].unwrap_unchecked();
            let resting = resting_of(first.word());
            let mut odd = 0;
            for slot in slots.iter() {
                odd |= slot.unwrap_unchecked().word() ^ resting;
            }
            let mut cursor = first.pool().open_put();
            if slots.len() > cursor.room() && slots.len() >= LARGE {
                let objects = std::ptr::from_ref(slots) as *const [NonNull<u8>];
                cursor.pass_slice(&*objects);
            } else if let Some(spare) = cursor.spare(slots.len()) {
                spare
                    .cast::<Option<Raw>>()
                    .copy_from_nonoverlapping(slots.as_ptr(), slots.len());
                cursor.advance(slots.len());
            } else {
                wrong_shape();
            }
            slots.fill(None);
            if odd != 0 {
                wrong_shape();
            }
        }
    }
}

impl Free for Nulls {
    #[inline(always)]
    unsafe fn free<P: Packet>(slots: &mut [Option<P>]) {
        // SAFETY: every fourth slot is null.
        unsafe { three_of_four(slots, |_| {}) }
    }
}

impl Free for Shared {
    #[inline(always)]
    unsafe fn free<P: Packet>(slots: &mut [Option<P>]) {
        // SAFETY: every fourth packet has another owner, so that giving up our reference is all
        // there is to do.
        unsafe {
            three_of_four(slots, |fourth| {
                if fourth.unwrap_unchecked().release() {
                    wrong_shape();
                }
            });
        }
    }
}

impl Free for Clones {
    #[inline(always)]
    unsafe fn free<P: Packet>(slots: &mut [Option<P>]) {
        // SAFETY: every packet has another owner, so that giving up our reference is all there is to
        // do.
        unsafe {
            let slots = slots_of(slots);
            let mut last = false;
            for slot in slots.iter() {
                last |= slot.unwrap_unchecked().release();
            }
            slots.fill(None);
            if last {
                wrong_shape();
            }
        }
    }
}

/// Frees three plain packets of every four slots; what the fourth holds is `fourth`'s to give up.
///
/// # Safety
/// As for `Flat`, and what the shape says of every fourth slot.
#[inline(always)]
unsafe fn three_of_four<P: Packet>(slots: &mut [Option<P>], fourth: impl Fn(Option<Raw>)) {
    // SAFETY: by contract.
    unsafe {
        let slots = slots_of(slots);
        let first = slots[0].unwrap_unchecked();
        let resting = resting_of(first.word());
        let mut cursor = first.pool().open_put();
        let Some(spare) = cursor.spare(slots.len()) else {
            wrong_shape()
        };
        let mut odd = 0;
        let (groups, rest) = slots.as_chunks::<4>();
        if !rest.is_empty() {
            wrong_shape();
        }
        for (at, group) in groups.iter().enumerate() {
            for (i, slot) in group[..3].iter().enumerate() {
                let mbuf = slot.unwrap_unchecked();
                odd |= mbuf.word() ^ resting;
                spare.add(3 * at + i).write(mbuf.object());
            }
            fourth(group[3]);
        }
        let filled = groups.len() * 3;
        slots.fill(None);
        if odd != 0 {
            wrong_shape();
        }
        cursor.advance(filled);
    }
}

impl<const BLOCK: usize> Free for Pools<BLOCK> {
    #[inline(always)]
    unsafe fn free<P: Packet>(slots: &mut [Option<P>]) {
        // SAFETY: as for `Flat`, with blocks of `BLOCK` from each of two pools in turn, and as many of
        // the one as of the other.
        unsafe {
            let slots = slots_of(slots);
            let half = slots.len() / 2;
            let heads = [0, BLOCK].map(|at| slots[at].unwrap_unchecked());
            let [a, b] = heads.map(|head| resting_of(head.word()));
            let mut cursors = heads.map(|head| head.pool().open_put());
            let [Some(to_a), Some(to_b)] = cursors.each_mut().map(|cursor| cursor.spare(half))
            else {
                wrong_shape()
            };
            let mut odd = 0;
            let turns = slots.chunks_exact(2 * BLOCK);
            if !turns.remainder().is_empty() {
                wrong_shape();
            }
            for (turn, both) in turns.enumerate() {
                for at in 0..BLOCK {
                    let (m, n) = (
                        both[at].unwrap_unchecked(),
                        both[BLOCK + at].unwrap_unchecked(),
                    );
                    odd |= (m.word() ^ a) | (n.word() ^ b);
                    to_a.add(turn * BLOCK + at).write(m.object());
                    to_b.add(turn * BLOCK + at).write(n.object());
                }
            }
            slots.fill(None);
            if odd != 0 {
                wrong_shape();
            }
            for cursor in &mut cursors {
                cursor.advance(half);
            }
        }
    }
}

impl<const SEGMENTS: usize> Free for Chains<SEGMENTS> {
    #[inline(always)]
    unsafe fn free<P: Packet>(slots: &mut [Option<P>]) {
        // SAFETY: every slot holds a chain of one pool that it owns alone.
        unsafe {
            let slots = slots_of(slots);
            let mut cursor = slots[0].unwrap_unchecked().pool().open_put();
            for slot in slots.iter() {
                let mut segment = *slot;
                for behind in (0..SEGMENTS).rev() {
                    let Some(mbuf) = segment else { wrong_shape() };
                    segment = mbuf.next();
                    if behind > 0 {
                        mbuf.rest();
                    }
                    cursor.push(mbuf.object());
                }
            }
            slots.fill(None);
        }
    }
}
