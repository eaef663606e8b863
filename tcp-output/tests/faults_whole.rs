//! Faults that others have had, seen in a whole connection.
//!
//! Of the kinds A, F, I to L, T, U and X, these are pinned where their code is, and cannot be said of
//! TCP: A3, A5 and L14 (what a buffer counts and takes: `sockbuf`), A7, J6, J8 and J12 (what a NIC
//! accepts: `driver-sim`), F2, F8 and F10 (chains that fail half-way: `mbuf`), F4 (bulk gets:
//! `mempool`), T2 and T8 (lengths of allocations: `mbuf`, and types that have no sign).

#[path = "common/alone.rs"]
mod alone;
mod common;

use std::cell::Cell;
use std::rc::Rc;

use alone::{Alone, PEER};
use common::{NOW, pattern, piece, see, set, tcb, v4};
use mbuf::{Mbuf, Packet};
use sockbuf::SockBuf;
use tcp_output::connection::{Config, Connection};
use tcp_output::input::{CongestionControl, CongestionWindow, Reno};
use tcp_output::policy::Reference;
use tcp_output::wire::TcpFlags;
use tcp_output::*;

fn plain() -> Config {
    Config {
        flags: TcbFlags::empty(),
        ..Config::default()
    }
}

#[test]
fn fault_k11_a_write_larger_than_the_buffer_goes_piece_by_piece() {
    let mut alone = Alone::new(Config {
        send_buffer: 8192,
        ..plain()
    });
    let data = pattern(0, 3 * 8192);
    let (mut written, mut stream) = (0, Vec::new());
    for _ in 0..100 {
        if written < data.len() {
            written += alone.tcp.write(&data[written..], &alone.set).unwrap_or(0);
        }
        for seen in alone.output() {
            assert_eq!((Seq(seen.seq) - Seq(100)) as usize, stream.len());
            stream.extend(seen.payload);
        }
        alone.ack(Seq(100) + stream.len() as u32);
        if stream.len() == data.len() {
            break;
        }
    }
    assert!(stream == data, "{} of {} bytes", stream.len(), data.len());
}

#[test]
fn fault_l6_a_byte_is_the_byte_of_its_number_after_an_ack_beyond_what_went_again() {
    let mut alone = Alone::new(plain());
    let data = pattern(0, 20 * 1460);
    alone.tcp.write(&data, &alone.set).expect("space");
    let is_right = |seen: &common::Seen| {
        let at = (Seq(seen.seq) - Seq(100)) as usize;
        seen.payload == data[at..at + seen.payload.len()]
    };
    assert!(alone.output().iter().all(is_right));
    // The timeout sends the first again, its acknowledgment two more; then all ten turn out to be there.
    alone.now = Time(1000);
    alone.tcp.on_timer(alone.now);
    assert_eq!(alone.output().len(), 1);
    alone.ack(Seq(100) + 1460);
    assert_eq!(alone.output().len(), 2);
    alone.ack(Seq(100) + 14_600);
    let new = alone.output();
    assert!(!new.is_empty() && new.iter().all(is_right));
    assert_eq!(Seq(new[0].seq), Seq(100) + 14_600);
}

#[test]
fn fault_l8_what_a_driver_adds_to_a_packet_is_not_sent_again() {
    let mut alone = Alone::new(plain());
    alone
        .tcp
        .write(&pattern(0, 3000), &alone.set)
        .expect("space");
    let mut first = Vec::new();
    let mut driver = |mut packet: Mbuf| {
        first.push(see(&packet).payload);
        packet
            .prepend(14)
            .expect("room for a link header")
            .fill(0xee);
        // Where there is no room of its own for a trailer there is none to write into.
        if let Ok(trailer) = packet.append(4) {
            trailer.fill(0xff);
        }
        Ok(())
    };
    let sent = alone.tcp.poll_output(&alone.set, Time(0), &mut driver);
    assert_eq!(sent.expect("buffers").packets, 3);
    alone.now = Time(1000);
    alone.tcp.on_timer(alone.now);
    let again = alone.output();
    assert_eq!(again[0].payload, first[0]);
    assert_eq!(again[0].checksum, again[0].right_checksum);
}

#[test]
fn fault_t4_a_frame_out_of_hundreds_of_mbufs_has_every_byte() {
    let set = set();
    for n in [255usize, 256, 300] {
        let mut sb = SockBuf::new(1 << 20);
        for i in 0..n {
            sb.append_stream(piece(&set, 2048, i == 0, &pattern(i * 100, 100)));
        }
        let mut sender = Sender::new(tcb(v4(), 1460), Reference);
        let (mut stream, mut most) = (Vec::new(), 0);
        let mut out = |packet: Mbuf| {
            most = most.max(packet.nsegs());
            stream.extend(see(&packet).payload);
            Ok(())
        };
        sender.output(&sb, &set, NOW, &mut out).expect("buffers");
        assert!(stream == pattern(0, n * 100), "{n} mbufs");
        // But for the tail of less than a segment, and with its header.
        assert!(most + 16 > n, "{n} mbufs: {most} in a packet");
    }
}

