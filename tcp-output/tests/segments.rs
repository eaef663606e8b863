//! A connection against segments made by hand: what is believed, answered, sent again.

#[path = "common/alone.rs"]
mod alone;
mod common;

use alone::{Alone, PEER};
use common::v4;
use mbuf::Packet;
use tcp_output::connection::{Config, Connection, Events};
use tcp_output::input::TcpOption;
use tcp_output::policy::Reference;
use tcp_output::wire::*;
use tcp_output::*;

fn alone() -> Alone {
    Alone::new(Config {
        flags: TcbFlags::ASK_SACK,
        ..Config::default()
    })
}

/// A SACK option for one range.
fn sack(start: Seq, end: Seq) -> Vec<u8> {
    [&[5, 10][..], &start.0.to_be_bytes(), &end.0.to_be_bytes()].concat()
}

#[test]
fn fault_f6_segments_that_are_not_answered_are_freed() {
    let mut alone = Alone::new(Config {
        challenges_per_second: 5,
        ..Config::default()
    });
    let level = alone.set.in_use();
    let mut answers = 0;
    for i in 0..100u32 {
        // Resets that are near, SYNs, absurd acknowledgments, data far away.
        let data = [7; 50];
        match i % 4 {
            0 => alone.arrive(PEER + 2 + i, Seq(100), TcpFlags::RST, &[], &[]),
            1 => alone.arrive(PEER + 2 + i, Seq(100), TcpFlags::SYN, &[], &[]),
            2 => alone.arrive(PEER + 1, Seq(5_000), TcpFlags::ACK, &[], &data),
            _ => alone.arrive(PEER + 900_000, Seq(100), TcpFlags::ACK, &[], &data),
        };
        assert_eq!(alone.set.in_use(), level, "segment {i} is kept");
        answers += alone.output().len();
        assert_eq!(alone.set.in_use(), level);
    }
    assert_eq!(answers, 5);
    assert_eq!(alone.tcp.state(), State::Established);
}

#[test]
fn a_reset_in_its_place_ends_and_a_late_one_does_not() {
    let mut alone = alone();
    assert_eq!(
        alone.arrive(PEER, Seq(100), TcpFlags::RST, &[], &[]),
        Events::empty()
    );
    let end = alone.arrive(PEER + 1, Seq(0), TcpFlags::RST, &[], &[]);
    assert_eq!(end, Events::RESET | Events::CLOSED);
    assert!(alone.output().is_empty() && alone.tcp.next_timeout().is_none());
}

#[test]
fn fault_u4_bytes_beyond_the_window_are_cut_and_asked_for_again() {
    let mut alone = Alone::new(Config {
        receive_buffer: 1000,
        flags: TcbFlags::empty(),
        ..Config::default()
    });
    let data = bytes(1, 1400);
    let events = alone.arrive(
        PEER + 1,
        Seq(100),
        TcpFlags::ACK | TcpFlags::FIN,
        &[],
        &data,
    );
    assert_eq!(events, Events::READABLE, "the FIN lies beyond");
    let answer = alone.output();
    assert_eq!((answer[0].ack, answer[0].window), ((PEER + 1001).0, 0));
    assert_eq!(
        alone.tcp.take().map(|m| m.to_vec()),
        Some(data[..1000].to_vec())
    );
    let update = alone.output();
    assert_eq!(update[0].window, 1000);
}

#[test]
fn out_of_order_data_is_reported_and_put_in_order() {
    let mut alone = alone();
    let data = bytes(1, 30);
    let part = |n: u32| PEER + 1 + n;
    let flags = TcpFlags::ACK;
    alone.arrive(part(10), Seq(100), flags, &[], &data[10..20]);
    assert_eq!(alone.output()[0].options, ["SACK1"]);
    alone.arrive(part(25), Seq(100), flags | TcpFlags::FIN, &[], &data[25..]);
    assert_eq!(alone.output()[0].options, ["SACK2"]);
    alone.arrive(part(0), Seq(100), flags, &[], &data[..10]);
    let filled = alone.output();
    assert_eq!(
        (filled[0].ack, &filled[0].options[..]),
        (part(20).0, &["SACK1".to_string()][..])
    );
    let events = alone.arrive(part(20), Seq(100), flags, &[], &data[20..26]);
    assert_eq!(events, Events::READABLE | Events::PEER_CLOSED);
    assert_eq!(alone.output()[0].ack, part(31).0);
    assert_eq!(alone.tcp.state(), State::CloseWait);
    assert_eq!(alone.tcp.take().map(|m| m.to_vec()), Some(data));
    assert!(alone.set.is_full());
}

