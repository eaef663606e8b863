//! `direct`: one comparison per mbuf, and its pointer written into the pool's thread cache.
//!
//! The cache of the first packet's pool is kept open, and groups of eight that rest are written into it
//! as they stand. What is between them is taken one by one (`odd`); storage that the first packets
//! refer to is given up beforehand, which leaves them plain (`held`). Arrays for which an open cache
//! would not pay, short ones and those in which two pools take turns, are freed with both pools at hand
//! (`mixed`).

use super::held::{is_stored, restore_leading};
use super::lane::Lane;
use super::odd::free_odd;
use super::raw::Slots;
use super::{Later, mixed, runs};
use crate::header::HeaderPtr;
use crate::word;
use std::ops::ControlFlow;
use std::ptr::NonNull;

/// Slots that are looked at together: the end of the array and the room left are tested once.
pub(super) const GROUP: usize = 8;

/// Frees the packets in `slots`.
///
/// # Safety
/// Every `Some` owns one reference of a packet.
#[inline(always)]
pub(super) unsafe fn free(mut slots: Slots<'_>, later: &mut Later) {
    // SAFETY: slots own what they hold, and each is given up once and emptied.
    unsafe {
        let Some(&head) = slots.iter().flatten().next() else {
            return;
        };
        let few = slots.len() <= GROUP;
        let word = head.word().load();
        if few {
            let mut unlike = first_unlike(head, &slots);
            if unlike == Unlike::Compound && is_stored(word) {
                restore_leading(slots.iter().flatten(), later);
                unlike = first_unlike(head, &slots);
            }
            match unlike {
                Unlike::Nothing => return head.fields().pool.put_bulk(objects(&slots)),
                Unlike::Single => return mixed::free(&slots, later),
                Unlike::Compound => {}
            }
        } else if is_stored(word) {
            restore_leading(slots.iter().flatten(), later);
        } else if word::count(word) > 1 {
            return mixed::free(&slots, later);
        }
        let mut lane = Lane::open(head);
        if !lane.hold() {
            drop(lane);
            return runs::free(&slots, later);
        }
        let mut rest = &mut slots[..];
        if !few {
            let done = free_resting(&mut lane, rest);
            if done == 0 && mixed::takes_turns(rest) {
                drop(lane);
                return mixed::free(&slots, later);
            }
            rest = &mut rest[done..];
        }
        while !rest.is_empty() {
            match free_odd(&mut lane, rest, later) {
                ControlFlow::Continue(done) => rest = &mut rest[done..],
                ControlFlow::Break(done) => {
                    drop(lane);
                    return mixed::free_singly(&rest[done..], later);
                }
            }
            let done = free_resting(&mut lane, rest);
            rest = &mut rest[done..];
        }
        slots.emptied();
    }
}

/// What a short array has that is not like its first packet, which decides how it is freed: opening
/// a cache would not pay for all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unlike {
    /// Nothing: all rest and are of one pool.
    Nothing,
    /// First of all a null, or a packet that is shared or of another pool.
    Single,
    /// Chains, or packets with storage besides their room.
    Compound,
}

/// Chained, or with more to be done about its storage than about a resting one's.
const COMPOUND: u64 = word::NEXT | word::STORAGE;

/// # Safety
/// As for [`free`]; `head` is the first packet.
#[inline(always)]
unsafe fn first_unlike(head: HeaderPtr, slots: &[Option<HeaderPtr>]) -> Unlike {
    // SAFETY: the slots own their packets.
    let word = |mbuf: HeaderPtr| unsafe { mbuf.word().load() };
    let rests = word(head);
    if rests & COMPOUND != 0 {
        return Unlike::Compound;
    }
    if word::count(rests) != 1 {
        return Unlike::Single;
    }
    for slot in slots {
        match slot.map(word) {
            Some(word) if word == rests => {}
            Some(word) if word & COMPOUND != 0 => return Unlike::Compound,
            _ => return Unlike::Single,
        }
    }
    Unlike::Nothing
}

/// The packets as their pool knows them.
///
/// # Safety
/// No slot is `None`.
#[inline(always)]
pub(super) unsafe fn objects(slots: &[Option<HeaderPtr>]) -> &[NonNull<u8>] {
    // SAFETY: `Some(HeaderPtr)` and `NonNull<u8>` have the same layout.
    unsafe { &*(std::ptr::from_ref(slots) as *const [NonNull<u8>]) }
}

/// Frees the leading groups in which all mbufs rest and are of the lane's pool; says how many slots
/// that were.
///
/// # Safety
/// As for [`free`]: what was freed is given up.
#[inline(always)]
unsafe fn free_resting(lane: &mut Lane, slots: &mut [Option<HeaderPtr>]) -> usize {
    // SAFETY: by contract.
    unsafe {
        let done = push_resting(lane, slots);
        if lane.room() < GROUP && done + GROUP <= slots.len() {
            done + free_past_full(lane, &mut slots[done..])
        } else {
            done
        }
    }
}

/// [`free_resting`] as long as there is room.
///
/// # Safety
/// As for [`free_resting`].
#[inline(always)]
unsafe fn push_resting(lane: &mut Lane, slots: &mut [Option<HeaderPtr>]) -> usize {
    let mut spot = lane.spot();
    let mut done = 0;
    for group in slots.as_chunks_mut::<GROUP>().0 {
        // SAFETY: the slot owns its packet.
        let rests = |mbuf: HeaderPtr| unsafe { mbuf.word().load() } == spot.rests;
        if spot.room < GROUP || !group.iter().all(|slot| slot.is_some_and(rests)) {
            break;
        }
        // SAFETY: there is room; all of the group is owned, rests, and is of the lane's pool.
        unsafe { spot.push_group(group) };
        *group = [None; GROUP];
        done += GROUP;
    }
    // SAFETY: lent above.
    unsafe { lane.settle(spot) };
    done
}

/// [`free_resting`] when the cache is full: a long run goes past it, as it stands, for a short one the
/// oldest half makes room.
///
/// # Safety
/// As for [`free_resting`].
#[cold]
#[inline(never)]
unsafe fn free_past_full(lane: &mut Lane, slots: &mut [Option<HeaderPtr>]) -> usize {
    let rests = lane.rests();
    let mut done = 0;
    while lane.room() < GROUP {
        let rest = &mut slots[done..];
        // SAFETY: the slots own their packets. What rests with the lane's word is of its pool.
        unsafe {
            let alike = |slot: &&Option<HeaderPtr>| slot.is_some_and(|m| m.word().load() == rests);
            let run = rest.iter().take_while(alike).count();
            if lane.is_large(run) {
                lane.pass(objects(&rest[..run]));
                rest[..run].fill(None);
                return done + run;
            }
            if run < GROUP || !lane.make_room(GROUP) {
                break;
            }
            done += push_resting(lane, rest);
        }
    }
    done
}
