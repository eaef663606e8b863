//! From the rounds of a cell to its report.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;

use crate::cell::{CellSpec, Reduce};
use crate::published;
use crate::report::{CellReport, Kind, VariantReport, Verdict, is_wide};
use crate::runner::{Rounds, Settings};
use crate::stats;

/// The cell's report, and that of the A/A cell in it.
pub(crate) fn sum_up(
    cell: &CellSpec,
    rounds: &Rounds,
    settings: &Settings,
    seed: u64,
    took: Duration,
) -> Vec<CellReport> {
    let mut rng = Rng::with_seed(seed);
    let mut variants: Vec<VariantReport> = (0..rounds.names.len())
        .map(|series| one_series(rounds, series, settings, &mut rng))
        .collect();
    let noisy = rounds.busy || is_wide(1.0, of_rounds_alone(rounds, settings, &mut rng));
    for (series, variant) in variants.iter_mut().enumerate() {
        variant.verdict = if series == rounds.baseline {
            Verdict::Baseline
        } else {
            Verdict::of(
                variant.ratio,
                variant.ratio_ci95,
                cell.lower_is_better,
                noisy,
            )
        };
    }
    let copy = if rounds.aa { variants.pop() } else { None };
    let baseline = variants[rounds.baseline].clone();
    let report = CellReport {
        kind: Kind::Cell,
        id: cell.id.clone(),
        group: cell.group.to_owned(),
        params: cell.params.clone(),
        unit: cell.unit.to_owned(),
        lower_is_better: cell.lower_is_better,
        baseline: cell.baseline.to_owned(),
        rounds: rounds.kept.len(),
        disturbed: rounds.disturbed,
        partial: rounds.partial,
        noisy,
        placements: rounds.placements,
        seconds: took.as_secs_f64(),
        variants,
        theirs: published::for_cell(cell.group, &cell.params),
    };
    let aa = copy.map(|copy| CellReport {
        kind: Kind::Aa,
        id: format!("{}/aa", cell.id),
        variants: vec![baseline, copy],
        theirs: None,
        ..report.clone()
    });
    std::iter::once(report).chain(aa).collect()
}

fn one_series(rounds: &Rounds, series: usize, settings: &Settings, rng: &mut Rng) -> VariantReport {
    let values = by_placement(rounds, |samples| samples[series]);
    let ratios = by_placement(rounds, |samples| samples[series] / samples[rounds.baseline]);
    let ratio_ci95 = if series == rounds.baseline {
        [1.0, 1.0]
    } else {
        stats::interval(&ratios, settings.resamples, rng)
    };
    VariantReport {
        name: rounds.names[series].clone(),
        median: stats::median(&values.concat()),
        ci95: stats::interval(&values, settings.resamples, rng),
        ratio: stats::median(&ratios.concat()),
        ratio_ci95,
        verdict: Verdict::Baseline,
        counts: counts(rounds, series),
    }
}

/// The interval of the baseline's median with the placements' own levels taken out: what
/// the machine's noise leaves uncertain, in parts of the median. What placements do is in
/// the ratio's interval already, and no fault of the machine.
fn of_rounds_alone(rounds: &Rounds, settings: &Settings, rng: &mut Rng) -> [f64; 2] {
    let mut levelled = Vec::new();
    for values in by_placement(rounds, |samples| samples[rounds.baseline]) {
        let level = stats::median(&values);
        levelled.extend(values.iter().map(|value| value / level));
    }
    stats::interval(&[levelled], settings.resamples, rng)
}

/// A value of each round, by placement.
fn by_placement(rounds: &Rounds, value: impl Fn(&[f64]) -> f64) -> Vec<Vec<f64>> {
    let mut strata = vec![Vec::new(); rounds.placements];
    for round in &rounds.kept {
        let samples: Vec<f64> = round.samples.iter().map(|s| s.value).collect();
        strata[round.placement].push(value(&samples));
    }
    strata
}

fn counts(rounds: &Rounds, series: usize) -> BTreeMap<String, f64> {
    let mut gathered: BTreeMap<&str, (Reduce, Vec<f64>)> = BTreeMap::new();
    for round in &rounds.kept {
        for (name, value, reduce) in round.samples[series].counts.iter() {
            gathered
                .entry(name)
                .or_insert_with(|| (reduce, Vec::new()))
                .1
                .push(value);
        }
    }
    gathered
        .into_iter()
        .map(|(name, (reduce, values))| {
            let value = match reduce {
                Reduce::Mean => stats::mean(&values),
                Reduce::Median => stats::median(&values),
            };
            (name.to_owned(), value)
        })
        .collect()
}