#[test]
fn fault_a1_what_was_sacked_without_loss_weighs_nothing_later() {
    let mut alone = alone();
    let mut una = Seq(100);
    let data = bytes(1, 4 * 1460);
    for round in 0..1000 {
        alone.tcp.write(&data, &alone.set).expect("space");
        let sent: usize = alone.output().iter().map(|seen| seen.payload.len()).sum();
        assert_eq!(sent, data.len(), "round {round}");
        let blocks = sack(una + 1460, una + 4 * 1460);
        let blocks = TcpOption::Other {
            kind: 5,
            data: &blocks[2..],
        };
        alone.arrive(PEER + 1, una, TcpFlags::ACK, &[blocks], &[]);
        una += data.len() as u32;
        alone.ack(una);
        assert!(alone.output().is_empty());
        let tcb = alone.tcp.tcb();
        assert!(!tcb.outstanding() && tcb.scoreboard.is_empty() && tcb.dup_acks == 0);
    }
    let cwnd = alone.tcp.tcb().send.cwnd.min(60_000) as usize;
    alone
        .tcp
        .write(&bytes(2, 65_536), &alone.set)
        .expect("space");
    let sent: usize = alone.output().iter().map(|seen| seen.payload.len()).sum();
    assert!(sent > cwnd - 1460, "{sent} of {cwnd}");
}

#[test]
fn fault_l4_holes_are_sent_once_each_then_new_data() {
    let mut alone = alone();
    let mss = 1460;
    alone
        .tcp
        .write(&bytes(1, 40 * mss), &alone.set)
        .expect("space");
    let at = |n: u32| Seq(100) + (n - 1) * mss as u32;
    let sent: Vec<u32> = alone.output().iter().map(|seen| seen.seq).collect();
    assert_eq!(sent, (1..11).map(|n| at(n).0).collect::<Vec<_>>());
    let mut again = Vec::new();
    // Segment 3, then 5 to 8, each reported by an acknowledgment of its own.
    for (n, start) in [(3, 3), (5, 5), (6, 5), (7, 5), (8, 5)] {
        let blocks = sack(at(start), at(n + 1));
        let blocks = TcpOption::Other {
            kind: 5,
            data: &blocks[2..],
        };
        alone.arrive(PEER + 1, Seq(100), TcpFlags::ACK, &[blocks], &[]);
        again.extend(alone.output().iter().map(|seen| seen.seq));
    }
    for _ in 0..3 {
        again.extend(alone.output().iter().map(|seen| seen.seq));
    }
    let old: Vec<u32> = again
        .iter()
        .copied()
        .filter(|seq| Seq(*seq).lt(at(11)))
        .collect();
    assert_eq!(old, [at(1).0, at(2).0, at(4).0], "once each");
    assert!(
        again.iter().any(|seq| *seq == at(11).0),
        "limited transmit: {again:?}"
    );
}

#[test]
fn fault_l10_without_sack_the_first_goes_once() {
    let mut alone = Alone::new(Config {
        flags: TcbFlags::empty(),
        ..Config::default()
    });
    alone
        .tcp
        .write(&bytes(1, 10 * 1460), &alone.set)
        .expect("space");
    alone.output();
    let mut again = Vec::new();
    for _ in 0..6 {
        alone.ack(Seq(100));
        again.extend(alone.output().iter().map(|seen| seen.seq));
    }
    assert_eq!(again, [100]);
    assert_eq!(alone.tcp.tcb().send.nxt, Seq(100) + 10 * 1460);
}

