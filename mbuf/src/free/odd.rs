//! What `direct` does with packets that do not go a group at a time: nulls, shared packets, chains,
//! storage besides the room, other pools. The common of these stay in one loop, its state in registers;
//! the rare are out of line.

use super::Later;
use super::direct::{GROUP, objects};
use super::held::{is_stored, restore_chain, restore_leading};
use super::lane::{Lane, Spot};
use crate::header::HeaderPtr;
use crate::word::{self, resting_of};
use std::ops::ControlFlow;

/// Rare kinds of packets that one has come across: one of another pool, one with storage besides its room.
const OTHER: u32 = 1;
const STORED: u32 = 2;

/// Frees the leading packets, whatever they are, until a whole group has been as it mostly is;
/// says how many slots it has dealt with, at least one if there are any. `Break` where two
/// rare kinds of packets come together: what is in no order goes faster one by one.
///
/// # Safety
/// The slots own their packets; what was freed is given up.
#[inline(never)]
pub(super) unsafe fn free_odd(
    lane: &mut Lane,
    slots: &mut [Option<HeaderPtr>],
    later: &mut Later,
) -> ControlFlow<usize, usize> {
    let mut spot = lane.spot();
    let (mut calm, mut at) = (0, 0);
    let mut seen = 0;
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
            let (seg, word) = push_linked(&mut spot, head, word::sole(word));
            if word == spot.rests && spot.room > 0 {
                seg.word().set(word);
                spot.push(seg);
                continue;
            }
            let resting = resting_of(word);
            if word == resting && word != spot.rests {
                let run = put_run(seg, word, &mut slots[at..]);
                at += run;
                if run >= GROUP - 1 {
                    break;
                }
                if seen & STORED != 0 {
                    lane.settle(spot);
                    return ControlFlow::Break(at);
                }
                seen |= OTHER;
                continue;
            }
            if is_stored(word) && resting == spot.rests && spot.room > 0 {
                seg.word().set(word);
                restore_stored(seg, &slots[at..], later);
                spot.push(seg);
                if seen & OTHER != 0 {
                    lane.settle(spot);
                    return ControlFlow::Break(at);
                }
                seen |= STORED;
                continue;
            }
            lane.settle(spot);
            free_rare(lane, seg, word, later);
            spot = lane.spot();
        }
        lane.settle(spot);
    }
    ControlFlow::Continue(at)
}

/// Pushes the leading segments of a chain that have another behind them, and nothing but that between
/// them and rest. Gives the segment that comes then, and its word.
///
/// # Safety
/// The caller owns the packet, whose head's word was `word`.
#[inline(always)]
unsafe fn push_linked(spot: &mut Spot, head: HeaderPtr, word: u64) -> (HeaderPtr, u64) {
    let linked = spot.rests | word::NEXT;
    let (mut seg, mut word) = (head, word);
    // SAFETY: the head's count owned the chain, and the caller does now.
    unsafe {
        while word == linked && spot.room > 0 {
            let Some(next) = seg.fields().next else {
                break;
            };
            seg.word().set(spot.rests);
            spot.push(seg);
            (seg, word) = (next, next.word().load());
        }
    }
    (seg, word)
}

/// Brings a packet with storage besides its room to rest, and those like it that follow.
///
/// # Safety
/// The caller owns the packet, the slots own theirs, and all go to their pools next.
#[inline(never)]
unsafe fn restore_stored(head: HeaderPtr, behind: &[Option<HeaderPtr>], later: &mut Later) {
    let behind = behind.iter().map_while(Option::as_ref);
    // SAFETY: by contract.
    unsafe { restore_leading(std::iter::once(&head).chain(behind), later) };
}

/// Frees a packet, or the rest of one, for which there is no room, or which is a chain with storage besides
/// its rooms or with segments of other pools.
///
/// # Safety
/// The caller owns the packet, whose head's word was `word` but for its count. The spot is settled.
#[inline(never)]
unsafe fn free_rare(lane: &mut Lane, head: HeaderPtr, word: u64, later: &mut Later) {
    let mut spot = lane.spot();
    // SAFETY: the caller owns the chain. What it refers to is given up while the cache is open: the
    // pools of clusters are not the lane's, which is one of mbufs.
    unsafe {
        restore_chain(head, word, later, |seg, resting| {
            if resting == spot.rests && spot.room > 0 {
                spot.push(seg);
            } else {
                lane.settle(spot);
                lane.put(seg, resting);
                spot = lane.spot();
            }
        });
        lane.settle(spot);
    }
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
        head.word().set(word);
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
