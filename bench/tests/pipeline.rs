//! The real capture through everything: each policy puts the same bytes on the wire, and `tshark`
//! finds nothing wrong with the frames.

use std::path::Path;
use std::process::Command;

use bench::cases::pipeline::replay;

const POLICIES: [&str; 3] = ["reference", "copy", "threshold5"];

#[test]
fn every_policy_delivers_every_stream_unchanged() {
    for policy in POLICIES {
        let streams = replay(policy, None).expect(policy);
        let bytes: usize = streams.iter().map(|s| s.bytes).sum();
        assert!(streams.len() >= 2 && bytes > 600_000, "{streams:?}");
        for stream in streams {
            assert_eq!(stream.sent, stream.received, "{policy}, {}", stream.key);
        }
    }
}

#[test]
fn a_policy_that_does_not_exist_is_an_error() {
    let error = replay("hope", None).expect_err("no such policy");
    assert!(error.contains("hope"), "{error}");
}

#[test]
fn what_cannot_be_written_is_an_error() {
    let nowhere = Path::new("/nonexistent/dir/wire.pcap");
    let error = replay("copy", Some(nowhere)).expect_err("no such directory");
    assert!(error.contains("wire.pcap"), "{error}");
}

/// Frames that `filter` finds in the file, one a line; `None` where there is no tshark.
fn tshark(file: &Path, filter: &str) -> Option<String> {
    let output = Command::new("tshark")
        .args(["-o", "tcp.check_checksum:TRUE"])
        .args(["-o", "ip.check_checksum:TRUE"])
        .arg("-r")
        .arg(file)
        .args(["-Y", filter])
        .output()
        .ok()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn tshark_finds_no_bad_checksum_and_nothing_malformed_in_what_went_over_the_wire() {
    let dir = std::env::temp_dir().join(format!("bench-pipeline-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("directory");
    for policy in POLICIES {
        let file = dir.join("wire.pcap");
        std::fs::write(&file, vec![0xff; 1 << 20]).expect("something to be replaced");
        replay(policy, Some(&file)).expect(policy);
        let wrong = "tcp.checksum.status==0 || ip.checksum.status==0 || _ws.malformed";
        let Some(found) = tshark(&file, wrong) else {
            println!("SKIPPED: tshark is not installed (Debian: apt-get install tshark)");
            break;
        };
        assert_eq!(found, "", "{policy}");
        let good = tshark(&file, "tcp.checksum.status==1 && tcp.len>0").expect("tshark");
        assert!(good.lines().count() > 400, "{policy}: frames are missing");
    }
    std::fs::remove_dir_all(&dir).expect("remove");
}
