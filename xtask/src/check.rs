//! `cargo xtask check`: what the continuous integration runs, and what else is at hand.
//!
//! What cannot run here is reported as skipped, with the reason and the way to get it.

use std::process::{Command, Stdio};

use crate::Failure;
use crate::flags::CheckFlags;

/// One step: its name, extra environment, the cargo command.
struct Step {
    name: &'static str,
    environment: &'static [(&'static str, &'static str)],
    arguments: &'static [&'static str],
    /// What it must print, and fail: a canary. None: it must succeed.
    must_report: Option<&'static str>,
}

const ALWAYS: [Step; 6] = [
    Step {
        name: "format",
        environment: &[],
        arguments: &["fmt", "--all", "--check"],
        must_report: None,
    },
    Step {
        name: "lints",
        environment: &[],
        arguments: &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        must_report: None,
    },
    Step {
        name: "lints of mbuf and sockbuf with their features",
        environment: &[],
        arguments: &[
            "clippy",
            "--package",
            "mbuf",
            "--package",
            "sockbuf",
            "--all-features",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        must_report: None,
    },
    Step {
        name: "docs",
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
        arguments: &["doc", "--workspace", "--no-deps"],
        must_report: None,
    },
    Step {
        name: "tests",
        environment: &[],
        arguments: &["test", "--workspace"],
        must_report: None,
    },
    Step {
        name: "tests of mbuf and sockbuf with their features",
        environment: &[],
        arguments: &[
            "test",
            "--package",
            "mbuf",
            "--package",
            "sockbuf",
            "--all-features",
        ],
        must_report: None,
    },
];

const LOOM: [Step; 3] = [
    Step {
        name: "models of mempool (loom)",
        environment: LOOM_FLAGS,
        arguments: &["test", "--release", "--package", "mempool", "--lib", "loom"],
        must_report: None,
    },
    Step {
        name: "models of mbuf (loom)",
        environment: LOOM_FLAGS,
        arguments: &["test", "--release", "--package", "mbuf", "--lib", "loom"],
        must_report: None,
    },
    Step {
        name: "models of sockbuf (loom)",
        environment: LOOM_FLAGS,
        arguments: &["test", "--release", "--package", "sockbuf", "--lib", "loom"],
        must_report: None,
    },
];

/// A target directory of its own, so that the next ordinary build is not from scratch.
const LOOM_FLAGS: &[(&str, &str)] = &[
    ("RUSTFLAGS", "--cfg loom -C debug-assertions"),
    ("CARGO_TARGET_DIR", "target/loom"),
];

const TSAN: &[(&str, &str)] = &[
    // Mappings go through libc, where the sanitizer sees that an address is a new one.
    (
        "RUSTFLAGS",
        "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg=rustix_use_libc",
    ),
    (
        "TSAN_OPTIONS",
        concat!(
            "suppressions=",
            env!("CARGO_MANIFEST_DIR"),
            "/../.ci/tsan.supp"
        ),
    ),
    ("CARGO_TARGET_DIR", "target/tsan"),
];

/// Nightly, x86-64 Linux. The suppressions say what leaks on purpose and what std hides.
const SANITIZERS: [Step; 3] = [
    Step {
        name: "tests of mempool, mbuf and sockbuf under the address sanitizer",
        environment: &[
            ("RUSTFLAGS", "-Zsanitizer=address --cfg asan"),
            (
                "LSAN_OPTIONS",
                concat!(
                    "suppressions=",
                    env!("CARGO_MANIFEST_DIR"),
                    "/../.ci/lsan.supp"
                ),
            ),
            ("CARGO_TARGET_DIR", "target/asan"),
        ],
        arguments: &[
            "+nightly",
            "test",
            "--target",
            "x86_64-unknown-linux-gnu",
            "--package",
            "mempool",
            "--package",
            "mbuf",
            "--package",
            "sockbuf",
            "--lib",
            "--tests",
        ],
        must_report: None,
    },
    Step {
        name: "a race on purpose, which the thread sanitizer must see",
        environment: TSAN,
        arguments: &[
            "+nightly",
            "test",
            "--target",
            "x86_64-unknown-linux-gnu",
            "--package",
            "mempool",
            "--test",
            "canary",
            "--",
            "--ignored",
        ],
        must_report: Some("ThreadSanitizer: data race"),
    },
    // Without the tests whose backends panic: std's printing of two panics at once is reported.
    Step {
        name: "threads of mempool, mbuf and sockbuf under the thread sanitizer",
        environment: TSAN,
        arguments: &[
            "+nightly",
            "test",
            "--target",
            "x86_64-unknown-linux-gnu",
            "--package",
            "mempool",
            "--package",
            "mbuf",
            "--package",
            "sockbuf",
            "--test",
            "near",
            "--test",
            "lifetime",
            "--test",
            "threads",
            "--test",
            "workers",
            "--test",
            "reclaim",
            "--test",
            "mp_rows",
            "--test",
            "local_cache",
            "--test",
            "queue",
            "--test",
            "letting_go",
            "--test",
            "socket",
            "--test",
            "socket_threads",
        ],
        must_report: None,
    },
];

/// Runs the command.
pub(crate) fn run(flags: &CheckFlags) -> Result<(), Failure> {
    let mut failed = Vec::new();
    for step in &ALWAYS {
        run_step(step, &mut failed);
    }
    if flags.all {
        for step in &LOOM {
            run_step(step, &mut failed);
        }
        let missing = if !answers("cargo", &["+nightly", "--version"]) {
            Some("no nightly compiler: rustup toolchain install nightly")
        } else if cfg!(not(all(target_arch = "x86_64", target_os = "linux"))) {
            Some("written for x86-64 Linux only")
        } else {
            None
        };
        for step in &SANITIZERS {
            match missing {
                Some(reason) => skip(step.name, reason),
                None => run_step(step, &mut failed),
            }
        }
    } else {
        skip("models and sanitizers", "slow: cargo xtask check --all");
    }
    if !answers("tshark", &["--version"]) {
        skip(
            "captures read by tshark",
            "not installed: apt-get install tshark; its test passes over itself without it",
        );
    }
    // What the tests ask before they go on.
    let tap = ["--net", "ip", "tuntap", "add", "probe", "mode", "tap"];
    if !answers("unshare", &tap) {
        skip(
            "frames and TCP against the kernel over a TAP device",
            "needs root, /dev/net/tun, iproute2 and util-linux; its tests pass over themselves without",
        );
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::Run(format!("failed: {}", failed.join(", "))))
}

fn run_step(step: &Step, failed: &mut Vec<&'static str>) {
    eprintln!("== {}", step.name);
    let mut command = Command::new("cargo");
    command
        .args(step.arguments)
        .envs(step.environment.iter().copied());
    let as_it_must = match step.must_report {
        None => command.status().map(|status| status.success()),
        Some(report) => command.output().map(|output| {
            let said = [output.stdout, output.stderr].concat();
            let seen = String::from_utf8_lossy(&said).contains(report);
            eprintln!("{}: {report}", if seen { "seen" } else { "NOT SEEN" });
            seen && !output.status.success()
        }),
    };
    match as_it_must {
        Ok(true) => {}
        Ok(false) => failed.push(step.name),
        Err(error) => {
            eprintln!("cargo cannot be run: {error}");
            failed.push(step.name);
        }
    }
}

fn skip(name: &str, reason: &str) {
    eprintln!("== skipped: {name} ({reason})");
}

/// Whether the program is there and ends well.
fn answers(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
