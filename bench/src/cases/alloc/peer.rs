//! DPDK beside ours: freeing a flat burst, and the pair, on pools of one kind: plain pages, caches of
//! 256, elements of 2304 bytes.

#![allow(unsafe_code)] // frees DPDK's packets

mod ffi;

use super::desk::Desk;
use super::flat::{Out, Pair, Work};
use super::ways::{Bulk, Plain, Way};
use super::{ARENAS, CAPACITY, PER_ROUND};
use crate::cases::free_bulk::{Direct, ROOM};
use crate::cell::{CellRun, CellSpec, Env, Needs, Params, Sample, Skip};
use crate::clock::{self, Clock};
use crate::placement::{self, Body, Entry, PLACEMENTS};
use std::hint::black_box;
use std::marker::PhantomData;

/// The variant's name.
const DPDK: &str = concat!("dpdk-", env!("DPDK_VERSION"));
const BURSTS: [usize; 4] = [32, 64, 128, 256];
/// Objects that a cache holds, on both sides.
const CACHE: usize = 256;
const ELEMENT: usize = 2304;

/// The cells of `group`, which is `alloc` for the pair and `free-bulk` for the free.
pub(in crate::cases) fn cells(group: &'static str) -> Vec<CellSpec> {
    let pair = group == "alloc";
    let cell = |burst: usize| CellSpec {
        id: format!("{group}/flat/dpdk/burst={burst}"),
        group,
        params: Params::new()
            .with("shape", "flat")
            .with("heat", "dpdk")
            .with("question", if pair { "dpdk-pair" } else { "dpdk-free" })
            .with("cache", CACHE)
            .with("burst", burst),
        unit: "ns/mbuf",
        lower_is_better: true,
        baseline: DPDK,
        needs: Needs::ONE_CPU,
        build: Box::new(move |env| build(pair, burst, env)),
    };
    BURSTS.map(cell).into()
}

/// Times the free alone.
struct Free<W>(PhantomData<W>);

impl<W: Way> Body for Free<W> {
    type Args<'a> = Work<'a>;
    type Out = Out;

    #[inline(always)]
    fn run(work: Work<'_>) -> Out {
        let Work { desk, bursts, .. } = work;
        let mut ticks = 0;
        for _ in 0..bursts {
            W::get(desk, 0)?;
            black_box(&mut *desk);
            let start = clock::start();
            W::put(desk, 0);
            ticks += clock::stop() - start;
        }
        Ok((ticks, bursts))
    }
}

struct TheirWork<'a> {
    pool: &'a mut ffi::Pool,
    bursts: usize,
    mark: u64,
}

/// Ticks, or too few packets.
type TheirOut = Option<u64>;

/// Their free; or, where `CALL`, a call that does nothing.
struct TheirFree<const CALL: bool>;

impl<const CALL: bool> Body for TheirFree<CALL> {
    type Args<'a> = TheirWork<'a>;
    type Out = TheirOut;

    #[inline(always)]
    fn run(work: TheirWork<'_>) -> TheirOut {
        let TheirWork { pool, bursts, .. } = work;
        let mut ticks = 0;
        for _ in 0..bursts {
            if CALL {
                let start = clock::start();
                pool.nothing();
                ticks += clock::stop() - start;
            } else {
                if !pool.alloc() {
                    return None;
                }
                let start = clock::start();
                // SAFETY: just allocated.
                unsafe { pool.free() };
                ticks += clock::stop() - start;
            }
        }
        Some(ticks)
    }
}

/// Their pair, in one call.
struct TheirPair;

impl Body for TheirPair {
    type Args<'a> = TheirWork<'a>;
    type Out = TheirOut;

    #[inline(always)]
    fn run(work: TheirWork<'_>) -> TheirOut {
        let start = clock::start();
        let enough = work.pool.pairs(work.bursts, work.mark);
        enough.then(|| clock::stop() - start)
    }
}

type Ours = [for<'a> fn(Work<'a>) -> Out; PLACEMENTS];
type Theirs = [for<'a> fn(TheirWork<'a>) -> TheirOut; PLACEMENTS];

fn ours<W: Way>(pair: bool) -> Ours {
    if pair {
        placement::table::<Pair<W>>().map(|entry: Entry<Pair<W>>| entry)
    } else {
        placement::table::<Free<W>>().map(|entry: Entry<Free<W>>| entry)
    }
}

