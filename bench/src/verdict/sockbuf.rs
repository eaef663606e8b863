//! What the group `sockbuf` promises, as a sentence: an offset is found at one cost, however much is
//! in front of it.

use super::nothing_claimed;
use super::promise::{Finding, Kept, sentence};
use crate::report::{Answer, CellReport, Kind, VariantReport};

/// Finding an offset behind [`MANY`] mbufs costs at most this much of finding it behind [`FEW`].
const LIMIT: f64 = 1.25;
const FEW: u64 = 10;
const MANY: u64 = 10_000;

/// One answer, if `cells` hold the cells of both depths.
pub(super) fn answers(cells: &[CellReport]) -> Vec<Answer> {
    let found: Vec<Finding> = ["find/next", "find/again"]
        .iter()
        .filter_map(|question| flat(cells, question))
        .collect();
    let promise = format!(
        "the next offset to send found behind {MANY} mbufs in at most {LIMIT} of the time that it takes behind {FEW}"
    );
    let answer = |sentence| Answer {
        seed: "sockbuf: find".to_owned(),
        sentence,
    };
    sentence(&promise, &found).map(answer).into_iter().collect()
}

/// The medians of two cells, which are not paired: at worst as far apart as the far ends of both
/// intervals say.
fn flat(cells: &[CellReport], question: &str) -> Option<Finding> {
    let (few, a) = at(cells, question, FEW)?;
    let (many, b) = at(cells, question, MANY)?;
    let interval = [b.ci95[0] / a.ci95[1], b.ci95[1] / a.ci95[0]];
    Some(Finding {
        kept: if nothing_claimed(few) {
            Kept::Open
        } else {
            Kept::of(interval, LIMIT, many)
        },
        text: format!("{question} ×{:.2}", b.median / a.median),
    })
}

fn at<'a>(
    cells: &'a [CellReport],
    question: &str,
    mbufs: u64,
) -> Option<(&'a CellReport, &'a VariantReport)> {
    let cell = cells.iter().find(|cell| {
        let is = |key: &str, value: serde_json::Value| cell.params.get(key) == Some(&value);
        cell.group == "sockbuf"
            && cell.kind == Kind::Cell
            && is("question", question.into())
            && is("mbufs", mbufs.into())
    })?;
    Some((cell, cell.variant("ours")?))
}

#[cfg(test)]
mod tests {
    use super::super::tests::cell as cell_of;
    use super::*;
    use crate::cell::Params;
    use crate::report::Verdict;

    fn cell(question: &str, mbufs: u64, median: f64, ci95: [f64; 2]) -> CellReport {
        let id = format!("sockbuf/{question}/mbufs={mbufs}");
        let mut cell = cell_of(&id, "walk", "ours", 0.5, Verdict::Faster);
        cell.params = Params::new()
            .with("question", question)
            .with("mbufs", mbufs);
        let ours = cell.variants.last_mut().expect("two variants");
        (ours.median, ours.ci95) = (median, ci95);
        cell
    }

    #[test]
    fn two_depths_are_held_against_each_other_by_the_far_ends_of_both_intervals() {
        let said = |many: [f64; 2]| {
            let few = cell("find/next", 10, 4.0, [3.9, 4.1]);
            let cells = [few, cell("find/next", 10_000, 4.4, many)];
            answers(&cells)[0].sentence.clone()
        };
        assert!(said([4.3, 4.5]).contains("kept in 1, not kept in 0"));
        let open = said([4.3, 5.0]);
        assert!(open.contains("not to be told in 1"), "{open}");
        let lost = said([5.2, 5.3]);
        assert!(lost.ends_with("Not kept: find/next ×1.10."), "{lost}");
    }

    #[test]
    fn nothing_is_said_of_one_depth_alone_nor_claimed_from_noise() {
        let few = || cell("find/again", 10, 4.0, [4.0, 4.0]);
        let many = || cell("find/again", 10_000, 4.0, [4.0, 4.0]);
        assert!(answers(&[few()]).is_empty() && answers(&[many()]).is_empty());
        let noisy = CellReport {
            noisy: true,
            ..few()
        };
        let said = &answers(&[noisy, many()])[0].sentence;
        assert!(said.contains("cannot be told here"), "{said}");
    }
}
