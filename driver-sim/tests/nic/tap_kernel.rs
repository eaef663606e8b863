//! The TAP device and the real kernel, where root and `/dev/net/tun` are there: a large frame that
//! the kernel cuts and sums is what our hardware makes of it; an interface taken away is noticed.
//!
//! The tests start themselves again in a network namespace, which ends with them.

use std::process::Command;
use std::time::{Duration, Instant};

use driver_sim::ether::{EtherAddrs, encap};
use driver_sim::tap::{Tap, TapConfig};
use driver_sim::{Collect, Hardware, TxConfig, TxQueue};
use mbuf::{BufferSet, Mbuf, Packet};

use crate::oracle::{Ask, tcp_packet};
use crate::support::{chain, packet, set};

const INSIDE: &str = "DRIVER_SIM_IN_NAMESPACE";

/// Whether we are inside of a namespace. If not, runs `test` in one, or says why that cannot be.
fn inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let can = Command::new("unshare")
        .args(["--net", "ip", "tuntap", "add", "probe", "mode", "tap"])
        .output();
    if !can.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED {test}: needs root, /dev/net/tun, iproute2 and util-linux");
        return false;
    }
    let status = Command::new("unshare")
        .arg("--net")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success(), "{test} in a namespace of its own");
    false
}

fn ip(line: &str) {
    let status = Command::new("ip").args(line.split(' ')).status().unwrap();
    assert!(status.success(), "ip {line}");
}

fn open(name: &str, offload: bool) -> Tap {
    Tap::open(&TapConfig {
        name: name.to_owned(),
        offload,
        ..TapConfig::default()
    })
    .unwrap()
}

/// TCP frames from port 4000 that the kernel sends out of `tap`, until there are `count`.
fn frames(tap: &mut Tap, count: usize, set: &BufferSet) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let start = Instant::now();
    while frames.len() < count && start.elapsed() < Duration::from_secs(10) {
        tap.wait(Some(Duration::from_millis(100))).unwrap();
        let mut burst = [const { None }; 32];
        let n = tap.receive(&mut burst, set).unwrap();
        let ours = |frame: &Vec<u8>| frame[..6] == [2, 0, 0, 0, 0, 9];
        frames.extend(burst[..n].iter().flatten().map(Mbuf::to_vec).filter(ours));
    }
    frames
}

/// A bridge between a device with offloads and one without: what goes in uncut comes out cut.
#[test]
fn the_kernel_cuts_and_sums_as_our_hardware_does() {
    if !inside("tap_kernel::the_kernel_cuts_and_sums_as_our_hardware_does") {
        return;
    }
    let set = set();
    let (mut large, mut small) = (open("large", true), open("small", false));
    ip("link add bridge type bridge mcast_snooping 0");
    for name in ["large", "small"] {
        ip(&format!("link set {name} master bridge up"));
    }
    ip("link set bridge up");
    let addrs = EtherAddrs {
        dst: [2, 0, 0, 0, 0, 9],
        src: [2, 0, 0, 0, 0, 8],
    };
    for v6 in [false, true] {
        for (mss, len) in [(1448, 64_000), (1448, 1449), (536, 5000), (0, 1000), (0, 1)] {
            let ask = Ask {
                v6,
                mss,
                fin: len == 5000,
                ..Ask::default()
            };
            let payload: Vec<u8> = (0..len).map(|i| (i * 7 % 256) as u8).collect();
            let make = || {
                let (bytes, offload) = tcp_packet(&ask, &payload);
                let mut m = chain(&bytes, &[40, bytes.len() - 40], &set);
                m.set_offload(offload);
                encap(m, addrs, &set).map_err(|(_, e)| e).unwrap()
            };
            let hardware = Hardware::new(Collect::default());
            let mut queue = TxQueue::new(TxConfig::default(), hardware).unwrap();
            queue.send(&mut [Some(make())], &set);
            queue.run_device(1);
            let want = queue.into_backend().into_sink().frames;
            assert_eq!(large.send(&mut [Some(make())]), 1);
            let got = frames(&mut small, want.len(), &set);
            assert_eq!(got.len(), want.len(), "{ask:?} with {len} bytes");
            assert!(got == want, "{ask:?} with {len} bytes");
        }
    }
    assert_eq!(large.stats().dropped(), 0);
}

#[test]
fn an_interface_taken_away_is_gone_and_one_that_is_down_refuses() {
    if !inside("tap_kernel::an_interface_taken_away_is_gone_and_one_that_is_down_refuses") {
        return;
    }
    let set = set();
    let mut tap = open("gone", true);
    ip("link set gone down");
    assert_eq!(tap.send(&mut [Some(packet(&[60], 0, &set))]), 1);
    let stats = *tap.stats();
    assert_eq!((stats.dropped_refused, tap.is_gone()), (1, false));
    ip("link set gone up");
    assert_eq!(tap.send(&mut [Some(packet(&[60], 0, &set))]), 1);
    assert_eq!(tap.stats().sent, 1);
    ip("link del gone");
    assert!(tap.wait(None).unwrap(), "ready to be found out");
    assert_eq!(tap.send(&mut [Some(packet(&[60], 0, &set))]), 1);
    assert_eq!((tap.stats().dropped_gone, tap.is_gone()), (1, true));
    assert_eq!(tap.receive(&mut [None], &set).unwrap(), 0);
}
