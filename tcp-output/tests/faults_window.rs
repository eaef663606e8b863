//! Faults that others have had, as scenarios of ours: windows, probes, and numbers that wrap.

mod common;

use common::{NOW, pattern, see, send, set, spliced, tcb, v4};
use mbuf::Mbuf;
use sockbuf::SockBuf;
use tcp_output::policy::Reference;
use tcp_output::*;

type Conn = Sender<Reference>;

/// A connection at rest with Nagle on, and `queued` bytes to send.
fn conn(queued: usize, set: &mbuf::BufferSet) -> (Conn, SockBuf) {
    let mut tcb = tcb(v4(), 1460);
    tcb.flags -= TcbFlags::NODELAY;
    let mut sb = SockBuf::new(1 << 20);
    sb.write(&pattern(0, queued), set).expect("space");
    (Sender::new(tcb, Reference), sb)
}

/// Payload lengths of what one call of output sends.
fn lengths(conn: &mut Conn, sb: &SockBuf, set: &mbuf::BufferSet) -> Vec<usize> {
    let packets = send(conn, sb, set);
    packets.iter().map(|p| see(p).payload.len()).collect()
}

/// The first timer, at its time: payload lengths of what it sends.
fn timeout(conn: &mut Conn, sb: &SockBuf, set: &mbuf::BufferSet) -> (Time, Vec<usize>) {
    let at = conn.tcb().next_timeout().expect("a timer runs");
    let mut lengths = Vec::new();
    let mut out = |packet: Mbuf| {
        lengths.push(see(&packet).payload.len());
        Ok(())
    };
    conn.on_timer(sb, set, at, &mut out).expect("buffers");
    (at, lengths)
}

#[test]
fn fault_k1_a_small_window_is_not_a_deadlock() {
    let set = set();
    let (mut conn, sb) = conn(1000, &set);
    conn.tcb_mut().wnd = 300;
    assert_eq!(lengths(&mut conn, &sb, &set), [0; 0]);
    assert!(conn.tcb().send.persist.is_some());
    assert_eq!(timeout(&mut conn, &sb, &set).1, [300]);
    let send = conn.tcb().send;
    assert!(send.rexmt.is_some() && send.persist.is_none());
}

#[test]
fn fault_k3_probes_carry_a_byte_and_back_off() {
    let set = set();
    let (mut conn, sb) = conn(1000, &set);
    conn.tcb_mut().wnd = 0;
    assert_eq!(lengths(&mut conn, &sb, &set), [0; 0]);
    let mut times = vec![NOW.0];
    for _ in 0..3 {
        let (at, probe) = timeout(&mut conn, &sb, &set);
        assert_eq!(probe, [1]);
        times.push(at.0);
    }
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps, [5000, 6000, 12_000]);
    conn.tcb_mut().wnd = 65535;
    assert_eq!(lengths(&mut conn, &sb, &set), [1000]);
}

#[test]
fn fault_k7_a_window_taken_back_leaves_no_room() {
    let set = set();
    for window in [0, 1000] {
        let (mut conn, sb) = conn(5000, &set);
        assert_eq!(lengths(&mut conn, &sb, &set).iter().sum::<usize>(), 5000);
        conn.tcb_mut().wnd = window;
        assert_eq!(lengths(&mut conn, &sb, &set), [0; 0], "window {window}");
        assert_eq!(timeout(&mut conn, &sb, &set).1, [window.max(1) as usize]);
    }
}

#[test]
fn fault_k9_an_endless_writer_fills_its_segments() {
    let set = set();
    let mut tcb = tcb(v4(), 1362);
    tcb.flags -= TcbFlags::NODELAY;
    let (mut sender, mut sb) = (
        Sender::new(tcb, Reference).with_tso(false),
        SockBuf::new(8192),
    );
    let mut short = 0;
    for round in 0..200 {
        let room = usize::try_from(sb.space()).unwrap_or(0);
        sb.write(&pattern(0, room), &set).expect("space");
        sender.set_more_coming(true);
        let sent = lengths(&mut sender, &sb, &set);
        short += sent.iter().filter(|&&len| len < 1350).count();
        // Every other segment is acknowledged.
        let tcb = sender.tcb();
        let step = (tcb.send.max - tcb.una).min(2700);
        let ack = Ack::new(tcb.una + step, 1 << 20);
        sender.on_ack(&ack, NOW + round, &mut sb).expect("in range");
    }
    assert_eq!(short, 0, "segments below 1350 bytes");
}

