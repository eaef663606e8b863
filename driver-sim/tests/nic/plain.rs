//! Queues for plain bursts: one pool, one descriptor a packet, no header read when freeing.

use driver_sim::{Backend, Collect, Hardware, Null, PlainQueue, ReadMode, TxConfig};
use mbuf::{BufferSet, PlainBurst, TxOffload};

const MOST: usize = 16;

fn filled(set: &BufferSet, lengths: &[usize]) -> PlainBurst<MOST> {
    let mut burst = PlainBurst::new();
    burst.fill(set.mbuf_pool(), lengths.len()).unwrap();
    for (at, mut packet) in burst.iter_mut().enumerate() {
        packet.append(lengths[at]).unwrap().fill(at as u8);
    }
    burst
}

fn check_law<B: Backend>(queue: &PlainQueue<B>) {
    let stats = queue.stats();
    assert_eq!(stats.given, stats.posted + stats.dropped());
    assert_eq!(
        stats.posted,
        stats.completed + stats.reset + queue.in_flight() as u64
    );
}

#[test]
fn random_traffic_keeps_the_conservation_law_on_odd_rings() {
    let set = BufferSet::standard(1024, 8).unwrap();
    let mut rng = fastrand::Rng::with_seed(7);
    for ring_size in [4, 5, 24, 64, 100] {
        let config = TxConfig {
            ring_size,
            max_frame: Some(80),
            rs_interval: rng.usize(1..=ring_size),
            free_thresh: rng.usize(1..=ring_size),
            ..TxConfig::default()
        };
        let mut queue = PlainQueue::new(config, Null::new(ReadMode::Checksum)).unwrap();
        for _ in 0..400 {
            let lengths: Vec<usize> = (0..rng.usize(0..MOST))
                .map(|_| [0, 1, 60, 80, 81][rng.usize(..5)])
                .collect();
            let mut burst = filled(&set, &lengths);
            let taken = queue.send(&mut burst).unwrap();
            assert_eq!(taken + burst.len(), lengths.len());
            check_law(&queue);
            queue.run_device(rng.usize(0..10));
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
        assert!(set.is_full(), "ring of {ring_size}");
    }
}

#[test]
fn frames_leave_in_order_and_whole() {
    let set = BufferSet::standard(64, 8).unwrap();
    let config = TxConfig::with_ring(5);
    let mut queue = PlainQueue::new(config, Hardware::new(Collect::default())).unwrap();
    let mut burst = filled(&set, &[10, 0, 20, 30, 40]);
    assert_eq!(
        queue.send(&mut burst).unwrap(),
        5,
        "the empty one is dropped"
    );
    assert_eq!(queue.stats().dropped_empty, 1);
    queue.run_device(usize::MAX);
    // Goes around the end of the ring.
    let mut burst = filled(&set, &[50, 60, 70]);
    assert_eq!(queue.send(&mut burst).unwrap(), 3);
    queue.run_device(usize::MAX);
    let frames = &queue.backend().sink().frames;
    let seen: Vec<(usize, u8)> = frames.iter().map(|f| (f.len(), f[0])).collect();
    let sent = [
        (10, 0),
        (20, 2),
        (30, 3),
        (40, 4),
        (50, 0),
        (60, 1),
        (70, 2),
    ];
    assert_eq!(seen, sent);
    drop(queue);
    assert!(set.is_full());
}

#[test]
fn a_burst_of_another_pool_waits_until_the_ring_is_done() {
    let (ours, theirs) = (
        BufferSet::standard(64, 8).unwrap(),
        BufferSet::standard(64, 8).unwrap(),
    );
    let mut queue = PlainQueue::new(TxConfig::with_ring(16), Null::default()).unwrap();
    queue.send(&mut filled(&ours, &[60; 6])).unwrap();
    let mut other = filled(&theirs, &[60; 5]);
    let refused = queue.send(&mut other).unwrap_err();
    assert_eq!((refused.asked, refused.held), (5, 6));
    assert_eq!(other.len(), 5, "nothing was taken");
    queue.run_device(usize::MAX);
    assert_eq!(queue.send(&mut other).unwrap(), 5);
    assert!(ours.is_full());
    drop((queue, other));
    assert!(theirs.is_full());
}

#[test]
fn an_offload_request_is_dropped_and_counted_and_the_others_go() {
    let set = BufferSet::standard(64, 8).unwrap();
    let mut queue = PlainQueue::new(TxConfig::with_ring(16), Null::default()).unwrap();
    let mut burst = filled(&set, &[60; 3]);
    let ask = TxOffload {
        l2_len: 14,
        ..TxOffload::default()
    };
    burst.get_mut(1).unwrap().set_offload(ask);
    assert_eq!(queue.send(&mut burst).unwrap(), 3);
    assert_eq!(
        (queue.in_flight(), queue.stats().dropped_unsupported),
        (2, 1)
    );
    check_law(&queue);
}

#[test]
fn fault_p10_a_drain_frees_what_is_done_and_no_more() {
    let set = BufferSet::standard(64, 8).unwrap();
    let config = TxConfig {
        rs_interval: 1,
        ..TxConfig::with_ring(16)
    };
    let mut queue = PlainQueue::new(config, Null::default()).unwrap();
    queue.send(&mut filled(&set, &[60; 10])).unwrap();
    assert_eq!(queue.drain(), 0);
    queue.run_device(3);
    assert_eq!((queue.drain(), queue.in_flight()), (3, 7));
    assert_eq!(set.in_use(), 7);
}

#[test]
fn fault_d2_a_reset_frees_each_packet_once() {
    let set = BufferSet::standard(64, 8).unwrap();
    let mut queue = PlainQueue::new(TxConfig::with_ring(16), Null::default()).unwrap();
    queue.send(&mut filled(&set, &[60; 5])).unwrap();
    queue.run_device(2);
    assert_eq!(queue.reset(), 3);
    assert_eq!(queue.reset(), 0);
    assert!(set.is_full());
    queue.send(&mut filled(&set, &[60; 5])).unwrap();
    assert_eq!(queue.in_flight(), 5);
    check_law(&queue);
}
