//! What the timers do, beyond sending data again: reset, delayed acknowledgment, keep-alive, the end
//! of a connection.

mod common;

use common::{NOW, Seen, see, set, spliced, tcb, v4};
use mbuf::Mbuf;
use sockbuf::SockBuf;
use tcp_output::policy::Reference;
use tcp_output::timer::{DELAYED_ACK, KEEP_IDLE, KEEP_INTERVAL, KEEP_PROBES};
use tcp_output::*;

/// One expiry, and what goes out on it.
fn expire(sender: &mut Sender<Reference>, sb: &SockBuf, now: Time) -> (Option<Expired>, Vec<Seen>) {
    let set = set();
    let mut packets = Vec::new();
    let mut out = |packet: Mbuf| {
        packets.push(see(&packet));
        Ok(())
    };
    let (expired, sent) = sender.on_timer(sb, &set, now, &mut out).expect("buffers");
    assert_eq!(sent.packets, packets.len());
    (expired, packets)
}

fn quiet() -> Sender<Reference> {
    Sender::new(tcb(v4(), 1460), Reference)
}

/// Runs the first timer of `sender` that is due, at its time.
fn next(sender: &mut Sender<Reference>, sb: &SockBuf) -> (Time, Option<Expired>, Vec<Seen>) {
    let at = sender.tcb().next_timeout().expect("armed");
    let (expired, packets) = expire(sender, sb, at);
    (at, expired, packets)
}

#[test]
fn row_j3_a_connection_that_is_given_up_says_why_and_resets() {
    let errors = [
        (None, Dropped::TimedOut),
        (
            Some(OutputError::Unreachable),
            Dropped::Unreachable(OutputError::Unreachable),
        ),
    ];
    for (soft, why) in errors {
        let set = set();
        let sb = spliced(&set, 1, 100);
        let mut sender = quiet();
        sender
            .output(&sb, &set, NOW, &mut |_| Ok(()))
            .expect("buffers");
        sender.tcb_mut().send.backoff = 12;
        sender.tcb_mut().soft_error = soft;
        let (_, expired, packets) = next(&mut sender, &sb);
        assert_eq!(expired, Some(Expired::GiveUp));
        assert_eq!((packets.len(), packets[0].window), (1, 0));
        assert_eq!(packets[0].flags, ["ACK", "RST"]);
        assert_eq!(Seq(packets[0].seq), sender.tcb().send.max);
        let tcb = sender.tcb();
        assert_eq!((tcb.dropped, tcb.state), (Some(why), State::Closed));
        assert_eq!(tcb.next_timeout(), None);
    }
}

#[test]
fn row_j3_a_syn_without_an_answer_is_given_up_in_silence() {
    let flags = TcbFlags::ASK_TIMESTAMPS | TcbFlags::ASK_ECN;
    let tcb = Tcb::connecting(v4(), 1460, flags, Seq(u32::MAX)).expect("size");
    let (mut sender, sb, set) = (Sender::new(tcb, Reference), SockBuf::new(1000), set());
    let mut first = Vec::new();
    let mut out = |packet: Mbuf| {
        first.push(see(&packet));
        Ok(())
    };
    sender.output(&sb, &set, NOW, &mut out).expect("buffers");
    sender.output(&sb, &set, NOW, &mut out).expect("buffers");
    assert_eq!(
        first.len(),
        1,
        "a SYN that is out is not repeated by output"
    );
    assert_eq!(first[0].flags, ["CWR", "ECE", "SYN"]);
    assert_eq!((first[0].seq, first[0].ack), (u32::MAX, 0));
    for _ in 0..12 {
        let (_, expired, packets) = next(&mut sender, &sb);
        assert_eq!(expired, Some(Expired::Retransmit));
        assert_eq!(
            (packets[0].seq, &packets[0].flags[..]),
            (u32::MAX, &["SYN"][..])
        );
    }
    let (_, expired, packets) = next(&mut sender, &sb);
    assert_eq!((expired, packets.len()), (Some(Expired::Closed), 0));
    assert_eq!(sender.tcb().dropped, Some(Dropped::TimedOut));
}

