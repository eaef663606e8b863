//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand, ValueEnum};

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
    /// Exchange TCP with the Linux kernel over a TAP device; takes root
    Peer(PeerFlags),
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

/// Flags of `cargo xtask peer`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PeerFlags {
    /// Bytes of each transfer; k, m and g stand for 2^10, 2^20 and 2^30
    #[arg(long, value_name = "N", default_value = "256m", value_parser = byte_count)]
    pub(crate) bytes: usize,
    /// How the payload gets into packets
    #[arg(long, value_name = "POLICY", default_value = "reference")]
    pub(crate) policy: Policy,
    /// Frames lost in the second half of the transfers, in percent, either way; 0: no such half
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = percent)]
    pub(crate) loss: f64,
    /// Ethernet frames of 1500 bytes, summed by ourselves: no virtio-net header, no TSO
    #[arg(long)]
    pub(crate) plain: bool,
    /// Within the network namespace that the command has made
    #[arg(long, hide = true)]
    pub(crate) inside: bool,
}

/// Copy policies by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
    Reference,
    Copy,
    Threshold,
}

/// `4096`, `64k`, `256m`, `1g`: at least 1, at most 2 GB, since it is held in memory.
fn byte_count(text: &str) -> Result<usize, String> {
    let wanted = || format!("'{text}' is not a number of bytes like 4096, 64k, 256m, up to 2g");
    let (digits, shift) = match text.to_ascii_lowercase().chars().last() {
        Some('k') => (&text[..text.len() - 1], 10),
        Some('m') => (&text[..text.len() - 1], 20),
        Some('g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let n: usize = digits.parse().map_err(|_| wanted())?;
    let bytes = n.checked_mul(1 << shift).ok_or_else(wanted)?;
    (1..=2 << 30)
        .contains(&bytes)
        .then_some(bytes)
        .ok_or_else(wanted)
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..=50.0).contains(&percent) => Ok(percent),
        _ => Err(format!("'{text}' is not a percentage from 0 to 50")),
    }
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
    fn byte_counts_have_units_and_bounds() {
        assert_eq!(byte_count("4096"), Ok(4096));
        assert_eq!(byte_count("4M"), Ok(4 << 20));
        assert_eq!(byte_count("2g"), Ok(2 << 30));
        for wrong in [
            "",
            "k",
            "0",
            "-1",
            "3g",
            "99999999999999999999g",
            "1.5m",
            "4ü",
        ] {
            assert!(byte_count(wrong).is_err(), "{wrong}");
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
