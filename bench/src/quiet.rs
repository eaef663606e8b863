//! Whether a round was left alone: preemption of our threads, time stolen by a host.

use std::fs;

/// Counters that move when something else ran on our CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Disturbance {
    switches: u64,
    stolen: u64,
}

impl Disturbance {
    /// The counters now: involuntary context switches of all our threads, and stolen
    /// ticks of `cpus` (of the whole machine if none are named). Zero where the system
    /// does not tell.
    pub(crate) fn now(cpus: &[usize]) -> Self {
        Disturbance {
            switches: involuntary_switches(),
            stolen: stolen_ticks(cpus),
        }
    }

    /// Whether nothing disturbed us since `before`. In a crowd our own threads preempt each other,
    /// and only the host is no part of what is measured.
    pub(crate) fn none_since(&self, before: &Self, crowded: bool) -> bool {
        self.stolen == before.stolen && (crowded || self.switches == before.switches)
    }
}

fn involuntary_switches() -> u64 {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return 0;
    };
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("status")).ok())
        .filter_map(|status| field(&status, "nonvoluntary_ctxt_switches:"))
        .sum()
}

fn field(status: &str, name: &str) -> Option<u64> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))?
        .trim()
        .parse()
        .ok()
}

fn stolen_ticks(cpus: &[usize]) -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    stat.lines()
        .take_while(|line| line.starts_with("cpu"))
        .filter_map(|line| steal_of(line, cpus))
        .sum()
}

/// The steal column of one `/proc/stat` line, if the line is for one of `cpus`.
fn steal_of(line: &str, cpus: &[usize]) -> Option<u64> {
    let mut words = line.split_ascii_whitespace();
    let cpu = words.next()?.strip_prefix("cpu")?.parse::<usize>().ok();
    let wanted = match cpu {
        Some(cpu) => cpus.contains(&cpu),
        None => cpus.is_empty(),
    };
    wanted.then(|| words.nth(7)?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_read_from_the_lines_of_our_cpus() {
        let all = "cpu  1 2 3 4 5 6 7 80 9 10";
        let second = "cpu1 1 2 3 4 5 6 7 8 9 10";
        assert_eq!(steal_of(all, &[]), Some(80));
        assert_eq!(steal_of(all, &[1]), None);
        assert_eq!(steal_of(second, &[0, 1]), Some(8));
        assert_eq!(steal_of(second, &[0]), None);
    }

    #[test]
    fn in_a_crowd_only_the_host_disturbs() {
        let at = |switches, stolen| Disturbance { switches, stolen };
        for (now, alone, crowded) in [
            (at(1, 1), true, true),
            (at(2, 1), false, true),
            (at(1, 2), false, false),
        ] {
            assert_eq!(now.none_since(&at(1, 1), false), alone);
            assert_eq!(now.none_since(&at(1, 1), true), crowded);
        }
    }

    #[test]
    fn involuntary_switches_are_read_from_a_status() {
        assert_eq!(
            field(
                "voluntary_ctxt_switches:\t9\nnonvoluntary_ctxt_switches:\t41\n",
                "nonvoluntary_ctxt_switches:"
            ),
            Some(41)
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_that_fights_for_one_cpu_is_noticed() {
        use crate::affinity;
        use std::sync::atomic::{AtomicBool, Ordering};
        let Some(&cpu) = affinity::allowed().first() else {
            return;
        };
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                affinity::pin_to(cpu).expect("an allowed CPU");
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let fighter = scope.spawn(|| {
                affinity::pin_to(cpu).expect("an allowed CPU");
                let before = Disturbance::now(&[cpu]);
                let at = std::time::Instant::now();
                while Disturbance::now(&[cpu]) == before && at.elapsed().as_secs() < 20 {}
                Disturbance::now(&[cpu]) != before
            });
            let noticed = fighter.join().expect("no panic");
            over.store(true, Ordering::Relaxed);
            assert!(
                noticed,
                "two busy threads on one CPU, and no involuntary switch was counted"
            );
        });
    }
}
