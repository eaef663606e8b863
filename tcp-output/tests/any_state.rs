//! The send decision in states that nobody thought of: whatever a connection looks like, output ends,
//! sends what it has, and leaves a state in which something will go on.

mod common;

use common::{NOW, pattern, see, set, v4, v6};
use mbuf::Mbuf;
use sockbuf::SockBuf;
use tcp_output::policy::Reference;
use tcp_output::*;

const STATES: [State; 11] = [
    State::Closed,
    State::Listen,
    State::SynSent,
    State::SynReceived,
    State::Established,
    State::CloseWait,
    State::FinWait1,
    State::Closing,
    State::LastAck,
    State::FinWait2,
    State::TimeWait,
];

/// Small, large, or anything in between.
fn size(rng: &mut fastrand::Rng) -> u32 {
    match rng.u8(0..4) {
        0 => 0,
        1 => rng.u32(0..4000),
        2 => rng.u32(0..100_000),
        _ => rng.u32(..),
    }
}

/// A connection with `queued` bytes, of which a part was sent and a part of that pulled back.
fn connection(rng: &mut fastrand::Rng, queued: u32) -> Tcb {
    let ends = if rng.bool() { v4() } else { v6() };
    let flags = TcbFlags::from_bits_truncate(rng.u32(..)) - TcbFlags::BLOCKED;
    let una = Seq(rng.u32(..));
    let opd = rng.u32(64..9000);
    let mut tcb = Tcb::new(ends, opd, flags, una, Seq(rng.u32(..))).expect("size");
    tcb.state = rng.choice(STATES).expect("one");
    let control = match tcb.state {
        State::SynSent | State::SynReceived => {
            tcb.iss = una;
            rng.u32(0..2)
        }
        State::FinWait1 | State::Closing | State::LastAck => rng.u32(0..2),
        _ => 0,
    };
    let all = if tcb.state.synchronized() { queued } else { 0 };
    let data = rng.u32(0..=all);
    // A FIN goes behind all the data.
    let control = if data == all { control } else { 0 };
    tcb.flags.set(
        TcbFlags::FIN_SENT,
        tcb.state.offers().contains(wire::TcpFlags::FIN) && control == 1,
    );
    tcb.send.max = una + data + control;
    tcb.send.nxt = una + rng.u32(0..=data + control);
    (tcb.wnd, tcb.max_wnd, tcb.send.cwnd) = (size(rng), size(rng), size(rng));
    tcb.up = una + rng.u32(0..=queued);
    tcb.recover = una + rng.u32(0..=data);
    tcb.dup_acks = rng.u32(0..5);
    (tcb.rcv.space, tcb.rcv.hiwat, tcb.rcv.scale) = (size(rng), size(rng), rng.u8(0..16));
    tcb.rcv.adv = tcb.rcv.nxt + rng.u32(0..70_000);
    tcb.rcv.sacks = rng.u8(0..5);
    tcb.rcv.last = Time(NOW.0 - rng.u64(0..10_000));
    tcb.send.last_idle = rng.bool();
    tcb.send.backoff = rng.u8(0..13);
    let timers = [None, Some(Timer::Retransmit), Some(Timer::Persist)];
    if let Some(timer) = timers[rng.usize(0..3)] {
        tcb.set_timer(timer, Some(NOW + rng.u32(0..60_000)));
    }
    report_holes(rng, &mut tcb, data);
    tcb
}

fn report_holes(rng: &mut fastrand::Rng, tcb: &mut Tcb, data: u32) {
    if data < 10 || rng.bool() {
        return;
    }
    let start = rng.u32(0..data - 2);
    let end = rng.u32(start + 1..data);
    let hole = Hole {
        rxmit: tcb.una + rng.u32(start..=end),
        dups: rng.u32(0..5),
        ..Hole::new(tcb.una + start, tcb.una + end)
    };
    let (una, max) = (tcb.una, tcb.send.max);
    let report = tcb.scoreboard.replace(&[hole], una + data, una, max);
    report.expect("in range");
}

#[test]
fn output_ends_sends_what_there_is_and_leaves_a_timer() {
    let set = set();
    for seed in 0..4000 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let queued = size(&mut rng) % 100_000;
        let mut sb = SockBuf::new(200_000);
        sb.write(&pattern(0, queued as usize), &set).expect("space");
        let tcb = connection(&mut rng, queued);
        let (una, end, before) = (tcb.una, tcb.una + queued, tcb.clone());
        let mut sender = Sender::new(tcb, Reference)
            .with_tso(rng.bool())
            .with_checksum(ChecksumMode::Software);
        sender.set_more_coming(rng.bool());
        let refused = rng.u8(0..4) == 0;
        let mut out = |packet: Mbuf| {
            let seen = see(&packet);
            let seq = Seq(seen.seq);
            let data = seen.payload.len();
            let text = format!("seed {seed}: {seen:?}");
            if data > 0 {
                assert!(before.state.synchronized(), "{text}");
                assert!(
                    seen.payload == pattern((seq - una) as usize, data),
                    "{text}"
                );
            }
            if seen.flags.contains(&"FIN") {
                assert_eq!(seq + data as u32, end, "{text}");
            }
            let sized = data + seen.options_len <= before.max_opd() as usize;
            assert!(sized || seen.offload.tso_mss > 0, "{text}");
            assert!(!seen.ect || data > 0, "{text}");
            if refused {
                Err(OutputError::NoBuffers)
            } else {
                Ok(())
            }
        };
        let result = if rng.bool() {
            sender.output(&sb, &set, NOW, &mut out)
        } else {
            sender.output_forced(&sb, &set, NOW, &mut out)
        };
        let tcb = sender.tcb();
        let send = tcb.send;
        assert!(
            send.rexmt.is_none() || send.persist.is_none(),
            "seed {seed}"
        );
        assert!(
            una.leq(send.nxt) && send.nxt.leq(send.max),
            "seed {seed}: {send:?}"
        );
        let waits = queued > 0 && before.state.synchronized() || tcb.outstanding();
        let timer = send.rexmt.or(send.persist);
        let alive = tcb.state > State::Listen;
        assert!(
            timer.is_some() || !waits || !alive,
            "seed {seed}: {result:?} {tcb:?}"
        );
    }
}
