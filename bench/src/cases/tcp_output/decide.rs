//! `decide` alone. Its floor stores a decision that was made before: what a pure function that
//! answers by value cannot do without.

use super::{NOW, tcb};
use crate::cell::{CellRun, Env, Sample};
use crate::clock::{self, Clock};
use crate::placement::{self, Body, Entry, PLACEMENTS};
use std::hint::black_box;
use tcp_output::{Decision, SendView, Tcb, decide};

/// Decisions between one pair of stamps.
const CALLS: usize = 2048;

/// What there is to decide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Question {
    /// Nothing is queued and nothing owed.
    Nothing,
    /// A full segment goes, from within a full send buffer.
    Data,
}

impl Question {
    pub(super) const ALL: [Question; 2] = [Question::Nothing, Question::Data];

    pub(super) fn name(self) -> &'static str {
        match self {
            Question::Nothing => "nothing",
            Question::Data => "data",
        }
    }

    fn queued(self) -> usize {
        match self {
            Question::Nothing => 0,
            Question::Data => 65_536,
        }
    }

    /// Bytes that are to go.
    fn answer(self) -> Option<usize> {
        (self == Question::Data).then_some(1448)
    }
}

struct Desk {
    tcb: Tcb,
    view: SendView,
    ready: Decision,
    last: Decision,
}

struct Ours;

impl Body for Ours {
    type Args<'a> = &'a mut Desk;
    type Out = u64;

    #[inline(always)]
    fn run(desk: &mut Desk) -> u64 {
        let start = clock::start();
        for _ in 0..CALLS {
            desk.last = decide(black_box(&desk.tcb), black_box(&desk.view), NOW, None);
            black_box(&mut desk.last);
        }
        clock::stop() - start
    }
}

struct Floor;

impl Body for Floor {
    type Args<'a> = &'a mut Desk;
    type Out = u64;

    #[inline(always)]
    fn run(desk: &mut Desk) -> u64 {
        let start = clock::start();
        for _ in 0..CALLS {
            desk.last = *black_box(&desk.ready);
            black_box(&mut desk.last);
        }
        clock::stop() - start
    }
}

type Copies = [fn(&mut Desk) -> u64; PLACEMENTS];

struct Cell {
    question: Question,
    desk: Result<Desk, String>,
    clock: Clock,
    variants: [(&'static str, Copies); 2],
}

pub(super) fn build(question: Question, env: &Env) -> Box<dyn CellRun> {
    let desk = tcb().map(|tcb| {
        let view = SendView {
            queued: question.queued(),
            hiwat: 65_536,
            more_coming: false,
            force: false,
            tso: false,
        };
        let ready = decide(&tcb, &view, NOW, None);
        Desk {
            tcb,
            view,
            ready,
            last: ready,
        }
    });
    let ours = placement::table::<Ours>().map(|entry: Entry<Ours>| entry);
    let floor = placement::table::<Floor>().map(|entry: Entry<Floor>| entry);
    Box::new(Cell {
        question,
        desk,
        clock: env.clock,
        variants: [("ours", ours), ("floor", floor)],
    })
}

impl CellRun for Cell {
    fn variants(&self) -> Vec<&'static str> {
        self.variants.iter().map(|(name, _)| *name).collect()
    }

    fn placements(&self) -> usize {
        PLACEMENTS
    }

    fn round(&mut self, variant: usize, placement: usize) -> Result<Sample, String> {
        let desk = self.desk.as_mut().map_err(|e| e.clone())?;
        let ticks = self.variants[variant].1[placement](desk);
        let len = desk.last.segment.map(|segment| segment.len);
        if len != self.question.answer() {
            return Err(format!("decided on {len:?} bytes"));
        }
        let ns = self.clock.ns(ticks, 1).max(1e-3);
        Ok(Sample::new(ns / CALLS as f64))
    }
}
