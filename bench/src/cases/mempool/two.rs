//! One way: this thread gets bursts and writes to their objects, the other one reads and gives back.
//!
//! Timed is the wall time from the first get to the last put. What a pool does for it is small beside
//! the lines that change cores, which all variants share.

#![allow(unsafe_code)] // gives back what the other side took

use super::cell::{Entrant, Matrix, Round};
use super::crew::{Crew, Job};
use super::one::since;
use super::pipe::{Receiver, Sender, Slots};
use super::plan::{Burst, FIXED, ONE, Plan, RANDOM};
use super::stores::{self, Lane, Store, Visit, read_lines, write_lines};
use crate::cell::{CellRun, Env, Skip};
use crate::clock;
use crate::placement::{self, Body, Entry, PLACEMENTS};
use std::hint::spin_loop;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

type Item<'a, S> = <<S as Store>::Lane<'a> as Lane>::Item;

/// Where the two threads meet: before the first get, and after the last put.
#[derive(Default)]
struct Signals {
    ready: AtomicBool,
    over: AtomicBool,
    /// The giving thread unwound.
    lost: AtomicBool,
}

struct Work<'a, S: Store, End> {
    store: &'a S,
    plan: &'a Plan,
    end: End,
    signals: &'a Signals,
}

/// Gets, writes, sends.
struct Getting<S, const HOW: u8>(PhantomData<S>);

impl<S: Store, const HOW: u8> Body for Getting<S, HOW> {
    type Args<'a> = Work<'a, S, Sender<'a, Item<'a, S>>>;
    /// Ticks, and objects.
    type Out = (u64, u64);

    #[inline(always)]
    fn run<'a>(work: Work<'a, S, Sender<'a, Item<'a, S>>>) -> (u64, u64) {
        let Work {
            store,
            plan,
            mut end,
            signals,
        } = work;
        let mut lane = store.lane();
        wait_for(&signals.ready, signals);
        let mut value = 0;
        let from = clock::start();
        for call in 0..plan.stretches {
            end.send(plan.size::<HOW>(call), |burst| {
                if HOW == ONE {
                    burst[0].write(lane.get_one());
                } else {
                    lane.get(burst);
                }
                // SAFETY: just got.
                unsafe { write_lines::<S::Lane<'a>>(burst, &mut value) };
            });
        }
        wait_for(&signals.over, signals);
        (clock::stop() - from, value)
    }
}

/// Receives, reads, puts.
struct Giving<S, const HOW: u8>(PhantomData<S>);

impl<S: Store, const HOW: u8> Body for Giving<S, HOW> {
    type Args<'a> = Work<'a, S, Receiver<'a, Item<'a, S>>>;
    /// The sum of what was read.
    type Out = u64;

    #[inline(always)]
    fn run<'a>(work: Work<'a, S, Receiver<'a, Item<'a, S>>>) -> u64 {
        let Work {
            store,
            plan,
            mut end,
            signals,
        } = work;
        let mut lane = store.lane();
        let mut sum = 0_u64;
        signals.ready.store(true, Ordering::Release);
        for _ in 0..plan.stretches {
            end.receive(|burst| {
                // SAFETY: got from the same store by the other side, which wrote the lines.
                unsafe {
                    sum = sum.wrapping_add(read_lines::<S::Lane<'a>>(burst));
                    if HOW == ONE {
                        lane.put_one(burst[0].assume_init_read());
                    } else {
                        lane.put(burst);
                    }
                }
            });
        }
        signals.over.store(true, Ordering::Release);
        sum
    }
}

#[inline(always)]
fn wait_for(flag: &AtomicBool, signals: &Signals) {
    while !flag.load(Ordering::Acquire) {
        assert!(
            !signals.lost.load(Ordering::Relaxed),
            "the giving thread is gone"
        );
        spin_loop();
    }
}

/// Says so when the giving thread unwinds, since the other one waits for it.
struct Lost<'a>(&'a Signals);

impl Drop for Lost<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lost.store(true, Ordering::Relaxed);
        }
    }
}