#[test]
fn an_old_timestamp_is_an_old_segment() {
    let mut alone = Alone::new(Config::default());
    assert!(
        !alone.tcp.tcb().flags.contains(TcbFlags::TIMESTAMPS),
        "the peer offered none"
    );
    let config = Config::default();
    alone.tcp = Connection::connect(v4(), &config, Reference, Seq(99), Time(0)).expect("size");
    alone.output();
    let stamp = |value| TcpOption::Timestamps(options::Timestamps { value, echo: 0 });
    let flags = TcpFlags::SYN | TcpFlags::ACK;
    alone.arrive(PEER, Seq(100), flags, &[stamp(1000)], &[]);
    alone.output();
    let old = alone.arrive(PEER + 1, Seq(100), TcpFlags::ACK, &[stamp(999)], b"old");
    assert_eq!(old, Events::empty());
    assert_eq!(alone.output().len(), 1, "it is answered");
    let new = alone.arrive(PEER + 1, Seq(100), TcpFlags::ACK, &[stamp(1001)], b"new");
    assert_eq!(new, Events::READABLE);
    assert_eq!(alone.tcp.tcb().ts_recent, 1001);
}

#[test]
fn a_silent_peer_is_asked_and_given_up() {
    let mut alone = Alone::new(Config {
        flags: TcbFlags::KEEP_ALIVE,
        ..Config::default()
    });
    let mut probes = 0;
    while let Some(at) = alone.tcp.next_timeout() {
        alone.now = alone.now.max(at);
        let events = alone.tcp.on_timer(alone.now);
        for seen in alone.output() {
            if events.contains(Events::CLOSED) {
                assert_eq!(seen.flags, ["ACK", "RST"]);
            } else {
                probes += 1;
                assert_eq!((seen.seq, seen.payload.len()), (99, 0));
            }
        }
    }
    assert_eq!(probes, 8);
    assert_eq!(alone.tcp.dropped(), Some(Dropped::TimedOut));
    assert_eq!(alone.now, Time(7_200_000 + 8 * 75_000));
}

#[test]
fn fault_k5_k7_a_window_taken_back_leaves_no_room_and_no_panic() {
    for window in [1000, 0] {
        let mut alone = alone();
        alone
            .tcp
            .write(&bytes(1, 60_000), &alone.set)
            .expect("space");
        alone.output();
        let sent = alone.tcp.tcb().send.max - Seq(100);
        assert!(sent > 5000);
        alone.window = window;
        // Later by its sequence number, so that it counts.
        alone.arrive(PEER + 1, Seq(100), TcpFlags::ACK, &[], b"x");
        let after: Vec<usize> = alone
            .output()
            .iter()
            .map(|seen| seen.payload.len())
            .collect();
        assert!(after.iter().all(|len| *len == 0), "{after:?}");
        let tcb = alone.tcp.tcb();
        assert!(tcb.send.rexmt.is_some() != tcb.send.persist.is_some());
        let at = alone.tcp.next_timeout().expect("armed").max(Time(300));
        alone.now = at + 70_000;
        alone.tcp.on_timer(alone.now);
        let again: Vec<_> = alone.output();
        let data = again
            .iter()
            .find(|seen| !seen.payload.is_empty())
            .expect("sent again");
        assert_eq!(data.seq, 100);
    }
}

#[test]
fn fault_l12_after_a_timeout_in_recovery_nothing_goes_twice_without_news() {
    let mut alone = alone();
    let mss = 1460;
    alone
        .tcp
        .write(&bytes(1, 10 * mss), &alone.set)
        .expect("space");
    alone.output();
    let at = |n: usize| Seq(100) + ((n - 1) * mss) as u32;
    let report = |alone: &mut Alone, una, start, end| {
        let blocks = sack(start, end);
        let blocks = TcpOption::Other {
            kind: 5,
            data: &blocks[2..],
        };
        alone.arrive(PEER + 1, una, TcpFlags::ACK, &[blocks], &[]);
        alone
            .output()
            .iter()
            .map(|seen| seen.seq)
            .collect::<Vec<_>>()
    };
    for n in 3..6 {
        report(&mut alone, at(1), at(2), at(n));
    }
    alone.now = alone.tcp.next_timeout().expect("armed");
    alone.tcp.on_timer(alone.now);
    assert_eq!(
        alone.output()[0].seq,
        at(1).0,
        "the timeout sends the first"
    );
    // It arrives; 6 and 7 were lost, 8 and 9 come.
    let mut sent = report(&mut alone, at(5), at(8), at(10));
    sent.extend(alone.output().iter().map(|seen| seen.seq));
    let mut once = sent.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), sent.len(), "{sent:?}");
    assert!(
        sent.iter()
            .all(|seq| Seq(*seq).lt(at(8)) || at(10).leq(Seq(*seq))),
        "{sent:?}"
    );
}

