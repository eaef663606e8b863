//! What timers and acknowledgments do: the event rows that the data path can express.

mod common;

use common::{failing_set, pattern, see, v4};
use mbuf::{BufferSet, Mbuf};
use sockbuf::SockBuf;
use tcp_output::policy::Reference;
use tcp_output::*;

const FIRST: Seq = Seq(u32::MAX - 30_000);

/// The state that the event rows start from.
fn event_row(set: &BufferSet, queued: usize) -> (Sender<Reference>, SockBuf) {
    let flags = TcbFlags::TIMESTAMPS | TcbFlags::SACK;
    let mut tcb = Tcb::new(v4(), 1460, flags, FIRST, Seq(1)).expect("size");
    (tcb.wnd, tcb.max_wnd, tcb.send.cwnd, tcb.wnd_scale) = (262_144, 262_144, 262_144, 7);
    (tcb.rtt.base, tcb.rtt.rto) = (1000, 1000);
    let mut sb = SockBuf::new(65536);
    if queued > 0 {
        sb.write(&pattern(0, queued), set).expect("space");
    }
    (Sender::new(tcb, Reference), sb)
}

/// Sequence number from the start and length of each packet.
fn collect(seen: &mut Vec<(u32, usize)>) -> impl FnMut(Mbuf) -> Result<(), OutputError> + '_ {
    |packet| {
        let packet = see(&packet);
        seen.push((Seq(packet.seq) - FIRST, packet.payload.len()));
        Ok(())
    }
}

#[test]
fn row_j1_and_j2_retransmission_timer_and_the_ack_after_it() {
    let set = BufferSet::bsd(256, 16).expect("pools");
    let (mut sender, mut sb) = event_row(&set, 14480);
    let mut seen = Vec::new();
    sender
        .output(&sb, &set, Time(0), &mut collect(&mut seen))
        .expect("buffers");
    assert_eq!(seen, [(0, 14480)]);
    sender.tcb_mut().send.cwnd = 14480;
    seen.clear();
    let (expired, _) = sender
        .on_timer(&sb, &set, Time(1000), &mut collect(&mut seen))
        .expect("buffers");
    assert_eq!(expired, Some(Expired::Retransmit));
    let tcb = sender.tcb();
    assert_eq!(
        (tcb.send.backoff, tcb.rtt.rto, tcb.ssthresh, tcb.send.cwnd),
        (1, 2000, 7240, 1448)
    );
    assert_eq!(
        (tcb.send.rexmt, tcb.stats.rexmit_packets),
        (Some(Time(3000)), 1)
    );
    assert_eq!(seen, [(0, 1448)]);
    seen.clear();
    sender
        .on_ack(&Ack::new(FIRST + 1448, 262_144), Time(1100), &mut sb)
        .expect("in range");
    assert_eq!(sender.tcb().send.cwnd, 2896);
    sender
        .output(&sb, &set, Time(1100), &mut collect(&mut seen))
        .expect("buffers");
    assert_eq!(seen, [(1448, 2896)]);
    assert_eq!(sender.tcb().stats.rexmit_packets, 2);
}

#[test]
fn row_j3_thirteenth_expiry_gives_up() {
    let set = BufferSet::bsd(256, 16).expect("pools");
    let (mut sender, sb) = event_row(&set, 100);
    sender
        .output(&sb, &set, Time(0), &mut |_| Ok(()))
        .expect("buffers");
    let mut intervals = Vec::new();
    let mut now = Time(0);
    loop {
        let at = sender.tcb().next_timeout().expect("armed");
        intervals.push((at - now) / 1000);
        now = at;
        let (expired, _) = sender
            .on_timer(&sb, &set, now, &mut |_| Ok(()))
            .expect("buffers");
        if expired == Some(Expired::GiveUp) {
            break;
        }
    }
    assert_eq!(intervals, [1, 2, 4, 8, 16, 32, 64, 64, 64, 64, 64, 64, 64]);
    assert_eq!(sender.tcb().next_timeout(), None);
}

#[test]
fn row_j7_persist_probes_and_the_window_that_opens() {
    let set = BufferSet::bsd(256, 16).expect("pools");
    let (mut sender, mut sb) = event_row(&set, 5000);
    sender.tcb_mut().wnd = 0;
    let mut seen = Vec::new();
    sender
        .output(&sb, &set, Time(0), &mut collect(&mut seen))
        .expect("buffers");
    assert!(seen.is_empty());
    let mut intervals = Vec::new();
    let mut now = Time(0);
    for _ in 0..7 {
        let at = sender.tcb().next_timeout().expect("armed");
        intervals.push((at - now) / 1000);
        now = at;
        sender
            .on_timer(&sb, &set, now, &mut collect(&mut seen))
            .expect("buffers");
    }
    assert_eq!(intervals, [5, 6, 12, 24, 48, 60, 60]);
    assert_eq!(
        (&seen[..], sender.tcb().stats.probes),
        (&[(0, 1); 7][..], 7)
    );
    // The peer took the byte and opens.
    seen.clear();
    sender
        .on_ack(&Ack::new(FIRST + 1, 262_144), now, &mut sb)
        .expect("in range");
    sender
        .output(&sb, &set, now, &mut collect(&mut seen))
        .expect("buffers");
    // Two segments after the long silence, one more for the acknowledgment.
    assert_eq!(seen, [(1, 4344)]);
    assert!(sender.tcb().send.persist.is_none() && sender.tcb().send.rexmt.is_some());
}

