//! Pairs whose packets are not plain when they are freed. Allocation is in bulk for all.

#![allow(unsafe_code)] // calls the floors, which believe what they are told

use super::{ARENAS, PER_ROUND, desk};
use crate::cases::free_bulk::{Direct, Free, Runs, Staged, floor};
use crate::cell::{CellRun, Counts, Env, Sample, Skip};
use crate::clock::{self, Clock};
use crate::placement::{self, Body, Entry, PLACEMENTS};
use mbuf::{AllocError, Mbuf, MbufPool, Packet, SharedMbuf};
use std::hint::black_box;
use std::marker::PhantomData;

/// What becomes of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Odd {
    /// Every fourth gets a second owner, who is freed after the burst.
    Shared,
    /// Chains of two.
    Chain2,
    /// Chains of eight.
    Chain8,
    /// One of each of two pools in turn.
    TwoPools,
}

impl Odd {
    pub(super) const ALL: [Odd; 4] = [Odd::Shared, Odd::Chain2, Odd::Chain8, Odd::TwoPools];

    pub(super) fn name(self) -> &'static str {
        match self {
            Odd::Shared => "shared4",
            Odd::Chain2 => "chain2",
            Odd::Chain8 => "chain8",
            Odd::TwoPools => "two-pools",
        }
    }

    fn segments(self) -> usize {
        match self {
            Odd::Chain2 => 2,
            Odd::Chain8 => 8,
            Odd::Shared | Odd::TwoPools => 1,
        }
    }
}

/// The pools and arrays of one arena.
struct Bench {
    pools: [MbufPool; 2],
    /// As they come from the pools.
    fresh: Vec<Option<Mbuf>>,
    slots: Vec<Option<Mbuf>>,
    shared: Vec<Option<SharedMbuf>>,
    owners: Vec<Option<SharedMbuf>>,
}

impl Bench {
    fn new(shape: Odd, burst: usize) -> Result<Self, Skip> {
        let first = desk::pool()?;
        let second = if shape == Odd::TwoPools {
            desk::pool()?
        } else {
            first.clone()
        };
        let none = |n: usize| (0..n).map(|_| None).collect::<Vec<_>>();
        Ok(Bench {
            pools: [first, second],
            fresh: none(burst * shape.segments()),
            slots: none(burst),
            shared: (0..burst).map(|_| None).collect(),
            owners: (0..burst / 4).map(|_| None).collect(),
        })
    }

    fn left(&self) -> usize {
        let [a, b] = &self.pools;
        a.raw().in_use() + b.raw().in_use()
    }
}

/// A shape: how it is made and given to a free.
trait Make {
    fn make(bench: &mut Bench) -> Result<(), AllocError>;
    /// Whether it is what it should be.
    fn holds(bench: &Bench) -> bool;
    fn free<F: Free, G: Free>(bench: &mut Bench);
}

struct Sharing;
impl Make for Sharing {
    #[inline(always)]
    fn make(bench: &mut Bench) -> Result<(), AllocError> {
        bench.pools[0].header_bulk(&mut bench.shared)?;
        let fourths = bench.shared.iter().skip(3).step_by(4);
        for (owner, packet) in bench.owners.iter_mut().zip(fourths) {
            *owner = packet.clone();
        }
        Ok(())
    }

    fn holds(bench: &Bench) -> bool {
        let owners = |at: usize| if at % 4 == 3 { 2 } else { 1 };
        let as_asked = |(at, packet): (usize, &Option<SharedMbuf>)| {
            packet.as_ref().map(SharedMbuf::owners) == Some(owners(at))
        };
        bench.shared.iter().enumerate().all(as_asked)
    }

    #[inline(always)]
    fn free<F: Free, G: Free>(bench: &mut Bench) {
        // SAFETY: every fourth is shared; its other owner is the last one, and all have one pool.
        unsafe {
            F::free(&mut bench.shared);
            G::free(&mut bench.owners);
        }
    }
}

struct Chains<const SEGMENTS: usize>;
impl<const SEGMENTS: usize> Make for Chains<SEGMENTS> {
    #[inline(always)]
    fn make(bench: &mut Bench) -> Result<(), AllocError> {
        bench.pools[0].header_bulk(&mut bench.fresh)?;
        let groups = bench.fresh.chunks_exact_mut(SEGMENTS);
        for (slot, group) in bench.slots.iter_mut().zip(groups) {
            // From the tail, so that no chain is walked.
            let mut packet: Option<Mbuf> = None;
            for mbuf in group.iter_mut().rev() {
                let mut head = mbuf.take();
                if let (Some(head), Some(tail)) = (&mut head, packet) {
                    head.cat(tail);
                }
                packet = head;
            }
            *slot = packet;
        }
        Ok(())
    }

    fn holds(bench: &Bench) -> bool {
        let as_asked = |p: &Option<Mbuf>| p.as_ref().map(Packet::nsegs) == Some(SEGMENTS);
        bench.slots.iter().all(as_asked)
    }

    #[inline(always)]
    fn free<F: Free, G: Free>(bench: &mut Bench) {
        // SAFETY: chains of so many, of one pool, in no other hands.
        unsafe { F::free(&mut bench.slots) };
    }
}

