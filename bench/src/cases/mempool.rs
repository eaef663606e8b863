//! `mempool`: what getting objects from a pool and giving them back costs, apart and together, by
//! burst, by how much of it the caches serve, and by who gives back.
//!
//! *Apart* (`get`, `put`): pointers alone move, against the [`floor`], which copies as many. *Pair*:
//! objects are got, their first line is written, and they are given back, by all variants alike; that
//! is where peers are held against ours.

mod arena;
mod cell;
pub(super) mod crew;
mod floor;
mod four;
mod one;
mod ours;
#[cfg(feature = "peers")]
mod peers;
mod pipe;
mod plan;
mod stores;
mod two;
mod yardstick;

use crate::cell::{CellRun, CellSpec, Env, Group, Needs, Params, Skip};
use crate::report::Unmeasured;
use plan::{Burst, Regime};

/// What is asked at one parameter point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Question {
    /// One thread, the get alone.
    Get(Regime),
    /// One thread, the put alone.
    Put(Regime),
    /// One thread, both, with the first line of each object written between.
    Pair(Regime),
    /// One thread gets, another one gives back.
    OneWay,
    /// Four threads on two CPUs, each with bursts of its own.
    Four,
}

/// The cells of the group.
pub(crate) fn group() -> Group {
    let mut questions = Vec::new();
    for regime in [Regime::Hot, Regime::Spill] {
        questions.extend([
            Question::Get(regime),
            Question::Put(regime),
            Question::Pair(regime),
        ]);
    }
    questions.extend([
        Question::Pair(Regime::Half),
        Question::OneWay,
        Question::Four,
    ]);
    let points = questions
        .into_iter()
        .flat_map(|question| Burst::ALL.map(|burst| cell(question, burst)));
    Group {
        name: "mempool",
        question: "What does it cost to get objects and to give them back?",
        cells: points.collect(),
        absent: absent(),
    }
}

/// What this build leaves out.
fn absent() -> Vec<Unmeasured> {
    if cfg!(feature = "peers") {
        return Vec::new();
    }
    vec![Unmeasured {
        id: "mempool: peers".to_owned(),
        reason: "not in this build: cargo xtask-peers bench".to_owned(),
    }]
}

impl Question {
    /// The part of the id between the group and the burst.
    fn path(self) -> String {
        match self {
            Question::Get(regime) => format!("one/{}/get", regime.name()),
            Question::Put(regime) => format!("one/{}/put", regime.name()),
            Question::Pair(regime) => format!("one/{}/pair", regime.name()),
            Question::OneWay => "two/one-way".to_owned(),
            Question::Four => "four/own".to_owned(),
        }
    }

    /// The variant that others are held against: what is bounded by a floor, by the floor; what is
    /// compared with peers, by ours, so that each has its own paired ratio to ours.
    fn baseline(self) -> &'static str {
        match self {
            Question::Get(_) | Question::Put(_) => "floor",
            Question::Pair(_) | Question::OneWay | Question::Four => "ours",
        }
    }

    /// A quick run has what the sentences of the report are about, and one cell of each other kind.
    fn needs(self, burst: Burst) -> Needs {
        let needs = match self {
            Question::OneWay => Needs::TWO_CPUS,
            Question::Four => Needs::TWO_CPUS.crowded(),
            _ => Needs::ONE_CPU,
        };
        let quick: &[Burst] = match self {
            Question::Get(Regime::Hot) | Question::Put(Regime::Hot) => &[
                Burst::One,
                Burst::Of(32),
                Burst::Of(128),
                Burst::Of(512),
                Burst::Random,
            ],
            Question::Pair(Regime::Hot) => &[Burst::One, Burst::Of(32), Burst::Of(256)],
            Question::OneWay => &[Burst::Of(32), Burst::Of(256)],
            Question::Pair(Regime::Spill) | Question::Pair(Regime::Half) | Question::Four => {
                &[Burst::Of(32)]
            }
            _ => &[],
        };
        if quick.contains(&burst) {
            needs
        } else {
            needs.full_only()
        }
    }

    fn build(self, burst: Burst, env: &Env) -> Result<Box<dyn CellRun>, Skip> {
        match self {
            Question::Get(regime) => one::build(one::Ask::Get, regime, burst, env),
            Question::Put(regime) => one::build(one::Ask::Put, regime, burst, env),
            Question::Pair(regime) => one::build(one::Ask::Pair, regime, burst, env),
            Question::OneWay => two::build(burst, env),
            Question::Four => four::build(burst, env),
        }
    }
}

fn cell(question: Question, burst: Burst) -> CellSpec {
    let path = question.path();
    let parts: Vec<&str> = path.split('/').collect();
    let mut params = Params::new().with("threads", parts[0]);
    for (key, value) in ["regime", "question"].iter().zip(&parts[1..]) {
        params = params.with(key, *value);
    }
    CellSpec {
        id: format!("mempool/{path}/burst={}", burst.name()),
        group: "mempool",
        params: params.with("burst", burst.name()),
        unit: "ns/object",
        lower_is_better: true,
        baseline: question.baseline(),
        needs: question.needs(burst),
        build: Box::new(move |env| question.build(burst, env)),
    }
}

/// Bytes of an object.
const OBJECT: usize = 2304;
/// Objects of a store.
const CAPACITY: usize = 8192;
/// Objects that a cache holds, where there is one.
const CACHE: usize = 512;
