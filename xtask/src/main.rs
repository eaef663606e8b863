//! `cargo xtask`: runs the benchmark matrix and reports it; runs the project's checks.

#![forbid(unsafe_code)]

mod bench;
mod check;
mod flags;
mod output;
mod progress;
mod table;

use std::process::ExitCode;

use flags::Command;

/// What went wrong, and with which exit status the program ends.
#[derive(Debug, PartialEq, Eq)]
enum Failure {
    /// The call was wrong, nothing was run or written: one line, status 2.
    Usage(String),
    /// Something failed while it ran: one line, status 1.
    Run(String),
}

fn main() -> ExitCode {
    let done = match flags::parse() {
        Ok(Command::Bench(flags)) => bench::run(&flags),
        Ok(Command::Check(flags)) => check::run(&flags),
        Err(early) => return early.end(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(line)) => say(&line, 2),
        Err(Failure::Run(line)) => say(&line, 1),
    }
}

fn say(line: &str, status: u8) -> ExitCode {
    eprintln!("error: {line}");
    ExitCode::from(status)
}
