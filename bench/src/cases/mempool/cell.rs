//! A cell of the group: its variants, the threads that help, and what every round is checked for.

use super::crew::Crew;
use crate::cell::{CellRun, Counts, Sample};
use crate::clock::Clock;
use crate::placement::PLACEMENTS;

/// One variant at the cell's parameter point.
pub(super) trait Entrant {
    /// The variant's name.
    fn name(&self) -> &'static str;

    /// One round.
    ///
    /// # Errors
    /// What was not as it must be.
    fn round(&mut self, placement: usize, crew: &mut Crew) -> Result<Round, String>;

    /// After the last round, when the helping threads are gone: whether every object is there.
    ///
    /// # Errors
    /// What is wrong.
    fn audit(&self) -> Result<(), String>;
}

/// What a round took and did.
#[derive(Default)]
pub(super) struct Round {
    /// Ticks between the stamps.
    pub(super) ticks: u64,
    /// Pairs of stamps.
    pub(super) stamps: u64,
    /// Objects that were got and given back.
    pub(super) objects: usize,
    /// Calls of the backend, gets and puts, where they are counted.
    pub(super) calls: Option<[u64; 2]>,
}

/// A cell: all variants of one question at one parameter point.
pub(super) struct Matrix {
    pub(super) entrants: Vec<Box<dyn Entrant>>,
    pub(super) crew: Crew,
    pub(super) clock: Clock,
}

impl CellRun for Matrix {
    fn variants(&self) -> Vec<&'static str> {
        self.entrants.iter().map(|entrant| entrant.name()).collect()
    }

    fn placements(&self) -> usize {
        PLACEMENTS
    }

    fn round(&mut self, variant: usize, placement: usize) -> Result<Sample, String> {
        let entrant = &mut self.entrants[variant];
        let round = entrant.round(placement, &mut self.crew);
        let round = match round {
            Ok(Round { objects: 0, .. }) => Err("nothing was done".to_owned()),
            other => other,
        }
        .map_err(|reason| format!("{}: {reason}", entrant.name()))?;
        let objects = round.objects as f64;
        let ns = self.clock.ns(round.ticks, round.stamps).max(1e-3);
        let mut counts = Counts::new();
        if let Some([gets, puts]) = round.calls {
            counts = counts
                .with("backend_gets", gets as f64 / objects)
                .with("backend_puts", puts as f64 / objects);
        }
        Ok(Sample::new(ns / objects).with_counts(counts))
    }

    fn finish(&mut self) -> Result<(), String> {
        // Threads that end give back what their caches hold.
        self.crew.dismiss()?;
        self.entrants.iter().try_for_each(|entrant| entrant.audit())
    }
}
