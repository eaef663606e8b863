//! The paired runner: all variants of a cell interleaved, round by round.
//!
//! In each round every variant runs once, in shuffled order, at one placement; the
//! placements come in shuffled blocks, so that each gets the same share. What is compared
//! is the ratio within a round, so that slow drift of the machine cancels. A round in
//! which a thread was preempted, or the host stole time, is thrown away for all variants.

mod pace;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::affinity::{self, Pinned};
use crate::cell::{CellRun, CellSpec, Env, Profile, Sample};
use crate::quiet::Disturbance;
use crate::report::{CellReport, Unmeasured};
use crate::summary;
use pace::{Deadlines, Turns};

/// How long and how often is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Time for all cells together, shared equally.
    pub budget: Duration,
    /// A cell with fewer rounds is reported as partial.
    pub min_rounds: usize,
    /// A cell stops here, whatever time it has left.
    pub max_rounds: usize,
    /// Draws of the bootstrap.
    pub resamples: usize,
    /// Of the cells of a group, the first and every `aa_every`-th after it (odd, since cells of one
    /// core and of two come by turns) carry an A/A
    /// cell.
    pub aa_every: usize,
}

impl Settings {
    /// The settings of a profile: 50 s, or 10 minutes.
    pub fn of(profile: Profile) -> Self {
        match profile {
            Profile::Quick => Settings {
                budget: Duration::from_secs(50),
                min_rounds: 30,
                max_rounds: 90,
                resamples: 400,
                aa_every: 5,
            },
            Profile::Full => Settings {
                budget: Duration::from_secs(600),
                min_rounds: 200,
                max_rounds: 600,
                resamples: 1000,
                aa_every: 3,
            },
        }
    }
}

/// What a front is told while the run goes on.
pub trait Watch {
    /// Cell number `index` of `total` starts.
    fn start(&mut self, index: usize, total: usize, id: &str) {
        let _ = (index, total, id);
    }
    /// A cell's check failed.
    fn failed(&mut self, id: &str, reason: &str) {
        let _ = (id, reason);
    }
}

/// Watches nothing.
impl Watch for () {}

/// What a run gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Measured cells.
    pub cells: Vec<CellReport>,
    /// Cells that were not measured, and why.
    pub skipped: Vec<Unmeasured>,
    /// Cells whose check failed.
    pub failed: Vec<Unmeasured>,
}

/// Why a cell has no numbers.
enum Fault {
    Skipped(String),
    Failed(String),
}

/// The rounds of one cell, before they are summed up.
pub(crate) struct Rounds {
    /// Names of the series; the last is the baseline's copy if `aa`.
    pub(crate) names: Vec<String>,
    /// Index of the baseline.
    pub(crate) baseline: usize,
    /// Whether the last series is the baseline's copy.
    pub(crate) aa: bool,
    pub(crate) placements: usize,
    /// Kept rounds.
    pub(crate) kept: Vec<Round>,
    /// Rounds thrown away.
    pub(crate) disturbed: usize,
    /// Too few rounds were left alone, so that disturbed ones are among the kept.
    pub(crate) busy: bool,
    pub(crate) partial: bool,
}

/// One round: a sample of each series.
pub(crate) struct Round {
    pub(crate) placement: usize,
    pub(crate) samples: Vec<Sample>,
}

