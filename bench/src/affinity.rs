//! Which CPU a thread runs on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs that this process may use, in ascending order; empty if that cannot be told.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else {
        return Vec::new();
    };
    (0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect()
}

/// Pins the calling thread, and the threads that it starts from now on, to `cpu`.
///
/// # Errors
/// A plain reason when there is no such CPU or the system refuses.
pub fn pin_to(cpu: usize) -> Result<(), String> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(format!(
            "CPU {cpu} is beyond the {} that an affinity mask holds",
            CpuSet::MAX_CPU
        ));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|e| format!("cannot run on CPU {cpu}: {e}"))
}

/// Two CPUs for the measuring thread and a second one: the last two allowed that are not
/// threads of one core, or else the last two; `None` when there are fewer than two.
pub fn pick_two() -> Option<(usize, usize)> {
    let cpus = allowed();
    let (&first, rest) = cpus.split_last()?;
    let siblings = siblings_of(first);
    let apart = rest.iter().rev().find(|cpu| !siblings.contains(cpu));
    apart.or(rest.last()).map(|&second| (first, second))
}

/// The CPUs that are threads of the same core as `cpu`, as far as the system tells.
fn siblings_of(cpu: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    parse_list(&std::fs::read_to_string(path).unwrap_or_default())
}

/// A list as the kernel writes it, `0-3,8`; what is not a number is left out.
fn parse_list(text: &str) -> Vec<usize> {
    text.trim()
        .split(',')
        .filter_map(|part| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            Some(low.parse::<usize>().ok()?..=high.parse().ok()?)
        })
        .flatten()
        .collect()
}

/// Pins the calling thread while it lives; then the thread may run where it could before.
#[derive(Debug)]
pub(crate) struct Pinned {
    before: Option<CpuSet>,
}

impl Pinned {
    /// Pins to `cpu`; does nothing where the system refuses.
    pub(crate) fn to(cpu: usize) -> Self {
        let before = sched_getaffinity(None).ok();
        let pinned = pin_to(cpu).is_ok();
        Pinned {
            before: before.filter(|_| pinned),
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // The thread ran under this mask before; a failure leaves it pinned, no more.
            let _ = sched_setaffinity(None, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lists_are_understood() {
        assert_eq!(parse_list("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(parse_list("5"), [5]);
        assert_eq!(parse_list(""), [0_usize; 0]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pinned_thread_runs_there_and_is_set_free_again() {
        std::thread::spawn(|| {
            let before = allowed();
            let cpu = *before.last().expect("at least one CPU");
            {
                let _pin = Pinned::to(cpu);
                assert_eq!(allowed(), [cpu]);
            }
            assert_eq!(allowed(), before);
        })
        .join()
        .expect("no panic");
    }
}
