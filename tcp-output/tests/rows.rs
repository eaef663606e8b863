//! State to segments: each row of the table is one test, named and printed by its id.
//!
//! `data/rows.json` restates BSD's behaviour and is not edited; where ours differs on purpose,
//! `data/overrides.json` has our expectation and the reason.

mod common;
#[path = "common/table.rs"]
mod table;

use std::collections::BTreeMap;

use common::{failing_set, see, tso_mss};
use mbuf::Mbuf;
use sockbuf::SockBuf;
use table::{After, Expected, NOW, file, row};
use tcp_output::policy::{Reference, Threshold};
use tcp_output::*;

fn returned<T>(result: Result<T, SendError>, tcb: &Tcb) -> &'static str {
    match (result.map_err(|e| e.cause), tcb.soft_error) {
        (Ok(_), None) => "0",
        (Ok(_), Some(OutputError::Unreachable)) => "0 (soft EHOSTUNREACH)",
        (Err(Cause::Build(BuildError::Alloc(_))), _) => "0 (ENOBUFS)",
        (Err(Cause::Output(OutputError::NoBuffers)), _) => "0 (ENOBUFS from IP)",
        (Err(Cause::Output(OutputError::Other(1))), _) => "EPERM",
        (other, soft) => panic!("{:?} {soft:?}", other.err()),
    }
}

fn counters(stats: &Stats) -> BTreeMap<String, u64> {
    let all = [
        ("sndtotal", stats.sent),
        ("sndpack", stats.data_packets),
        ("sndbyte", stats.data_bytes),
        ("sndrexmitpack", stats.rexmit_packets),
        ("sndrexmitbyte", stats.rexmit_bytes),
        ("sack_rexmits", stats.sack_rexmit_packets),
        ("sndprobe", stats.probes),
        ("sndctrl", stats.control),
        ("sndurg", stats.urgent),
        ("sndacks", stats.acks),
        ("sndwinup", stats.window_updates),
        ("segstimed", stats.timed),
    ];
    all.iter()
        .filter(|(_, n)| *n > 0)
        .map(|(name, n)| (name.to_string(), *n))
        .collect()
}

/// Runs one row with its sequence numbers starting at `base`.
fn run_at(id: &str, base: u32) {
    let row = row(id);
    let given = &row.given;
    let (set, switches) = failing_set(128, 64);
    let sb = given.send_buffer(&set);
    let policy: Box<dyn CopyPolicy> = if given.copy_policy_threshold5 {
        Box::new(Threshold { factor: 5 })
    } else {
        Box::new(Reference)
    };
    let mut tcb = given.tcb(base);
    // Ours refuses holes that cannot be.
    assert_eq!(
        given.report_holes(base, &mut tcb).is_err(),
        id == "C7x",
        "{id}: scoreboard"
    );
    let mut sender = Sender::new(tcb, policy).with_tso(given.tso_on);
    sender.set_more_coming(given.sosend_in_progress);
    if let Some((pool, k)) = given.failure() {
        switches[pool].fail_at(k);
    }
    let mut packets = Vec::new();
    let mut out = |packet: Mbuf| {
        packets.push(packet);
        given.ip_error(packets.len())
    };
    let result = if given.force {
        sender.output_forced(&sb, &set, NOW, &mut out)
    } else {
        sender.output(&sb, &set, NOW, &mut out)
    };
    println!("{id} at {base:#x}: {}", row.what);
    assert_eq!(returned(result, sender.tcb()), row.returns, "{id}: returns");
    let seen: Vec<Expected> = packets
        .iter()
        .map(|packet| expected_form(packet, base, &sb))
        .collect();
    assert_eq!(seen, row.segments, "{id}: segments");
    assert_eq!(after(sender.tcb(), base), row.after, "{id}: state after");
    assert_eq!(
        counters(&sender.tcb().stats),
        row.counters,
        "{id}: counters"
    );
    drop((packets, sb));
    assert!(set.is_full(), "{id}: leak");
}

/// A packet in the words of the table; its payload is compared with the send buffer here.
fn expected_form(packet: &Mbuf, base: u32, sb: &SockBuf) -> Expected {
    let seen = see(packet);
    let seq = Seq(seen.seq) - Seq(base);
    let mut sent = vec![0; seen.payload.len()];
    if !sent.is_empty() {
        sb.copy_to(seq as usize, &mut sent)
            .expect("inside the buffer");
    }
    assert!(sent == seen.payload, "payload at {seq}");
    Expected {
        seq,
        len: seen.payload.len(),
        flags: seen.flags.iter().map(|flag| flag.to_string()).collect(),
        options: seen.options,
        options_len: seen.options_len,
        tso_mss: tso_mss(&seen.offload),
        window_field: seen.window,
        urgent_pointer: seen.urgent,
        ect: seen.ect,
        storage: if seen.payload.is_empty() {
            assert_eq!(seen.storage, "1 mbuf (inline), lead 64");
            "-".into()
        } else {
            seen.storage
        },
    }
}

