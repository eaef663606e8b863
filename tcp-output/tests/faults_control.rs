//! Faults that others have had, as scenarios of ours: SYN, FIN and RST, holes, urgent data.

mod common;

use common::{NOW, Seen, see, send, set, spliced, tcb, v4, v6};
use mbuf::{Mbuf, OffloadFlags};
use sockbuf::SockBuf;
use tcp_output::policy::Reference;
use tcp_output::*;

fn seen(sender: &mut Sender<Reference>, sb: &SockBuf, set: &mbuf::BufferSet) -> Vec<Seen> {
    send(sender, sb, set).iter().map(see).collect()
}

/// Where from the first unacknowledged byte, and how long, each segment is.
fn ranges(
    sender: &mut Sender<Reference>,
    sb: &SockBuf,
    set: &mbuf::BufferSet,
) -> Vec<(u32, usize)> {
    let una = sender.tcb().una;
    let packets = seen(sender, sb, set);
    let range = |p: &Seen| (Seq(p.seq) - una, p.payload.len());
    packets.iter().map(range).collect()
}

#[test]
fn fault_i9_every_kind_of_packet_has_its_checksum() {
    let set = set();
    let kinds = [
        (State::Closed, TcbFlags::empty(), "RST"),
        (State::SynSent, TcbFlags::empty(), "SYN"),
        (State::SynReceived, TcbFlags::empty(), "SYN"),
        (State::FinWait1, TcbFlags::empty(), "FIN"),
        (State::Established, TcbFlags::ACK_NOW, "ACK"),
    ];
    let modes = [
        ChecksumMode::Software,
        ChecksumMode::default(),
        ChecksumMode::None,
    ];
    for (state, flags, bit) in kinds {
        for (ends, mode) in [v4(), v6()].into_iter().flat_map(|e| modes.map(|m| (e, m))) {
            let mut tcb = tcb(ends, 1440);
            tcb.state = state;
            tcb.flags |= flags;
            let mut sender = Sender::new(tcb, Reference).with_checksum(mode);
            let packets = seen(&mut sender, &SockBuf::new(1000), &set);
            assert_eq!(packets.len(), 1, "{state:?}");
            let packet = &packets[0];
            assert!(packet.flags.contains(&bit), "{state:?}");
            let left = packet.offload.flags.contains(OffloadFlags::TCP_CSUM);
            assert_eq!(left, mode == ChecksumMode::default());
            let summed = packet.checksum == packet.right_checksum;
            assert!(summed || mode != ChecksumMode::Software);
            assert!(packet.checksum == 0 || mode != ChecksumMode::None);
        }
    }
}

#[test]
fn fault_x4_the_window_of_a_syn_is_not_scaled() {
    let set = set();
    let sb = SockBuf::new(1000);
    for state in [State::SynSent, State::SynReceived, State::Established] {
        let mut tcb = tcb(v4(), 1460);
        tcb.state = state;
        tcb.flags |= TcbFlags::SCALE | TcbFlags::ACK_NOW;
        (tcb.rcv.space, tcb.rcv.hiwat, tcb.rcv.scale) = (512 << 7, 512 << 7, 7);
        tcb.rcv.adv = tcb.rcv.nxt;
        let mut sender = Sender::new(tcb, Reference);
        let packet = seen(&mut sender, &sb, &set).swap_remove(0);
        let scaled = state == State::Established;
        assert_eq!(packet.window, if scaled { 512 } else { 65535 }, "{state:?}");
        assert_eq!(packet.options.contains(&"WS".to_string()), !scaled);
    }
}

#[test]
fn fault_x10_a_lost_fin_is_sent_again_in_every_state_that_waits_for_its_ack() {
    let set = set();
    for state in [State::FinWait1, State::Closing, State::LastAck] {
        let sb = spliced(&set, 3, 1448);
        let mut tcb = tcb(v4(), 1460);
        tcb.state = state;
        let mut sender = Sender::new(tcb, Reference).with_tso(false);
        let first = ranges(&mut sender, &sb, &set);
        assert_eq!(first, [(0, 1448), (1448, 1448), (2896, 1448)]);
        let armed = sender.tcb().next_timeout().expect("armed by the first");
        assert_eq!(armed, NOW + sender.tcb().rtt.rto);
        assert_eq!(ranges(&mut sender, &sb, &set), [], "not without a reason");
        sender.tcb_mut().on_timer(armed);
        sender.tcb_mut().send.cwnd = 1 << 20;
        let again = seen(&mut sender, &sb, &set);
        let fins: Vec<bool> = again.iter().map(|p| p.flags.contains(&"FIN")).collect();
        assert_eq!(fins, [false, false, true], "{state:?}");
        let tcb = sender.tcb();
        assert_eq!(
            (tcb.send.nxt - tcb.una, tcb.send.max - tcb.una),
            (4345, 4345)
        );
    }
}

