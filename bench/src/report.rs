//! The report: what a run found, and its JSON form, schema 1.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::cell::Params;
use crate::machine::Machine;
use crate::published::Published;

/// The number of the JSON schema that this module writes.
pub const SCHEMA: u32 = 1;

/// Everything that one run found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// When the run ended, RFC 3339.
    pub created: String,
    /// The revision of the source tree.
    pub revision: String,
    /// `quick` or `full`.
    pub profile: String,
    /// Seed of orders, shapes and bootstrap.
    pub seed: u64,
    /// What it was measured on.
    pub machine: Machine,
    /// Measured cells, in the order of their groups; A/A cells follow the cell that they
    /// were taken in.
    pub cells: Vec<CellReport>,
    /// Cells that were not measured, and why.
    pub skipped: Vec<Unmeasured>,
    /// Cells whose work was not done as it must be: nothing of theirs is quoted.
    pub failed: Vec<Unmeasured>,
    /// One plain sentence for each seed whose groups ran.
    pub answers: Vec<Answer>,
}

/// A cell without numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmeasured {
    /// The cell's id.
    pub id: String,
    /// Why.
    pub reason: String,
}

/// Does a seed hold here?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The seed's name.
    pub seed: String,
    /// The answer, computed from the measured cells.
    pub sentence: String,
}

/// What sort of cell it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Variants against a baseline.
    Cell,
    /// The baseline against itself: must come out as 1.
    Aa,
}

/// One measured cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellReport {
    /// A cell, or a variant against itself.
    pub kind: Kind,
    /// Unique in the report; an A/A cell's is that of its cell with `/aa` behind.
    pub id: String,
    /// The group.
    pub group: String,
    /// The parameter point.
    pub params: Params,
    /// Unit of the medians.
    pub unit: String,
    /// `true` for times, `false` for rates.
    pub lower_is_better: bool,
    /// The name of the baseline variant.
    pub baseline: String,
    /// Rounds behind the numbers.
    pub rounds: usize,
    /// Rounds that were preempted and thrown away.
    pub disturbed: usize,
    /// Fewer rounds than the profile asks for.
    pub partial: bool,
    /// The machine was too noisy to tell small effects: the interval of the baseline's
    /// own median, placements' levels taken out, is wider than [`WIDE`] on a side, or too
    /// few rounds were left alone.
    pub noisy: bool,
    /// How many code placements the rounds are spread over.
    pub placements: usize,
    /// Wall time that the cell took, building included, in seconds.
    pub seconds: f64,
    /// The variants, in the cell's order.
    pub variants: Vec<VariantReport>,
    /// What others took for such a cell: theirs, not measured here.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub theirs: Option<Published>,
}

/// One variant of a measured cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantReport {
    /// Its name.
    pub name: String,
    /// Median over the rounds, in the cell's unit.
    pub median: f64,
    /// 95 % interval of the median.
    pub ci95: [f64; 2],
    /// Median of the rounds' ratios to the baseline (variant over baseline, also for
    /// rates).
    pub ratio: f64,
    /// 95 % interval of the ratio.
    pub ratio_ci95: [f64; 2],
    /// What the ratio's interval allows to say.
    pub verdict: Verdict,
    /// Operations per unit: means, or medians for times and sizes.
    pub counts: BTreeMap<String, f64>,
}

/// What an interval allows to say about a variant against the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It is the baseline.
    #[serde(rename = "baseline")]
    Baseline,
    /// The whole interval is on the good side of 1.
    #[serde(rename = "faster")]
    Faster,
    /// The whole interval is on the bad side of 1.
    #[serde(rename = "slower")]
    Slower,
    /// The interval holds 1 and is narrow.
    #[serde(rename = "no difference seen")]
    NoDifference,
    /// The interval holds 1 and is so wide that a difference of 10 % could hide in it.
    #[serde(rename = "too noisy")]
    TooNoisy,
}

/// An interval reaching further than this from its middle is too wide to tell.
pub const WIDE: f64 = 0.10;

/// Whether an interval reaches further than [`WIDE`] from its median on either side.
pub fn is_wide(median: f64, [lo, hi]: [f64; 2]) -> bool {
    // Written so that NaN counts as wide.
    !(lo >= median * (1.0 - WIDE) && hi <= median * (1.0 + WIDE))
}

impl Verdict {
    /// What the interval of a ratio variant/baseline says.
    pub fn of(ratio: f64, interval: [f64; 2], lower_is_better: bool, noisy: bool) -> Self {
        let [lo, hi] = interval;
        if hi < 1.0 || lo > 1.0 {
            return if (hi < 1.0) == lower_is_better {
                Verdict::Faster
            } else {
                Verdict::Slower
            };
        }
        if noisy || is_wide(ratio, interval) {
            Verdict::TooNoisy
        } else {
            Verdict::NoDifference
        }
    }
}

impl CellReport {
    /// The variant called `name`.
    pub fn variant(&self, name: &str) -> Option<&VariantReport> {
        self.variants.iter().find(|v| v.name == name)
    }

    /// For an A/A cell: whether its interval excludes 1.
    pub fn excludes_one(&self) -> bool {
        self.variants
            .iter()
            .any(|v| matches!(v.verdict, Verdict::Faster | Verdict::Slower))
    }
}

impl Report {
    /// The report as pretty-printed JSON with a newline at the end.
    ///
    /// # Errors
    /// When a number cannot be written; the runner lets none through that is not finite.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_needs_the_whole_interval() {
        let say = |ratio, interval, lower| Verdict::of(ratio, interval, lower, false);
        assert_eq!(say(0.8, [0.7, 0.9], true), Verdict::Faster);
        assert_eq!(say(0.8, [0.7, 0.9], false), Verdict::Slower);
        assert_eq!(say(1.2, [1.1, 1.3], true), Verdict::Slower);
        assert_eq!(say(1.2, [1.1, 1.3], false), Verdict::Faster);
        assert_eq!(say(0.98, [0.95, 1.01], true), Verdict::NoDifference);
        assert_eq!(say(0.9, [0.7, 1.2], true), Verdict::TooNoisy);
        assert_eq!(
            Verdict::of(0.98, [0.95, 1.01], true, true),
            Verdict::TooNoisy
        );
        assert_eq!(say(f64::NAN, [f64::NAN; 2], true), Verdict::TooNoisy);
    }
}
