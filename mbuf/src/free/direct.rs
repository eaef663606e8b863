//! `direct`: one comparison per mbuf, and its pointer written into the pool's thread cache.
//!
//! The cache of the first packet's pool is kept open. Mbufs of other pools are put as runs where
//! they come in runs, else one by one; where two pools take turns from the start, no cache is
//! opened and both are kept at hand instead (`mixed`).

use super::lane::{Lane, Spot};
use super::raw::Slots;
use super::{Later, mixed, restore, runs, successor};
use crate::header::HeaderPtr;
use crate::word::{self, resting_of};
use std::ptr::NonNull;

/// Slots that are looked at together: the end of the array and the room left are tested once.
const GROUP: usize = 8;

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
        if few {
            match first_unlike(head, &slots) {
                Unlike::Nothing => return head.fields().pool.put_bulk(objects(&slots)),
                Unlike::Single => return mixed::free(&slots, later),
                Unlike::Compound => {}
            }
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
            let done = free_odd(&mut lane, rest, later);
            rest = &mut rest[done..];
            let done = free_resting(&mut lane, rest);
            rest = &mut rest[done..];
        }
        slots.emptied();
    }
}

/// What a short array has that is not like its first packet, which decides how it is freed: opening
/// a cache would not pay for all.
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
unsafe fn objects(slots: &[Option<HeaderPtr>]) -> &[NonNull<u8>] {
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

/// Frees the leading packets, whatever they are, until a whole group has been as it mostly is;
/// says how many slots it has dealt with, at least one if there are any.
///
/// # Safety
/// As for [`free`]: what was freed is given up.
#[inline(never)]
unsafe fn free_odd(lane: &mut Lane, slots: &mut [Option<HeaderPtr>], later: &mut Later) -> usize {
    let mut spot = lane.spot();
    let mut calm = 0;
    let mut at = 0;
    // SAFETY: each slot's reference is given up and the slot emptied.
    unsafe {
        while calm < GROUP && at < slots.len() {
            let slot = slots[at].take();
            at += 1;
            let Some(head) = slot else {
                calm = 0;
                continue;
            };
            let word = head.word().load();
            if word == spot.rests && spot.room > 0 {
                spot.push(head);
                calm += 1;
                continue;
            }
            calm = 0;
            if word::count(word) > 1 && !head.word().release(word) {
                continue;
            }
            if word & word::NEXT != 0 {
                spot = free_chain(lane, spot, head, word, later);
                continue;
            }
            lane.settle(spot);
            if word == resting_of(word) && word != lane.rests() {
                let run = put_run(head, word, &mut slots[at..]);
                at += run;
                if run >= GROUP - 1 {
                    return at;
                }
            } else {
                at += free_clustered(lane, head, word, &mut slots[at..], later);
            }
            spot = lane.spot();
        }
        lane.settle(spot);
    }
    at
}

/// Frees a chain.
///
/// # Safety
/// The caller owns the chain, whose head's word is `word`.
#[inline(always)]
unsafe fn free_chain(
    lane: &mut Lane,
    mut spot: Spot,
    head: HeaderPtr,
    word: u64,
    later: &mut Later,
) -> Spot {
    // SAFETY: the head's count owned the chain, and the caller does now.
    unsafe {
        let mut next = Some((head, word));
        while let Some((seg, word)) = next {
            next = successor(seg, word);
            let resting = resting_of(word);
            if word & word::STORAGE == 0 && resting == spot.rests && spot.room > 0 {
                seg.word().set(resting);
                spot.push(seg);
            } else {
                lane.settle(spot);
                free_clustered(lane, seg, word, &mut [], later);
                return lane.spot();
            }
        }
    }
    spot
}

/// Frees a chain, or the rest of one, whose segments have storage besides their room, or for which
/// there is no room in the cache; and packets with such storage in the slots that follow: says how many
/// slots that were. Out of line: the loops that call it keep their registers for what is common.
///
/// # Safety
/// As for [`free_chain`]; the slots own their packets; the spot is settled.
#[inline(never)]
unsafe fn free_clustered(
    lane: &mut Lane,
    head: HeaderPtr,
    word: u64,
    slots: &mut [Option<HeaderPtr>],
    later: &mut Later,
) -> usize {
    let mut spot = lane.spot();
    let mut at = 0;
    let mut packet = Some((head, word));
    // SAFETY: the caller owns the chain. A cluster is put when its last reference has been given
    // up; its pool is not the lane's, which is one of mbufs.
    unsafe {
        while let Some((seg, word)) = packet {
            packet = successor(seg, word);
            restore(seg, word, later);
            let resting = resting_of(word);
            if resting == spot.rests && spot.room > 0 {
                spot.push(seg);
            } else {
                lane.settle(spot);
                lane.put(seg, resting);
                spot = lane.spot();
            }
            if packet.is_none() {
                packet = slots.get_mut(at).and_then(|slot| take_clustered(slot));
                at += packet.is_some() as usize;
            }
        }
        lane.settle(spot);
    }
    at
}

/// The packet in the slot, if its only owner is the slot and it begins with storage besides its room.
///
/// # Safety
/// The slot owns its packet, which is the caller's if there is an answer.
#[inline(always)]
unsafe fn take_clustered(slot: &mut Option<HeaderPtr>) -> Option<(HeaderPtr, u64)> {
    let mbuf = (*slot)?;
    // SAFETY: owned by the slot.
    let word = unsafe { mbuf.word().load() };
    if word & word::STORAGE == 0 || word::count(word) != 1 {
        return None;
    }
    *slot = None;
    Some((mbuf, word))
}

/// Puts a resting mbuf of a pool that is not the lane's, and those like it that follow; says how
/// many slots that were, and empties them.
///
/// # Safety
/// The caller owns the mbuf, whose word is `word`, and the slots own their packets.
#[inline(never)]
unsafe fn put_run(head: HeaderPtr, word: u64, slots: &mut [Option<HeaderPtr>]) -> usize {
    // SAFETY: mbufs whose word is the head's rest and are of its pool.
    unsafe {
        let alike = |slot: &Option<HeaderPtr>| slot.is_some_and(|m| m.word().load() == word);
        let pool = head.fields().pool;
        let run = slots.iter().take_while(|slot| alike(slot)).count();
        if run > 0 {
            pool.put_bulk(objects(&slots[..run]));
            slots[..run].fill(None);
        }
        pool.put(head.0.cast());
        run
    }
}
