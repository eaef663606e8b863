//! Limits of the device: pieces per packet, bytes per piece, contiguous headers, frame length.

use driver_sim::{Null, TxConfig, TxQueue};
use mbuf::{BufferSet, FreeStrategy, OffloadFlags, Packet, TxOffload};

use crate::oracle::{Ask, tcp_packet};
use crate::support::{chain, check_law, collecting, packet, send, set};

const LENGTHS: [usize; 46] = {
    let mut lengths = [1448; 46];
    lengths[0] = 52;
    lengths
};

#[test]
fn a_packet_of_46_pieces_meets_limits_of_8_32_and_none() {
    let set = set();
    for (max_segs, descriptors, defrags) in [
        (None, 46, 0),
        (Some(46), 46, 0),
        (Some(45), 1, 1),
        (Some(32), 1, 1),
        (Some(8), 1, 1),
    ] {
        let mut queue = collecting(TxConfig {
            max_segs,
            ..TxConfig::default()
        });
        let m = packet(&LENGTHS, 1, &set);
        let bytes = m.to_vec();
        send(&mut queue, m, &set);
        let stats = *queue.stats();
        assert_eq!(
            (stats.descriptors, stats.defrags),
            (descriptors, defrags),
            "{max_segs:?}"
        );
        assert_eq!(stats.defrag_bytes, defrags * bytes.len() as u64);
        queue.run_device(1);
        assert_eq!(queue.backend().sink().frames, [bytes]);
        queue.drain_all();
        assert!(set.is_full());
    }
}

#[test]
fn a_copy_that_fails_drops_that_packet_alone() {
    // No class of 64 KB: 65,212 bytes cannot be copied into one storage.
    let set = BufferSet::builder(256).class(2048, 100).build().unwrap();
    let mut queue = collecting(TxConfig {
        max_segs: Some(8),
        ..TxConfig::default()
    });
    let mut burst = [
        Some(packet(&[5], 1, &set)),
        Some(packet(&LENGTHS, 1, &set)),
        Some(packet(&[6], 2, &set)),
    ];
    assert_eq!(queue.send(&mut burst, &set), 3);
    assert_eq!(queue.stats().dropped_defrag, 1);
    assert_eq!(queue.stats().posted, 2);
    check_law(&queue);
    queue.run_device(9);
    assert_eq!(queue.backend().sink().frames.len(), 2);
    queue.drain_all();
    assert!(set.is_full());
}

#[test]
fn a_packet_larger_than_the_ring_is_copied_not_stuck() {
    let set = set();
    let mut queue = collecting(TxConfig {
        ring_size: 8,
        rs_interval: 1,
        free_thresh: 1,
        ..TxConfig::default()
    });
    let m = packet(&[7; 9], 1, &set);
    let bytes = m.to_vec();
    send(&mut queue, m, &set);
    assert_eq!(queue.stats().defrags, 1);
    queue.run_device(1);
    assert_eq!(queue.backend().sink().frames, [bytes]);
}

#[test]
fn without_room_for_the_copy_the_packet_stays_whole_with_the_caller() {
    let set = set();
    let mut queue = collecting(TxConfig {
        ring_size: 4,
        max_segs: Some(3),
        rs_interval: 1,
        free_thresh: 1,
        ..TxConfig::default()
    });
    send(&mut queue, packet(&[1, 1, 1], 0, &set), &set);
    let mut burst = [Some(packet(&[2, 2, 2, 2], 0, &set))];
    assert_eq!(queue.send(&mut burst, &set), 0);
    assert_eq!(queue.stats().defrags, 0);
    assert_eq!(burst[0].as_ref().map(|m| m.nsegs()), Some(4));
    queue.run_device(1);
    assert_eq!(queue.send(&mut burst, &set), 1);
    assert_eq!(queue.stats().defrags, 1);
}

#[test]
fn a_long_piece_takes_several_descriptors() {
    let set = set();
    let mut queue = collecting(TxConfig {
        max_piece: Some(1000),
        ..TxConfig::default()
    });
    let m = packet(&[1000, 1001, 0, 1], 3, &set);
    let bytes = m.to_vec();
    send(&mut queue, m, &set);
    assert_eq!(queue.stats().descriptors, 4);
    queue.run_device(1);
    assert_eq!(queue.backend().sink().frames, [bytes]);
    assert_eq!(queue.device_stats().bad, 0);
}