#[test]
fn fault_x10_a_fin_without_data_is_not_repeated_into_a_closed_window() {
    let set = set();
    let sb = SockBuf::new(1000);
    let mut tcb = tcb(v4(), 1460);
    (tcb.state, tcb.wnd) = (State::LastAck, 0);
    let mut sender = Sender::new(tcb, Reference);
    assert_eq!(seen(&mut sender, &sb, &set)[0].flags, ["ACK", "FIN"]);
    for _ in 0..3 {
        assert_eq!(ranges(&mut sender, &sb, &set), []);
    }
    let at = sender.tcb().timer(Timer::Retransmit).expect("armed");
    let mut again = Vec::new();
    let mut out = |packet: Mbuf| {
        again.push(see(&packet).flags);
        Ok(())
    };
    sender.on_timer(&sb, &set, at, &mut out).expect("buffers");
    assert_eq!(again, [["ACK", "FIN"]]);
}

/// A connection with ten segments out, of which the peer lacks those at these places.
fn with_holes(holes: &[u32], set: &mbuf::BufferSet) -> (Sender<Reference>, SockBuf) {
    let sb = spliced(set, 30, 1448);
    let mut tcb = tcb(v4(), 1460);
    tcb.send.cwnd = 14480;
    let mut sender = Sender::new(tcb, Reference).with_tso(false);
    assert_eq!(ranges(&mut sender, &sb, set).len(), 10);
    let tcb = sender.tcb_mut();
    let hole = |&n: &u32| Hole {
        dups: 3,
        ..Hole::new(tcb.una + n * 1448, tcb.una + (n + 1) * 1448)
    };
    let holes: Vec<Hole> = holes.iter().map(hole).collect();
    let (una, max) = (tcb.una, tcb.send.max);
    tcb.scoreboard
        .replace(&holes, max, una, max)
        .expect("in order");
    (tcb.dup_acks, tcb.recover) = (3, max);
    (sender, sb)
}

#[test]
fn fault_l4_each_hole_is_filled_once_and_then_comes_new_data() {
    let set = set();
    let (mut sender, sb) = with_holes(&[0, 1, 3], &set);
    let mut sent = Vec::new();
    for _ in 0..5 {
        // Each duplicate acknowledgment opens the window by a segment.
        sender.tcb_mut().send.cwnd += 1448;
        sent.extend(ranges(&mut sender, &sb, &set));
    }
    assert_eq!(sent[..3], [(0, 1448), (1448, 1448), (3 * 1448, 1448)]);
    assert_eq!(sent[3..], [(14480, 1448), (15928, 1448)]);
    let stats = sender.tcb().stats;
    assert_eq!(
        (stats.sack_rexmit_packets, stats.sack_rexmit_bytes),
        (3, 4344)
    );
    assert_eq!(stats.rexmit_packets, 3);
}

#[test]
fn fault_l4_a_hole_that_did_not_leave_is_still_to_be_filled() {
    let set = set();
    let (mut sender, sb) = with_holes(&[0], &set);
    let before = sender.tcb().scoreboard.clone();
    sender
        .output(&sb, &set, NOW, &mut |_| Err(OutputError::NoBuffers))
        .expect_err("no room");
    assert_eq!(sender.tcb().scoreboard, before);
    assert_eq!(ranges(&mut sender, &sb, &set), [(0, 1448)]);
}

#[test]
fn fault_l12_a_timeout_during_recovery_sends_no_byte_twice() {
    let set = set();
    let (mut sender, mut sb) = with_holes(&[0, 4], &set);
    assert_eq!(ranges(&mut sender, &sb, &set), [(0, 1448)]);
    let at = sender.tcb().next_timeout().expect("armed");
    let start = sender.tcb().una;
    let mut sent = Vec::new();
    let mut out = |packet: Mbuf| {
        let seen = see(&packet);
        sent.push((Seq(seen.seq) - start, seen.payload.len() as u32));
        Ok(())
    };
    sender.on_timer(&sb, &set, at, &mut out).expect("buffers");
    // Partial acknowledgments: one segment, then three more.
    for acked in [1, 4] {
        let ack = Ack::new(start + acked * 1448, 1 << 20);
        sender.on_ack(&ack, at, &mut sb).expect("in range");
        sender.output(&sb, &set, at, &mut out).expect("buffers");
    }
    for pair in sent.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{sent:?}");
    }
    assert!(sent.len() > 3);
}

