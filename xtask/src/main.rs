//! `cargo xtask`: runs the benchmark matrix and reports it; runs the project's checks;
//! exchanges TCP with the kernel.

#![forbid(unsafe_code)]

mod bench;
mod check;
mod flags;
mod output;
#[cfg(all(feature = "tap", target_os = "linux"))]
mod peer;
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
    /// The machine lacks what the command needs: one line that says how to get it, status 3.
    Missing(String),
}

fn main() -> ExitCode {
    let done = match flags::parse() {
        Ok(Command::Bench(flags)) => bench::run(&flags),
        Ok(Command::Check(flags)) => check::run(&flags),
        Ok(Command::Peer(flags)) => peer(&flags),
        Err(early) => return early.end(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(line)) => say(&line, 2),
        Err(Failure::Run(line)) => say(&line, 1),
        Err(Failure::Missing(line)) => say(&line, 3),
    }
}

#[cfg(all(feature = "tap", target_os = "linux"))]
fn peer(flags: &flags::PeerFlags) -> Result<(), Failure> {
    peer::run(flags)
}

#[cfg(not(all(feature = "tap", target_os = "linux")))]
fn peer(_: &flags::PeerFlags) -> Result<(), Failure> {
    let line = "needs Linux, and a build with the feature 'tap'";
    Err(Failure::Missing(line.to_owned()))
}

fn say(line: &str, status: u8) -> ExitCode {
    eprintln!("error: {line}");
    ExitCode::from(status)
}
