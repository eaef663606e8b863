//! Four threads on two CPUs: each gets bursts of its own, writes to them, and gives them back.
//!
//! Timed is the wall time from the first thread's first get to the last thread's last put, over the
//! objects of all. Threads are preempted wherever they are, also while they hold a lock: that is the
//! question here, so rounds are not thrown away for it.

#![allow(unsafe_code)] // gives back what it took

use super::cell::{Entrant, Matrix, Round};
use super::crew::{Crew, Job};
use super::one::since;
use super::plan::{Burst, FIXED, ONE, Plan, RANDOM, RANDOM_MOST};
use super::stores::{self, Lane, Store, Visit, write_lines};
use crate::cell::{CellRun, Env, Skip};
use crate::clock;
use crate::placement::{self, Body, Entry, PLACEMENTS};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::{Barrier, Mutex};

/// Threads, two on each CPU.
const THREADS: usize = 4;
/// Objects of a burst at most.
const MOST: usize = 512;
const _: () = assert!(RANDOM_MOST <= MOST);

struct Work<'a, S> {
    store: &'a S,
    plan: &'a Plan,
    together: &'a Barrier,
}

/// One thread's part.
struct Part {
    from: u64,
    to: u64,
    objects: usize,
}

struct Churn<S, const HOW: u8>(PhantomData<S>);

impl<S: Store, const HOW: u8> Body for Churn<S, HOW> {
    type Args<'a> = Work<'a, S>;
    type Out = Part;

    #[inline(always)]
    fn run<'a>(work: Work<'a, S>) -> Part {
        let Work {
            store,
            plan,
            together,
        } = work;
        let mut lane = store.lane();
        let mut held = [const { MaybeUninit::uninit() }; MOST];
        let mut value = 0;
        together.wait();
        let from = clock::start();
        for call in 0..plan.stretches {
            let burst = &mut held[..plan.size::<HOW>(call)];
            // SAFETY: what is written to and given back was just got.
            unsafe {
                if HOW == ONE {
                    burst[0].write(lane.get_one());
                } else {
                    lane.get(burst);
                }
                write_lines::<S::Lane<'a>>(burst, &mut value);
                if HOW == ONE {
                    lane.put_one(burst[0].assume_init_read());
                } else {
                    lane.put(burst);
                }
            }
        }
        let to = clock::stop();
        let objects = value as usize;
        Part { from, to, objects }
    }
}

type Copies<S> = [for<'a> fn(Work<'a, S>) -> Part; PLACEMENTS];

fn copies<S: Store, const HOW: u8>() -> Copies<S> {
    placement::table::<Churn<S, HOW>>().map(|entry: Entry<Churn<S, HOW>>| entry)
}

/// Objects of a thread and round, about: a few times as long as it takes to wake the threads up.
fn objects(burst: Burst) -> usize {
    (burst.mean() * 4096).clamp(16 * 1024, 128 * 1024)
}

/// One variant.
struct Four<S: Store> {
    store: S,
    plan: Plan,
    copies: Copies<S>,
}

impl<S: Store + Sync> Four<S> {
    fn new(burst: Burst) -> Result<Self, String> {
        Ok(Four {
            store: S::build()?,
            plan: Plan::bursts(burst, objects(burst)),
            copies: match burst {
                Burst::One => copies::<S, ONE>(),
                Burst::Of(_) => copies::<S, FIXED>(),
                Burst::Random => copies::<S, RANDOM>(),
            },
        })
    }
}

impl<S: Store + Sync> Entrant for Four<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn round(&mut self, placement: usize, crew: &mut Crew) -> Result<Round, String> {
        let Four {
            store,
            plan,
            copies,
        } = &*self;
        let before = store.calls();
        let (together, parts) = (&Barrier::new(THREADS), &Mutex::new(Vec::new()));
        let body = copies[placement];
        let job = |_| {
            Box::new(move || {
                let part = body(Work {
                    store,
                    plan,
                    together,
                });
                parts.lock().expect("no panic under it").push(part);
            }) as Job<'_>
        };
        crew.run((0..THREADS).map(job).collect(), || ())?;
        let parts = parts.lock().map_err(|e| e.to_string())?;
        let from = parts.iter().map(|part| part.from).min();
        let to = parts.iter().map(|part| part.to).max();
        match store.missing() {
            None | Some(0) => {}
            Some(missing) => return Err(format!("{missing} objects are not back")),
        }
        Ok(Round {
            ticks: to.zip(from).map_or(0, |(to, from)| to.saturating_sub(from)),
            stamps: 1,
            objects: parts.iter().map(|part| part.objects).sum(),
            calls: since(before, store.calls()),
        })
    }

    fn audit(&self) -> Result<(), String> {
        stores::audit(&self.store)
    }
}

struct Lineup {
    burst: Burst,
    entrants: Vec<Box<dyn Entrant>>,
}

impl Visit for Lineup {
    fn shared<S: Store + Sync>(&mut self) -> Result<(), String> {
        self.entrants.push(Box::new(Four::<S>::new(self.burst)?));
        Ok(())
    }
}

pub(super) fn build(burst: Burst, env: &Env) -> Result<Box<dyn CellRun>, Skip> {
    let mut lineup = Lineup {
        burst,
        entrants: Vec::new(),
    };
    let mut all = || {
        stores::own(&mut lineup)?;
        stores::peers(&mut lineup)?;
        let (a, b) = (env.cpus.map(|cpus| cpus.0), env.cpus.map(|cpus| cpus.1));
        Crew::new(&[a, b, a, b])
    };
    let crew = all().map_err(Skip::new)?;
    Ok(Box::new(Matrix {
        entrants: lineup.entrants,
        crew,
        clock: env.clock,
    }))
}