#[test]
fn row_j11_window_update_when_the_reader_made_two_segments_of_room() {
    let set = BufferSet::bsd(256, 16).expect("pools");
    for (space, updates) in [(2895, 0), (2896, 1)] {
        let (mut sender, sb) = event_row(&set, 0);
        let rcv = &mut sender.tcb_mut().rcv;
        (rcv.adv, rcv.space) = (rcv.nxt, space);
        sender
            .output(&sb, &set, Time(0), &mut |_| Ok(()))
            .expect("buffers");
        assert_eq!(sender.tcb().stats.window_updates, updates, "space {space}");
    }
}

#[test]
fn row_j12_one_large_write_goes_in_one_pass() {
    let set = BufferSet::bsd(256, 16).expect("pools");
    let (mut sender, sb) = event_row(&set, 20_000);
    let mut seen = Vec::new();
    sender
        .output(&sb, &set, Time(0), &mut collect(&mut seen))
        .expect("buffers");
    assert_eq!(seen, [(0, 18824), (18824, 1176)]);
}

#[test]
fn row_j13_tail_of_a_write_in_progress_waits_for_its_rest() {
    let set = BufferSet::bsd(256, 64).expect("pools");
    let (mut sender, mut sb) = event_row(&set, 65536);
    sender.set_more_coming(true);
    let mut seen = Vec::new();
    sender
        .output(&sb, &set, Time(0), &mut collect(&mut seen))
        .expect("buffers");
    assert_eq!(seen, [(0, 65160)]);
    assert!(sender.tcb().send.last_idle);
    seen.clear();
    sender
        .on_ack(&Ack::new(FIRST + 65160, 262_144), Time(10), &mut sb)
        .expect("in range");
    sb.write(&pattern(65536, 100_000 - 65536), &set)
        .expect("space");
    sender.set_more_coming(false);
    sender
        .output(&sb, &set, Time(10), &mut collect(&mut seen))
        .expect("buffers");
    assert_eq!(seen, [(65160, 34752), (99912, 88)]);
}

#[test]
fn row_j14_failed_first_segment_is_tried_again_by_a_timer() {
    let (set, switches) = failing_set(64, 8);
    let (mut sender, sb) = event_row(&set, 100);
    switches[0].fail_at(1);
    sender
        .output(&sb, &set, Time(0), &mut |_| Ok(()))
        .expect_err("no mbuf");
    let at = sender.tcb().next_timeout().expect("armed");
    let mut seen = Vec::new();
    sender
        .on_timer(&sb, &set, at, &mut collect(&mut seen))
        .expect("buffers");
    assert_eq!(seen, [(0, 100)]);
}

#[test]
fn fault_k5_window_that_shrinks_below_what_is_sent() {
    let set = BufferSet::bsd(256, 16).expect("pools");
    let (mut sender, mut sb) = event_row(&set, 20_000);
    sender.tcb_mut().wnd = 5000;
    sender
        .output(&sb, &set, Time(0), &mut |_| Ok(()))
        .expect("buffers");
    sender
        .on_ack(&Ack::new(FIRST, 1000), Time(5), &mut sb)
        .expect("in range");
    let before = sender.tcb().send;
    let sent = sender
        .output(&sb, &set, Time(5), &mut |_| Ok(()))
        .expect("buffers");
    assert_eq!((sent, sender.tcb().send), (Sent::default(), before));
    let mut seen = Vec::new();
    sender
        .on_timer(
            &sb,
            &set,
            before.rexmt.expect("armed"),
            &mut collect(&mut seen),
        )
        .expect("buffers");
    assert_eq!(
        seen,
        [(0, 1000)],
        "a retransmission stays inside the new window"
    );
}

#[test]
fn acks_out_of_range_change_nothing() {
    let set = BufferSet::bsd(256, 16).expect("pools");
    let (mut sender, mut sb) = event_row(&set, 5000);
    sender
        .output(&sb, &set, Time(0), &mut |_| Ok(()))
        .expect("buffers");
    let before = (sender.tcb().una, sender.tcb().send, sb.len());
    let beyond = sender
        .on_ack(&Ack::new(FIRST + 5001, 1), Time(1), &mut sb)
        .expect_err("never sent");
    assert_eq!(
        beyond,
        AckError::Beyond {
            ack: FIRST + 5001,
            max: FIRST + 5000
        }
    );
    let mut foreign = SockBuf::new(10);
    assert!(matches!(
        sender.on_ack(&Ack::new(FIRST + 5000, 1), Time(1), &mut foreign),
        Err(AckError::Buffer(_))
    ));
    assert_eq!((sender.tcb().una, sender.tcb().send, sb.len()), before);
    let acked = sender
        .on_ack(&Ack::new(FIRST + 5000, 65535), Time(1), &mut sb)
        .expect("in range");
    assert_eq!(
        (acked.bytes, sb.len(), sender.tcb().next_timeout()),
        (5000, 0, None)
    );
    drop(acked);
    let again = sender
        .on_ack(&Ack::new(FIRST, 7), Time(2), &mut sb)
        .expect("old");
    assert_eq!(
        (again.bytes, sender.tcb().wnd),
        (0, 65535),
        "an old acknowledgment's window is old too"
    );
    assert!(set.is_full());
}

#[test]
fn row_j10_an_acknowledged_fin_is_no_byte_of_the_buffer() {
    let set = BufferSet::bsd(256, 16).expect("pools");
    let (mut sender, mut sb) = event_row(&set, 100);
    sender.tcb_mut().state = State::FinWait1;
    sender
        .output(&sb, &set, Time(0), &mut |_| Ok(()))
        .expect("buffers");
    assert_eq!(sender.tcb().send.max, FIRST + 101);
    let acked = sender
        .on_ack(&Ack::new(FIRST + 101, 65535), Time(5), &mut sb)
        .expect("in range");
    assert_eq!((acked.bytes, sb.len()), (100, 0));
    assert_eq!(sender.tcb().next_timeout(), None);
    assert_eq!(sender.tcb().una, FIRST + 101);
}
