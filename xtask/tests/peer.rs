//! `cargo xtask peer` as its user meets it: against the real kernel where root and a TAP device are
//! there, else one line that says what is missing, and status 3.

use std::process::{Command, Output};

fn peer(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("peer")
        .args(arguments)
        .output()
        .expect("the program starts")
}

/// What it printed, unless it cannot run here.
fn moved(arguments: &[&str]) -> Option<String> {
    let out = peer(arguments);
    let errors = String::from_utf8_lossy(&out.stderr);
    if out.status.code() == Some(3) {
        assert_eq!(errors.lines().count(), 1, "{errors}");
        println!("skipped: {errors}");
        return None;
    }
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{arguments:?}: {text}{errors}");
    Some(text)
}

/// With and without offloads: 4 MB each way.
#[test]
fn four_megabytes_each_way_arrive_as_they_were() {
    for arguments in [
        vec!["--bytes", "4m", "--loss", "0"],
        vec![
            "--bytes", "4m", "--plain", "--loss", "0", "--policy", "copy",
        ],
    ] {
        let Some(text) = moved(&arguments) else {
            return;
        };
        assert_eq!(text.matches("SHA-256 equal").count(), 2, "{text}");
    }
}

/// 4 MB each way, of which 1 % of all frames are lost.
#[test]
#[ignore = "waits for the kernel's timers, some seconds: cargo test -p xtask --test peer -- --ignored"]
fn what_is_lost_is_sent_again_until_all_is_there() {
    let Some(text) = moved(&["--bytes", "64m", "--plain"]) else {
        return;
    };
    assert_eq!(text.matches("SHA-256 equal").count(), 4, "{text}");
    // Thousands of frames: none lost would be a wonder.
    assert_eq!(text.matches("frames lost").count(), 2, "{text}");
}

/// No interface of it is left, in our namespace or in one of its own.
#[test]
fn nothing_is_left_behind_when_it_is_killed() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["peer", "--bytes", "1g"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let running = child.try_wait().expect("our child").is_none();
    child.kill().expect("our child");
    // Its own child holds the other ends of both pipes: reading ends when that one has, too.
    let out = child.wait_with_output().expect("our child");
    if !running {
        println!("skipped: {}", String::from_utf8_lossy(&out.stderr));
        return;
    }
    assert!(!std::path::Path::new("/sys/class/net/peer0").exists());
}

#[test]
fn wrong_values_are_refused_before_anything_is_made() {
    for wrong in [["--bytes", "0"], ["--loss", "51"], ["--policy", "none"]] {
        let out = peer(&wrong);
        assert_eq!(out.status.code(), Some(2), "{wrong:?}");
    }
}
