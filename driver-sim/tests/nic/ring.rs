//! The ring: what is taken, what is left, what comes back, and when.

use driver_sim::{ConfigError, Null, ReadMode, TxConfig, TxQueue};
use mbuf::{FreeStrategy, Mbuf, Packet, SharedMbuf, TxMbuf};

use crate::support::{check_law, collecting, packet, queue, send, set};

#[test]
fn random_traffic_keeps_the_conservation_law_on_odd_rings_and_every_strategy() {
    let set = set();
    let mut rng = fastrand::Rng::with_seed(2);
    for strategy in FreeStrategy::ALL {
        for ring_size in [4, 5, 24, 64, 100] {
            let config = TxConfig {
                ring_size,
                max_segs: [None, Some(1), Some(3), Some(8)][rng.usize(..4)],
                max_piece: [None, Some(40)][rng.usize(..2)],
                rs_interval: rng.usize(1..=ring_size),
                free_thresh: rng.usize(1..=ring_size),
                strategy,
                ..TxConfig::default()
            };
            let mut queue = TxQueue::new(config, Null::new(ReadMode::Checksum)).unwrap();
            for _ in 0..200 {
                let mut burst: Vec<Option<Mbuf>> = (0..rng.usize(0..8))
                    .map(|_| {
                        let lengths: Vec<usize> = (0..rng.usize(1..9))
                            .map(|_| [0, 1, 60, 90][rng.usize(..4)])
                            .collect();
                        (rng.u8(..) > 30).then(|| packet(&lengths, 0, &set))
                    })
                    .collect();
                let taken = queue.send(&mut burst, &set);
                assert!(burst[..taken].iter().all(Option::is_none));
                check_law(&queue);
                queue.run_device(rng.usize(0..6));
                match rng.u8(..20) {
                    0 => drop(queue.reset()),
                    1 => drop(queue.drain_all()),
                    2..8 => drop(queue.drain()),
                    _ => {}
                }
                check_law(&queue);
            }
            assert_eq!(queue.device_stats().bad, 0);
            queue.reset();
            check_law(&queue);
            assert!(set.is_full(), "{strategy}, ring of {ring_size}");
        }
    }
}

#[test]
fn ring_full_at_one_less_exactly_and_one_more() {
    let set = set();
    for free in [2, 3, 4] {
        let mut queue = queue(8);
        send(&mut queue, packet(&vec![10; 8 - free], 0, &set), &set);
        assert_eq!(queue.room(), free);
        let mut burst = [Some(packet(&[1, 2, 3], 9, &set))];
        let want = usize::from(free >= 3);
        assert_eq!(queue.send(&mut burst, &set), want, "{free} free");
        assert_eq!(queue.room(), free - 3 * want);
        assert_eq!(queue.stats().ring_full, 1 - want as u64);
        if let [Some(left)] = &burst {
            assert_eq!(left.to_vec(), [9, 10, 11, 12, 13, 14], "left as it was");
        }
        check_law(&queue);
    }
}

#[test]
fn the_handle_lies_in_the_slot_of_the_last_descriptor() {
    let set = set();
    let mut queue = queue(8);
    send(&mut queue, packet(&[5, 5, 5], 0, &set), &set);
    send(&mut queue, packet(&[5, 5], 0, &set), &set);
    let held: Vec<bool> = queue.slots().iter().map(Option::is_some).collect();
    assert_eq!(held, [false, false, true, false, true, false, false, false]);
}

#[test]
fn frames_come_out_in_order_over_many_wraps() {
    let set = set();
    let mut queue = queue(7);
    let mut want = Vec::new();
    for round in 0..200 {
        let m = packet(&vec![3; round % 5 + 1], round as u8, &set);
        want.push(m.to_vec());
        send(&mut queue, m, &set);
        queue.run_device(usize::MAX);
        if round % 3 == 0 {
            queue.drain();
        }
    }
    assert_eq!(queue.backend().sink().frames, want);
    queue.drain();
    check_law(&queue);
    assert_eq!(queue.in_flight(), 0);
    assert!(set.is_full());
}