fn after(tcb: &Tcb, base: u32) -> After {
    let ms = |at: Option<Time>| at.map(|at| (at - NOW) as u32);
    After {
        snd_una: tcb.una - Seq(base),
        snd_nxt: tcb.send.nxt - Seq(base),
        snd_max: tcb.send.max - Seq(base),
        snd_cwnd: tcb.send.cwnd,
        rexmt_ms: ms(tcb.send.rexmt),
        persist_ms: ms(tcb.send.persist),
        rxtshift: tcb.send.backoff,
        fin_sent: tcb.flags.contains(TcbFlags::FIN_SENT),
        last_idle: tcb.send.last_idle,
        acknow: tcb.flags.contains(TcbFlags::ACK_NOW),
        snd_up: tcb.up - Seq(base),
        rcv_adv: tcb.rcv.adv - Seq(!base),
        delack_ms: ms(tcb.timers.delayed_ack),
    }
}

/// Once from 0, once across the half of the number space, once across its wrap.
fn run(id: &str) {
    for base in [0, 0x7fff_f000, 0xffff_f000] {
        run_at(id, base);
    }
}

macro_rules! rows {
    ($($name:ident $id:literal)*) => {
        const RUN: &[&str] = &[$($id),*];
        $(#[test] fn $name() { run($id); })*
    };
}

rows! {
    row_a1 "A1" row_a2 "A2" row_a3 "A3" row_a3b "A3b" row_a3c "A3c" row_a4 "A4" row_a5 "A5"
    row_a6 "A6" row_a7 "A7" row_a8 "A8" row_a9 "A9" row_a10 "A10" row_a11 "A11" row_a11b "A11b"
    row_a12 "A12" row_a13 "A13" row_a14 "A14" row_a15 "A15" row_a16 "A16" row_a17 "A17"
    row_a18 "A18" row_a19 "A19" row_a20 "A20"
    row_b1 "B1" row_b2 "B2" row_b3 "B3" row_b4 "B4" row_b5 "B5" row_b6 "B6" row_b7 "B7" row_b8 "B8"
    row_b9 "B9" row_b10 "B10" row_b11 "B11" row_b13 "B13" row_b14 "B14" row_b15 "B15" row_b17 "B17"
    row_c1 "C1" row_c2 "C2" row_c4 "C4" row_c5 "C5" row_c7 "C7" row_c7x "C7x" row_c12 "C12"
    row_c13 "C13" row_c8 "C8" row_c9 "C9" row_c11 "C11"
    row_d1 "D1" row_d2 "D2" row_d3 "D3" row_d4 "D4" row_d6 "D6" row_d7 "D7" row_d9 "D9"
    row_d10 "D10" row_d11 "D11" row_d12 "D12" row_d14 "D14" row_d15 "D15" row_d16 "D16"
    row_e1 "E1" row_e1b "E1b" row_e2 "E2" row_e4 "E4" row_e5 "E5" row_e8 "E8" row_e9 "E9"
    row_e10 "E10" row_e11 "E11"
    row_f1 "F1" row_f1b "F1b" row_f2 "F2" row_f2b "F2b" row_f3 "F3" row_f4 "F4" row_f5b "F5b"
    row_f6 "F6" row_f8 "F8" row_f9 "F9" row_f10 "F10" row_f11 "F11" row_f14 "F14" row_f15 "F15"
    row_f16 "F16" row_f17 "F17" row_f18 "F18" row_f19 "F19"
    row_g1 "G1" row_g2 "G2" row_g3 "G3" row_g4 "G4" row_g4c "G4c" row_g5 "G5" row_g6 "G6"
    row_g7 "G7"
    row_h1 "H1" row_h1b "H1b" row_h2 "H2" row_h3 "H3" row_h3b "H3b" row_h4 "H4" row_h6 "H6"
    row_h7 "H7" row_h7b "H7b" row_h8 "H8" row_h8b "H8b" row_h9 "H9" row_h11 "H11" row_h12 "H12"
    row_h13b "H13b" row_h14 "H14" row_h16 "H16" row_h17 "H17" row_h17b "H17b"
    row_i1 "I1" row_i2 "I2" row_i3 "I3" row_i4 "I4" row_i5 "I5" row_i6 "I6" row_i7 "I7" row_i8 "I8"
    row_i11 "I11" row_i12 "I12"
}

#[test]
fn every_row_is_run() {
    let table = file(include_str!("data/rows.json"));
    let rows = table["rows"].as_array().expect("array");
    let ids: Vec<&str> = rows.iter().filter_map(|row| row["id"].as_str()).collect();
    assert_eq!(ids, RUN);
    let ours = file(include_str!("data/overrides.json"));
    for ours in ours.as_array().expect("array") {
        let id = ours["id"].as_str().expect("id");
        assert!(RUN.contains(&id), "{id} overrides no row");
        assert!(ours["reason"].as_str().is_some_and(|why| !why.is_empty()));
    }
}