#[test]
fn fault_k13_shortage_of_buffers_for_acks_costs_no_connection() {
    let set = set();
    let (mut conn, sb) = conn(0, &set);
    for _ in 0..20 {
        conn.tcb_mut().flags |= TcbFlags::ACK_NOW;
        let refused = conn.output(&sb, &set, NOW, &mut |_| Err(OutputError::NoBuffers));
        assert!(refused.is_err());
        let tcb = conn.tcb();
        assert_eq!(
            (tcb.send.rexmt, tcb.send.persist, tcb.send.backoff),
            (None, None, 0)
        );
        assert!(tcb.timers.delayed_ack.is_some());
    }
    assert_eq!(
        timeout(&mut conn, &sb, &set).1,
        [0],
        "the acknowledgment goes at last"
    );
}

#[test]
fn fault_k15_a_congestion_window_below_a_frame_still_moves() {
    let set = set();
    let (mut conn, sb) = conn(60_000, &set);
    for cwnd in [1448, 1449, 2896, 5000] {
        conn.tcb_mut().send.cwnd = cwnd;
        let sent = lengths(&mut conn, &sb, &set);
        assert_eq!(sent, [cwnd as usize / 1448 * 1448], "window {cwnd}");
        let una = conn.tcb().una;
        conn.tcb_mut().send.nxt = una;
        conn.tcb_mut().send.max = una;
    }
}

#[test]
fn fault_t6_windows_near_the_sign_bit_are_clamped_to_the_data() {
    let set = set();
    for window in [0x8000_0840, u32::MAX, 65535 << 14] {
        let (mut conn, sb) = conn(5000, &set);
        let tcb = conn.tcb_mut();
        (tcb.wnd, tcb.max_wnd, tcb.send.cwnd) = (window, window, u32::MAX);
        (tcb.rcv.space, tcb.rcv.hiwat, tcb.rcv.scale) = (u32::MAX, u32::MAX, 14);
        assert_eq!(lengths(&mut conn, &sb, &set), [4344, 656]);
        let told = conn.tcb().rcv;
        assert_eq!(told.nxt.distance(told.adv), 65535 << 14);
    }
}

#[test]
fn fault_u6_clocks_about_to_wrap_keep_the_intervals() {
    let set = set();
    for start in [i32::MAX as u64 - 5, u64::from(u32::MAX) - 5] {
        let (mut conn, mut sb) = conn(100, &set);
        conn.tcb_mut().rcv.last = Time(start);
        let mut clock = 0;
        let mut out = |packet: Mbuf| {
            clock = see(&packet).clock.expect("timestamps");
            Ok(())
        };
        conn.output(&sb, &set, Time(start), &mut out)
            .expect("buffers");
        let mut times = vec![start];
        for _ in 0..3 {
            let (at, again) = timeout(&mut conn, &sb, &set);
            assert_eq!(again, [100]);
            times.push(at.0);
        }
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(gaps, [6000, 12_000, 24_000]);
        // The answer to the first of them crosses the wrap and is a sample all the same.
        let ack = Ack::new(conn.tcb().send.max, 65535).echoing(clock);
        conn.on_ack(&ack, Time(start + 40), &mut sb)
            .expect("in range");
        assert_eq!(conn.tcb().rtt.srtt >> 5, 40);
    }
}

#[test]
fn a_path_that_narrows_makes_segments_smaller_at_once() {
    let set = set();
    let sb = spliced(&set, 4, 1448);
    let mut conn = Sender::new(tcb(v4(), 1460), Reference).with_tso(false);
    let (mut stream, mut refused) = (Vec::new(), 0);
    let mut out = |packet: Mbuf| {
        let seen = see(&packet);
        if seen.header.len() + seen.payload.len() > 1400 {
            refused += 1;
            return Err(OutputError::TooLong { mtu: 1400 });
        }
        stream.extend(seen.payload);
        Ok(())
    };
    conn.output(&sb, &set, NOW, &mut out).expect("smaller ones");
    assert!(stream == pattern(0, 4 * 1448));
    assert_eq!((refused, conn.tcb().max_opd()), (1, 1360));
    // A path that claims to be no narrower, or absurdly narrow, is an error, not a loop.
    for mtu in [1400, 1500, 60] {
        let una = conn.tcb().una;
        conn.tcb_mut().send.nxt = una;
        let error = conn
            .output(&sb, &set, NOW, &mut |_| Err(OutputError::TooLong { mtu }))
            .expect_err("cannot be made to fit");
        assert_eq!(error.cause, Cause::Output(OutputError::TooLong { mtu }));
        assert_eq!(conn.tcb().max_opd(), 1360);
        assert!(conn.tcb().send.rexmt.is_some());
    }
}
