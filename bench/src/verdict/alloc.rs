//! What the groups `alloc` and `free-bulk` promise, as sentences: near the floor, without looking
//! where a type says that there is nothing to see, and far below DPDK.

use super::promise::{Finding, Kept, sentence};
use crate::report::{Answer, CellReport, Kind, VariantReport};

/// The pair costs at most this much of its floor, at bursts from [`PAIR_FROM`] on.
const PAIR_LIMIT: f64 = 1.25;
const PAIR_FROM: u64 = 32;
/// Freeing what is plain by type costs at most this much of `runs`.
const PLAIN_LIMIT: f64 = 0.2;
/// Freeing a flat burst costs at most this much of DPDK's bulk free.
const PEER_FREE_LIMIT: f64 = 0.3;
/// The pair costs at most this much of DPDK's.
const PEER_PAIR_LIMIT: f64 = 0.15;

/// One answer for each promise of which `cells` hold a cell.
pub(super) fn answers(cells: &[CellReport]) -> Vec<Answer> {
    let cells: Vec<&CellReport> = cells.iter().filter(|c| c.kind == Kind::Cell).collect();
    let of_each = |find: fn(&CellReport) -> Option<Finding>| -> Vec<Finding> {
        cells.iter().filter_map(|cell| find(cell)).collect()
    };
    let promises: [(&str, String, Vec<Finding>); 4] = [
        (
            "alloc: pair",
            format!(
                "allocating and freeing flat bursts of {PAIR_FROM} and more at most {PAIR_LIMIT} of the floor"
            ),
            of_each(pair),
        ),
        (
            "free-bulk: plain",
            format!(
                "hot flat bursts that are plain by type freed in at most {PLAIN_LIMIT} of runs"
            ),
            of_each(plain),
        ),
        (
            "free-bulk: DPDK",
            format!("flat bursts freed in at most {PEER_FREE_LIMIT} of DPDK's bulk free"),
            of_each(|cell| peer(cell, "free-bulk", "direct", PEER_FREE_LIMIT)),
        ),
        (
            "alloc: DPDK",
            format!(
                "allocating and freeing flat bursts in at most {PEER_PAIR_LIMIT} of DPDK's time"
            ),
            of_each(|cell| peer(cell, "alloc", "ours", PEER_PAIR_LIMIT)),
        ),
    ];
    let answered = promises.into_iter().filter_map(|(name, promise, found)| {
        Some(Answer {
            seed: name.to_owned(),
            sentence: sentence(&promise, &found)?,
        })
    });
    answered.collect()
}

fn is(cell: &CellReport, key: &str, value: &str) -> bool {
    cell.params.get(key).is_some_and(|v| v == value)
}

fn place(cell: &CellReport) -> &str {
    let prefix = format!("{}/", cell.group);
    cell.id.strip_prefix(&prefix).unwrap_or(&cell.id)
}

/// The variant's ratio to the cell's baseline, against a limit.
fn within(cell: &CellReport, variant: &VariantReport, limit: f64) -> Finding {
    Finding {
        kept: Kept::of(variant.ratio_ci95, limit, cell),
        text: format!("{} ×{:.2}", place(cell), variant.ratio),
    }
}

fn pair(cell: &CellReport) -> Option<Finding> {
    let asked = cell.group == "alloc"
        && cell.baseline == "floor"
        && is(cell, "shape", "flat")
        && is(cell, "question", "pair")
        && cell.params.get("burst")?.as_u64()? >= PAIR_FROM;
    let variant = cell.variant("ours")?;
    asked.then(|| within(cell, variant, PAIR_LIMIT))
}

/// Both have a paired ratio to `staged`; that of one to the other is at worst as far out as the far
/// ends of both intervals say.
fn plain(cell: &CellReport) -> Option<Finding> {
    let asked = cell.group == "free-bulk" && is(cell, "shape", "flat") && is(cell, "heat", "hot");
    let (plain, runs) = (cell.variant("plain")?, cell.variant("runs")?);
    let [lo, hi] = plain.ratio_ci95;
    let [runs_lo, runs_hi] = runs.ratio_ci95;
    asked.then(|| Finding {
        kept: Kept::of([lo / runs_hi, hi / runs_lo], PLAIN_LIMIT, cell),
        text: format!("{} ×{:.2}", place(cell), plain.ratio / runs.ratio),
    })
}

