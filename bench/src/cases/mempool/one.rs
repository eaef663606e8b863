//! One thread: gets and puts apart, or the pair with the objects' first lines written between.

#![allow(unsafe_code)] // gives back what it took

use super::cell::{Entrant, Matrix, Round};
use super::crew::Crew;
use super::plan::{Burst, FIXED, ONE, Plan, RANDOM, ROOM, Regime};
use super::stores::{self, Lane, Store, Visit, write_lines};
use super::{CAPACITY, floor};
use crate::cell::{CellRun, Env, Skip};
use crate::clock;
use crate::placement::{self, Body, Entry, PLACEMENTS};
use std::hint::{black_box, spin_loop};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

const _: () = assert!(ROOM <= CAPACITY / 2);

/// Which part is timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ask {
    Get,
    Put,
    Pair,
}

/// Stores at different addresses: placement `p` works on number `p % STORES`.
const STORES: usize = 3;
/// Calls by which the random sizes of one placement are ahead of those of the one before.
const AHEAD: usize = 640;

struct Work<'a, S> {
    store: &'a S,
    plan: &'a Plan,
    /// The number of the first call.
    first: usize,
}

/// What a body found.
#[derive(Default)]
struct Found {
    gets: u64,
    puts: u64,
    objects: usize,
    calls: Option<[u64; 2]>,
}

/// Gets for as many calls as the plan says; says how many objects that were.
#[inline(always)]
fn take<L: Lane, const HOW: u8>(
    lane: &mut L,
    held: &mut [MaybeUninit<L::Item>; ROOM],
    plan: &Plan,
    first: usize,
    mut each: impl FnMut(&mut [MaybeUninit<L::Item>]),
) -> usize {
    let mut at = 0;
    for call in 0..plan.calls {
        let burst = &mut held[at..at + plan.size::<HOW>(first + call)];
        if HOW == ONE {
            burst[0].write(lane.get_one());
        } else {
            lane.get(burst);
        }
        each(burst);
        // Somebody reads the pointers, as far as the compiler knows.
        black_box(burst.as_mut_ptr());
        at += burst.len();
    }
    at
}

/// Gives back what [`take`] took, the last burst first.
///
/// # Safety
/// The first `at` of `held` are what `take` got from this lane with the same plan and `first`.
#[inline(always)]
unsafe fn give<L: Lane, const HOW: u8>(
    lane: &mut L,
    held: &mut [MaybeUninit<L::Item>; ROOM],
    plan: &Plan,
    first: usize,
    mut at: usize,
) {
    for call in (0..plan.calls).rev() {
        let n = plan.size::<HOW>(first + call);
        let burst = &mut held[at - n..at];
        // SAFETY: as the caller promises.
        unsafe {
            if HOW == ONE {
                lane.put_one(burst[0].assume_init_read());
            } else {
                lane.put(burst);
            }
        }
        at -= n;
    }
}

/// Lets stores go out to the first level cache: a `memcpy` that reads what was written shortly
/// before in narrower pieces would wait for them, and be charged for who wrote them.
#[inline(always)]
fn settle() {
    for _ in 0..8 {
        spin_loop();
    }
}

/// Times gets and puts apart.
struct Apart<S, const HOW: u8>(PhantomData<S>);

impl<S: Store, const HOW: u8> Body for Apart<S, HOW> {
    type Args<'a> = Work<'a, S>;
    type Out = Found;

    #[inline(always)]
    fn run(work: Work<'_, S>) -> Found {
        let Work { store, plan, first } = work;
        let mut lane = store.lane();
        let mut held = [const { MaybeUninit::uninit() }; ROOM];
        let mut found = Found::default();
        for stretch in 0..=plan.stretches {
            if stretch == 1 {
                // The first one only filled the caches.
                found = Found::default();
                found.calls = store.calls();
            }
            let first = first + stretch * plan.calls;
            let from = clock::start();
            let at = take::<_, HOW>(&mut lane, &mut held, plan, first, |_| ());
            found.gets += clock::stop() - from;
            settle();
            let from = clock::start();
            // SAFETY: just taken.
            unsafe { give::<_, HOW>(&mut lane, &mut held, plan, first, at) };
            found.puts += clock::stop() - from;
            settle();
            found.objects += at;
        }
        found.calls = since(found.calls, store.calls());
        found
    }
}

/// Times both together, with a line of each object written between.
struct Pair<S, const HOW: u8>(PhantomData<S>);

impl<S: Store, const HOW: u8> Body for Pair<S, HOW> {
    type Args<'a> = Work<'a, S>;
    type Out = Found;