/// Measures `cells`, one after another, within the budget.
///
/// The calling thread is pinned for the time of the run: to the first of [`Env::cpus`],
/// or to the first CPU that it may use.
///
/// ```
/// # use bench::{CellRun, CellSpec, Env, Needs, Params, Sample, Skip};
/// use bench::runner::{self, Settings};
/// # struct Fixed;
/// # impl CellRun for Fixed {
/// #     fn variants(&self) -> Vec<&'static str> { vec!["staged", "runs"] }
/// #     fn placements(&self) -> usize { 2 }
/// #     fn round(&mut self, variant: usize, _: usize) -> Result<Sample, String> {
/// #         Ok(Sample::new([2.0, 1.0][variant]))
/// #     }
/// # }
/// # let cell = CellSpec {
/// #     id: "demo/one".into(), group: "demo", params: Params::new(), unit: "ns/mbuf",
/// #     lower_is_better: true, baseline: "staged", needs: Needs::ONE_CPU,
/// #     build: Box::new(|_: &Env| -> Result<Box<dyn CellRun>, Skip> { Ok(Box::new(Fixed)) }),
/// # };
/// let settings = Settings { max_rounds: 30, ..Settings::of(bench::Profile::Quick) };
/// let outcome = runner::run(&[cell], &Env::for_tests(), &settings, &mut ());
/// assert_eq!(outcome.cells[0].variant("runs").unwrap().ratio, 0.5);
/// ```
pub fn run(cells: &[CellSpec], env: &Env, settings: &Settings, watch: &mut dyn Watch) -> Outcome {
    let home = env
        .cpus
        .map(|(a, _)| a)
        .or_else(|| affinity::allowed().first().copied());
    let _pin = home.map(Pinned::to);
    let start = Instant::now();
    let mut outcome = Outcome::default();
    let mut in_group = 0_usize;
    let mut last_group = "";
    for (index, cell) in cells.iter().enumerate() {
        in_group = if cell.group == last_group {
            in_group + 1
        } else {
            0
        };
        last_group = cell.group;
        watch.start(index, cells.len(), &cell.id);
        let waiting = cells[index..]
            .iter()
            .filter(|c| unmet(c, env).is_none())
            .count();
        let left = settings.budget.saturating_sub(start.elapsed());
        let share = left / u32::try_from(waiting.max(1)).unwrap_or(u32::MAX);
        let aa = in_group.is_multiple_of(settings.aa_every.max(1));
        let at = Instant::now();
        match one_cell(cell, env, settings, share, aa) {
            Ok(rounds) => {
                let seed = env.seed ^ index as u64;
                outcome
                    .cells
                    .extend(summary::sum_up(cell, &rounds, settings, seed, at.elapsed()));
            }
            Err(Fault::Skipped(reason)) => outcome.skipped.push(Unmeasured {
                id: cell.id.clone(),
                reason,
            }),
            Err(Fault::Failed(reason)) => {
                watch.failed(&cell.id, &reason);
                outcome.failed.push(Unmeasured {
                    id: cell.id.clone(),
                    reason,
                });
            }
        }
    }
    outcome
}

/// What the cell needs and this run does not have.
fn unmet(cell: &CellSpec, env: &Env) -> Option<String> {
    let cpus = if env.cpus.is_some() { 2 } else { 1 };
    if cell.needs.cpus > cpus {
        return Some(format!(
            "needs {} CPUs, this run has {cpus}",
            cell.needs.cpus
        ));
    }
    (cell.needs.full_only && env.profile == Profile::Quick)
        .then(|| "left to the full profile: too slow for a quick run".to_owned())
}

