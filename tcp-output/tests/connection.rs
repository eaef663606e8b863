//! Whole connections: opening, data both ways, closing in every order, loss.

mod common;
#[path = "common/pair.rs"]
mod pair;

use common::{v4, v6};
use mbuf::BufferSet;
use pair::{ISS, Pair, bytes, policy};
use tcp_output::connection::{Config, Connection, Events};
use tcp_output::*;

fn pair() -> Pair {
    Pair::connected(v4(), [Config::default(); 2], 0)
}

#[test]
fn active_and_passive_open_agree_on_what_both_want() {
    let mut pair = pair();
    pair.run(100);
    assert_eq!(pair.states(), [State::Established; 2]);
    for side in &pair.sides {
        assert!(side.events.contains(Events::CONNECTED));
        let tcb = side.tcp.tcb();
        let agreed = TcbFlags::TIMESTAMPS | TcbFlags::SACK | TcbFlags::SCALE;
        assert!(tcb.flags.contains(agreed));
        assert_eq!((tcb.max_segment(), tcb.send.cwnd), (1448, 14_480));
        assert!(tcb.send.rexmt.is_none());
    }
    assert_eq!(pair.packets, 2, "besides the SYN: its answer and an ACK");
    pair.end();
}

#[test]
fn fault_x4_windows_are_scaled_but_for_those_in_a_syn() {
    let large = Config {
        receive_buffer: 4 << 20,
        ..Config::default()
    };
    let mut pair = Pair::connected(v4(), [large, large], 0);
    pair.step(Time(0));
    assert_eq!(pair.sides[0].tcp.tcb().wnd, 65_535, "not scaled");
    pair.run(100);
    for side in &pair.sides {
        assert_eq!(side.tcp.tcb().wnd_scale, 7);
    }
    assert_eq!(pair.sides[1].tcp.tcb().wnd, (4 << 20) >> 7 << 7);
    pair.end();
    let without = Config {
        flags: TcbFlags::empty(),
        max_segment: 700,
        ..large
    };
    let mut pair = Pair::connected(v6(), [large, without], 0);
    pair.run(100);
    for side in &pair.sides {
        let tcb = side.tcp.tcb();
        assert_eq!((tcb.wnd_scale, tcb.rcv.scale), (0, 0));
        assert_eq!((tcb.max_segment(), tcb.wnd), (700, 65_535));
    }
    pair.end();
}

#[test]
fn simultaneous_open() {
    let set = BufferSet::bsd(256, 32).expect("pools");
    let open = |ends, iss| {
        Connection::connect(ends, &Config::default(), policy(0), iss, Time(0)).expect("size")
    };
    let mut pair = Pair::of(set, open(v4(), ISS[0]), open(v4().reversed(), ISS[1]));
    pair.sides[0].to_send = bytes(1, 5000);
    pair.sides[1].to_send = bytes(2, 3000);
    pair.run(100);
    assert_eq!(pair.states(), [State::Established; 2]);
    pair.all_arrived();
    pair.end();
}

#[test]
fn bytes_both_ways_are_equal() {
    for n in 0..6 {
        let ends = if n % 2 == 0 { v4() } else { v6() };
        let small = Config {
            max_segment: 536,
            send_buffer: 9000,
            receive_buffer: 5000,
            flags: TcbFlags::ASK_TIMESTAMPS,
            ..Config::default()
        };
        let other = [Config::default(), small][n / 3];
        let mut pair = Pair::connected(ends, [Config::default(), other], n);
        pair.sides[0].to_send = bytes(n as u64, 300_001);
        pair.sides[1].to_send = bytes(99, 123_457);
        pair.run(60_000);
        pair.all_arrived();
        for side in &pair.sides {
            let stats = side.tcp.tcb().stats;
            assert_eq!(stats.rexmit_packets, 0, "nothing is lost");
            assert!(side.tcp.send_buffer().is_empty());
        }
        pair.end();
    }
}

/// Closes in the given order with data under way, and says the states.
fn closed(first: usize, both: bool) -> Pair {
    let mut pair = pair();
    pair.run(100);
    for (i, side) in pair.sides.iter_mut().enumerate() {
        side.to_send = bytes(i as u64, 5000);
        side.user(&pair.set);
        if both || i == first {
            side.tcp.close();
        }
    }
    pair.run(1000);
    pair
}

#[test]
fn the_side_that_closes_first_waits_for_strays() {
    for first in 0..2 {
        let mut pair = closed(first, false);
        assert_eq!(pair.sides[first].tcp.state(), State::FinWait2);
        assert_eq!(pair.sides[1 - first].tcp.state(), State::CloseWait);
        assert!(pair.sides[1 - first].events.contains(Events::PEER_CLOSED));
        // Half closed: data flows the other way.
        pair.sides[1 - first].to_send.extend(bytes(7, 100_000));
        pair.run(5000);
        pair.all_arrived();
        assert!(pair.sides[first].tcp.write(b"no", &pair.set).is_err());
        pair.sides[1 - first].tcp.close();
        pair.run(1000);
        assert_eq!(pair.sides[first].tcp.state(), State::TimeWait);
        assert_eq!(pair.sides[1 - first].tcp.state(), State::Closed);
        pair.run(61_000);
        assert_eq!(pair.states(), [State::Closed; 2]);
        assert!(pair.sides[first].events.contains(Events::CLOSED));
        pair.end();
    }
}

