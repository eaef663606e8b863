//! A device on a second thread: everything arrives, in order, and is freed exactly once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use driver_sim::{
    Backend, BadPacket, Collect, ConfigError, Delivered, FrameSink, Gather, Hardware, Link, Null,
    ReadMode, Reassembler, RemoteError, RemoteQueue, TxConfig,
};
use mbuf::{FreeStrategy, Mbuf, Packet};

use crate::oracle::{Ask, tcp_packet};
use crate::support::{chain, packet, set};

/// Sends all of `burst`, waiting for room.
fn send_all<B: Backend + Send + 'static>(
    queue: &mut RemoteQueue<B>,
    burst: &mut [Option<Mbuf>],
    set: &mbuf::BufferSet,
) {
    let mut done = 0;
    while done < burst.len() {
        done += queue.send(&mut burst[done..], set);
        std::thread::yield_now();
    }
}

#[test]
fn packets_arrive_in_order_and_every_strategy_leaves_the_pools_full() {
    for strategy in FreeStrategy::ALL {
        for ring_size in [5, 64] {
            let set = set();
            let config = TxConfig {
                strategy,
                free_thresh: 5,
                max_segs: Some(4),
                ..TxConfig::with_ring(ring_size)
            };
            let sink = Collect::default();
            let mut queue = RemoteQueue::spawn(config, Hardware::new(sink), || ()).unwrap();
            let shared = packet(&[100, 100], 0, &set).into_shared();
            let mut want = Vec::new();
            for i in 0..300 {
                // Five segments are over the limit, so some packets are copied on the way.
                let m = packet(&vec![30; i % 5 + 1], i as u8, &set);
                want.push(m.to_vec());
                send_all(&mut queue, &mut [Some(m)], &set);
                while queue.send(&mut [Some(shared.clone())], &set) == 0 {}
                want.push(shared.to_vec());
            }
            queue.wait_idle();
            assert_eq!(queue.in_flight(), 0);
            assert_eq!(queue.stats().completed, 600);
            assert_eq!(queue.stats().defrags, 60);
            let (backend, device) = queue.stop().unwrap();
            assert_eq!((device.packets, device.bad), (600, 0));
            assert_eq!(backend.sink().frames, want);
            drop(shared);
            assert!(set.is_full(), "{strategy}, ring of {ring_size}");
        }
    }
}

#[test]
fn tso_packets_are_cut_on_the_other_thread_and_reassemble_to_the_payload() {
    let set = set();
    let wire = Hardware::new(Reassembler::new(Link::Raw));
    let mut queue = RemoteQueue::spawn(TxConfig::default(), wire, || ()).unwrap();
    let mut sent = Vec::new();
    for i in 0..40u8 {
        let payload: Vec<u8> = (0..20_000).map(|j| (j as u8).wrapping_mul(i)).collect();
        let ask = Ask {
            seq: 77 + sent.len() as u32,
            v6: true,
            ..Ask::default()
        };
        let (bytes, offload) = tcp_packet(&ask, &payload);
        let mut m = chain(&bytes, &[bytes.len() - 9000, 9000], &set);
        m.set_offload(offload);
        send_all(&mut queue, &mut [Some(m)], &set);
        sent.extend_from_slice(&payload);
    }
    let (wire, device) = queue.stop().unwrap();
    assert_eq!(device.frames, 40 * 20_000u64.div_ceil(1448));
    let streams: Vec<_> = wire.sink().streams().collect();
    assert_eq!(streams.len(), 1);
    assert!(streams[0].1.bytes() == sent);
    assert!(set.is_full());
}

#[test]
fn dropping_the_queue_transmits_and_frees_what_was_sent() {
    let set = set();
    let config = TxConfig {
        ring_size: 256,
        ..TxConfig::default()
    };
    let mut queue = RemoteQueue::spawn(config, Null::new(ReadMode::Checksum), || ()).unwrap();
    let mut burst: Vec<Option<Mbuf>> = (0..200).map(|i| Some(packet(&[60], i, &set))).collect();
    send_all(&mut queue, &mut burst, &set);
    drop(queue);
    assert!(set.is_full());
}

#[test]
fn a_full_ring_leaves_packets_with_the_caller_until_the_device_goes_on() {
    /// Waits for a permit before each packet.
    struct Held(Arc<AtomicUsize>);
    impl Backend for Held {
        fn packet(&mut self, packet: &Gather<'_>) -> Result<Delivered, BadPacket> {
            while self.0.load(Ordering::Acquire) == 0 {
                std::thread::yield_now();
            }
            self.0.fetch_sub(1, Ordering::AcqRel);
            Ok(Delivered {
                frames: 1,
                bytes: packet.len() as u64,
            })
        }
    }
    let set = set();
    let permits = Arc::new(AtomicUsize::new(0));
    let held = Arc::clone(&permits);
    let config = TxConfig {
        free_thresh: 8,
        ..TxConfig::with_ring(8)
    };
    let mut queue = RemoteQueue::spawn(config, Held(held), || ()).unwrap();
    let mut burst: Vec<Option<Mbuf>> = (0..7).map(|i| Some(packet(&[9, 9], i, &set))).collect();
    assert_eq!(queue.send(&mut burst, &set), 4);
    assert_eq!((queue.in_flight(), queue.stats().ring_full), (4, 1));
    assert!(burst[4..].iter().all(Option::is_some));
    permits.store(7, Ordering::Release);
    send_all(&mut queue, &mut burst[4..], &set);
    let (_, device) = queue.stop().unwrap();
    assert_eq!(device.packets, 7);
    assert!(set.is_full());
}

