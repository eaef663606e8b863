//! Promises of ours with a limit: what an interval says about one, and the sentence.

use super::{NAMED, nothing_claimed};
use crate::report::CellReport;

/// What an interval says about a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kept {
    Yes,
    No,
    Open,
}

impl Kept {
    /// The whole interval within the limit, beyond it, or neither.
    pub(super) fn of([lo, hi]: [f64; 2], limit: f64, cell: &CellReport) -> Self {
        match () {
            () if nothing_claimed(cell) => Kept::Open,
            () if hi <= limit => Kept::Yes,
            () if lo > limit => Kept::No,
            () => Kept::Open,
        }
    }
}

/// One place: what the interval says, and the figure.
pub(super) struct Finding {
    pub(super) kept: Kept,
    pub(super) text: String,
}

/// The promise, and how much of it is kept; `None` if no cell is about it.
pub(super) fn sentence(promise: &str, found: &[Finding]) -> Option<String> {
    if found.is_empty() {
        return None;
    }
    let count = |kept| found.iter().filter(|f| f.kept == kept).count();
    let (yes, no, open) = (count(Kept::Yes), count(Kept::No), count(Kept::Open));
    let holds = match (yes, no) {
        (0, 0) => "cannot be told here",
        (_, 0) if open == 0 => "holds here",
        (_, 0) => "holds here where it can be told",
        (0, _) => "does not hold here",
        _ => "holds here in some places and not in others",
    };
    let mut text = format!(
        "\"{promise}\" (ours) {holds}: of {} cases kept in {yes}, not kept in {no}, not to be told in {open}.",
        found.len()
    );
    for (kept, word) in [(Kept::No, "Not kept"), (Kept::Open, "Not told")] {
        let places: Vec<&str> = found
            .iter()
            .filter(|f| f.kept == kept)
            .map(|f| f.text.as_str())
            .collect();
        if !places.is_empty() {
            let more = places.len().saturating_sub(NAMED);
            text += &format!(" {word}: {}", places[..places.len() - more].join("; "));
            text += &if more > 0 {
                format!("; and {more} more in the table.")
            } else {
                ".".to_owned()
            };
        }
    }
    Some(text)
}
