//! What went over the wire, judged by `tshark`, where it is installed.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use driver_sim::ether::{EtherAddrs, encap};
use driver_sim::pcap::{PcapFile, tcp_streams};
use driver_sim::{Hardware, Link, TxConfig, TxQueue};
use mbuf::BufferSet;

use crate::oracle::{Ask, tcp_packet};
use crate::support::{chain, set};

/// Sends TSO and checksum packets of both families into a capture file.
fn write_capture(path: &Path, link: Link, set: &BufferSet) {
    let to = std::fs::File::create(path).unwrap();
    let file = PcapFile::new(std::io::BufWriter::new(to), link).unwrap();
    let mut queue = TxQueue::new(TxConfig::default(), Hardware::new(file)).unwrap();
    for v6 in [false, true] {
        let mut seq = 1;
        for (mss, len) in [
            (1448, 30_001),
            (0, 17),
            (536, 5000),
            (0, 1),
            (1448, 65_000 - 200),
        ] {
            let ask = Ask {
                v6,
                mss,
                seq,
                ports: (4000 + u16::from(v6), 9),
                ..Ask::default()
            };
            let payload: Vec<u8> = (0..len).map(|i| (i * 7 % 256) as u8).collect();
            let (bytes, offload) = tcp_packet(&ask, &payload);
            let mut m = chain(&bytes, &[40, bytes.len() - 40], set);
            m.set_offload(offload);
            if link == Link::Ethernet {
                let addrs = EtherAddrs {
                    dst: [2; 6],
                    src: [4; 6],
                };
                m = encap(m, addrs, set).map_err(|(_, e)| e).unwrap();
            }
            assert_eq!(queue.send(&mut [Some(m)], set), 1);
            queue.run_device(1);
            seq += len as u32;
        }
    }
    assert_eq!(queue.device_stats().bad, 0);
    let file = queue.into_backend().into_sink();
    assert!(file.frames() > 100);
    file.finish().unwrap();
}

fn tshark(args: &[&str]) -> Option<String> {
    let output = Command::new("tshark").args(args).output().ok()?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

const CHECKS: [&str; 4] = [
    "-o",
    "tcp.check_checksum:TRUE",
    "-o",
    "ip.check_checksum:TRUE",
];

#[test]
fn tshark_finds_no_bad_checksum_and_nothing_malformed_or_is_named_as_skipped() {
    let set = set();
    let dir = std::env::temp_dir().join(format!("driver-sim-tshark-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    for link in [Link::Raw, Link::Ethernet] {
        let path = dir.join(format!("{link:?}.pcap"));
        write_capture(&path, link, &set);
        // Our own reader always looks; tshark where it is.
        assert_eq!(tcp_streams(&path).unwrap().len(), 2);
        let name = path.to_str().unwrap();
        let bad = "tcp.checksum.status==0 || ip.checksum.status==0 || _ws.malformed \
                   || tcp.analysis.flags";
        let judged = |filter| tshark(&[&CHECKS[..], &["-r", name, "-Y", filter]].concat());
        let Some(lines) = judged(bad) else {
            let mut out = std::io::stderr();
            writeln!(
                out,
                "SKIPPED: tshark is not installed (Debian: apt-get install tshark)"
            )
            .unwrap();
            break;
        };
        assert_eq!(lines, "", "{link:?}");
        // The judge did look: all frames are TCP with a good sum.
        let good = judged("tcp.checksum.status==1").unwrap().lines().count();
        let all = judged("frame").unwrap().lines().count();
        assert_eq!(good, all);
        assert!(all > 100);
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
