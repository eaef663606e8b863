//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(
    name = "xtask",
    bin_name = "cargo xtask",
    version,
    about = "Runs the benchmark matrix, and the project's checks"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure the cells, paired and interleaved, and print one table per group
    Bench(BenchFlags),
    /// Format, lints, docs, tests, models: what the continuous integration runs
    Check(CheckFlags),
}

/// Flags of `cargo xtask bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchFlags {
    /// A first answer within a minute instead of ten
    #[arg(long)]
    pub(crate) quick: bool,
    /// Only this group; may be given several times
    #[arg(long = "group", value_name = "GROUP")]
    pub(crate) groups: Vec<String>,
    /// Only cells whose id contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Write the report as JSON (schema 1) to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write what went over the wire in the pipeline group to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// List the cells and stop
    #[arg(long, conflicts_with_all = ["json", "pcap"])]
    pub(crate) list: bool,
    /// CPU to measure on and CPU of the second thread; default: the last two allowed
    #[arg(long, value_name = "A,B", value_parser = two_cpus)]
    pub(crate) cpus: Option<(usize, usize)>,
    /// Seed of orders, shapes and intervals; default: from the clock, said in the report
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// Flags of `cargo xtask check`.
#[derive(Debug, Args)]
pub(crate) struct CheckFlags {
    /// Also the slow ones: models under loom, sanitizers
    #[arg(long)]
    pub(crate) all: bool,
}

fn two_cpus(text: &str) -> Result<(usize, usize), String> {
    let wanted = || format!("'{text}' is not two different CPU numbers like 0,1");
    let (a, b) = text.split_once(',').ok_or_else(wanted)?;
    match (a.trim().parse(), b.trim().parse()) {
        (Ok(a), Ok(b)) if a != b => Ok((a, b)),
        _ => Err(wanted()),
    }
}

/// The program ends before it does anything.
#[derive(Debug)]
pub(crate) enum Early {
    /// Help or version was asked for.
    Text(String),
    /// The command line is wrong.
    Wrong(String),
}

impl Early {
    pub(crate) fn end(&self) -> ExitCode {
        match self {
            Early::Text(text) => {
                crate::output::print(text);
                ExitCode::SUCCESS
            }
            Early::Wrong(line) => crate::say(line, 2),
        }
    }
}

/// Reads the command line.
pub(crate) fn parse() -> Result<Command, Early> {
    Cli::try_parse().map(|cli| cli.command).map_err(early)
}

fn early(error: clap::Error) -> Early {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Early::Text(error.to_string()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            Early::Wrong(
                "no command given; try 'cargo xtask bench --quick' or 'cargo xtask --help'"
                    .to_owned(),
            )
        }
        _ => Early::Wrong(one_line(&error)),
    }
}

/// The first line of clap's message, and its suggestion if it has one.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or("wrong command line");
    let first = first.strip_prefix("error: ").unwrap_or(first);
    let meant = match error
        .get(ContextKind::SuggestedArg)
        .or_else(|| error.get(ContextKind::SuggestedSubcommand))
    {
        Some(ContextValue::String(arg)) => format!("; did you mean '{arg}'?"),
        Some(ContextValue::Strings(args)) if !args.is_empty() => {
            format!("; did you mean '{}'?", args.join("' or '"))
        }
        _ => String::new(),
    };
    format!("{first}{meant} (--help lists the flags)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn two_cpus_are_two_different_numbers() {
        assert_eq!(two_cpus("0,1"), Ok((0, 1)));
        for wrong in ["", "1", "1,1", "a,b", "0,1,2", "0,-1"] {
            assert!(two_cpus(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_wrong_flag_gives_one_line() {
        let error = Cli::try_parse_from(["xtask", "bench", "--quik"]).expect_err("no such flag");
        let line = one_line(&error);
        assert!(
            !line.contains('\n') && line.contains("--quik") && line.contains("--quick"),
            "{line}"
        );
    }
}