#[test]
fn congestion_marks_halve_the_window_once_and_are_echoed() {
    let config = Config {
        flags: TcbFlags::ASK_ECN | TcbFlags::ASK_SACK,
        ..Config::default()
    };
    let answer = TcpFlags::SYN | TcpFlags::ACK | TcpFlags::ECE;
    let mut alone = Alone::answered(config, answer);
    assert!(alone.tcp.tcb().flags.contains(TcbFlags::ECN));
    alone
        .tcp
        .write(&bytes(1, 65_536), &alone.set)
        .expect("space");
    let sent = alone.output().len() as u32;
    let cwnd = alone.tcp.tcb().send.cwnd;
    for n in 1..sent {
        alone.arrive(
            PEER + 1,
            Seq(100) + n * 1460,
            TcpFlags::ACK | TcpFlags::ECE,
            &[],
            &[],
        );
        assert!(alone.tcp.tcb().ssthresh <= (cwnd + 1460) / 2);
    }
    let after = alone.tcp.tcb().send.cwnd;
    assert!(
        (cwnd / 2..cwnd).contains(&after),
        "halved once: {cwnd}, {after}"
    );
    let told: Vec<_> = alone.output();
    assert!(told[0].flags.contains(&"CWR"));
    assert!(told[1..].iter().all(|seen| !seen.flags.contains(&"CWR")));
    // The other way.
    alone.tos = 3;
    alone.arrive(PEER + 1, Seq(100), TcpFlags::ACK, &[], b"marked");
    alone.tos = 2;
    alone.arrive(PEER + 7, Seq(100), TcpFlags::ACK, &[], b"not");
    assert!(
        alone.output()[0].flags.contains(&"ECE"),
        "until the peer has heard"
    );
    alone.arrive(
        PEER + 10,
        Seq(100),
        TcpFlags::ACK | TcpFlags::CWR,
        &[],
        b"slower",
    );
    alone.arrive(PEER + 16, Seq(100), TcpFlags::ACK, &[], b".");
    assert!(!alone.output()[0].flags.contains(&"ECE"));
}

#[test]
fn a_refused_syn_ends_and_an_unanswered_one_is_given_up() {
    let open = || {
        let set = mbuf::BufferSet::bsd(64, 8).expect("pools");
        let config = Config::default();
        let tcp = Connection::connect(v4(), &config, Reference, Seq(99), Time(0));
        let mut alone = Alone {
            set,
            tcp: tcp.expect("size"),
            now: Time(0),
            window: 0,
            tos: 0,
        };
        alone.output();
        alone
    };
    let mut refused = open();
    let flags = TcpFlags::RST | TcpFlags::ACK;
    assert_eq!(
        refused.arrive(Seq(0), Seq(99), flags, &[], &[]),
        Events::UNWANTED
    );
    let end = refused.arrive(Seq(0), Seq(100), flags, &[], &[]);
    assert_eq!(end, Events::RESET | Events::CLOSED);
    let mut alone = open();
    let mut syns = 1;
    while let Some(at) = alone.tcp.next_timeout() {
        alone.now = alone.now.max(at);
        alone.tcp.on_timer(alone.now);
        syns += alone.output().len();
    }
    assert!(
        syns > 3 && alone.now == Time(75_000),
        "{syns} in {:?}",
        alone.now
    );
    assert_eq!(alone.tcp.dropped(), Some(Dropped::TimedOut));
}

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..len).map(|_| rng.u8(..)).collect()
}