#[test]
fn fault_l2_holes_beyond_the_limit_are_refused() {
    let mut tcb = tcb(v4(), 1460);
    let (una, max) = (tcb.una, tcb.una + 10_000 * 2);
    let holes: Vec<Hole> = (0..10_000)
        .map(|n| Hole::new(una + 2 * n, una + 2 * n + 1))
        .collect();
    let asked = holes.len();
    let refused = tcb.scoreboard.replace(&holes, max, una, max);
    assert_eq!(refused, Err(BadHole::Full { asked }));
    assert!(tcb.scoreboard.is_empty());
}

#[test]
fn urgent_data_is_announced_until_it_has_gone() {
    let set = set();
    let sb = spliced(&set, 1, 101);
    let mut tcb = tcb(v6(), 1440);
    tcb.up = tcb.una + 101;
    tcb.send.cwnd = 0;
    tcb.wnd = 0;
    let mut sender = Sender::new(tcb, Reference);
    let word = seen(&mut sender, &sb, &set);
    assert_eq!(
        (&word[0].flags[..], word[0].urgent),
        (&["ACK", "URG"][..], 101)
    );
    assert_eq!((word[0].payload.len(), sender.tcb().stats.urgent), (0, 1));
    (sender.tcb_mut().wnd, sender.tcb_mut().send.cwnd) = (65535, 65535);
    let data = seen(&mut sender, &sb, &set);
    assert_eq!((data[0].payload.len(), data[0].urgent), (101, 101));
    assert_eq!(ranges(&mut sender, &sb, &set), []);
}

#[test]
fn cwr_waits_for_new_data_and_goes_once() {
    let set = set();
    let mut sb = SockBuf::new(1000);
    let mut tcb = tcb(v6(), 1440);
    tcb.flags |= TcbFlags::ECN | TcbFlags::CWR_DUE | TcbFlags::CE_SEEN | TcbFlags::ACK_NOW;
    let mut sender = Sender::new(tcb, Reference);
    let ack = seen(&mut sender, &sb, &set);
    assert_eq!(
        (&ack[0].flags[..], ack[0].ect),
        (&["ACK", "ECE"][..], false)
    );
    for flags in [&["ACK", "CWR", "ECE", "PSH"][..], &["ACK", "ECE", "PSH"]] {
        sb.write(&[1; 10], &set).expect("space");
        let data = seen(&mut sender, &sb, &set);
        assert_eq!((&data[0].flags[..], data[0].ect), (flags, true));
    }
}

#[test]
fn blocked_output_is_remembered() {
    let set = set();
    let sb = spliced(&set, 1, 100);
    let mut sender = Sender::new(tcb(v4(), 1460), Reference);
    sender.tcb_mut().flags |= TcbFlags::BLOCKED;
    assert_eq!(ranges(&mut sender, &sb, &set), []);
    assert!(sender.tcb().flags.contains(TcbFlags::NEED_OUTPUT));
    sender.tcb_mut().flags -= TcbFlags::BLOCKED;
    assert_eq!(ranges(&mut sender, &sb, &set), [(0, 100)]);
    assert!(!sender.tcb().flags.contains(TcbFlags::NEED_OUTPUT));
}

#[test]
fn row_g4b_before_the_peer_answered_an_unreachable_one_is_an_error() {
    let set = set();
    let flags = TcbFlags::ASK_SACK;
    let tcb = Tcb::connecting(v4(), 1460, flags, Seq(7)).expect("size");
    let mut sender = Sender::new(tcb, Reference);
    let error = sender
        .output(&SockBuf::new(10), &set, NOW, &mut |_| {
            Err(OutputError::Unreachable)
        })
        .expect_err("nobody heard of us");
    assert_eq!(error.cause, Cause::Output(OutputError::Unreachable));
    let tcb = sender.tcb();
    assert!(tcb.soft_error.is_none() && tcb.send.rexmt.is_some());
}