#[test]
fn filling_a_hole_leaves_the_window_a_segment() {
    let mut tcb = tcb(v4(), 1460);
    let una = tcb.una;
    (tcb.send.nxt, tcb.send.max) = (una + 14_480, una + 14_480);
    (tcb.recover, tcb.dup_acks, tcb.send.cwnd) = (tcb.send.max, 5, 1448);
    tcb.send.rexmt = Some(NOW + 1000);
    let hole = Hole {
        dups: 3,
        ..Hole::new(una, una + 1448)
    };
    let (last, max) = (una + 4344, tcb.send.max);
    tcb.scoreboard
        .replace(&[hole], last, una, max)
        .expect("right");
    let set = set();
    let mut sb = SockBuf::new(1 << 20);
    sb.write(&pattern(0, 14_480), &set).expect("space");
    let mut sender = Sender::new(tcb, Reference);
    for packets in [1, 0] {
        let sent = sender.output(&sb, &set, NOW, &mut |_| Ok(()));
        assert_eq!(sent.expect("buffers").packets, packets);
    }
    let send = sender.tcb().send;
    assert_eq!((send.cwnd, send.nxt), (1448, una + 14_480));
    assert!(
        send.persist.is_none() && send.rexmt.is_some(),
        "the peer's window is open"
    );
}

#[test]
fn an_abort_resets_even_when_a_question_was_due() {
    let mut alone = Alone::new(Config {
        flags: TcbFlags::KEEP_ALIVE,
        ..plain()
    });
    alone.now = Time(u64::from(timer::KEEP_IDLE));
    alone.tcp.on_timer(alone.now);
    alone.tcp.abort();
    let sent: Vec<_> = alone.output().into_iter().map(|seen| seen.flags).collect();
    assert_eq!(sent, [vec!["ACK", "RST"]]);
}

#[test]
fn a_segment_that_counts_as_sent_is_not_sent_again_and_costs_no_window() {
    let mut alone = Alone::new(plain());
    alone
        .tcp
        .write(&pattern(0, 14_600), &alone.set)
        .expect("space");
    assert_eq!(alone.output().len(), 10);
    for _ in 0..3 {
        alone.ack(Seq(100));
    }
    let mut broken = |_: Mbuf| Err(OutputError::Other(5));
    let sent = alone.tcp.poll_output(&alone.set, Time(0), &mut broken);
    assert!(sent.is_err());
    assert_eq!(alone.tcp.tcb().send.cwnd, 5 * 1460 + 3 * 1460);
    assert!(alone.output().is_empty(), "once");
}

#[test]
fn a_segment_of_recovery_without_memory_is_tried_again() {
    let mut alone = Alone::new(plain());
    alone
        .tcp
        .write(&pattern(0, 14_600), &alone.set)
        .expect("space");
    assert_eq!(alone.output().len(), 10);
    for _ in 0..3 {
        alone.ack(Seq(100));
    }
    let mut full = |_: Mbuf| Err(OutputError::NoBuffers);
    let sent = alone.tcp.poll_output(&alone.set, Time(0), &mut full);
    assert!(sent.is_err());
    let again: Vec<_> = alone.output().iter().map(|seen| Seq(seen.seq)).collect();
    assert_eq!(again, [Seq(100)]);
}

#[test]
fn a_path_that_narrows_in_recovery_takes_all_again_in_smaller_pieces() {
    let mut alone = Alone::new(plain());
    alone
        .tcp
        .write(&pattern(0, 14_600), &alone.set)
        .expect("space");
    assert_eq!(alone.output().len(), 10);
    for _ in 0..3 {
        alone.ack(Seq(100));
    }
    let mut narrow = |packet: Mbuf| match packet.pkt_len() > 1000 {
        true => Err(OutputError::TooLong { mtu: 1000 }),
        false => Ok(()),
    };
    let sent = alone.tcp.poll_output(&alone.set, Time(0), &mut narrow);
    assert!(sent.expect("smaller ones fit").packets > 0);
    let next = alone.output();
    assert!(!next.is_empty() && next.iter().all(|seen| seen.payload.len() <= 960));
    assert!(Seq(next[0].seq).lt(Seq(100) + 14_600));
}

/// Notes the window that it is shown after a timeout.
struct Sees(Rc<Cell<u32>>);

impl CongestionControl for Sees {
    fn on_ack(&mut self, window: &mut CongestionWindow, acked: u32) {
        Reno.on_ack(window, acked);
    }

    fn reduced(&mut self, window: &CongestionWindow, flight: u32) -> u32 {
        self.0.set(window.cwnd);
        window.half(flight)
    }
}

#[test]
fn an_algorithm_is_shown_the_window_that_led_to_a_timeout() {
    let seen = Rc::new(Cell::new(0));
    let control = Sees(Rc::clone(&seen));
    let tcp = Connection::connect_with(v4(), &plain(), Reference, control, Seq(99), Time(0));
    let mut tcp = tcp.expect("size");
    let set = set();
    tcp.poll_output(&set, Time(0), &mut |_| Ok(()))
        .expect("buffers");
    tcp.on_timer(Time(6000));
    assert_eq!((seen.get(), tcp.tcb().send.cwnd), (14_600, 1460));
}

#[test]
fn an_acknowledgment_that_waits_and_a_fin_go_together() {
    let mut alone = Alone::new(plain());
    alone.arrive(PEER + 1, Seq(100), TcpFlags::ACK, &[], &[1; 100]);
    assert!(alone.output().is_empty() && alone.tcp.next_timeout().is_some());
    alone.tcp.close();
    let sent = alone.output();
    assert_eq!(sent.len(), 1);
    assert_eq!(
        (sent[0].ack, &sent[0].flags[..]),
        ((PEER + 101).0, &["ACK", "FIN"][..])
    );
    assert_eq!(alone.tcp.tcb().timers.delayed_ack, None);
}
