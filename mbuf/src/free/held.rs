//! References to storage on their way out: consecutive ones to the same storage are given up by one
//! subtraction.
//!
//! Packets that refer to one cluster come in a row where they were cut from one piece of data. Each
//! subtraction is a locked instruction, about 5 ns; one for all of a row costs that once.

use super::{Later, successor};
use crate::cluster::StoragePtr;
use crate::header::HeaderPtr;
use crate::wipe;
use crate::word::{self, resting_of};

/// References to one piece of storage that are the caller's to give up. Forgotten ones leak.
pub(super) struct Held {
    storage: Option<StoragePtr>,
    references: u32,
    /// The storage is an external record, not a cluster.
    external: bool,
}

impl Held {
    #[inline(always)]
    pub(super) const fn none() -> Self {
        Self {
            storage: None,
            references: 0,
            external: false,
        }
    }

    /// Brings a segment to its resting state; what it referred to is held.
    ///
    /// # Safety
    /// The caller owns the segment, whose word was `word`, and puts it to its pool next.
    #[inline(always)]
    pub(super) unsafe fn restore(&mut self, seg: HeaderPtr, word: u64, later: &mut Later) {
        // SAFETY: owned.
        unsafe {
            if word & word::WIPE != 0 {
                wipe::room(seg);
            }
            if word & (word::CLUSTER | word::EXTERN) != 0
                && let Some(storage) = seg.fields().storage
            {
                self.hold(storage, word & word::EXTERN != 0, later);
            }
            seg.word().set(resting_of(word));
        }
    }

    /// # Safety
    /// The caller owns the reference, which is to an external record if it is `external`.
    #[inline(always)]
    unsafe fn hold(&mut self, storage: StoragePtr, external: bool, later: &mut Later) {
        if self.storage == Some(storage) {
            self.references += 1;
            return;
        }
        // SAFETY: what was held is ours.
        unsafe { self.give_up(later) };
        *self = Self {
            storage: Some(storage),
            references: 1,
            external,
        };
    }

    /// Gives up what is held. A cluster that nobody else refers to is put, the owner of external
    /// storage left to `later`.
    ///
    /// # Safety
    /// What was held is still to be given up, which it is after this.
    #[inline(always)]
    pub(super) unsafe fn give_up(&mut self, later: &mut Later) {
        let Some(storage) = self.storage.take() else {
            return;
        };
        // SAFETY: so many references are ours; after the last one the storage is.
        unsafe {
            if self.external {
                if storage.record().release(self.references) {
                    later.push(storage.record());
                }
            } else if storage.cluster().release(self.references) {
                let cluster = storage.cluster();
                cluster.get().pool.put(cluster.object());
            }
        }
    }
}

/// Brings the leading packets of one segment that have storage besides their room, and no other
/// owner, to rest where they are: they can be put as they stand then.
///
/// # Safety
/// The caller owns the packets.
#[inline(never)]
pub(super) unsafe fn restore_leading<'a>(
    packets: impl Iterator<Item = &'a HeaderPtr>,
    later: &mut Later,
) {
    let mut held = Held::none();
    // SAFETY: the only references to these packets are the caller's, and so are those to their storage.
    unsafe {
        for &mbuf in packets {
            let word = mbuf.word().load();
            if !is_stored(word) {
                break;
            }
            held.restore(mbuf, word, later);
        }
        held.give_up(later);
    }
}

/// Whether a packet with this word is one segment, has one owner, and storage besides its room.
#[inline(always)]
pub(super) fn is_stored(word: u64) -> bool {
    word & word::STORAGE != 0 && word & (word::NEXT | word::COUNT) == 1
}

/// Brings all segments of a chain to rest, and hands each to `put`.
///
/// # Safety
/// The caller owns the chain, whose head's word was `word`; `put` gives what it gets to its pool.
#[inline(always)]
pub(super) unsafe fn restore_chain(
    head: HeaderPtr,
    word: u64,
    later: &mut Later,
    mut put: impl FnMut(HeaderPtr, u64),
) {
    let mut held = Held::none();
    let mut next = Some((head, word));
    // SAFETY: the head's count owned the chain, and the caller does now.
    unsafe {
        while let Some((seg, word)) = next {
            next = successor(seg, word);
            held.restore(seg, word, later);
            put(seg, resting_of(word));
        }
        held.give_up(later);
    }
}
