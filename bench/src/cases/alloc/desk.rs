//! What a variant works with: its pool, the array that it fills, the mark that it leaves.

#![allow(unsafe_code)] // writes to packets by address

use super::floor::Stack;
use super::{CACHE, CAPACITY};
use crate::cases::free_bulk::ROOM;
use crate::cell::Skip;
use mbuf::{AllocError, Mbuf, MbufPool, PlainBurst};
use mempool::Builder;
use std::ptr::NonNull;

/// Packets of a burst at most.
pub(super) const MOST: usize = 256;
/// Calls within one pair of stamps at most, where allocation alone is timed.
const CALLS: usize = 8;
/// From an element's address to its inline room; checked pools have a line of history before it.
const HEADER: usize = if mempool::CHECKED { 192 } else { 128 };

/// One arena: everything that variants use there, one after another.
pub(super) struct Desk {
    pub(super) pool: MbufPool,
    /// As long as all calls together need.
    slots: Vec<Option<Mbuf>>,
    pub(super) plain: Vec<PlainBurst<MOST>>,
    /// The floor's packets, of a pool of their own.
    pub(super) stack: Stack,
    pub(super) burst: usize,
    /// Calls that allocate before as many free.
    pub(super) calls: usize,
}

impl Desk {
    pub(super) fn new(pair: bool, burst: usize) -> Result<Self, Skip> {
        Self::with(pair, burst, |b| b.cache(CACHE))
    }

    /// With pools that `configure` has the last word on.
    pub(super) fn with(
        pair: bool,
        burst: usize,
        configure: impl Fn(Builder) -> Builder,
    ) -> Result<Self, Skip> {
        let calls = if pair { 1 } else { CALLS.min(MOST / burst) };
        let pool = pool_with(&configure)?;
        room_is_behind_the_header(&pool)?;
        Ok(Desk {
            pool,
            slots: (0..calls * burst).map(|_| None).collect(),
            plain: (0..calls).map(|_| PlainBurst::new()).collect(),
            stack: Stack::new(&pool_with(&configure)?).map_err(|e| Skip::new(e.to_string()))?,
            burst,
            calls,
        })
    }

    /// The part of the array that call number `call` fills.
    #[inline(always)]
    pub(super) fn slots(&mut self, call: usize) -> &mut [Option<Mbuf>] {
        &mut self.slots[call * self.burst..][..self.burst]
    }

    /// Fills it with fresh packets.
    #[inline(always)]
    pub(super) fn fill(&mut self, call: usize) -> Result<(), AllocError> {
        let slots = &mut self.slots[call * self.burst..][..self.burst];
        self.pool.header_bulk(slots)
    }

    /// What lies there.
    #[inline(always)]
    pub(super) fn packets(&self, call: usize) -> impl Iterator<Item = &Mbuf> {
        self.slots[call * self.burst..][..self.burst]
            .iter()
            .flatten()
    }

    /// Whether every packet is where it belongs between two rounds.
    ///
    /// # Errors
    /// What is missing.
    pub(super) fn is_tidy(&self) -> Result<(), String> {
        if self.slots.iter().any(Option::is_some) || self.plain.iter().any(|b| !b.is_empty()) {
            return Err("a slot is not empty after the free".into());
        }
        match (self.pool.raw().in_use(), self.stack.missing()) {
            (0, 0) => Ok(()),
            (left, missing) => Err(format!(
                "{left} mbufs are not back in their pool, {missing} not on the floor's stack"
            )),
        }
    }

    /// Calls of the pool's backend so far: gets and puts.
    pub(super) fn backend_calls(&self) -> [u64; 2] {
        let stats = self.pool.raw().stats();
        [stats.backend_gets, stats.backend_puts]
    }
}

/// A pool as the cells of the group have it.
pub(super) fn pool() -> Result<MbufPool, Skip> {
    pool_with(|b| b.cache(CACHE))
}

fn pool_with(configure: impl Fn(Builder) -> Builder) -> Result<MbufPool, Skip> {
    MbufPool::new(ROOM, |b| configure(b.capacity(CAPACITY))).map_err(|e| Skip::new(e.to_string()))
}

fn room_is_behind_the_header(pool: &MbufPool) -> Result<(), Skip> {
    let fail = |e: &dyn std::fmt::Display| Skip::new(e.to_string());
    let mut packet = pool.header().map_err(|e| fail(&e))?;
    let header = address(&packet);
    let room = packet.append(8).map_err(|e| fail(&e))?;
    if room.as_ptr().addr() != header.addr().get() + HEADER {
        return Err(Skip::new("the room is not where marks are written"));
    }
    Ok(())
}

/// Where the packet's header is: a handle is that address.
#[inline(always)]
fn address(packet: &Mbuf) -> NonNull<u8> {
    const { assert!(size_of::<Mbuf>() == size_of::<NonNull<u8>>()) };
    // SAFETY: a transparent wrapper of a non-null pointer.
    unsafe { std::ptr::from_ref(packet).cast::<NonNull<u8>>().read() }
}

/// Writes the first word of the packet's room.
///
/// # Safety
/// Nobody else can see the packet's bytes.
#[inline(always)]
pub(super) unsafe fn mark(packet: &Mbuf, word: u64) {
    // SAFETY: within the element, whose room is longer; aligned.
    unsafe { address(packet).add(HEADER).cast::<u64>().write(word) };
}

/// The first word of the packet's room.
pub(super) fn mark_of(packet: &Mbuf) -> u64 {
    // SAFETY: as above; pools' memory is written before it is handed out.
    unsafe { address(packet).add(HEADER).cast::<u64>().read() }
}
