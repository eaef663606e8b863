//! One cell of the group: its ways in placements, the desks they work on, and the rounds.

use std::error::Error;
use std::marker::PhantomData;

use crate::cell::{Build, CellRun, Counts, Env, Sample, Skip};
use crate::clock::{self, Clock};
use crate::placement::{self, Body, Entry, PLACEMENTS};
use mbuf::BufferSet;

/// Desks at different addresses: placement `p` works on desk `p % ARENAS`.
const ARENAS: usize = 3;

/// Why a round failed.
pub(super) type Fault = Box<dyn Error>;

/// Everything that the ways of one cell work on, one after another.
pub(super) trait Desk: Sized + 'static {
    /// The pools that everything comes from.
    fn set(&self) -> &BufferSet;

    /// Mbufs and clusters that are out between two rounds.
    fn resting(&self) -> usize;

    /// Frees what rests here; the pools must be full then.
    fn into_set(self) -> BufferSet;
}

/// One way to do the cell's work, inlined into each placed copy.
pub(super) trait Way: 'static {
    /// What it works on.
    type Desk: Desk;
    /// The variant's name.
    const NAME: &'static str;

    /// Passes of a round, of as many as the cell has.
    fn passes(_desk: &Self::Desk, usual: usize) -> usize {
        usual
    }

    /// What comes before a pass, outside of the timed part.
    fn prepare(desk: &mut Self::Desk) -> Result<(), Fault>;

    /// The timed part.
    fn pass(desk: &mut Self::Desk) -> Result<(), Fault>;

    /// Looks at what a pass has done and tidies up, outside of the timed part. Units of work that it
    /// did.
    fn settle(desk: &mut Self::Desk) -> Result<f64, Fault>;

    /// What else a round has to say, outside of the timed part.
    fn counts(_desk: &mut Self::Desk) -> Result<Counts, Fault> {
        Ok(Counts::new())
    }
}

/// A round: passes, timed one by one.
struct Timed<W>(PhantomData<W>);

/// What a round works on.
struct Work<'a, D> {
    desk: &'a mut D,
    passes: usize,
}

/// Ticks, and units of work.
type Out = Result<(u64, f64), Fault>;

impl<W: Way> Body for Timed<W> {
    type Args<'a> = Work<'a, W::Desk>;
    type Out = Out;

    #[inline(always)]
    fn run(work: Work<'_, W::Desk>) -> Out {
        let Work { desk, passes } = work;
        let (mut ticks, mut units) = (0, 0.0);
        for _ in 0..passes {
            W::prepare(desk)?;
            let start = clock::start();
            W::pass(desk)?;
            ticks += clock::stop() - start;
            units += W::settle(desk)?;
        }
        Ok((ticks, units))
    }
}

/// A way, as a cell has it.
pub(super) struct Variant<D> {
    name: &'static str,
    copies: [for<'a> fn(Work<'a, D>) -> Out; PLACEMENTS],
    passes: fn(&D, usize) -> usize,
    counts: fn(&mut D) -> Result<Counts, Fault>,
}

/// The variant that works by `W`.
pub(super) fn variant<W: Way>() -> Variant<W::Desk> {
    Variant {
        name: W::NAME,
        copies: placement::table::<Timed<W>>().map(|entry: Entry<Timed<W>>| entry as _),
        passes: W::passes,
        counts: W::counts,
    }
}

/// How the state of a cell is made: of desks that `desk` makes, for rounds of `passes` passes.
pub(super) fn build<D: Desk>(
    desk: impl Fn() -> Result<D, Fault> + Send + Sync + 'static,
    variants: impl Fn() -> Vec<Variant<D>> + Send + Sync + 'static,
    passes: usize,
) -> Build {
    Box::new(move |env: &Env| {
        let rounds = Rounds::new(&desk, variants(), passes, env.clock);
        Ok(Box::new(rounds.map_err(|e| Skip::new(e.to_string()))?))
    })
}

/// The state of a cell.
pub(super) struct Rounds<D> {
    desks: Vec<D>,
    variants: Vec<Variant<D>>,
    passes: usize,
    clock: Clock,
}

impl<D: Desk> Rounds<D> {
    pub(super) fn new(
        desk: impl Fn() -> Result<D, Fault>,
        variants: Vec<Variant<D>>,
        passes: usize,
        clock: Clock,
    ) -> Result<Self, Fault> {
        Ok(Rounds {
            desks: (0..ARENAS).map(|_| desk()).collect::<Result<_, _>>()?,
            variants,
            passes,
            clock,
        })
    }
}

impl<D: Desk> CellRun for Rounds<D> {
    fn variants(&self) -> Vec<&'static str> {
        self.variants.iter().map(|variant| variant.name).collect()
    }

    fn placements(&self) -> usize {
        PLACEMENTS
    }

    fn round(&mut self, variant: usize, placement: usize) -> Result<Sample, String> {
        let variant = &self.variants[variant];
        let desk = &mut self.desks[placement % ARENAS];
        let fail = |fault: Fault| format!("{}: {fault}", variant.name);
        let passes = (variant.passes)(desk, self.passes);
        let work = Work {
            desk: &mut *desk,
            passes,
        };
        let (ticks, units) = variant.copies[placement](work).map_err(fail)?;
        let counts = (variant.counts)(desk).map_err(fail)?;
        let (out, resting) = (desk.set().in_use(), desk.resting());
        if out != resting {
            return Err(format!(
                "{}: {out} mbufs and clusters are out between two rounds, not {resting}",
                variant.name
            ));
        }
        if units == 0.0 {
            return Err(format!("{}: a round without work", variant.name));
        }
        let ns = self.clock.ns(ticks, passes as u64).max(1e-3);
        Ok(Sample::new(ns / units).with_counts(counts))
    }

    fn finish(&mut self) -> Result<(), String> {
        for desk in self.desks.drain(..) {
            let set = desk.into_set();
            if !set.is_full() {
                return Err(format!("{} mbufs and clusters are lost", set.in_use()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
