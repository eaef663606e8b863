//! What the group `tcp-output` promises, as sentences: a decision that is not seen beside its
//! segment, and twice the bytes of another stack.

use super::promise::{Finding, Kept, sentence};
use crate::report::{Answer, CellReport, Kind};

/// A decision takes at most this, ns.
const DECISION_LIMIT: f64 = 30.0;
/// smoltcp moves at most this much of what ours moves.
const PEER_LIMIT: f64 = 0.5;

/// One answer for each promise of which `cells` hold a cell.
pub(super) fn answers(cells: &[CellReport]) -> Vec<Answer> {
    let asked = |c: &&CellReport| c.kind == Kind::Cell && c.group == "tcp-output";
    let cells: Vec<&CellReport> = cells.iter().filter(asked).collect();
    let of_each = |find: fn(&CellReport) -> Option<Finding>| -> Vec<Finding> {
        cells.iter().filter_map(|cell| find(cell)).collect()
    };
    let promises = [
        (
            "tcp-output: decision",
            format!("a decision in at most {DECISION_LIMIT} ns"),
            of_each(decision),
        ),
        (
            "tcp-output: smoltcp",
            "segment by segment at least twice what smoltcp moves".to_owned(),
            of_each(|cell| peer(cell, "ours")),
        ),
        (
            "tcp-output: smoltcp, TSO",
            "with TSO at least twice what smoltcp moves".to_owned(),
            of_each(|cell| peer(cell, "ours-tso")),
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

fn place(cell: &CellReport) -> &str {
    cell.id.strip_prefix("tcp-output/").unwrap_or(&cell.id)
}

fn decision(cell: &CellReport) -> Option<Finding> {
    cell.params.get("decide")?;
    let ours = cell.variant("ours")?;
    Some(Finding {
        kept: Kept::of(ours.ci95, DECISION_LIMIT, cell),
        text: format!("{} {:.0} ns", place(cell), ours.median),
    })
}

/// Both have a paired ratio to the cell's baseline; that of one to the other is at worst as far out
/// as the far ends of both intervals say.
fn peer(cell: &CellReport, variant: &str) -> Option<Finding> {
    let (theirs, ours) = (cell.variant("smoltcp")?, cell.variant(variant)?);
    let [lo, hi] = theirs.ratio_ci95;
    let [ours_lo, ours_hi] = ours.ratio_ci95;
    Some(Finding {
        kept: Kept::of([lo / ours_hi, hi / ours_lo], PEER_LIMIT, cell),
        text: format!("{} ×{:.2}", place(cell), ours.ratio / theirs.ratio),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::cell as cell_of;
    use super::*;
    use crate::cell::Params;
    use crate::report::Verdict;

    #[test]
    fn a_decision_is_held_against_nanoseconds() {
        let at = |ci95| {
            let mut cell = cell_of(
                "tcp-output/decide/data",
                "floor",
                "ours",
                6.0,
                Verdict::Slower,
            );
            cell.params = Params::new().with("decide", "data");
            cell.variants[1].ci95 = ci95;
            answers(&[cell])[0].sentence.clone()
        };
        assert!(at([27.0, 29.9]).contains("kept in 1, not kept in 0"));
        assert!(at([29.0, 31.0]).contains("not to be told in 1"));
        assert!(at([30.1, 31.0]).contains("kept in 0, not kept in 1"));
    }

    #[test]
    fn smoltcp_is_held_against_ours_and_against_tso_where_there_is_some() {
        let id = "tcp-output/peer/mtu=1500/sums=none";
        let mut cell = cell_of(id, "ours", "smoltcp", 0.8, Verdict::Slower);
        cell.variants[1].ratio_ci95 = [0.7, 0.9];
        let said = answers(std::slice::from_ref(&cell));
        assert_eq!(said.len(), 1);
        let sentence = &said[0].sentence;
        assert!(
            sentence.contains("not kept in 1")
                && sentence.contains("peer/mtu=1500/sums=none ×1.25"),
            "{sentence}"
        );
        let mut tso = cell.variants[1].clone();
        (tso.name, tso.ratio, tso.ratio_ci95) = ("ours-tso".into(), 2.0, [1.8, 2.2]);
        cell.variants.push(tso);
        let said = answers(&[cell]);
        assert_eq!(said.len(), 2);
        assert!(
            said[1].sentence.contains("kept in 1, not kept in 0"),
            "{}",
            said[1].sentence
        );
    }
}
