//! Bursts whose headers are in no near cache: the pool is far larger, its order random.
//!
//! All mbufs are out, in one long array; a round frees one stretch of it, burst by burst, and
//! fills it anew outside of the timed part. By the time that the stretch's turn comes again, all
//! others have passed through the caches.

mod typed;

use super::shape::Shape;
use super::stock::Stock;
use super::{Direct, Each, Free, Runs, Staged, floor, of_floor, of_strategies};
use crate::cell::{CellRun, Counts, Env, Sample, Skip};
use crate::clock::{self, Clock};
use crate::placement::{self, Body, Entry, PLACEMENTS};
use mbuf::{FreeStrategy, MbufPool, TxMbuf};
use mempool::Builder;
use std::marker::PhantomData;
use typed::Typed;

/// Mbufs in all: their first lines alone are twice the second-level cache of current servers.
const MBUFS: usize = 1 << 16;
/// Mbufs beyond those in the array, so that a burst can be made while all others are out.
const SPARE: usize = 1024;
/// Mbufs that a round frees, about: the array is that many stretches long.
const PER_ROUND: usize = 4096;

struct Work<'a> {
    slots: &'a mut [Option<TxMbuf>],
    burst: usize,
}

struct Bursts<F>(PhantomData<F>);

#[allow(unsafe_code)] // calls the floors, which believe what they are told
impl<F: Free> Body for Bursts<F> {
    type Args<'a> = Work<'a>;
    type Out = u64;

    #[inline(always)]
    fn run(work: Work<'_>) -> u64 {
        let mut ticks = 0;
        for burst in work.slots.chunks_exact_mut(work.burst) {
            let start = clock::start();
            // SAFETY: filled in the shape that `F` was chosen for, from pools that the cell holds.
            unsafe { F::free(burst) };
            ticks += clock::stop() - start;
        }
        ticks
    }
}

type Copies = [for<'a> fn(Work<'a>) -> u64; PLACEMENTS];

fn copies<F: Free>() -> Copies {
    placement::table::<Bursts<F>>().map(|entry: Entry<Bursts<F>>| entry)
}

struct Cold {
    stock: Stock,
    slots: Vec<Option<TxMbuf>>,
    shape: Shape,
    burst: usize,
    /// Bursts of a stretch.
    bursts: usize,
    /// Where the next stretch begins.
    next: usize,
    variants: Vec<(&'static str, Copies)>,
    /// The last variant, where bursts are flat.
    typed: Option<Typed>,
    clock: Clock,
}

pub(super) fn build(
    shape: Shape,
    burst: usize,
    large_pages: bool,
    env: &Env,
) -> Result<Box<dyn CellRun>, Skip> {
    let fail = |e: &dyn std::fmt::Display| Skip::new(e.to_string());
    let pools = if matches!(shape, Shape::TwoPools | Shape::Blocks) {
        2
    } else {
        1
    };
    let configure = move |b: Builder| b.cache(512).huge_pages(large_pages);
    let mut stock = Stock::new(shape, MBUFS / pools + SPARE, configure).map_err(|e| fail(&e))?;
    let mut rng = fastrand::Rng::with_seed(env.seed);
    for pool in stock.pools() {
        shuffle(pool, &mut rng).map_err(|e| fail(&e))?;
        if large_pages {
            are_large(pool)?;
        }
    }
    let typed = (shape == Shape::Flat).then(|| Typed::new(burst, env.seed, configure));
    let typed = typed.transpose().map_err(Skip::new)?;
    let bursts = (PER_ROUND / shape.mbufs(burst)).max(1);
    let stretches = MBUFS / (bursts * shape.mbufs(burst));
    let mut slots: Vec<Option<TxMbuf>> = (0..stretches * bursts * burst).map(|_| None).collect();
    for burst in slots.chunks_mut(burst) {
        stock.fill(burst).map_err(|e| fail(&e))?;
    }
    let mut variants: Vec<(&'static str, Copies)> = of_strategies!(copies,);
    variants.extend(of_floor!(shape, copies,).map(|floor| ("floor", floor)));
    Ok(Box::new(Cold {
        stock,
        slots,
        shape,
        burst,
        bursts,
        next: 0,
        variants,
        typed,
        clock: env.clock,
    }))
}

/// Whether the pool's memory, all of it written by now, is mapped in large pages.
fn are_large(pool: &MbufPool) -> Result<(), Skip> {
    let mapping = pool.raw().mapping().map_err(|e| Skip::new(e.to_string()))?;
    let large = mapping.transparent_huge + mapping.reserved_huge;
    if large < mapping.bytes / 10 * 9 {
        return Err(Skip::new(format!(
            "{large} of {} bytes are on pages of 2 MB: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
            mapping.bytes
        )));
    }
    Ok(())
}

/// Leaves the pool's objects in random order.
fn shuffle(pool: &MbufPool, rng: &mut fastrand::Rng) -> Result<(), mbuf::AllocError> {
    let mut all: Vec<Option<TxMbuf>> = (0..pool.raw().available()).map(|_| None).collect();
    pool.header_bulk(&mut all)?;
    rng.shuffle(&mut all);
    mbuf::free_bulk(&mut all);
    Ok(())
}

impl Cold {
    fn sample(&self, ticks: u64, bursts: usize, mbufs: usize, puts: u64) -> Sample {
        let ns = self.clock.ns(ticks, bursts as u64);
        let counts = Counts::new().with("backend_puts", puts as f64 / mbufs as f64);
        Sample::new(ns.max(1e-3) / mbufs as f64).with_counts(counts)
    }
}

impl CellRun for Cold {
    fn variants(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.variants.iter().map(|(name, _)| *name).collect();
        names.extend(self.typed.as_ref().map(|_| "plain"));
        names
    }

    fn placements(&self) -> usize {
        PLACEMENTS
    }

    fn round(&mut self, variant: usize, placement: usize) -> Result<Sample, String> {
        if let Some(typed) = &mut self.typed
            && variant == self.variants.len()
        {
            let (ticks, bursts, puts) = typed.round(placement)?;
            return Ok(self.sample(ticks, bursts, bursts * self.burst, puts));
        }
        let mbufs = self.bursts * self.shape.mbufs(self.burst);
        let stretch = self.next..self.next + self.bursts * self.burst;
        self.next = if stretch.end == self.slots.len() {
            0
        } else {
            stretch.end
        };
        let slots = &mut self.slots[stretch];
        let before = self.stock.in_use();
        let [_, puts] = self.stock.backend_calls();
        let ticks = self.variants[variant].1[placement](Work {
            slots,
            burst: self.burst,
        });
        if slots.iter().any(Option::is_some) {
            return Err("a slot is not empty after the free".into());
        }
        let puts = self.stock.backend_calls()[1] - puts;
        let gone = before - self.stock.in_use();
        self.stock.disown(slots.len());
        let back = before - self.stock.in_use();
        let still = self.shape.owners(slots.len());
        if (gone, back) != (mbufs - still, mbufs) {
            return Err(format!(
                "of {mbufs} mbufs {gone} went back, with their owners {back}"
            ));
        }
        for burst in slots.chunks_mut(self.burst) {
            self.stock.fill(burst)?;
        }
        Ok(self.sample(ticks, self.bursts, mbufs, puts))
    }

    fn finish(&mut self) -> Result<(), String> {
        let slots = self.slots.len();
        self.slots.clear();
        self.stock.disown(slots);
        let typed = self.typed.as_mut().map_or(0, Typed::left);
        match self.stock.in_use() + typed {
            0 => Ok(()),
            left => Err(format!("{left} mbufs are not back in their pool")),
        }
    }
}