fn one_cell(
    cell: &CellSpec,
    env: &Env,
    settings: &Settings,
    share: Duration,
    aa: bool,
) -> Result<Rounds, Fault> {
    if let Some(reason) = unmet(cell, env) {
        return Err(Fault::Skipped(reason));
    }
    if share.is_zero() {
        let budget = settings.budget.as_secs();
        return Err(Fault::Skipped(format!(
            "the {budget} s of the run were over before its turn"
        )));
    }
    let measured = catch_unwind(AssertUnwindSafe(|| -> Result<Rounds, Fault> {
        let deadlines = Deadlines::new(share);
        let mut run = (cell.build)(env).map_err(|skip| Fault::Skipped(skip.0))?;
        let rounds = measure(cell, run.as_mut(), env, settings, &deadlines, aa)?;
        run.finish().map_err(Fault::Failed)?;
        Ok(rounds)
    }));
    measured.unwrap_or_else(|panic| {
        Err(Fault::Failed(format!(
            "panicked: {}",
            panic_text(panic.as_ref())
        )))
    })
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

/// Fewer rounds than this give no interval.
const FEWEST: usize = 6;

fn measure(
    cell: &CellSpec,
    run: &mut dyn CellRun,
    env: &Env,
    settings: &Settings,
    deadlines: &Deadlines,
    aa: bool,
) -> Result<Rounds, Fault> {
    let variants = run.variants();
    let baseline = variants
        .iter()
        .position(|name| *name == cell.baseline)
        .ok_or_else(|| {
            Fault::Failed(format!(
                "its baseline {} is none of its variants",
                cell.baseline
            ))
        })?;
    let mut series: Vec<usize> = (0..variants.len()).collect();
    let mut names: Vec<String> = variants.iter().map(|name| (*name).to_owned()).collect();
    if aa {
        series.push(baseline);
        names.push(format!("{}'", cell.baseline));
    }
    let mut rng = Rng::with_seed(env.seed ^ fold(&cell.id));
    let mut turns = Turns::new(run.placements().max(1));
    warm_up(run, variants.len(), turns.count, deadlines)?;

    let cpus: Vec<usize> = env.cpus.map_or_else(affinity::allowed, |(a, b)| vec![a, b]);
    let (mut quiet, mut disturbed) = (Vec::new(), Vec::new());
    let mut before = Disturbance::now(&cpus);
    while quiet.len() < settings.max_rounds {
        let enough = quiet.len() >= settings.min_rounds && deadlines.soft();
        if enough || deadlines.hard() {
            break;
        }
        let round = one_round(run, &series, turns.next(&mut rng), &mut rng)?;
        let after = Disturbance::now(&cpus);
        if after.none_since(&before, cell.needs.crowded) {
            quiet.push(round)
        } else {
            disturbed.push(round)
        }
        before = after;
    }
    let placements = turns.count;
    let (kept, disturbed, busy) = choose(quiet, disturbed, settings);
    if kept.len() < FEWEST {
        return Err(Fault::Skipped(format!(
            "only {} rounds fitted into twice its {:.2} s",
            kept.len(),
            deadlines.share.as_secs_f64()
        )));
    }
    let partial = kept.len() < settings.min_rounds;
    Ok(Rounds {
        names,
        baseline,
        aa,
        placements,
        kept,
        disturbed,
        busy,
        partial,
    })
}

/// The rounds to keep, how many were thrown away, and whether the machine was too busy to
/// throw any away: then they are all kept and the cell counts as noisy.
fn choose(
    mut quiet: Vec<Round>,
    disturbed: Vec<Round>,
    settings: &Settings,
) -> (Vec<Round>, usize, bool) {
    if quiet.len() >= settings.min_rounds || disturbed.len() * 4 <= quiet.len() {
        return (quiet, disturbed.len(), false);
    }
    quiet.extend(disturbed);
    (quiet, 0, true)
}

/// Every variant once at every placement, or as far as half of the share goes.
fn warm_up(
    run: &mut dyn CellRun,
    variants: usize,
    placements: usize,
    deadlines: &Deadlines,
) -> Result<(), Fault> {
    for placement in 0..placements {
        for variant in 0..variants {
            run.round(variant, placement).map_err(Fault::Failed)?;
        }
        if deadlines.warm() {
            break;
        }
    }
    Ok(())
}

fn one_round(
    run: &mut dyn CellRun,
    series: &[usize],
    placement: usize,
    rng: &mut Rng,
) -> Result<Round, Fault> {
    let mut order: Vec<usize> = (0..series.len()).collect();
    rng.shuffle(&mut order);
    let mut samples = vec![Sample::new(f64::NAN); series.len()];
    for entry in order {
        let sample = run.round(series[entry], placement).map_err(Fault::Failed)?;
        if !(sample.value.is_finite() && sample.value > 0.0) {
            return Err(Fault::Failed(format!(
                "a round gave the value {}",
                sample.value
            )));
        }
        samples[entry] = sample;
    }
    Ok(Round { placement, samples })
}

/// A number from a name (FNV-1a).
fn fold(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    })
}
