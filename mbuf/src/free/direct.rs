//! `direct`: one comparison per mbuf, and its pointer written into the pool's thread cache.

use super::lanes::{Lanes, Spots};
use super::raw::Slots;
use super::{runs, successor};
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
pub(super) unsafe fn free(mut slots: Slots<'_>) {
    let Some(&head) = slots.iter().flatten().next() else {
        return;
    };
    // SAFETY: slots own what they hold, and each is given up once.
    unsafe {
        let mut lanes = Lanes::open(head);
        if !lanes.hold() {
            drop(lanes);
            return runs::free(&slots);
        }
        let mut spots = lanes.spots();
        let (groups, rest) = slots.as_chunks_mut::<GROUP>();
        for group in groups {
            let done = push_resting(group, &mut spots);
            if done < GROUP && !(done == 0 && put_alike(group, &spots)) {
                spots = one_by_one(&group[done..], &mut lanes, spots);
            }
            group.fill(None);
        }
        spots = one_by_one(rest, &mut lanes, spots);
        rest.fill(None);
        lanes.settle(spots);
        slots.emptied();
    }
}

/// Pushes the leading mbufs of `group` that rest and are of the first lane's pool; says how many.
///
/// # Safety
/// As for [`free`]: what was pushed is given up.
#[inline(always)]
unsafe fn push_resting(group: &[Option<HeaderPtr>; GROUP], spots: &mut Spots) -> usize {
    if spots.room < GROUP {
        return 0;
    }
    let mut pushed = GROUP;
    for (at, slot) in group.iter().enumerate() {
        // SAFETY: the slot owns its packet, and there is room for the whole group.
        unsafe {
            match *slot {
                Some(mbuf) if mbuf.word().load() == spots.first_rests => {
                    spots.first.add(at).write(mbuf.0.cast());
                }
                _ => {
                    pushed = at;
                    break;
                }
            }
        }
    }
    // SAFETY: so many were written.
    spots.first = unsafe { spots.first.add(pushed) };
    spots.room -= pushed;
    pushed
}

/// Puts a whole group of resting mbufs of a pool that no lane is open for, as it stands.
///
/// # Safety
/// As for [`free`]: what was put is given up if the answer is true.
#[inline(never)]
unsafe fn put_alike(group: &[Option<HeaderPtr>; GROUP], spots: &Spots) -> bool {
    let Some(head) = group[0] else { return false };
    // SAFETY: the slots own their packets.
    unsafe {
        let word = head.word().load();
        let alike = |slot: &Option<HeaderPtr>| slot.is_some_and(|m| m.word().load() == word);
        if word != resting_of(word) || spots.lend_to(word) || !group.iter().all(alike) {
            return false;
        }
        // `Some(HeaderPtr)` and `NonNull<u8>` have the same layout, and none is `None`.
        let objects = &*(std::ptr::from_ref(group) as *const [NonNull<u8>; GROUP]);
        head.fields().pool.put_bulk(objects);
    }
    true
}

/// Frees the packets in `slots`, whatever they are.
///
/// # Safety
/// As for [`free`]; `spots` are what `lanes` lent last.
#[inline(always)]
unsafe fn one_by_one(slots: &[Option<HeaderPtr>], lanes: &mut Lanes, mut spots: Spots) -> Spots {
    for &head in slots.iter().flatten() {
        // SAFETY: the slot's reference is given up here. When it was the last, the chain is ours:
        // the head's count owns it.
        unsafe {
            let word = head.word().load();
            if spots.push(head, word) || !head.word().release(word) {
                continue;
            }
            let mut next = Some((head, word));
            while let Some((seg, word)) = next {
                next = successor(seg, word);
                let resting = resting_of(word);
                if word != resting {
                    if word & word::CLUSTER != 0
                        && let Some(cluster) = seg.fields().cluster
                        && cluster.get().count.release()
                    {
                        lanes.settle(spots);
                        lanes.put_cluster(cluster);
                        spots = lanes.spots();
                    }
                    seg.word().set(resting);
                    if spots.push(seg, resting) {
                        continue;
                    }
                }
                if spots.lend_to(resting) || lanes.worth_opening() {
                    lanes.settle(spots);
                    lanes.put(seg, resting);
                    spots = lanes.spots();
                } else {
                    seg.fields().pool.put(seg.0.cast());
                }
            }
        }
    }
    spots
}
