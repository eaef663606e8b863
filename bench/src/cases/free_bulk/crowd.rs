//! More threads than CPUs: each allocates twice what its cache holds, half of it from a pool of its
//! own and half from one that all share, and frees it burst by burst.
//!
//! Timed is the wall time from the first thread's start to the last one's end, allocation included:
//! who frees badly makes others wait.

use super::shape::ROOM;
use super::{Direct, Each, Free, Runs, Staged, of_strategies};
use crate::cases::mempool::crew::{Crew, Job};
use crate::cell::{CellRun, CellSpec, Counts, Env, Needs, Params, Sample, Skip};
use crate::clock::{self, Clock};
use crate::placement::{self, Body, Entry, PLACEMENTS};
use mbuf::{AllocError, FreeStrategy, MbufPool, TxMbuf};
use std::marker::PhantomData;
use std::sync::{Barrier, Mutex};

/// Threads, two on each CPU.
const THREADS: usize = 4;
/// Objects that a thread's cache holds, in each of the two pools that it uses.
const CACHE: usize = 256;
/// Mbufs that a thread holds at most.
const HELD: usize = 4 * CACHE;
/// How often a thread allocates and frees that many in a round.
const TIMES: usize = 16;

/// The cell at `burst`.
pub(super) fn cell(burst: usize) -> CellSpec {
    let needs = Needs::TWO_CPUS.crowded();
    CellSpec {
        id: format!("free-bulk/crowd/threads={THREADS}/burst={burst}"),
        group: "free-bulk",
        params: Params::new()
            .with("shape", "crowd")
            .with("threads", THREADS)
            .with("burst", burst),
        unit: "ns/mbuf",
        lower_is_better: true,
        baseline: "staged",
        needs: if burst == 32 {
            needs
        } else {
            needs.full_only()
        },
        build: Box::new(move |env| build(burst, env)),
    }
}

struct Work<'a> {
    /// The thread's own, and the common one.
    pools: [&'a MbufPool; 2],
    slots: &'a mut [Option<TxMbuf>],
    burst: usize,
    together: &'a Barrier,
}

/// When it began and ended.
type Out = Result<[u64; 2], AllocError>;

struct Churn<F>(PhantomData<F>);

#[allow(unsafe_code)] // `Free` has floors, too
impl<F: Free> Body for Churn<F> {
    type Args<'a> = Work<'a>;
    type Out = Out;

    #[inline(always)]
    fn run(work: Work<'_>) -> Out {
        work.together.wait();
        let from = clock::start();
        for _ in 0..TIMES {
            for (turn, burst) in work.slots.chunks_exact_mut(work.burst).enumerate() {
                work.pools[turn % 2].header_bulk(burst)?;
            }
            for burst in work.slots.chunks_exact_mut(work.burst) {
                // SAFETY: a strategy takes any burst.
                unsafe { F::free(burst) };
            }
        }
        Ok([from, clock::stop()])
    }
}

type Copies = [for<'a> fn(Work<'a>) -> Out; PLACEMENTS];

fn copies<F: Free>() -> Copies {
    placement::table::<Churn<F>>().map(|entry: Entry<Churn<F>>| entry)
}

struct Crowd {
    own: Vec<MbufPool>,
    common: MbufPool,
    slots: Vec<Vec<Option<TxMbuf>>>,
    burst: usize,
    variants: Vec<(&'static str, Copies)>,
    crew: Crew,
    clock: Clock,
}

fn build(burst: usize, env: &Env) -> Result<Box<dyn CellRun>, Skip> {
    let pool = |threads: usize| {
        // What others keep in their caches is there for none.
        let capacity = threads * (HELD / 2 + CACHE);
        MbufPool::new(ROOM, |b| b.capacity(capacity).cache(CACHE))
            .map_err(|e| Skip::new(e.to_string()))
    };
    let (a, b) = (env.cpus.map(|cpus| cpus.0), env.cpus.map(|cpus| cpus.1));
    Ok(Box::new(Crowd {
        own: (0..THREADS).map(|_| pool(1)).collect::<Result<_, _>>()?,
        common: pool(THREADS)?,
        slots: (0..THREADS)
            .map(|_| (0..HELD).map(|_| None).collect())
            .collect(),
        burst,
        variants: of_strategies!(copies,),
        crew: Crew::new(&[a, b, a, b]).map_err(Skip::new)?,
        clock: env.clock,
    }))
}

impl CellRun for Crowd {
    fn variants(&self) -> Vec<&'static str> {
        self.variants.iter().map(|(name, _)| *name).collect()
    }

    fn placements(&self) -> usize {
        PLACEMENTS
    }

    fn round(&mut self, variant: usize, placement: usize) -> Result<Sample, String> {
        let body = self.variants[variant].1[placement];
        let (together, outs) = (&Barrier::new(THREADS), &Mutex::new(Vec::new()));
        let (common, burst) = (&self.common, self.burst);
        let calls = || common.raw().stats().backend_puts;
        let before = calls();
        let threads = self.own.iter().zip(&mut self.slots);
        let jobs = threads.map(|(own, slots)| {
            Box::new(move || {
                let out = body(Work {
                    pools: [own, common],
                    slots,
                    burst,
                    together,
                });
                outs.lock().expect("no panic under it").push(out);
            }) as Job<'_>
        });
        self.crew.run(jobs.collect(), || ())?;
        let mut outs = outs.lock().map_err(|e| e.to_string())?;
        let outs: Result<Vec<[u64; 2]>, AllocError> = outs.drain(..).collect();
        let outs = outs.map_err(|e| e.to_string())?;
        if self.slots.iter().flatten().any(Option::is_some) {
            return Err("a slot is not empty after the free".into());
        }
        let pools = self.own.iter().chain([&self.common]);
        match pools.map(|pool| pool.raw().in_use()).sum() {
            0_usize => {}
            left => return Err(format!("{left} mbufs are not back in their pool")),
        }
        let from = outs.iter().map(|out| out[0]).min().unwrap_or(0);
        let to = outs.iter().map(|out| out[1]).max().unwrap_or(0);
        let mbufs = (THREADS * TIMES * HELD) as f64;
        let puts = (calls() - before) as f64 / (mbufs / 2.0);
        let ns = self.clock.ns(to.saturating_sub(from), 1).max(1e-3);
        Ok(Sample::new(ns / mbufs).with_counts(Counts::new().with("backend_puts", puts)))
    }

    fn finish(&mut self) -> Result<(), String> {
        self.crew.dismiss()
    }
}
