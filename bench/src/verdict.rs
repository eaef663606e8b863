//! Does each seed hold here, where, and by how much: plain sentences from measured cells.
//!
//! A cell counts as won or lost only when the whole interval of its ratio says so; the
//! rest is named as what it is, undecided or too noisy.

mod alloc;
mod mempool;
mod promise;
mod sockbuf;
mod tcp_output;

use crate::report::{Answer, CellReport, Kind, Verdict};
use crate::stats::chance_allows;

/// One seed: what it changes, and in which groups that is measured.
struct Seed {
    name: &'static str,
    baseline: &'static str,
    variant: &'static str,
    groups: &'static [&'static str],
}

const SEEDS: [Seed; 2] = [
    Seed {
        name: "bulk free without a temporary array",
        baseline: "staged",
        variant: "runs",
        groups: &["free-bulk"],
    },
    Seed {
        name: "TCP output copies data",
        baseline: "reference",
        variant: "threshold5",
        groups: &["tcp-copy", "splice"],
    },
];

/// Places named per verdict before the rest is only counted.
const NAMED: usize = 8;

/// One answer for each seed, and each promise of ours, of which `cells` hold at least one cell.
pub fn answers(cells: &[CellReport]) -> Vec<Answer> {
    let seeds = SEEDS.iter().filter_map(|seed| {
        let found = findings(seed, cells);
        let sentence = sentence(seed, &found)?;
        Some(Answer {
            seed: seed.name.to_owned(),
            sentence,
        })
    });
    seeds
        .chain(mempool::answers(cells))
        .chain(alloc::answers(cells))
        .chain(sockbuf::answers(cells))
        .chain(tcp_output::answers(cells))
        .collect()
}

/// What one cell says about a seed.
struct Finding {
    /// The cell's id without the burst.
    place: String,
    burst: Option<String>,
    verdict: Verdict,
    /// How far the ratio is from 1, in per cent.
    effect: f64,
    lower_is_better: bool,
}

fn findings(seed: &Seed, cells: &[CellReport]) -> Vec<Finding> {
    let mut found = Vec::new();
    for cell in cells {
        let ours = cell.kind == Kind::Cell && seed.groups.contains(&cell.group.as_str());
        if !ours || cell.baseline != seed.baseline {
            continue;
        }
        let Some(variant) = cell.variant(seed.variant) else {
            continue;
        };
        let (bursts, rest): (Vec<&str>, Vec<&str>) = cell
            .id
            .split('/')
            .partition(|part| part.starts_with("burst="));
        let skip = usize::from(seed.groups.len() == 1);
        found.push(Finding {
            place: rest.get(skip..).unwrap_or_default().join("/"),
            burst: bursts
                .first()
                .and_then(|b| b.strip_prefix("burst="))
                .map(str::to_owned),
            verdict: if nothing_claimed(cell) {
                Verdict::TooNoisy
            } else {
                variant.verdict
            },
            effect: (variant.ratio - 1.0).abs() * 100.0,
            lower_is_better: cell.lower_is_better,
        });
    }
    found
}

/// Nothing is claimed from a cell that the machine disturbed or cut short.
fn nothing_claimed(cell: &CellReport) -> bool {
    cell.noisy || cell.partial
}

fn sentence(seed: &Seed, found: &[Finding]) -> Option<String> {
    if found.is_empty() {
        return None;
    }
    let count = |verdict| found.iter().filter(|f| f.verdict == verdict).count();
    let (won, lost) = (count(Verdict::Faster), count(Verdict::Slower));
    let (even, noisy) = (count(Verdict::NoDifference), count(Verdict::TooNoisy));
    let holds = match (won, lost) {
        (0, 0) if even == 0 => "cannot be told here, the machine was too noisy",
        (0, 0) => "makes no difference that was seen here",
        (0, _) => "does not hold here",
        (_, 0) => "holds here",
        _ => "holds here in some places and loses in others",
    };
    let mut text = format!(
        "\"{}\" ({} against {}) {holds}: of {} cells better in {won}, worse in {lost}, no difference seen in {even}, too noisy to tell in {noisy} (of so many, up to {} by chance).",
        seed.name,
        seed.variant,
        seed.baseline,
        found.len(),
        chance_allows(found.len()),
    );
    for (verdict, word) in [(Verdict::Faster, "Better"), (Verdict::Slower, "Worse")] {
        if let Some(places) = places(found, verdict) {
            text += &format!(" {word}: {places}.");
        }
    }
    Some(text)
}