fn theirs<B>() -> Theirs
where
    B: for<'a> Body<Args<'a> = TheirWork<'a>, Out = TheirOut>,
{
    placement::table::<B>().map(|entry: Entry<B>| entry)
}

struct Sides {
    desks: Vec<Desk>,
    pools: Vec<ffi::Pool>,
    pair: bool,
    bursts: usize,
    ours: [Ours; 2],
    theirs: Theirs,
    call: Theirs,
    rounds: u64,
    clock: Clock,
}

fn build(pair: bool, burst: usize, env: &Env) -> Result<Box<dyn CellRun>, Skip> {
    let pool = || ffi::Pool::new(CAPACITY as u32 - 1, CACHE as u32, ROOM.header as u16, burst);
    let pools = (0..ARENAS).map(|_| pool());
    let pools: Vec<ffi::Pool> = pools.collect::<Result<_, _>>().map_err(Skip::new)?;
    if let Some(other) = pools.iter().find(|pool| pool.element() != ELEMENT) {
        return Err(Skip::new(format!(
            "DPDK's elements have {} bytes, not {ELEMENT}",
            other.element()
        )));
    }
    let desks = (0..ARENAS).map(|_| Desk::with(true, burst, |b| b.cache(CACHE).huge_pages(false)));
    Ok(Box::new(Sides {
        desks: desks.collect::<Result<_, _>>()?,
        pools,
        pair,
        bursts: PER_ROUND / burst,
        ours: [ours::<Bulk<Direct>>(pair), ours::<Plain>(pair)],
        theirs: if pair {
            theirs::<TheirPair>()
        } else {
            theirs::<TheirFree<false>>()
        },
        call: theirs::<TheirFree<true>>(),
        rounds: 0,
        clock: env.clock,
    }))
}

impl Sides {
    /// Ticks of their side, less those of the calls into the library, and pairs of stamps.
    fn their_round(&mut self, placement: usize) -> Result<(u64, usize), String> {
        let pool = &mut self.pools[placement % ARENAS];
        let mut run = |copies: &Theirs| {
            copies[placement](TheirWork {
                pool: &mut *pool,
                bursts: self.bursts,
                mark: self.rounds,
            })
            .ok_or("DPDK's pool had too few packets")
        };
        let ticks = run(&self.theirs)?;
        // The stamps around the empty calls are those around the full ones.
        let calls = if self.pair { 0 } else { run(&self.call)? };
        if !pool.alloc() {
            return Err("DPDK's pool had too few packets".into());
        }
        // SAFETY: just allocated.
        let marks = unsafe {
            let marks = pool.marks();
            pool.free();
            marks
        };
        // Its common store is first in, first out: a burst as long as a cache comes from there, and
        // is not the last one that was freed.
        if self.pair && marks.len() < CACHE && marks.iter().any(|&mark| mark != self.rounds) {
            return Err("DPDK: packets that the timed part did not write to".into());
        }
        match pool.missing() {
            0 => Ok((ticks.saturating_sub(calls), if self.pair { 1 } else { 0 })),
            left => Err(format!("DPDK: {left} mbufs are not back in their pool")),
        }
    }

    fn our_round(&mut self, variant: usize, placement: usize) -> Result<(u64, usize), String> {
        let desk = &mut self.desks[placement % ARENAS];
        let out = self.ours[variant][placement](Work {
            desk: &mut *desk,
            bursts: self.bursts,
            mark: self.rounds,
        });
        desk.is_tidy()?;
        out.map_err(|e| e.to_string())
    }
}

impl CellRun for Sides {
    fn variants(&self) -> Vec<&'static str> {
        let direct = if self.pair { "ours" } else { "direct" };
        vec![DPDK, direct, "plain"]
    }

    fn placements(&self) -> usize {
        PLACEMENTS
    }

    fn round(&mut self, variant: usize, placement: usize) -> Result<Sample, String> {
        self.rounds += 1;
        let (ticks, stamps) = match variant {
            0 => self.their_round(placement)?,
            _ => self.our_round(variant - 1, placement)?,
        };
        let mbufs = (self.bursts * self.desks[0].burst) as f64;
        let ns = self.clock.ns(ticks, stamps as u64).max(1e-3);
        Ok(Sample::new(ns / mbufs))
    }
}
