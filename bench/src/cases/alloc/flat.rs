//! Flat bursts: allocation alone, and the pair.

#![allow(unsafe_code)] // marks packets

use super::desk::{self, Desk};
use super::floor::Floor;
use super::ways::{Bulk, Plain, Way};
use super::{ARENAS, PER_ROUND};
use crate::cases::free_bulk::{Direct, Runs, Staged};
use crate::cell::{CellRun, Counts, Env, Sample, Skip};
use crate::clock::{self, Clock};
use crate::placement::{self, Body, Entry, PLACEMENTS};
use mbuf::{AllocError, Packet};
use std::collections::BTreeSet;
use std::hint::black_box;
use std::marker::PhantomData;

pub(super) struct Work<'a> {
    pub(super) desk: &'a mut Desk,
    pub(super) bursts: usize,
    pub(super) mark: u64,
}

/// Ticks, and pairs of stamps.
pub(super) type Out = Result<(u64, usize), AllocError>;

/// Times allocation alone, `calls` bursts at a time.
struct Alone<W>(PhantomData<W>);

impl<W: Way> Body for Alone<W> {
    type Args<'a> = Work<'a>;
    type Out = Out;

    #[inline(always)]
    fn run(work: Work<'_>) -> Out {
        let Work { desk, bursts, .. } = work;
        let mut ticks = 0;
        let stretches = (bursts / desk.calls).max(1);
        for _ in 0..stretches {
            let start = clock::start();
            for call in 0..desk.calls {
                W::get(desk, call)?;
                black_box(&mut *desk);
            }
            ticks += clock::stop() - start;
            for call in 0..desk.calls {
                W::put(desk, call);
            }
        }
        Ok((ticks, stretches))
    }
}

/// Times allocating, marking and freeing, all bursts together.
pub(super) struct Pair<W>(PhantomData<W>);

impl<W: Way> Body for Pair<W> {
    type Args<'a> = Work<'a>;
    type Out = Out;

    #[inline(always)]
    fn run(work: Work<'_>) -> Out {
        let Work { desk, bursts, mark } = work;
        let start = clock::start();
        for _ in 0..bursts {
            W::get(desk, 0)?;
            black_box(&mut *desk);
            for packet in W::packets(desk, 0) {
                // SAFETY: fresh, in no other hands.
                unsafe { desk::mark(packet, mark) };
            }
            W::put(desk, 0);
            black_box(&mut *desk);
        }
        Ok((clock::stop() - start, 1))
    }
}

type Copies = [for<'a> fn(Work<'a>) -> Out; PLACEMENTS];

struct Variant {
    name: &'static str,
    copies: Copies,
    /// Whether a burst is as it must be, and the last ones bore the mark.
    check: fn(&mut Desk, Option<u64>) -> Result<(), String>,
}

fn variant<W: Way>(pair: bool) -> Variant {
    let copies: Copies = if pair {
        placement::table::<Pair<W>>().map(|entry: Entry<Pair<W>>| entry)
    } else {
        placement::table::<Alone<W>>().map(|entry: Entry<Alone<W>>| entry)
    };
    Variant {
        name: W::NAME,
        copies,
        check: check::<W>,
    }
}

struct Flat {
    desks: Vec<Desk>,
    variants: Vec<Variant>,
    pair: bool,
    rounds: u64,
    clock: Clock,
}

pub(super) fn build(pair: bool, burst: usize, env: &Env) -> Result<Box<dyn CellRun>, Skip> {
    let mut variants = vec![variant::<Bulk<Direct>>(pair), variant::<Plain>(pair)];
    if pair {
        variants.extend([variant::<Bulk<Runs>>(pair), variant::<Bulk<Staged>>(pair)]);
    }
    variants.push(variant::<Floor>(pair));
    Ok(Box::new(Flat::new(variants, pair, burst, env.clock)?))
}

impl Flat {
    fn new(variants: Vec<Variant>, pair: bool, burst: usize, clock: Clock) -> Result<Self, Skip> {
        let desks = (0..ARENAS).map(|_| Desk::new(pair, burst));
        Ok(Flat {
            desks: desks.collect::<Result<_, _>>()?,
            variants,
            pair,
            rounds: 0,
            clock,
        })
    }
}

impl CellRun for Flat {
    fn variants(&self) -> Vec<&'static str> {
        self.variants.iter().map(|variant| variant.name).collect()
    }

    fn placements(&self) -> usize {
        PLACEMENTS
    }

    fn round(&mut self, variant: usize, placement: usize) -> Result<Sample, String> {
        let variant = &self.variants[variant];
        let desk = &mut self.desks[placement % ARENAS];
        self.rounds += 1;
        let bursts = (PER_ROUND / desk.burst).next_multiple_of(desk.calls);
        let before = desk.backend_calls();
        let work = Work {
            desk: &mut *desk,
            bursts,
            mark: self.rounds,
        };
        let (ticks, stamps) = variant.copies[placement](work).map_err(|e| e.to_string())?;
        let after = desk.backend_calls();
        desk.is_tidy()?;
        (variant.check)(desk, self.pair.then_some(self.rounds))?;
        desk.is_tidy()?;
        let mbufs = (bursts * desk.burst) as f64;
        let per_mbuf = |i: usize| (after[i] - before[i]) as f64 / mbufs;
        let counts = Counts::new()
            .with("backend_gets", per_mbuf(0))
            .with("backend_puts", per_mbuf(1));
        let ns = self.clock.ns(ticks, stamps as u64).max(1e-3);
        Ok(Sample::new(ns / mbufs).with_counts(counts))
    }
}

/// One burst, looked at: as many packets as asked for, none twice, fresh, and, since what was freed
/// last is allocated first, with the mark that the timed part left.
fn check<W: Way>(desk: &mut Desk, marked: Option<u64>) -> Result<(), String> {
    let fail = |what: &str| Err(format!("{}: {what}", W::NAME));
    W::get(desk, 0).map_err(|e| e.to_string())?;
    let packets: Vec<_> = W::packets(desk, 0).collect();
    let places: BTreeSet<*const u8> = packets.iter().map(|p| p.first().data().as_ptr()).collect();
    if packets.len() != desk.burst || places.len() != desk.burst {
        return fail("a burst that is not whole");
    }
    if packets.iter().any(|p| p.pkt_len() != 0 || p.nsegs() != 1) {
        return fail("a packet that is not fresh");
    }
    if marked.is_some_and(|mark| packets.iter().any(|p| desk::mark_of(p) != mark)) {
        return fail("packets that the timed part did not write to");
    }
    W::put(desk, 0);
    Ok(())
}

#[cfg(test)]
mod tests;