    #[inline(always)]
    fn run(work: Work<'_, S>) -> Found {
        let Work { store, plan, first } = work;
        let mut lane = store.lane();
        let mut held = [const { MaybeUninit::uninit() }; ROOM];
        let mut found = Found::default();
        let mut value = 0;
        let mut from = 0;
        for stretch in 0..=plan.stretches {
            if stretch == 1 {
                found.objects = 0;
                found.calls = store.calls();
                from = clock::start();
            }
            let first = first + stretch * plan.calls;
            let at = take::<_, HOW>(&mut lane, &mut held, plan, first, |burst| {
                // SAFETY: the burst was just taken.
                unsafe { write_lines::<S::Lane<'_>>(burst, &mut value) };
            });
            // SAFETY: just taken.
            unsafe { give::<_, HOW>(&mut lane, &mut held, plan, first, at) };
            found.objects += at;
        }
        found.gets = clock::stop() - from;
        found.calls = since(found.calls, store.calls());
        found
    }
}

/// What was counted between two looks.
pub(super) fn since(before: Option<[u64; 2]>, after: Option<[u64; 2]>) -> Option<[u64; 2]> {
    let (before, after) = (before?, after?);
    Some([after[0] - before[0], after[1] - before[1]])
}

type Copies<S> = [for<'a> fn(Work<'a, S>) -> Found; PLACEMENTS];

fn copies<S: Store, const HOW: u8>(pair: bool) -> Copies<S> {
    if pair {
        placement::table::<Pair<S, HOW>>().map(|entry: Entry<Pair<S, HOW>>| entry)
    } else {
        placement::table::<Apart<S, HOW>>().map(|entry: Entry<Apart<S, HOW>>| entry)
    }
}

/// One variant on one thread.
struct One<S> {
    stores: Vec<S>,
    plan: Plan,
    copies: Copies<S>,
    ask: Ask,
    regime: Regime,
}

impl<S: Store> One<S> {
    fn new(ask: Ask, regime: Regime, burst: Burst) -> Result<Self, String> {
        let pair = ask == Ask::Pair;
        Ok(One {
            stores: (0..STORES).map(|_| S::build()).collect::<Result<_, _>>()?,
            plan: Plan::of(regime, burst),
            copies: match burst {
                Burst::One => copies::<S, ONE>(pair),
                Burst::Of(_) => copies::<S, FIXED>(pair),
                Burst::Random => copies::<S, RANDOM>(pair),
            },
            ask,
            regime,
        })
    }
}

impl<S: Store> Entrant for One<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn round(&mut self, placement: usize, _: &mut Crew) -> Result<Round, String> {
        let store = &self.stores[placement % STORES];
        let found = self.copies[placement](Work {
            store,
            plan: &self.plan,
            first: placement * AHEAD,
        });
        if let Some(missing @ 1..) = store.missing() {
            return Err(format!("{missing} objects are not back"));
        }
        let calls = found.calls.map(|[gets, puts]| gets + puts);
        match (S::CACHED, self.regime, calls) {
            (true, Regime::Hot, Some(calls @ 1..)) => {
                return Err(format!(
                    "the cache did not serve all: {calls} calls of the backend"
                ));
            }
            (true, Regime::Spill, Some(0)) => return Err("nothing was spilled".to_owned()),
            _ => {}
        }
        Ok(Round {
            ticks: match self.ask {
                Ask::Get | Ask::Pair => found.gets,
                Ask::Put => found.puts,
            },
            stamps: match self.ask {
                Ask::Get | Ask::Put => self.plan.stretches as u64,
                Ask::Pair => 1,
            },
            objects: found.objects,
            calls: found.calls,
        })
    }

    fn audit(&self) -> Result<(), String> {
        self.stores.iter().try_for_each(stores::audit)
    }
}

struct Lineup {
    ask: Ask,
    regime: Regime,
    burst: Burst,
    entrants: Vec<Box<dyn Entrant>>,
}

impl Lineup {
    fn add<S: Store>(&mut self) -> Result<(), String> {
        let one = One::<S>::new(self.ask, self.regime, self.burst)?;
        self.entrants.push(Box::new(one));
        Ok(())
    }
}

impl Visit for Lineup {
    fn shared<S: Store + Sync>(&mut self) -> Result<(), String> {
        self.add::<S>()
    }
}

pub(super) fn build(
    ask: Ask,
    regime: Regime,
    burst: Burst,
    env: &Env,
) -> Result<Box<dyn CellRun>, Skip> {
    let mut lineup = Lineup {
        ask,
        regime,
        burst,
        entrants: Vec::new(),
    };
    let mut all = || {
        stores::own(&mut lineup)?;
        lineup.add::<floor::Floor>()?;
        // Peers have guards, and give back by dropping them: the pair is what can be compared.
        if ask == Ask::Pair {
            stores::peers(&mut lineup)?;
        }
        Crew::new(&[])
    };
    let crew = all().map_err(Skip::new)?;
    Ok(Box::new(Matrix {
        entrants: lineup.entrants,
        crew,
        clock: env.clock,
    }))
}

#[cfg(test)]
mod tests;