struct TwoPools;
impl Make for TwoPools {
    #[inline(always)]
    fn make(bench: &mut Bench) -> Result<(), AllocError> {
        let half = bench.fresh.len() / 2;
        let (a, b) = bench.fresh.split_at_mut(half);
        bench.pools[0].header_bulk(a)?;
        bench.pools[1].header_bulk(b)?;
        for ((pair, a), b) in bench.slots.as_chunks_mut::<2>().0.iter_mut().zip(a).zip(b) {
            *pair = [a.take(), b.take()];
        }
        Ok(())
    }

    fn holds(bench: &Bench) -> bool {
        let half = bench.slots.len() / 2;
        bench.slots.iter().all(Option::is_some)
            && bench.pools.each_ref().map(|pool| pool.raw().in_use()) == [half; 2]
    }

    #[inline(always)]
    fn free<F: Free, G: Free>(bench: &mut Bench) {
        // SAFETY: plain packets of two pools in turn.
        unsafe { F::free(&mut bench.slots) };
    }
}

struct Work<'a> {
    bench: &'a mut Bench,
    bursts: usize,
}

type Out = Result<u64, AllocError>;

struct Pair<M, F, G>(PhantomData<(M, F, G)>);

impl<M: Make, F: Free, G: Free> Body for Pair<M, F, G> {
    type Args<'a> = Work<'a>;
    type Out = Out;

    #[inline(always)]
    fn run(work: Work<'_>) -> Out {
        let Work { bench, bursts } = work;
        let start = clock::start();
        for _ in 0..bursts {
            M::make(bench)?;
            black_box(&mut *bench);
            M::free::<F, G>(bench);
            black_box(&mut *bench);
        }
        Ok(clock::stop() - start)
    }
}

type Copies = [for<'a> fn(Work<'a>) -> Out; PLACEMENTS];

fn copies<M: Make, F: Free, G: Free>() -> Copies {
    placement::table::<Pair<M, F, G>>().map(|entry: Entry<Pair<M, F, G>>| entry)
}

/// The strategies, then the floor of the shape and that of its owners.
fn all<M: Make, F: Free>() -> [Copies; VARIANTS.len()] {
    [
        copies::<M, Staged, Staged>(),
        copies::<M, Runs, Runs>(),
        copies::<M, Direct, Direct>(),
        copies::<M, F, floor::Flat>(),
    ]
}

const VARIANTS: [&str; 4] = ["staged", "runs", "ours", "floor"];

struct Pairs {
    benches: Vec<Bench>,
    bursts: usize,
    mbufs: usize,
    variants: [Copies; VARIANTS.len()],
    holds: fn(&mut Bench) -> Result<(), String>,
    clock: Clock,
}

pub(super) fn build(shape: Odd, burst: usize, env: &Env) -> Result<Box<dyn CellRun>, Skip> {
    let mbufs = burst * shape.segments();
    let (variants, holds): ([Copies; VARIANTS.len()], fn(&mut Bench) -> _) = match shape {
        Odd::Shared => (all::<Sharing, floor::Shared>(), holds::<Sharing>),
        Odd::Chain2 => (all::<Chains<2>, floor::Chains<2>>(), holds::<Chains<2>>),
        Odd::Chain8 => (all::<Chains<8>, floor::Chains<8>>(), holds::<Chains<8>>),
        Odd::TwoPools => (all::<TwoPools, floor::Pools<1>>(), holds::<TwoPools>),
    };
    Ok(Box::new(Pairs {
        benches: (0..ARENAS)
            .map(|_| Bench::new(shape, burst))
            .collect::<Result<_, _>>()?,
        bursts: (PER_ROUND / mbufs).max(1),
        mbufs,
        variants,
        holds,
        clock: env.clock,
    }))
}

/// Makes a burst, looks at it and frees it.
fn holds<M: Make>(bench: &mut Bench) -> Result<(), String> {
    M::make(bench).map_err(|e| e.to_string())?;
    let holds = M::holds(bench);
    M::free::<Direct, Direct>(bench);
    holds.then_some(()).ok_or("a burst of another shape".into())
}

impl CellRun for Pairs {
    fn variants(&self) -> Vec<&'static str> {
        VARIANTS.to_vec()
    }

    fn placements(&self) -> usize {
        PLACEMENTS
    }

    fn round(&mut self, variant: usize, placement: usize) -> Result<Sample, String> {
        let bench = &mut self.benches[placement % ARENAS];
        let calls = |b: &Bench| b.pools[0].raw().stats();
        let before = calls(bench);
        let ticks = self.variants[variant][placement](Work {
            bench: &mut *bench,
            bursts: self.bursts,
        })
        .map_err(|e| e.to_string())?;
        let after = calls(bench);
        (self.holds)(bench)?;
        if bench.slots.iter().any(Option::is_some) || bench.shared.iter().any(Option::is_some) {
            return Err("a slot is not empty after the free".into());
        }
        if bench.left() != 0 {
            return Err(format!("{} mbufs are not back in their pool", bench.left()));
        }
        let mbufs = (self.bursts * self.mbufs) as f64;
        let counts = Counts::new()
            .with(
                "backend_gets",
                (after.backend_gets - before.backend_gets) as f64 / mbufs,
            )
            .with(
                "backend_puts",
                (after.backend_puts - before.backend_puts) as f64 / mbufs,
            );
        let ns = self.clock.ns(ticks, 1).max(1e-3);
        Ok(Sample::new(ns / mbufs).with_counts(counts))
    }
}
