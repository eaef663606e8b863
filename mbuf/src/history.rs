//! What has happened to an mbuf: its last sixteen events, kept in checked mode
//! ([`mempool::CHECKED`]). Otherwise no byte of it is there and noting does nothing.
//!
//! Allocation does not clear it: that an mbuf was freed twice, or by whom last, is what one looks
//! for.

use crate::header::HeaderPtr;
use crate::packet::Packet;
use mempool::CHECKED;
use std::fmt;
// Not the model checker's: the word orders nothing.
use std::sync::atomic::{AtomicU64, Ordering};

const BITS: u32 = 4;

/// Events that are kept.
const KEPT: u32 = u64::BITS / BITS;

/// Something that happens to an mbuf.
///
/// Allocation, free and lists note theirs; drivers and stacks above note what they know by
/// [`Packet::note`].
#[doc(alias = "rte_mbuf_history_op")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum LifeEvent {
    /// Taken from its pool.
    Alloc = 1,
    /// A reference was given up: the last, unless the packet was shared.
    Free = 2,
    /// Handed up by a receiving device.
    Received = 3,
    /// Handed to a sending device.
    Posted = 4,
    /// Given back by a sending device.
    Sent = 5,
    /// Refused by a sending device that had no room.
    Busy = 6,
    /// Put in a list or queue.
    Queued = 7,
    /// Taken out of a list or queue.
    Dequeued = 8,
    /// Dropped by a queue that was full.
    Dropped = 9,
    /// Got another owner.
    Shared = 10,
    /// The user's own.
    User1 = 14,
    /// The user's own.
    User2 = 15,
}

impl LifeEvent {
    const ALL: [Self; 12] = [
        Self::Alloc,
        Self::Free,
        Self::Received,
        Self::Posted,
        Self::Sent,
        Self::Busy,
        Self::Queued,
        Self::Dequeued,
        Self::Dropped,
        Self::Shared,
        Self::User1,
        Self::User2,
    ];

    /// The name that printers use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alloc => "alloc",
            Self::Free => "free",
            Self::Received => "received",
            Self::Posted => "posted",
            Self::Sent => "sent",
            Self::Busy => "busy",
            Self::Queued => "queued",
            Self::Dequeued => "dequeued",
            Self::Dropped => "dropped",
            Self::Shared => "shared",
            Self::User1 => "user1",
            Self::User2 => "user2",
        }
    }
}

impl fmt::Display for LifeEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The word in the header, the newest event in its lowest bits.
#[repr(transparent)]
pub(crate) struct History([AtomicU64; CHECKED as usize]);

impl History {
    pub(crate) fn new() -> Self {
        Self([const { AtomicU64::new(0) }; CHECKED as usize])
    }

    #[inline(always)]
    fn note(&self, event: LifeEvent) {
        for word in &self.0 {
            let shifted = |word| Some(word << BITS | event as u64);
            // Every round gives a word, so there is no failure to report.
            let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, shifted);
        }
    }

    fn load(&self) -> u64 {
        self.0.iter().map(|w| w.load(Ordering::Relaxed)).sum()
    }
}

/// Notes `event` in every segment of a packet, in checked mode.
///
/// # Safety
/// The caller holds a reference to the packet.
#[inline(always)]
pub(crate) unsafe fn note(head: HeaderPtr, event: LifeEvent) {
    if CHECKED {
        let mut next = Some(head);
        while let Some(seg) = next {
            // SAFETY: segments live as long as their head, and nobody writes the links of a
            // packet to which another holds a reference.
            unsafe {
                seg.history().note(event);
                next = seg.fields().next;
            }
        }
    }
}

/// The last events of an mbuf, newest first. Made by [`Packet::history`]; empty unless in checked
/// mode.
#[derive(Clone)]
pub struct LifeEvents {
    word: u64,
    left: u32,
}

impl LifeEvents {
    pub(crate) fn of(packet: &(impl Packet + ?Sized)) -> Self {
        // SAFETY: the handle that is borrowed holds the element.
        let word = unsafe { packet.raw().0.history() }.load();
        Self { word, left: KEPT }
    }
}

impl Iterator for LifeEvents {
    type Item = LifeEvent;

    fn next(&mut self) -> Option<LifeEvent> {
        self.left = self.left.checked_sub(1)?;
        let code = (self.word & ((1 << BITS) - 1)) as u8;
        self.word >>= BITS;
        LifeEvent::ALL.into_iter().find(|e| *e as u8 == code)
    }
}

impl fmt::Display for LifeEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, event) in self.clone().enumerate() {
            write!(f, "{}{event}", if at == 0 { "" } else { " < " })?;
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_are_one_to_one() {
        let codes: std::collections::HashSet<u8> =
            LifeEvent::ALL.iter().map(|&e| e as u8).collect();
        let names: std::collections::HashSet<_> = LifeEvent::ALL.iter().map(|e| e.name()).collect();
        assert_eq!((codes.len(), names.len()), (12, 12));
        assert!(codes.iter().all(|&code| code != 0 && code < 1 << BITS));
    }

    #[test]
    fn no_byte_is_left_of_it_outside_of_checked_mode() {
        assert_eq!(size_of::<History>(), if CHECKED { 8 } else { 0 });
    }
}