type Gets<S> = [for<'a> fn(Work<'a, S, Sender<'a, Item<'a, S>>>) -> (u64, u64); PLACEMENTS];
type Gives<S> = [for<'a> fn(Work<'a, S, Receiver<'a, Item<'a, S>>>) -> u64; PLACEMENTS];

fn copies<S: Store, const HOW: u8>() -> (Gets<S>, Gives<S>) {
    (
        placement::table::<Getting<S, HOW>>().map(|entry: Entry<Getting<S, HOW>>| entry),
        placement::table::<Giving<S, HOW>>().map(|entry: Entry<Giving<S, HOW>>| entry),
    )
}

/// Objects of a round, about: fewer where each takes longer.
fn objects(burst: Burst) -> usize {
    (burst.mean() * 1024).clamp(4 * 1024, 32 * 1024)
}

/// One variant on its way.
struct Two<S: Store> {
    store: S,
    plan: Plan,
    most: usize,
    copies: (Gets<S>, Gives<S>),
}

impl<S: Store + Sync> Two<S> {
    fn new(burst: Burst) -> Result<Self, String> {
        Ok(Two {
            store: S::build()?,
            plan: Plan::bursts(burst, objects(burst)),
            most: burst.most(),
            copies: match burst {
                Burst::One => copies::<S, ONE>(),
                Burst::Of(_) => copies::<S, FIXED>(),
                Burst::Random => copies::<S, RANDOM>(),
            },
        })
    }
}

impl<S: Store + Sync> Entrant for Two<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn round(&mut self, placement: usize, crew: &mut Crew) -> Result<Round, String> {
        let Two {
            store,
            plan,
            copies,
            ..
        } = &*self;
        let before = store.calls();
        let signals = Signals::default();
        // SAFETY: a store that is `Sync` has items that may change threads.
        let mut slots = unsafe { Slots::<Item<'_, S>>::new(self.most) };
        let (sender, receiver) = slots.ends();
        let (seen, signals) = (AtomicUsize::new(0), &signals);
        let give = copies.1[placement];
        let job: Job<'_> = Box::new(|| {
            let _lost = Lost(signals);
            let sum = give(Work {
                store,
                plan,
                end: receiver,
                signals,
            });
            seen.store(sum as usize, Ordering::Release);
        });
        let (ticks, objects) = crew.run(vec![job], || {
            copies.0[placement](Work {
                store,
                plan,
                end: sender,
                signals,
            })
        })?;
        let calls = since(before, store.calls());
        let (seen, sent) = (seen.load(Ordering::Acquire) as u64, sum_below(objects));
        if seen != sent {
            return Err(format!(
                "the lines read sum up to {seen}, those written to {sent}"
            ));
        }
        match store.missing() {
            None | Some(0) => {}
            Some(missing) => return Err(format!("{missing} objects are not back")),
        }
        Ok(Round {
            ticks,
            stamps: 1,
            objects: objects as usize,
            calls,
        })
    }

    fn audit(&self) -> Result<(), String> {
        stores::audit(&self.store)
    }
}

/// The sum of all numbers below `n`, as [`write_lines`] writes them.
fn sum_below(n: u64) -> u64 {
    n * n.saturating_sub(1) / 2
}

struct Lineup {
    burst: Burst,
    entrants: Vec<Box<dyn Entrant>>,
}

impl Visit for Lineup {
    fn shared<S: Store + Sync>(&mut self) -> Result<(), String> {
        self.entrants.push(Box::new(Two::<S>::new(self.burst)?));
        Ok(())
    }
}

pub(super) fn build(burst: Burst, env: &Env) -> Result<Box<dyn CellRun>, Skip> {
    let mut lineup = Lineup {
        burst,
        entrants: Vec::new(),
    };
    let mut all = || {
        stores::one_way(&mut lineup)?;
        stores::peers(&mut lineup)?;
        Crew::new(&[env.cpus.map(|(_, other)| other)])
    };
    let crew = all().map_err(Skip::new)?;
    Ok(Box::new(Matrix {
        entrants: lineup.entrants,
        crew,
        clock: env.clock,
    }))
}