#[test]
fn simultaneous_close() {
    let mut pair = closed(0, true);
    pair.all_arrived();
    assert_eq!(pair.states(), [State::TimeWait; 2]);
    pair.run(61_000);
    assert_eq!(pair.states(), [State::Closed; 2]);
    pair.end();
}

#[test]
fn closing_before_the_connection_stands_sends_a_fin_when_it_does() {
    let mut pair = pair();
    pair.sides[1].tcp.close();
    pair.run(1000);
    assert_eq!(pair.states(), [State::CloseWait, State::FinWait2]);
    pair.end();
}

#[test]
fn an_abort_resets_the_peer() {
    let mut pair = pair();
    pair.sides[0].to_send = bytes(1, 20_000);
    pair.run(100);
    assert!(pair.sides[1].tcp.abort().contains(Events::CLOSED));
    pair.run(1000);
    assert_eq!(pair.states(), [State::Closed; 2]);
    assert!(
        pair.sides[0]
            .events
            .contains(Events::RESET | Events::CLOSED)
    );
    assert_eq!(pair.sides[0].tcp.next_timeout(), None);
    pair.end();
}

#[test]
fn a_segment_for_no_connection_is_answered_by_a_reset() {
    let mut pair = pair();
    pair.run(100);
    pair.sides[1].tcp.abort();
    // The reset is lost.
    let mut out = |_| Ok(());
    pair.sides[1]
        .tcp
        .poll_output(&pair.set, pair.now, &mut out)
        .expect("buffers");
    pair.sides[0].to_send = bytes(1, 100);
    pair.run(1000);
    assert!(pair.sides[0].events.contains(Events::RESET));
    pair.end();
}

#[test]
fn a_closed_window_is_probed_and_reopens() {
    let mut pair = pair();
    pair.run(100);
    pair.sides[0].to_send = bytes(1, 300_000);
    pair.sides[1].reads = false;
    pair.run(30_000);
    let tcb = pair.sides[0].tcp.tcb();
    assert_eq!((tcb.wnd, tcb.send.nxt), (0, tcb.una));
    assert!(tcb.send.persist.is_some() && tcb.stats.probes >= 2);
    pair.sides[1].reads = true;
    pair.run(60_000);
    pair.all_arrived();
    pair.end();
}

#[test]
fn whatever_is_lost_every_byte_arrives_and_both_sides_end() {
    let mut sent_again = 0;
    for seed in 0..12 {
        let mut config = Config::default();
        if seed % 3 == 1 {
            config.flags = TcbFlags::empty();
        }
        let mut pair = Pair::connected(v4(), [config; 2], seed as usize);
        pair.weather = fastrand::Rng::with_seed(seed);
        pair.loss_percent = [2, 5, 15, 0][seed as usize % 4];
        pair.disorder_percent = [0, 10, 50][seed as usize / 4];
        pair.sides[0].to_send = bytes(seed, 200_000);
        pair.sides[1].to_send = bytes(seed + 100, 60_000);
        pair.run(3_000_000);
        pair.all_arrived();
        let again = pair
            .sides
            .iter()
            .map(|side| side.tcp.tcb().stats.rexmit_packets);
        sent_again += again.sum::<u64>();
        for side in &mut pair.sides {
            side.tcp.close();
        }
        pair.run(1_000_000);
        assert_eq!(pair.states(), [State::Closed; 2], "seed {seed}");
        pair.end();
    }
    assert!(sent_again > 100, "{sent_again}");
}

#[test]
fn fault_u6_the_clock_may_start_anywhere() {
    let run = |start: u64| {
        let mut pair = pair();
        pair.now = Time(start);
        pair.run(100);
        pair.loss_percent = 10;
        pair.sides[0].to_send = bytes(1, 100_000);
        pair.run(1_000_000);
        pair.all_arrived();
        let took = (pair.now - Time(start), pair.packets);
        pair.end();
        took
    };
    let from_zero = run(0);
    for edge in [i32::MAX as u64, u64::from(u32::MAX)] {
        for start in [edge - 3_000, edge - 5] {
            assert_eq!(run(start), from_zero, "from {start}");
        }
    }
}

#[test]
fn fault_x10_a_flight_that_is_lost_whole_and_lost_fins_are_sent_again() {
    let mut pair = pair();
    pair.run(100);
    pair.sides[0].to_send = bytes(1, 14_480);
    pair.loss_percent = 100;
    pair.step(pair.now);
    assert!(pair.wire.is_empty() && pair.sides[0].tcp.next_timeout().is_some());
    pair.loss_percent = 0;
    pair.run(30_000);
    pair.all_arrived();
    for side in &mut pair.sides {
        side.tcp.close();
    }
    // Both FINs arrive, the acknowledgments of both are lost: both sides are closing.
    pair.step(pair.now);
    pair.loss_percent = 100;
    pair.step(pair.now);
    assert_eq!(pair.states(), [State::Closing; 2]);
    pair.loss_percent = 0;
    pair.run(20_000);
    assert_eq!(pair.states(), [State::TimeWait; 2]);
    pair.end();
}
