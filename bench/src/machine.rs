//! The facts about the machine that stand in every report.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::affinity;
use crate::clock::Clock;

/// What the numbers were measured on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's own name.
    pub cpu: String,
    /// CPUs that this process may use.
    pub cores: usize,
    /// Kernel release.
    pub kernel: String,
    /// Ticks per second of the time stamp counter, as calibrated.
    pub tsc_hz: f64,
    /// Base page size, the transparent huge pages' setting, reserved huge pages.
    pub huge_pages: String,
    /// The compiler that built this program.
    pub rustc: String,
}

impl Machine {
    /// Asks the system; what it does not tell is `unknown`.
    pub fn read(clock: &Clock) -> Self {
        Machine {
            cpu: cpu_name(),
            cores: affinity::allowed().len().max(1),
            kernel: first_line("/proc/sys/kernel/osrelease"),
            tsc_hz: clock.hz().round(),
            huge_pages: huge_pages(),
            rustc: env!("BENCH_RUSTC").to_owned(),
        }
    }
}

fn first_line(path: &str) -> String {
    fs::read_to_string(path)
        .ok()
        .and_then(|text| text.lines().next().map(|line| line.trim().to_owned()))
        .unwrap_or_else(|| "unknown".to_owned())
}

fn cpu_name() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    info.lines()
        .find(|line| line.starts_with("model name") || line.starts_with("CPU part"))
        .and_then(|line| line.split_once(':'))
        .map_or_else(
            || std::env::consts::ARCH.to_owned(),
            |(_, name)| name.trim().to_owned(),
        )
}

fn huge_pages() -> String {
    let base = rustix::param::page_size() / 1024;
    let setting = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
    let transparent = setting
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or("unknown", |(chosen, _)| chosen);
    let reserved = first_line("/proc/sys/vm/nr_hugepages");
    format!("base {base} KiB, transparent {transparent}, reserved {reserved}")
}
