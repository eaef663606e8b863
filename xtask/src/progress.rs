//! A progress bar on standard error, where that is a terminal; failures always.

use std::io::IsTerminal;

use bench::runner::Watch;
use indicatif::{ProgressBar, ProgressStyle};

/// Shows how far the run is.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar over `cells` cells.
    pub(crate) fn new(cells: usize) -> Self {
        if !std::io::stderr().is_terminal() {
            return Progress {
                bar: ProgressBar::hidden(),
            };
        }
        let bar = ProgressBar::new(cells as u64);
        if let Ok(style) = ProgressStyle::with_template(
            "{bar:30} {pos}/{len} cells, {elapsed} of about {duration}  {wide_msg}",
        ) {
            bar.set_style(style);
        }
        Progress { bar }
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Progress {
    // Drawn between cells only: no ticker thread runs while something is measured.
    fn start(&mut self, index: usize, _total: usize, id: &str) {
        self.bar.set_message(id.to_owned());
        self.bar.set_position(index as u64);
    }

    fn failed(&mut self, id: &str, reason: &str) {
        self.bar.suspend(|| eprintln!("FAILED {id}: {reason}"));
    }
}
