//! Pools that run dry: each allocation of a whole transfer fails once, in a run of its own.

mod common;
#[path = "common/net.rs"]
mod net;
#[path = "common/pair.rs"]
mod pair;

use common::v4;
use mbuf::BufferSet;
use mempool::backend::FailSwitch;
use net::{Net, Says};
use pair::{ISS, bytes};
use tcp_output::connection::Config;
use tcp_output::*;

/// A transfer both ways and its end, in which the `k`-th allocation of either side fails. Whether
/// there were that many.
fn survives(k: u64, policies: usize, tso: bool) -> bool {
    let _says = Says(format!("k {k}, policies {policies}, TSO {tso}"));
    let switch = FailSwitch::new();
    let set = BufferSet::bsd_builder(1024, 64).fail_switch(&switch);
    let set = set.build().expect("pools");
    let config = Config {
        tso,
        ..Config::default()
    };
    let mut net = Net::new(set, v4(), [config; 2], policies, ISS, k);
    net.may_fail = true;
    switch.fail_at(k);
    let before = switch.gets();
    net.sides[0].to_send = bytes(k, 30_000);
    net.sides[1].to_send = bytes(k + 1, 9_000);
    assert!(net.run_until(1_000_000, Net::all_arrived));
    for side in &mut net.sides {
        side.tcp.close();
    }
    net.run(1_000_000);
    let failed = switch.gets() - before >= k;
    let tally = |of: fn(&Stats) -> u64| -> u64 {
        net.sides.iter().map(|side| of(&side.tcp.tcb().stats)).sum()
    };
    // Of output's allocations each that fails costs a packet, or is got around and counted as that;
    // a write that finds no buffer is told to the user.
    let (lost, rescued) = (
        tally(|stats| stats.no_buffers),
        tally(|stats| stats.fallbacks),
    );
    assert!(lost + rescued <= u64::from(failed));
    assert_eq!(lost, net.failures as u64);
    net.close();
    failed
}

#[test]
fn whichever_allocation_fails_both_sides_end_and_nothing_leaks() {
    for (policies, tso) in [(0, false), (1, true), (2, false)] {
        let most = (1..)
            .find(|&k| !survives(k, policies, tso))
            .expect("an end");
        println!(
            "policies {policies}, TSO {tso}: {} allocations failed",
            most - 1
        );
        assert!(most > 30, "{most}");
    }
}

#[test]
fn fault_w6_a_fin_without_memory_keeps_its_number() {
    let switch = FailSwitch::new();
    let set = BufferSet::bsd_builder(1024, 64).fail_switch(&switch);
    let set = set.build().expect("pools");
    let mut net = Net::new(set, v4(), [Config::default(); 2], 0, ISS, 1);
    net.sides[0].to_send = bytes(1, 1000);
    assert!(net.run_until(1000, Net::all_arrived));
    net.run(1000);
    let end = net.sides[0].tcp.tcb().send.nxt;
    net.may_fail = true;
    net.sides[0].tcp.close();
    switch.fail_at(1);
    net.turn(0);
    let tcb = net.sides[0].tcp.tcb();
    assert_eq!((net.failures, tcb.send.nxt, tcb.send.max), (1, end, end));
    assert!(net.sides[0].tcp.next_timeout().is_some());
    assert!(net.run_until(10_000, |net| net.states()
        == [State::FinWait2, State::CloseWait]));
    assert_eq!(net.sides[0].tcp.tcb().una, end + 1);
    net.close();
}
