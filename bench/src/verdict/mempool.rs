//! What the group `mempool` promises of our default, as sentences: near the floor where the cache
//! serves, and before everybody else where another thread gives back.

use super::promise::{Finding, Kept, sentence};
use crate::report::{Answer, CellReport, Kind};

/// Bulk gets and puts cost at most this much of the floor.
const BULK_LIMIT: f64 = 1.3;
/// From this burst on.
const BULK_FROM: u64 = 32;
/// Gets and puts of one cost at most so many ns more than the floor.
const ONE_LIMIT: f64 = 2.0;
/// Bursts at which the way from thread to thread must be the fastest.
const ONE_WAY: [u64; 2] = [32, 256];

const OURS: &str = "ours";

/// One answer for each promise of which `cells` hold a cell.
pub(super) fn answers(cells: &[CellReport]) -> Vec<Answer> {
    let of_group = |cell: &&CellReport| cell.group == "mempool" && cell.kind == Kind::Cell;
    let cells: Vec<&CellReport> = cells.iter().filter(of_group).collect();
    let promises: [(&str, String, Vec<Finding>); 3] = [
        (
            "mempool: bulk",
            format!("hot gets and puts of {BULK_FROM} and more at most {BULK_LIMIT} of the floor"),
            cells.iter().filter_map(|cell| bulk(cell)).collect(),
        ),
        (
            "mempool: one at a time",
            format!("hot gets and puts of one at most {ONE_LIMIT} ns above the floor"),
            cells.iter().filter_map(|cell| one(cell)).collect(),
        ),
        (
            "mempool: one way",
            "from thread to thread faster than everything else".to_owned(),
            cells.iter().flat_map(|cell| one_way(cell)).collect(),
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

/// Whether it is a hot get or put apart.
fn apart(cell: &CellReport) -> bool {
    let is = |key: &str, value: &str| cell.params.get(key).is_some_and(|v| v == value);
    is("threads", "one") && is("regime", "hot") && (is("question", "get") || is("question", "put"))
}

/// The burst, where it is a number.
fn burst(cell: &CellReport) -> Option<u64> {
    cell.params.get("burst")?.as_str()?.parse().ok()
}

fn place(cell: &CellReport) -> &str {
    cell.id.strip_prefix("mempool/").unwrap_or(&cell.id)
}

fn bulk(cell: &CellReport) -> Option<Finding> {
    let variant = cell.variant(OURS)?;
    let far = apart(cell) && cell.baseline == "floor" && burst(cell)? >= BULK_FROM;
    let text = format!("{} ×{:.2}", place(cell), variant.ratio);
    far.then(|| Finding {
        kept: Kept::of(variant.ratio_ci95, BULK_LIMIT, cell),
        text,
    })
}

fn one(cell: &CellReport) -> Option<Finding> {
    let (variant, floor) = (cell.variant(OURS)?, cell.variant("floor")?);
    let single = apart(cell) && cell.baseline == "floor" && burst(cell)? == 1;
    // Of the paired ratio, since both were measured in the same rounds.
    let above = |ratio: f64| (ratio - 1.0) * floor.median;
    let text = format!("{} {:+.2} ns", place(cell), above(variant.ratio));
    single.then(|| Finding {
        kept: Kept::of(variant.ratio_ci95.map(above), ONE_LIMIT, cell),
        text,
    })
}

/// Ours is the baseline here: another variant is behind when its ratio to ours is above 1.
fn one_way(cell: &CellReport) -> Vec<Finding> {
    let here = cell.params.get("regime").is_some_and(|v| v == "one-way");
    let asked = burst(cell).is_some_and(|n| ONE_WAY.contains(&n));
    if !here || !asked || cell.baseline != OURS {
        return Vec::new();
    }
    // Other backends of ours are no competitors.
    let own = [OURS, "ring", "spsc", "lifo-nocache", "ring-nocache"];
    let others = cell
        .variants
        .iter()
        .filter(|v| !own.contains(&v.name.as_str()));
    let against = others.map(|other| {
        let [lo, hi] = other.ratio_ci95;
        Finding {
            kept: Kept::of([1.0 / hi, 1.0 / lo], 1.0, cell),
            text: format!(
                "{} against {} ×{:.2}",
                place(cell),
                other.name,
                1.0 / other.ratio
            ),
        }
    });
    against.collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::cell as cell_of;
    use super::*;
    use crate::cell::Params;
    use crate::report::Verdict;

    fn cell(
        path: &str,
        n: &str,
        baseline: &str,
        variant: &str,
        ratio: f64,
        ci: [f64; 2],
    ) -> CellReport {
        let id = format!("mempool/{path}/burst={n}");
        let parts: Vec<&str> = path.split('/').collect();
        let mut params = Params::new().with("threads", parts[0]);
        for (key, value) in ["regime", "question"].iter().zip(&parts[1..]) {
            params = params.with(key, *value);
        }
        let mut cell = cell_of(&id, baseline, variant, ratio, Verdict::Slower);
        cell.params = params.with("burst", n);
        cell.variants[1].ratio_ci95 = ci;
        cell
    }

    #[test]
    fn limits_are_kept_by_the_whole_interval_or_not_told() {
        let cells = [
            cell("one/hot/get", "32", "floor", OURS, 1.2, [1.1, 1.3]),
            cell("one/hot/put", "64", "floor", OURS, 1.5, [1.4, 1.6]),
            cell("one/hot/put", "128", "floor", OURS, 1.3, [1.2, 1.4]),
            // Neither is asked: a small burst, and another regime.
            cell("one/hot/get", "8", "floor", OURS, 9.0, [9.0, 9.0]),
            cell("one/spill/get", "32", "floor", OURS, 9.0, [9.0, 9.0]),
            // The floor takes 1 ns: 1.9 ns above it, and 2.5.
            cell("one/hot/get", "1", "floor", OURS, 2.9, [2.8, 3.0]),
            cell("one/hot/put", "1", "floor", OURS, 3.5, [3.4, 3.6]),
        ];
        let said = answers(&cells);
        assert_eq!(said.len(), 2);
        assert_eq!(
            said[0].sentence,
            "\"hot gets and puts of 32 and more at most 1.3 of the floor\" (ours) holds here in some places and not in \
             others: of 3 cases kept in 1, not kept in 1, not to be told in 1. Not kept: one/hot/put/burst=64 ×1.50. \
             Not told: one/hot/put/burst=128 ×1.30."
        );
        assert!(
            said[1]
                .sentence
                .ends_with("Not kept: one/hot/put/burst=1 +2.50 ns."),
            "{}",
            said[1].sentence
        );
    }

    #[test]
    fn one_way_each_other_contender_is_a_case_and_our_backends_are_none() {
        let way = |variant, ratio, ci| cell("two/one-way", "32", OURS, variant, ratio, ci);
        let mut noisy = way("glibc", 9.0, [8.0, 10.0]);
        noisy.noisy = true;
        let cells = [
            way("mutex-lifo", 1.5, [1.4, 1.6]),
            way("opool", 0.5, [0.4, 0.6]),
            way("ring", 0.5, [0.4, 0.6]),
            noisy,
        ];
        let said = answers(&cells);
        assert_eq!(
            said[0].sentence,
            "\"from thread to thread faster than everything else\" (ours) holds here in some places and not in others: \
             of 3 cases kept in 1, not kept in 1, not to be told in 1. Not kept: two/one-way/burst=32 against opool \
             ×2.00. Not told: two/one-way/burst=32 against glibc ×0.11."
        );
        assert!(answers(&[]).is_empty());
    }
}