fn peer(cell: &CellReport, group: &str, variant: &str, limit: f64) -> Option<Finding> {
    let asked = cell.group == group && cell.baseline.starts_with("dpdk-");
    let variant = cell.variant(variant)?;
    asked.then(|| within(cell, variant, limit))
}

#[cfg(test)]
mod tests {
    use super::super::tests::cell as cell_of;
    use super::*;
    use crate::cell::Params;
    use crate::report::Verdict;

    fn cell(id: &str, baseline: &str, variants: &[(&str, f64, [f64; 2])]) -> CellReport {
        let mut cell = cell_of(id, baseline, "other", 1.0, Verdict::Slower);
        let other = cell.variants.pop().expect("two variants");
        for &(name, ratio, ratio_ci95) in variants {
            cell.variants.push(VariantReport {
                name: name.to_owned(),
                ratio,
                ratio_ci95,
                ..other.clone()
            });
        }
        let parts: Vec<&str> = id.split('/').collect();
        let burst: u64 = parts[3]
            .strip_prefix("burst=")
            .and_then(|b| b.parse().ok())
            .expect("a burst");
        cell.params = Params::new()
            .with("shape", parts[1])
            .with("question", parts[2])
            .with("heat", parts[2])
            .with("burst", burst);
        cell
    }

    #[test]
    fn the_pair_is_held_against_its_floor_from_32_on() {
        let cells = [
            cell(
                "alloc/flat/pair/burst=32",
                "floor",
                &[("ours", 1.2, [1.1, 1.25])],
            ),
            cell(
                "alloc/flat/pair/burst=64",
                "floor",
                &[("ours", 1.4, [1.3, 1.5])],
            ),
            // None is asked: small, alone, of another shape.
            cell(
                "alloc/flat/pair/burst=8",
                "floor",
                &[("ours", 9.0, [9.0, 9.0])],
            ),
            cell(
                "alloc/flat/alone/burst=64",
                "floor",
                &[("ours", 9.0, [9.0, 9.0])],
            ),
            cell(
                "alloc/chain2/pair/burst=64",
                "staged",
                &[("ours", 9.0, [9.0, 9.0])],
            ),
        ];
        let said = answers(&cells);
        assert_eq!(said.len(), 1);
        assert_eq!(
            said[0].sentence,
            "\"allocating and freeing flat bursts of 32 and more at most 1.25 of the floor\" (ours) holds here in some \
             places and not in others: of 2 cases kept in 1, not kept in 1, not to be told in 0. Not kept: \
             flat/pair/burst=64 ×1.40."
        );
    }

    #[test]
    fn plain_is_held_against_runs_by_the_far_ends_of_both_intervals() {
        let at = |plain: [f64; 2]| {
            let id = "free-bulk/flat/hot/burst=32";
            let variants = [("runs", 0.5, [0.4, 0.6]), ("plain", 0.1, plain)];
            answers(&[cell(id, "staged", &variants)])[0]
                .sentence
                .clone()
        };
        assert!(at([0.07, 0.08]).contains("kept in 1, not kept in 0"));
        assert!(at([0.07, 0.09]).contains("not to be told in 1"));
        assert!(at([0.13, 0.14]).contains("not kept in 1"));
    }

    #[test]
    fn dpdk_is_a_baseline_with_its_version() {
        let dpdk = "dpdk-22.11.11";
        let cells = [
            cell(
                "free-bulk/flat/dpdk/burst=32",
                dpdk,
                &[("direct", 0.2, [0.1, 0.3])],
            ),
            cell(
                "alloc/flat/dpdk/burst=32",
                dpdk,
                &[("ours", 0.2, [0.1, 0.3])],
            ),
        ];
        let said = answers(&cells);
        assert!(
            said[0].sentence.contains("kept in 1, not kept in 0"),
            "{}",
            said[0].sentence
        );
        assert!(
            said[1].sentence.contains("not to be told in 1"),
            "{}",
            said[1].sentence
        );
        assert!(answers(&[]).is_empty());
    }
}