/// Where `verdict` was found, most striking places first.
fn places(found: &[Finding], verdict: Verdict) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for finding in found.iter().filter(|f| f.verdict == verdict) {
        if !names.contains(&finding.place.as_str()) {
            names.push(&finding.place);
        }
    }
    let mut all: Vec<(f64, String)> = names
        .iter()
        .map(|place| one_place(found, verdict, place))
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = all.len().saturating_sub(NAMED);
    let mut list: Vec<String> = all.into_iter().take(NAMED).map(|(_, text)| text).collect();
    if more > 0 {
        list.push(format!("and {more} more in the table"));
    }
    (!list.is_empty()).then(|| list.join("; "))
}

/// The largest effect in `place` and its text: `flat/hot at bursts 32, 64 by 12 to 25 %`.
fn one_place(found: &[Finding], verdict: Verdict, place: &str) -> (f64, String) {
    let here: Vec<&Finding> = found.iter().filter(|f| f.place == place).collect();
    let hits: Vec<&Finding> = here
        .iter()
        .filter(|f| f.verdict == verdict)
        .copied()
        .collect();
    let least = hits.iter().map(|f| f.effect).fold(f64::INFINITY, f64::min);
    let most = hits.iter().map(|f| f.effect).fold(0.0, f64::max);
    let bursts: Vec<&str> = hits.iter().filter_map(|f| f.burst.as_deref()).collect();
    let at = match bursts.len() {
        0 => String::new(),
        n if n == here.len() && n > 1 => " at all its bursts".to_owned(),
        1 => format!(" at burst {}", bursts[0]),
        _ => format!(" at bursts {}", bursts.join(", ")),
    };
    let by = if format!("{least:.0}") == format!("{most:.0}") {
        format!("{most:.0}")
    } else {
        format!("{least:.0} to {most:.0}")
    };
    let lower = hits.iter().all(|f| f.lower_is_better);
    let what = match (lower, verdict == Verdict::Faster) {
        (true, true) => "% less time",
        (true, false) => "% more time",
        (false, true) => "% more throughput",
        (false, false) => "% less throughput",
    };
    (most, format!("{place}{at}, {by} {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Params;
    use crate::report::VariantReport;
    use std::collections::BTreeMap;

    pub(super) fn cell(
        id: &str,
        baseline: &str,
        variant: &str,
        ratio: f64,
        verdict: Verdict,
    ) -> CellReport {
        let named = |name: &str, ratio: f64, verdict| VariantReport {
            name: name.to_owned(),
            median: ratio,
            ci95: [ratio; 2],
            ratio,
            ratio_ci95: [ratio; 2],
            verdict,
            counts: BTreeMap::new(),
        };
        CellReport {
            kind: Kind::Cell,
            id: id.to_owned(),
            group: id.split('/').next().unwrap_or_default().to_owned(),
            params: Params::new(),
            unit: "ns/mbuf".to_owned(),
            lower_is_better: true,
            baseline: baseline.to_owned(),
            rounds: 30,
            disturbed: 0,
            partial: false,
            noisy: false,
            placements: 6,
            seconds: 0.1,
            variants: vec![
                named(baseline, 1.0, Verdict::Baseline),
                named(variant, ratio, verdict),
            ],
            theirs: None,
        }
    }

    #[test]
    fn a_seed_is_answered_with_where_and_how_much() {
        let cells = [
            cell(
                "free-bulk/flat/hot/burst=32",
                "staged",
                "runs",
                0.75,
                Verdict::Faster,
            ),
            cell(
                "free-bulk/flat/hot/burst=64",
                "staged",
                "runs",
                0.9,
                Verdict::Faster,
            ),
            cell(
                "free-bulk/nulls4/hot/burst=32",
                "staged",
                "runs",
                1.2,
                Verdict::Slower,
            ),
            cell(
                "free-bulk/nulls4/hot/burst=64",
                "staged",
                "runs",
                0.5,
                Verdict::TooNoisy,
            ),
        ];
        let answers = answers(&cells);
        assert_eq!(answers.len(), 1);
        assert_eq!(
            answers[0].sentence,
            "\"bulk free without a temporary array\" (runs against staged) holds here in some places and loses in \
             others: of 4 cells better in 2, worse in 1, no difference seen in 0, too noisy to tell in 1 (of so many, up to 1 by chance). Better: \
             flat/hot at all its bursts, 10 to 25 % less time. Worse: nulls4/hot at burst 32, 20 % more time."
        );
    }

    #[test]
    fn nothing_is_claimed_from_noise_or_from_cells_of_another_baseline() {
        let noisy = [cell(
            "splice/same/none",
            "reference",
            "threshold5",
            0.5,
            Verdict::TooNoisy,
        )];
        let sentence = &answers(&noisy)[0].sentence;
        assert!(
            sentence.contains("cannot be told here") && !sentence.contains("Better:"),
            "{sentence}"
        );
        assert!(
            answers(&[cell(
                "free-bulk/flat/hot/burst=32",
                "each",
                "runs",
                0.5,
                Verdict::Faster
            )])
            .is_empty()
        );
        assert!(answers(&[]).is_empty());
    }
}