#[test]
fn a_burst_stops_at_the_first_packet_without_room_and_leaves_the_rest() {
    let set = set();
    let mut queue = queue(4);
    let mut burst: [Option<Mbuf>; 5] =
        std::array::from_fn(|i| (i != 1).then(|| packet(&[2, 2], i as u8, &set)));
    assert_eq!(
        queue.send(&mut burst, &set),
        3,
        "two packets and the empty entry"
    );
    let left: Vec<bool> = burst.iter().map(Option::is_some).collect();
    assert_eq!(left, [false, false, false, true, true]);
    queue.run_device(usize::MAX);
    assert_eq!(
        queue.send(&mut burst[3..], &set),
        2,
        "room was made by draining"
    );
    check_law(&queue);
}

#[test]
fn shared_and_tx_handles_are_sent_as_they_are() {
    let set = set();
    let mut queue = queue(8);
    let shared: SharedMbuf = packet(&[40, 40], 0, &set).into_shared();
    let mut burst = [Some(shared.clone()), Some(shared.clone())];
    assert_eq!(queue.send(&mut burst, &set), 2);
    let tx = TxMbuf::from(packet(&[4], 0, &set));
    assert_eq!(queue.send(&mut [Some(tx)], &set), 1);
    queue.run_device(usize::MAX);
    assert_eq!(queue.drain(), 3);
    assert_eq!(shared.try_into_unique().unwrap().to_vec().len(), 80);
    assert!(set.is_full());
}

#[test]
fn packets_behind_the_last_report_are_freed_by_the_head_register() {
    let set = set();
    let mut queue = collecting(TxConfig {
        ring_size: 16,
        rs_interval: 4,
        free_thresh: 1,
        ..TxConfig::default()
    });
    for _ in 0..6 {
        send(&mut queue, packet(&[9], 0, &set), &set);
    }
    queue.run_device(usize::MAX);
    assert_eq!(queue.drain(), 4);
    assert_eq!(queue.drain(), 0);
    assert_eq!(queue.drain_all(), 2);
    assert_eq!(queue.stats().head_reads, 1);
    assert!(set.is_full());
}

#[test]
fn a_ring_without_a_report_to_come_does_not_stand_still() {
    let set = set();
    let mut queue = collecting(TxConfig {
        ring_size: 4,
        rs_interval: 4,
        free_thresh: 1,
        ..TxConfig::default()
    });
    for round in 0..20 {
        // Three pieces stay below the interval, and leave too little room for the next packet.
        send(&mut queue, packet(&[1, 1, 1], round, &set), &set);
        queue.run_device(usize::MAX);
        queue.send(&mut [None::<Mbuf>], &set);
    }
    assert_eq!(queue.backend().sink().frames.len(), 20);
}

#[test]
fn dropping_a_queue_frees_what_is_in_flight() {
    let set = set();
    let mut queue = queue(16);
    send(&mut queue, packet(&[9, 3000, 9], 0, &set), &set);
    drop(queue);
    assert!(set.is_full());
}

#[test]
fn impossible_configurations_are_refused_with_their_numbers() {
    let ok = TxConfig::default();
    let refused = |c: TxConfig| TxQueue::new(c, Null::default()).err();
    assert_eq!(refused(ok), None);
    let size = refused(TxConfig { ring_size: 3, ..ok });
    assert!(matches!(
        size,
        Some(ConfigError::RingSize {
            asked: 3,
            min: 4,
            ..
        })
    ));
    let huge = refused(TxConfig {
        ring_size: usize::MAX,
        ..ok
    });
    assert!(matches!(huge, Some(ConfigError::RingSize { .. })));
    for (name, c) in [
        (
            "max_segs",
            TxConfig {
                max_segs: Some(0),
                ..ok
            },
        ),
        (
            "max_piece",
            TxConfig {
                max_piece: Some(0),
                ..ok
            },
        ),
        (
            "max_frame",
            TxConfig {
                max_frame: Some(0),
                ..ok
            },
        ),
        (
            "rs_interval",
            TxConfig {
                rs_interval: 1025,
                ..ok
            },
        ),
        (
            "free_thresh",
            TxConfig {
                free_thresh: 0,
                ..ok
            },
        ),
    ] {
        let Some(ConfigError::Limit { name: found, .. }) = refused(c) else {
            panic!("{name} was taken");
        };
        assert_eq!(found, name);
    }
    let tso = refused(TxConfig { csum: false, ..ok });
    assert_eq!(tso, Some(ConfigError::TsoWithoutChecksum));
}