#[test]
fn headers_are_copied_together_only_for_a_device_that_needs_it() {
    let set = set();
    let ask = Ask {
        mss: 100,
        ..Ask::default()
    };
    let (bytes, offload) = tcp_packet(&ask, &[7; 250]);
    for (contiguous_header, first, defrags) in [
        (false, 20, 0),
        (true, 20, 1),
        (true, 51, 1),
        (true, 52, 0),
        (true, 53, 0),
    ] {
        let mut queue = collecting(TxConfig {
            contiguous_header,
            ..TxConfig::default()
        });
        let mut m = chain(&bytes, &[first, bytes.len() - first], &set);
        m.set_offload(offload);
        send(&mut queue, m, &set);
        assert_eq!(queue.stats().defrags, defrags, "{first} bytes first");
        queue.run_device(1);
        assert_eq!(queue.backend().sink().frames, ask.frames(&[7; 250]));
        // A packet that asks for nothing may lie as it likes.
        send(&mut queue, packet(&[1, 300], 0, &set), &set);
        assert_eq!(queue.stats().defrags, defrags);
    }
}

#[test]
fn fault_j6_the_frame_counts_against_the_limit_not_the_tso_packet() {
    let set = set();
    let mut queue = collecting(TxConfig {
        max_frame: Some(1500),
        ..TxConfig::default()
    });
    let ask = Ask {
        mss: 1448,
        ..Ask::default()
    };
    let (bytes, offload) = tcp_packet(&ask, &[7; 32_000]);
    let mut m = chain(&bytes, &[bytes.len()], &set);
    m.set_offload(offload);
    let long = packet(&[1501], 0, &set);
    let fits = packet(&[1500], 0, &set);
    assert_eq!(queue.send(&mut [Some(m), Some(long), Some(fits)], &set), 3);
    assert_eq!(
        (queue.stats().posted, queue.stats().dropped_oversize),
        (2, 1)
    );
    queue.run_device(usize::MAX);
    assert!(
        queue
            .backend()
            .sink()
            .frames
            .iter()
            .all(|f| f.len() <= 1500)
    );
    check_law(&queue);
}

#[test]
fn what_the_device_does_not_do_is_dropped_and_counted() {
    let set = set();
    for (tso, csum, flags, dropped) in [
        (false, true, OffloadFlags::TSO, 1),
        (false, true, OffloadFlags::TCP_CSUM, 0),
        (false, false, OffloadFlags::IPV4_CSUM, 1),
        (false, false, OffloadFlags::IPV4, 0),
    ] {
        let config = TxConfig {
            tso,
            csum,
            ..TxConfig::default()
        };
        let mut queue = TxQueue::new(config, Null::default()).unwrap();
        let mut m = packet(&[60], 0x45, &set);
        m.set_offload(TxOffload {
            flags,
            tso_mss: 10,
            ..TxOffload::default()
        });
        send(&mut queue, m, &set);
        assert_eq!(queue.stats().dropped_unsupported, dropped, "{flags:?}");
        check_law(&queue);
    }
    assert!(set.is_full());
}

#[test]
fn every_strategy_leaves_the_pools_full() {
    for strategy in FreeStrategy::ALL {
        let set = set();
        let mut queue = collecting(TxConfig {
            strategy,
            ring_size: 100,
            max_segs: Some(32),
            ..TxConfig::default()
        });
        let shared = packet(&[60, 2000], 0, &set).into_shared();
        for round in 0..50 {
            send(&mut queue, packet(&[14, 1448, 0, 1448], round, &set), &set);
            send(&mut queue, packet(&[64], round, &set), &set);
            assert_eq!(queue.send(&mut [Some(shared.clone())], &set), 1);
            queue.run_device(3);
        }
        queue.drain_all();
        drop(shared);
        assert_eq!(queue.stats().completed, 150);
        assert!(set.is_full(), "{strategy}");
    }
}

#[test]
fn a_full_ring_leaves_a_packet_with_scattered_headers_uncopied() {
    let set = set();
    let (bytes, offload) = tcp_packet(&Ask::default(), &[7; 3000]);
    for used in [3, 4] {
        let config = TxConfig {
            contiguous_header: true,
            ..TxConfig::with_ring(4)
        };
        let mut queue = collecting(config);
        (0..used).for_each(|i| send(&mut queue, packet(&[1], i, &set), &set));
        let mut m = chain(&bytes, &[20, bytes.len() - 20], &set);
        m.set_offload(offload);
        let mut burst = [Some(m)];
        assert_eq!(queue.send(&mut burst, &set), 0, "{used} used");
        assert_eq!((queue.stats().defrags, queue.stats().dropped()), (0, 0));
        assert_eq!(burst[0].as_ref().map(|m| m.nsegs()), Some(2));
        queue.run_device(usize::MAX);
        assert_eq!(queue.send(&mut burst, &set), 1);
    }
}
