//! The program as its user meets it: wrong calls give one line, status 2, and no file.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

fn xtask(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(arguments)
        .output()
        .expect("the program starts")
}

/// A call that must be refused, with `part` in its one line.
fn refused(arguments: &[&str], part: &str) {
    let out = xtask(arguments);
    let line = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{arguments:?}: {line}");
    assert_eq!(line.lines().count(), 1, "{arguments:?}: {line}");
    assert!(
        line.contains(part),
        "{arguments:?}: {part} is not in {line}"
    );
    assert!(out.stdout.is_empty(), "{arguments:?} printed something");
}

/// An empty directory of this test's own.
fn fresh(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a directory for the test");
    path
}

fn is_empty(path: &PathBuf) -> bool {
    fs::read_dir(path).expect("readable").next().is_none()
}

#[test]
fn wrong_flags_and_values_are_refused_in_one_line() {
    refused(&[], "no command given");
    refused(&["bench", "--quik"], "--quik");
    refused(&["benhc"], "benhc");
    refused(&["bench", "--seed", "many"], "many");
    refused(&["bench", "--cpus", "1,1"], "1,1");
    refused(&["bench", "--cpus", "0,99999"], "99999");
    refused(&["bench", "--json"], "--json");
    refused(&["bench", "--list", "--json", "x"], "--json");
}

#[test]
fn an_unknown_group_is_refused_with_the_known_ones_and_nothing_is_written() {
    let at = fresh("group");
    let json = at.join("report.json");
    refused(
        &[
            "bench",
            "--group",
            "fre-bulk",
            "--json",
            json.to_str().expect("UTF-8"),
        ],
        "there is no group 'fre-bulk'; the groups are ",
    );
    assert!(is_empty(&at));
}

#[test]
fn a_filter_that_matches_nothing_is_refused_and_nothing_is_left_behind() {
    let at = fresh("filter");
    let json = at.join("report.json");
    refused(
        &[
            "bench",
            "--filter",
            "no such cell",
            "--json",
            json.to_str().expect("UTF-8"),
        ],
        "'no such cell'",
    );
    assert!(is_empty(&at), "a temporary file was left");
}

#[test]
fn an_unwritable_file_is_refused_before_anything_runs() {
    let at = fresh("unwritable");
    let missing = at.join("missing").join("report.json");
    for flag in ["--json", "--pcap"] {
        refused(
            &["bench", "--quick", flag, missing.to_str().expect("UTF-8")],
            &format!("cannot write {flag} file"),
        );
        refused(
            &["bench", "--quick", flag, at.to_str().expect("UTF-8")],
            "directory",
        );
    }
    assert!(is_empty(&at));
}

#[test]
fn one_file_for_report_and_capture_is_refused_and_nothing_is_left_behind() {
    let at = fresh("same");
    let file = at.join("both");
    let path = file.to_str().expect("UTF-8");
    refused(
        &["bench", "--quick", "--json", path, "--pcap", path],
        "name the same file",
    );
    assert!(is_empty(&at));
}

#[test]
fn an_old_report_survives_a_refused_call() {
    let at = fresh("old");
    let json = at.join("report.json");
    fs::write(&json, "old").expect("writable");
    refused(
        &[
            "bench",
            "--filter",
            "no such cell",
            "--json",
            json.to_str().expect("UTF-8"),
        ],
        "no such cell",
    );
    assert_eq!(fs::read_to_string(&json).expect("still there"), "old");
}

#[test]
fn help_goes_to_standard_output_and_ends_well() {
    let out = xtask(&["bench", "--help"]);
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && out.stderr.is_empty());
    for flag in [
        "--quick", "--group", "--filter", "--json", "--pcap", "--list", "--cpus", "--seed",
    ] {
        assert!(text.contains(flag), "{flag} is not in the help");
    }
}

#[test]
fn one_cell_is_measured_and_its_report_written_whole() {
    let listed = xtask(&["bench", "--list"]);
    assert!(
        listed.status.success(),
        "{}",
        String::from_utf8_lossy(&listed.stderr)
    );
    let ids = String::from_utf8(listed.stdout).expect("UTF-8");
    let id = ids.split_whitespace().next().expect("at least one cell");
    let at = fresh("one");
    let json = at.join("report.json");
    let out = xtask(&[
        "bench",
        "--quick",
        "--filter",
        id,
        "--seed",
        "5",
        "--json",
        json.to_str().expect("UTF-8"),
    ]);
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let text = fs::read_to_string(&json).expect("written");
    let report: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
    assert_eq!((&report["schema"], &report["seed"]), (&1.into(), &5.into()));
    assert_eq!(report["cells"][0]["id"], id);
    assert!(
        String::from_utf8_lossy(&out.stdout).contains("against itself"),
        "the A/A cell is printed"
    );
    assert_eq!(
        fs::read_dir(&at).expect("readable").count(),
        1,
        "only the report is there"
    );
}