#[test]
fn row_j1_a_timeout_forgets_holes_and_tells_the_peer_of_congestion() {
    let set = set();
    let sb = spliced(&set, 10, 1448);
    let mut sender = quiet();
    sender.tcb_mut().flags |= TcbFlags::ECN;
    sender
        .output(&sb, &set, NOW, &mut |_| Ok(()))
        .expect("buffers");
    let tcb = sender.tcb_mut();
    let (una, max) = (tcb.una, tcb.send.max);
    let hole = Hole::new(una, una + 1448);
    tcb.scoreboard
        .replace(&[hole], max, una, max)
        .expect("in range");
    (tcb.dup_acks, tcb.rtt.srtt, tcb.send.backoff) = (3, 320, 3);
    let timeout = tcb.rtt.rto;
    let (at, expired, packets) = next(&mut sender, &sb);
    let tcb = sender.tcb();
    assert_eq!(expired, Some(Expired::Retransmit));
    assert_eq!(
        packets[0].flags,
        ["ACK"],
        "the word of congestion waits for new data"
    );
    assert!(!packets[0].ect && tcb.flags.contains(TcbFlags::CWR_DUE));
    assert_eq!((tcb.scoreboard.is_empty(), tcb.dup_acks), (true, 0));
    assert_eq!((tcb.recover, tcb.send.nxt), (max, una + 1448));
    assert_eq!(
        tcb.rtt.srtt, 0,
        "after four timeouts the estimate starts over"
    );
    assert_eq!(at, NOW + timeout);
}

#[test]
fn row_j8_a_window_closed_for_too_long_ends_the_connection() {
    let sb = spliced(&set(), 1, 1000);
    for (silent, ends) in [(511 * 6000 - 1, false), (511 * 6000, true)] {
        let mut sender = quiet();
        let tcb = sender.tcb_mut();
        (tcb.wnd, tcb.send.backoff) = (0, 12);
        tcb.set_timer(Timer::Persist, Some(NOW + silent));
        let (_, expired, packets) = next(&mut sender, &sb);
        if ends {
            assert_eq!(expired, Some(Expired::GiveUp));
            assert_eq!(sender.tcb().dropped, Some(Dropped::TimedOut));
            assert_eq!(packets[0].flags, ["ACK", "RST"]);
        } else {
            assert_eq!(expired, Some(Expired::Persist));
            assert_eq!(
                (packets[0].payload.len(), sender.tcb().stats.probes),
                (1, 1)
            );
        }
    }
}

#[test]
fn row_j9_a_delayed_acknowledgment_goes_when_its_time_is_up() {
    let sb = SockBuf::new(1000);
    let mut sender = quiet();
    sender
        .tcb_mut()
        .set_timer(Timer::DelayedAck, Some(NOW + DELAYED_ACK));
    assert_eq!(expire(&mut sender, &sb, NOW + (DELAYED_ACK - 1)).0, None);
    let (at, expired, packets) = next(&mut sender, &sb);
    assert_eq!(
        (at, expired),
        (NOW + DELAYED_ACK, Some(Expired::DelayedAck))
    );
    assert_eq!((packets.len(), &packets[0].flags[..]), (1, &["ACK"][..]));
    let tcb = sender.tcb();
    assert_eq!((tcb.stats.acks, tcb.next_timeout()), (1, None));
}

#[test]
fn row_g6_an_acknowledgment_without_memory_is_tried_again() {
    let (set, switches) = common::failing_set(8, 1);
    let sb = SockBuf::new(1000);
    let mut sender = quiet();
    sender.tcb_mut().flags |= TcbFlags::ACK_NOW;
    switches[0].fail_at(1);
    sender
        .output(&sb, &set, NOW, &mut |_| Ok(()))
        .expect_err("no mbuf");
    assert_eq!(sender.tcb().timer(Timer::Retransmit), None);
    let (_, expired, packets) = next(&mut sender, &sb);
    assert_eq!((expired, packets.len()), (Some(Expired::DelayedAck), 1));
    assert_eq!(sender.tcb().next_timeout(), None);
}