#[test]
fn a_backend_that_panics_loses_no_buffer_and_later_sends_are_dropped() {
    struct Third(u32);
    impl Backend for Third {
        fn packet(&mut self, packet: &Gather<'_>) -> Result<Delivered, BadPacket> {
            self.0 += 1;
            assert!(
                self.0 < 3,
                "the third packet is too much, as this test wants it"
            );
            Ok(Delivered {
                frames: 1,
                bytes: packet.len() as u64,
            })
        }
    }
    let set = set();
    let mut queue = RemoteQueue::spawn(TxConfig::default(), Third(0), || ()).unwrap();
    for i in 0..10 {
        send_all(&mut queue, &mut [Some(packet(&[50, 50], i, &set))], &set);
    }
    queue.wait_idle();
    while queue.is_alive() {
        std::thread::yield_now();
    }
    let before = queue.stats();
    assert_eq!(queue.send(&mut [Some(packet(&[1], 0, &set))], &set), 1);
    let stats = queue.stats();
    assert_eq!(stats.dropped_dead, before.dropped_dead + 1);
    assert_eq!(stats.given, stats.posted + stats.dropped());
    assert!(matches!(queue.stop(), Err(RemoteError::Panicked)));
    assert!(set.is_full());
}

#[test]
fn the_start_hook_runs_on_the_device_thread() {
    let (mut tx, mut rx) = rtrb::RingBuffer::new(1);
    let hook = move || tx.push(std::thread::current().id()).unwrap();
    let queue = RemoteQueue::spawn(TxConfig::default(), Null::default(), hook).unwrap();
    queue.stop().unwrap();
    assert_ne!(rx.pop().unwrap(), std::thread::current().id());
    let refused = TxConfig {
        ring_size: 0,
        ..TxConfig::default()
    };
    let error = RemoteQueue::spawn(refused, Null::default(), || ())
        .map(|_| ())
        .unwrap_err();
    assert!(matches!(
        error,
        RemoteError::Config(ConfigError::RingSize { asked: 0, .. })
    ));
}

#[test]
fn a_tee_and_a_boxed_sink_hand_frames_on() {
    let mut count = 0;
    let boxed: Box<dyn FrameSink + '_> = Box::new(driver_sim::Each(|_: &[u8]| count += 1));
    let mut tee = driver_sim::Tee(boxed, driver_sim::Collect::default());
    (0..3).for_each(|_| tee.frame(&[1]));
    assert_eq!(tee.1.frames.len(), 3);
    drop(tee);
    assert_eq!(count, 3);
}

#[test]
fn stop_waits_until_everything_sent_is_transmitted() {
    struct Slow;
    impl Backend for Slow {
        fn packet(&mut self, packet: &Gather<'_>) -> Result<Delivered, BadPacket> {
            std::thread::sleep(std::time::Duration::from_millis(5));
            Ok(Delivered {
                frames: 1,
                bytes: packet.len() as u64,
            })
        }
    }
    let set = set();
    // One packet a batch, so that the stop comes while others wait.
    let config = TxConfig {
        free_thresh: 1,
        ..TxConfig::with_ring(16)
    };
    let mut queue = RemoteQueue::spawn(config, Slow, || ()).unwrap();
    let mut burst: Vec<Option<Mbuf>> = (0..10).map(|i| Some(packet(&[9], i, &set))).collect();
    assert_eq!(queue.send(&mut burst, &set), 10);
    let (_, device) = queue.stop().unwrap();
    assert_eq!(device.packets, 10);
    assert!(set.is_full());
}

#[test]
fn strategy_can_be_changed_between_bursts() {
    let set = set();
    let mut queue = RemoteQueue::spawn(TxConfig::default(), Null::default(), || ()).unwrap();
    for (i, strategy) in FreeStrategy::ALL.into_iter().enumerate() {
        queue.set_strategy(strategy);
        let mut burst = [(); 8].map(|()| Some(packet(&[100, 30], 1, &set)));
        send_all(&mut queue, &mut burst, &set);
        queue.wait_idle();
        assert_eq!(queue.stats().completed, 8 * (i as u64 + 1));
        assert!(set.is_full(), "{strategy}");
    }
}
