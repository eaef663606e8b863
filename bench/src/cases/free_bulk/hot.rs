//! Bursts that are freed right after they were allocated, and the pair of both.

use super::shape::Shape;
use super::stock::Stock;
use super::{Direct, Each, Free, Runs, Staged, floor, of_floor, of_strategies};
use crate::cell::{CellRun, Counts, Env, Sample, Skip};
use crate::clock::{self, Clock};
use crate::placement::{self, Body, Entry, PLACEMENTS};
use mbuf::{FreeStrategy, TxMbuf};
use std::marker::PhantomData;

/// Mbufs per pool. A burst of 256 chains of eight takes half.
const CAPACITY: usize = 4096;
/// Objects that a thread's cache holds.
const CACHE: usize = 512;
/// Mbufs that a round frees, about.
const PER_ROUND: usize = 8192;
/// Pools at different addresses: placement `p` works on arena `p % ARENAS`.
const ARENAS: usize = 3;

struct Work<'a> {
    stock: &'a mut Stock,
    slots: &'a mut [Option<TxMbuf>],
    bursts: usize,
}

/// Times the free alone, or the pair of allocation and free.
struct Timed<F, const PAIR: bool>(PhantomData<F>);

#[allow(unsafe_code)] // calls the floors, which believe what they are told
impl<F: Free, const PAIR: bool> Body for Timed<F, PAIR> {
    type Args<'a> = Work<'a>;
    type Out = Result<u64, String>;

    #[inline(always)]
    fn run(work: Work<'_>) -> Self::Out {
        let mut ticks = 0;
        for _ in 0..work.bursts {
            let allocation = clock::start();
            work.stock.fill(work.slots)?;
            let start = if PAIR { allocation } else { clock::start() };
            // SAFETY: filled in the shape that `F` was chosen for, from pools that the cell holds.
            unsafe { F::free(work.slots) };
            ticks += clock::stop() - start;
            work.stock.disown(work.slots.len());
        }
        Ok(ticks)
    }
}

/// The same for bursts that are plain by type.
struct Plain<const PAIR: bool>;

impl<const PAIR: bool> Body for Plain<PAIR> {
    type Args<'a> = Work<'a>;
    type Out = Result<u64, String>;

    #[inline(always)]
    fn run(work: Work<'_>) -> Self::Out {
        let mut ticks = 0;
        for _ in 0..work.bursts {
            let allocation = clock::start();
            work.stock.fill_plain(work.slots.len())?;
            let start = if PAIR { allocation } else { clock::start() };
            work.stock.plain.clear();
            ticks += clock::stop() - start;
        }
        Ok(ticks)
    }
}

type Copies = [for<'a> fn(Work<'a>) -> Result<u64, String>; PLACEMENTS];

fn copies<F: Free>(pair: bool) -> Copies {
    if pair {
        placement::table::<Timed<F, true>>().map(|entry: Entry<Timed<F, true>>| entry)
    } else {
        placement::table::<Timed<F, false>>().map(|entry: Entry<Timed<F, false>>| entry)
    }
}

struct Hot {
    stocks: Vec<Stock>,
    slots: Vec<Option<TxMbuf>>,
    bursts: usize,
    mbufs: usize,
    variants: Vec<(&'static str, Copies)>,
    clock: Clock,
}

pub(super) fn build(
    shape: Shape,
    burst: usize,
    pair: bool,
    env: &Env,
) -> Result<Box<dyn CellRun>, Skip> {
    let stock = || Stock::new(shape, CAPACITY, |b| b.cache(CACHE));
    let stocks = (0..ARENAS)
        .map(|_| stock())
        .collect::<Result<_, _>>()
        .map_err(|e| Skip::new(e.to_string()))?;
    let mbufs = shape.mbufs(burst);
    Ok(Box::new(Hot {
        stocks,
        slots: (0..burst).map(|_| None).collect(),
        bursts: (PER_ROUND / mbufs).max(1),
        mbufs,
        variants: variants(shape, pair),
        clock: env.clock,
    }))
}

fn plain(pair: bool) -> Copies {
    if pair {
        placement::table::<Plain<true>>().map(|entry: Entry<Plain<true>>| entry)
    } else {
        placement::table::<Plain<false>>().map(|entry: Entry<Plain<false>>| entry)
    }
}

fn variants(shape: Shape, pair: bool) -> Vec<(&'static str, Copies)> {
    let mut all: Vec<(&'static str, Copies)> = of_strategies!(copies, pair);
    if shape == Shape::Flat {
        all.push(("plain", plain(pair)));
    }
    all.extend(of_floor!(shape, copies, pair).map(|floor| ("floor", floor)));
    all
}

impl CellRun for Hot {
    fn variants(&self) -> Vec<&'static str> {
        self.variants.iter().map(|(name, _)| *name).collect()
    }

    fn placements(&self) -> usize {
        PLACEMENTS
    }

    fn round(&mut self, variant: usize, placement: usize) -> Result<Sample, String> {
        let stock = &mut self.stocks[placement % ARENAS];
        let before = stock.backend_calls();
        let ticks = self.variants[variant].1[placement](Work {
            stock,
            slots: &mut self.slots,
            bursts: self.bursts,
        })?;
        if self.slots.iter().any(Option::is_some) {
            return Err("a slot is not empty after the free".into());
        }
        match stock.in_use() {
            0 => {}
            left => return Err(format!("{left} mbufs are not back in their pool")),
        }
        let mbufs = (self.bursts * self.mbufs) as f64;
        let calls = stock.backend_calls();
        let per_mbuf = |i: usize| (calls[i] - before[i]) as f64 / mbufs;
        let counts = Counts::new()
            .with("backend_gets", per_mbuf(0))
            .with("backend_puts", per_mbuf(1));
        let ns = self.clock.ns(ticks, self.bursts as u64);
        Ok(Sample::new(ns.max(1e-3) / mbufs).with_counts(counts))
    }
}