#[test]
fn a_silent_peer_is_asked_eight_times() {
    let sb = SockBuf::new(1000);
    let mut sender = quiet();
    sender.tcb_mut().flags |= TcbFlags::KEEP_ALIVE;
    sender
        .tcb_mut()
        .set_timer(Timer::KeepAlive, Some(NOW + KEEP_IDLE));
    for probe in 0..KEEP_PROBES {
        let (at, expired, packets) = next(&mut sender, &sb);
        assert_eq!(expired, Some(Expired::KeepAlive));
        assert_eq!(at, NOW + (KEEP_IDLE + probe * KEEP_INTERVAL));
        assert_eq!(Seq(packets[0].seq) + 1, sender.tcb().una);
        assert_eq!(
            (packets[0].payload.len(), &packets[0].flags[..]),
            (0, &["ACK"][..])
        );
    }
    assert_eq!(sender.tcb().stats.keep_probes, u64::from(KEEP_PROBES));
    let (_, expired, _) = next(&mut sender, &sb);
    assert_eq!(expired, Some(Expired::GiveUp));
}

#[test]
fn a_peer_that_speaks_is_not_asked() {
    let sb = SockBuf::new(1000);
    let mut sender = quiet();
    sender.tcb_mut().flags |= TcbFlags::KEEP_ALIVE;
    let at = NOW + KEEP_IDLE;
    sender.tcb_mut().set_timer(Timer::KeepAlive, Some(at));
    sender.tcb_mut().rcv.last = NOW + 1000;
    assert_eq!(expire(&mut sender, &sb, at), (None, Vec::new()));
    assert_eq!(sender.tcb().timer(Timer::KeepAlive), Some(at + 1000));
    sender.tcb_mut().flags -= TcbFlags::KEEP_ALIVE;
    assert_eq!(expire(&mut sender, &sb, at + KEEP_IDLE), (None, Vec::new()));
}

#[test]
fn a_connection_that_does_not_come_about_is_given_up() {
    let tcb = Tcb::connecting(v4(), 1460, TcbFlags::empty(), Seq(1)).expect("size");
    let mut sender = Sender::new(tcb, Reference);
    sender.tcb_mut().set_timer(Timer::KeepAlive, Some(NOW));
    let (_, expired, packets) = next(&mut sender, &SockBuf::new(1000));
    assert_eq!((expired, packets.len()), (Some(Expired::Closed), 0));
    assert_eq!(sender.tcb().dropped, Some(Dropped::TimedOut));
}

#[test]
fn the_last_states_end_by_themselves() {
    let sb = SockBuf::new(1000);
    let mut sender = quiet();
    sender.tcb_mut().state = State::TimeWait;
    sender
        .tcb_mut()
        .set_timer(Timer::TimeWait, Some(NOW + 60_000));
    let (_, expired, packets) = next(&mut sender, &sb);
    assert_eq!((expired, packets.len()), (Some(Expired::Closed), 0));
    assert_eq!(
        (sender.tcb().state, sender.tcb().dropped),
        (State::Closed, None)
    );

    let mut sender = quiet();
    sender.tcb_mut().state = State::FinWait2;
    sender.tcb_mut().rcv.last = NOW + 50_000;
    let at = NOW + KEEP_PROBES * KEEP_INTERVAL;
    sender.tcb_mut().set_timer(Timer::FinWait2, Some(at));
    assert_eq!(next(&mut sender, &sb).1, None, "the peer still speaks");
    assert_eq!(sender.tcb().next_timeout(), Some(at + KEEP_INTERVAL));
    assert_eq!(next(&mut sender, &sb).1, Some(Expired::Closed));
}

#[test]
fn retransmission_and_persist_exclude_each_other() {
    let mut tcb = tcb(v4(), 1460);
    for (timer, other) in [
        (Timer::Retransmit, Timer::Persist),
        (Timer::Persist, Timer::Retransmit),
    ] {
        tcb.set_timer(timer, Some(NOW));
        assert_eq!((tcb.timer(timer), tcb.timer(other)), (Some(NOW), None));
    }
    tcb.set_timer(Timer::Retransmit, None);
    assert_eq!(
        tcb.timer(Timer::Persist),
        Some(NOW),
        "stopping one starts none"
    );
}
