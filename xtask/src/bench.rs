//! `cargo xtask bench`: choose cells, measure them, print and write the report.

use std::fmt::Write as _;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use bench::machine::Machine;
use bench::report::{Report, SCHEMA, Unmeasured};
use bench::runner::{self, Outcome, Settings};
use bench::{CellSpec, Clock, Env, Group, Profile, affinity, verdict};

use crate::flags::BenchFlags;
use crate::output::{self, Target};
use crate::progress::Progress;
use crate::{Failure, table};

/// The group that writes a capture.
const CAPTURING: &str = "pipeline";

/// Runs the command.
pub(crate) fn run(flags: &BenchFlags) -> Result<(), Failure> {
    let groups = bench::groups();
    let questions: Vec<(&str, &str)> = groups.iter().map(|g| (g.name, g.question)).collect();
    let cpus = cpus(flags)?;
    check_groups(flags, &groups)?;
    if let (Some(json), Some(pcap)) = (&flags.json, &flags.pcap)
        && json == pcap
    {
        return Err(Failure::Usage(format!(
            "--json and --pcap name the same file {}",
            json.display()
        )));
    }
    let json = flags
        .json
        .as_deref()
        .map(|path| Target::open("--json", path))
        .transpose()?;
    let pcap = flags
        .pcap
        .as_deref()
        .map(|path| Target::open("--pcap", path))
        .transpose()?;
    let absent = absent(flags, &groups);
    let cells = select(flags, groups)?;
    if flags.list {
        output::print(&list(&cells));
        return Ok(());
    }
    if pcap.is_some() && !cells.iter().any(|cell| cell.group == CAPTURING) {
        return Err(Failure::Usage(format!(
            "--pcap needs a cell of the group {CAPTURING}, and none is selected"
        )));
    }

    let env = Env {
        cpus,
        profile: if flags.quick {
            Profile::Quick
        } else {
            Profile::Full
        },
        seed: flags.seed.unwrap_or_else(seed_from_the_clock),
        pcap: pcap.as_ref().map(|target| target.scratch().to_owned()),
        clock: Clock::calibrate(),
    };
    let mut progress = Progress::new(cells.len());
    let mut outcome = runner::run(&cells, &env, &Settings::of(env.profile), &mut progress);
    progress.end();
    outcome.skipped.extend(absent);
    let report = report(&env, outcome);
    output::print(&table::render(&report, &questions));
    finish(&report, json, pcap)
}

/// Writes the files that were asked for, and says what failed.
fn finish(report: &Report, json: Option<Target>, pcap: Option<Target>) -> Result<(), Failure> {
    if let Some(target) = json {
        let text = report
            .to_json()
            .map_err(|e| Failure::Run(format!("the report is no JSON: {e}")))?;
        let path = target.asked().to_owned();
        target.put(&text)?;
        output::print(&format!("report written to {}\n", path.display()));
    }
    if let Some(target) = pcap {
        let path = target.asked().to_owned();
        target.put_written()?;
        output::print(&format!("capture written to {}\n", path.display()));
    }
    match report.failed.len() {
        0 => Ok(()),
        n => Err(Failure::Run(format!(
            "the checks of {n} cells failed, their numbers are not shown"
        ))),
    }
}

fn report(env: &Env, outcome: Outcome) -> Report {
    Report {
        schema: SCHEMA,
        created: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        revision: revision(),
        profile: env.profile.name().to_owned(),
        seed: env.seed,
        machine: Machine::read(&env.clock),
        answers: verdict::answers(&outcome.cells),
        cells: outcome.cells,
        skipped: outcome.skipped,
        failed: outcome.failed,
    }
}

fn check_groups(flags: &BenchFlags, groups: &[Group]) -> Result<(), Failure> {
    let Some(unknown) = flags
        .groups
        .iter()
        .find(|name| !groups.iter().any(|g| g.name == name.as_str()))
    else {
        return Ok(());
    };
    let known: Vec<&str> = groups.iter().map(|g| g.name).collect();
    Err(Failure::Usage(format!(
        "there is no group '{unknown}'; the groups are {}",
        known.join(", ")
    )))
}

/// What this build leaves out of the groups that are measured.
fn absent(flags: &BenchFlags, groups: &[Group]) -> Vec<Unmeasured> {
    let filter = flags.filter.as_deref().unwrap_or("");
    let chosen = groups.iter().filter(|group| {
        wanted(flags, group.name) && group.cells.iter().any(|cell| cell.id.contains(filter))
    });
    chosen.flat_map(|group| group.absent.clone()).collect()
}

fn wanted(flags: &BenchFlags, group: &str) -> bool {
    flags.groups.is_empty() || flags.groups.iter().any(|name| name == group)
}

fn select(flags: &BenchFlags, groups: Vec<Group>) -> Result<Vec<CellSpec>, Failure> {
    let filter = flags.filter.as_deref().unwrap_or("");
    let cells: Vec<CellSpec> = groups
        .into_iter()
        .filter(|group| wanted(flags, group.name))
        .flat_map(|group| group.cells)
        .filter(|cell| cell.id.contains(filter))
        .collect();
    if cells.is_empty() {
        return Err(Failure::Usage(format!(
            "no cell's id contains '{filter}'; --list shows them"
        )));
    }
    Ok(cells)
}

fn cpus(flags: &BenchFlags) -> Result<Option<(usize, usize)>, Failure> {
    let Some((a, b)) = flags.cpus else {
        return Ok(affinity::pick_two());
    };
    let allowed = affinity::allowed();
    match [a, b].into_iter().find(|cpu| !allowed.contains(cpu)) {
        Some(cpu) => Err(Failure::Usage(format!(
            "--cpus: CPU {cpu} cannot be used here; these can: {allowed:?}"
        ))),
        None => Ok(Some((a, b))),
    }
}

fn list(cells: &[CellSpec]) -> String {
    let width = cells.iter().map(|cell| cell.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    for cell in cells {
        let two = if cell.needs.cpus > 1 {
            format!(", {} CPUs", cell.needs.cpus)
        } else {
            String::new()
        };
        let full = if cell.needs.full_only {
            ", not with --quick"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "{:width$}  {}, against {}{two}{full}",
            cell.id, cell.unit, cell.baseline
        );
    }
    text
}

fn seed_from_the_clock() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(1, |since| since.as_micros() as u64)
}

/// The revision of the tree that was built, `-dirty` behind it if it was changed since.
fn revision() -> String {
    let git = |arguments: &[&str]| {
        let at = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| ".".into());
        let out = Command::new("git")
            .arg("-C")
            .arg(at)
            .args(arguments)
            .output()
            .ok()?;
        out.status
            .success()
            .then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
    };
    match (
        git(&["rev-parse", "--verify", "HEAD"]),
        git(&["status", "--porcelain"]),
    ) {
        (Some(id), Some(changes)) if changes.is_empty() => id,
        (Some(id), _) => id + "-dirty",
        (None, _) => "unknown".to_owned(),
    }
}
