//! Two connections over a bad network: every byte arrives, in order and once, both sides end, and
//! every buffer is back. What ran is printed when a run fails.

mod common;
#[path = "common/net.rs"]
mod net;
#[path = "common/pair.rs"]
mod pair;

use common::{v4, v6};
use mbuf::BufferSet;
use net::{Link, Net, Says};
use pair::{ISS, bytes};
use tcp_output::connection::Config;
use tcp_output::*;

fn pools() -> BufferSet {
    BufferSet::bsd_builder(4096, 256)
        .configure(|pool| pool.cache(0))
        .build()
        .expect("pools")
}

/// What the `n`-th run is like: each choice turns at a pace of its own, so that they meet.
fn choices(n: usize) -> (Endpoints, Config) {
    let v6_run = n % 2 == 1;
    let ask = [
        TcbFlags::ASK_SACK | TcbFlags::ASK_TIMESTAMPS | TcbFlags::ASK_SCALE,
        TcbFlags::ASK_SACK,
        TcbFlags::ASK_TIMESTAMPS | TcbFlags::ASK_SCALE,
        TcbFlags::ASK_SCALE | TcbFlags::NODELAY,
        TcbFlags::ASK_SACK | TcbFlags::ASK_ECN | TcbFlags::ASK_SCALE,
    ];
    let config = Config {
        max_segment: if v6_run { 1440 } else { 1460 },
        flags: ask[n % ask.len()],
        tso: n.is_multiple_of(3),
        timestamp_offset: u32::MAX - 4_000,
        ..Config::default()
    };
    (if v6_run { v6() } else { v4() }, config)
}

const WEATHERS: [Link; 7] = {
    const CALM: Link = Link::CALM;
    [
        CALM,
        Link { lost: 20, ..CALM },
        Link { lost: 150, ..CALM },
        Link {
            late: 300,
            jitter: 40,
            ..CALM
        },
        Link {
            twice: 300,
            jitter: 25,
            ..CALM
        },
        Link {
            lost: 50,
            late: 100,
            twice: 50,
            jitter: 90,
            ..CALM
        },
        Link {
            rate: 1250,
            queue: 20_000,
            lost: 10,
            ..CALM
        },
    ]
};

#[test]
fn whatever_the_network_does_every_byte_arrives_once() {
    let (mut timeouts, mut again) = (0, 0);
    for n in 0..105 {
        let (ends, config) = choices(n);
        let weather = WEATHERS[n % WEATHERS.len()];
        let _says = Says(format!("run {n}: {config:?} {weather:?}"));
        let mut net = Net::new(pools(), ends, [config; 2], n, ISS, n as u64);
        net.links = [weather; 2];
        net.sides[0].to_send = bytes(n as u64, 120_000);
        net.sides[1].to_send = bytes(n as u64 + 1000, 50_000);
        assert!(
            net.run_until(10_000_000, Net::all_arrived),
            "{:?}",
            net.states()
        );
        timeouts += net.timeouts;
        again += (net.sides.iter())
            .map(|side| side.tcp.tcb().stats.rexmit_packets)
            .sum::<u64>();
        net.close();
    }
    println!("{again} packets sent again, {timeouts} timeouts");
    assert!(again > 500 && timeouts > 20);
}

#[test]
fn tiny_windows_move_all_the_same() {
    for n in 0..36 {
        let (ends, config) = choices(n);
        let room = [1, 7, 100, 536, 1460, 4000][n % 6];
        let small = Config {
            receive_buffer: room,
            ..config
        };
        let weather = [WEATHERS[0], WEATHERS[1], WEATHERS[5]][n / 12];
        let _says = Says(format!("run {n}: {small:?} {weather:?}"));
        let mut net = Net::new(pools(), ends, [config, small], n, ISS, n as u64);
        net.links = [weather; 2];
        net.sides[0].to_send = bytes(n as u64, 40 * room as usize);
        net.sides[1].to_send = bytes(n as u64 + 1000, 3000);
        assert!(
            net.run_until(100_000_000, Net::all_arrived),
            "{:?}",
            net.states()
        );
        net.close();
    }
}

#[test]
fn a_path_that_narrows_in_the_middle_of_a_transfer() {
    for n in 0..30 {
        let (ends, config) = choices(n);
        // Known on the way out, or to a router that reports it.
        let far = n % 4 < 2;
        let mtu = [1400, 1280, 576][n / 2 % 3];
        let _says = Says(format!("run {n}, {mtu} bytes, far {far}: {config:?}"));
        let mut net = Net::new(pools(), ends, [config; 2], n, ISS, n as u64);
        net.links = [WEATHERS[n % 2]; 2];
        net.sides[0].to_send = bytes(n as u64, 150_000);
        net.sides[1].to_send = bytes(n as u64 + 1000, 150_000);
        let third = |net: &Net| net.sides[1].received.len() > 50_000;
        assert!(net.run_until(1_000_000, third));
        for link in &mut net.links {
            (link.mtu, link.far) = (mtu, far);
        }
        let from = net.now;
        assert!(
            net.run_until(10_000_000, Net::all_arrived),
            "{:?}",
            net.states()
        );
        if n % 2 == 0 {
            assert!(
                net.timeouts == 0 && net.now - from < 5_000,
                "{} timeouts",
                net.timeouts
            );
        }
        let headers = if n % 2 == 1 { 60 } else { 40 };
        for side in &net.sides {
            assert_eq!(side.tcp.tcb().max_opd(), mtu - headers);
        }
        net.close();
    }
}

#[test]
fn fault_u2_numbers_that_wrap_anywhere_change_nothing() {
    let run = |iss: [Seq; 2]| {
        let (ends, config) = choices(0);
        let mut net = Net::new(pools(), ends, [config; 2], 0, iss, 5);
        net.links = [WEATHERS[5]; 2];
        net.sides[0].to_send = bytes(1, 100_000);
        net.sides[1].to_send = bytes(2, 100_000);
        assert!(net.run_until(10_000_000, Net::all_arrived), "{iss:?}");
        let took = (net.now, net.steps, net.timeouts);
        net.close();
        took
    };
    let usual = run([Seq(1000), Seq(2000)]);
    for edge in [0u32, 1 << 31] {
        for before in [0, 1, 2, 1449, 50_000, 99_999, 100_001, 100_002] {
            let iss = Seq(edge.wrapping_sub(before));
            assert_eq!(run([iss, iss + 77]), usual, "from {iss:?}");
        }
    }
}

/// Bytes in a millisecond that arrive, and timeouts, of one direction over 10 Mbit/s with a round
/// trip of 40 ms.
fn goodput(lost: u32, flags: TcbFlags, seed: u64) -> (u64, usize) {
    let config = Config {
        flags,
        send_buffer: 256 << 10,
        receive_buffer: 256 << 10,
        ..Config::default()
    };
    let mut net = Net::new(pools(), v4(), [config; 2], 1, ISS, seed);
    net.links[0] = Link {
        lost,
        rate: 1250,
        queue: 256 << 10,
        delay: 20,
        ..Link::CALM
    };
    net.links[1] = Link {
        delay: 20,
        ..Link::CALM
    };
    net.sides[0].to_send = bytes(1, 2_000_000);
    assert!(net.run_until(10_000_000, Net::all_arrived), "seed {seed}");
    let (took, timeouts) = (net.now.0, net.timeouts);
    net.close();
    (2_000_000 / took, timeouts)
}

/// The line carries 1206 bytes of payload in a millisecond. Beyond a loss of 0.1 % it is not the line
/// that limits: by Mathis et al. Reno with delayed acknowledgments gets 0.87 · MSS / (RTT · √p), 315
/// at 1 % and 141 at 5 %. Half of that, with SACK, is the least here; at 5 % one in twenty
/// retransmissions is lost as well and costs a timeout, so that a quarter is.
#[test]
fn loss_costs_what_it_must_and_no_timeouts() {
    let sack = Config::default().flags;
    let plain = sack - TcbFlags::ASK_SACK;
    println!("loss ‰   with SACK   timeouts   without   timeouts  (bytes/ms)");
    for (lost, least) in [(0, 1000), (1, 600), (10, 157), (50, 35)] {
        let runs = |flags| {
            let runs: Vec<_> = (1..=3).map(|seed| goodput(lost, flags, seed)).collect();
            let (rate, timeouts) = runs.iter().fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
            (rate / 3, timeouts)
        };
        let (with, without) = (runs(sack), runs(plain));
        println!(
            "{lost:>6} {:>11} {:>10} {:>9} {:>10}",
            with.0, with.1, without.0, without.1
        );
        assert!(with.0 >= least, "{lost} ‰: {} < {least}", with.0);
        assert!(
            without.0 >= least / 2,
            "{lost} ‰ without SACK: {}",
            without.0
        );
        // 4200 packets: 42 are lost at 1 %, and less than one of their retransmissions.
        assert!(lost > 10 || with.1 <= 1, "{lost} ‰: {} timeouts", with.1);
    }
}
