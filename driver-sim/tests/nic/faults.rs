//! Bugs that other drivers had, each as the same scenario here.

use driver_sim::pcap::PcapFile;
use driver_sim::{
    Backend, BadPacket, DescFlags, Descriptor, Each, Fault, Gather, Hardware, Link, Null, TxConfig,
    TxQueue,
};
use mbuf::{Mbuf, Packet, TxMbuf, TxOffload};

use crate::oracle::{Ask, tcp_packet};
use crate::support::{chain, check_law, collecting, packet, queue, send, set};

#[test]
fn fault_d2_stopping_twice_frees_each_packet_once() {
    let set = set();
    let mut queue = queue(16);
    for i in 0..5 {
        send(&mut queue, packet(&[20, 20], i, &set), &set);
    }
    queue.run_device(2);
    assert_eq!(queue.reset(), 3);
    assert!(set.is_full());
    // Whatever a second stop frees again would now be handed out twice.
    assert_eq!(queue.reset(), 0);
    let held: Vec<Mbuf> = (0..10).map(|i| packet(&[30], i, &set)).collect();
    for (i, m) in held.iter().enumerate() {
        assert_eq!(m.to_vec()[0], i as u8);
    }
    assert_eq!(set.in_use(), 10);
    send(&mut queue, packet(&[1], 0, &set), &set);
    assert_eq!(queue.run_device(9), 1);
    check_law(&queue);
}

#[test]
fn fault_g4_bytes_are_counted_before_the_packet_is_freed() {
    let set = set();
    let mut queue = queue(16);
    send(&mut queue, packet(&[100, 200, 300], 0, &set), &set);
    queue.run_device(1);
    queue.drain();
    assert_eq!(
        (queue.stats().bytes, queue.device_stats().bytes),
        (600, 600)
    );
}

#[test]
fn fault_h2_a_capture_record_has_the_length_of_the_packet_not_of_its_head() {
    let set = set();
    let file = Hardware::new(PcapFile::new(Vec::new(), Link::Raw).unwrap());
    let mut queue = TxQueue::new(TxConfig::default(), file).unwrap();
    let m = packet(&[20, 700, 1100], 0x45, &set);
    let bytes = m.to_vec();
    send(&mut queue, m, &set);
    queue.run_device(1);
    let file = queue.into_backend().into_sink().finish().unwrap();
    let mut reader = pcap_file::pcap::PcapReader::new(&file[..]).unwrap();
    let record = reader.next_packet().unwrap().unwrap();
    assert_eq!((record.orig_len, &*record.data), (1820, &bytes[..]));
    assert!(reader.next_packet().is_none());
}

#[test]
fn fault_j8_descriptors_that_break_the_rules_are_found() {
    let set = set();
    let packet = TxMbuf::from(packet(&[10, 0, 20, 30], 0, &set));
    let good: Vec<Descriptor> = described(&packet);
    assert_eq!(check(&packet, &good), None);
    let changed = |index: usize, change: &dyn Fn(&mut usize, &mut u32, &mut DescFlags)| {
        let mut descriptors = good.clone();
        if let Descriptor::Data { addr, len, flags } = &mut descriptors[index] {
            change(addr, len, flags);
        }
        descriptors
    };
    let cases = [
        (
            changed(0, &|_, _, f| *f |= DescFlags::OFFLOAD),
            (1, Fault::Offload),
        ),
        (changed(1, &|_, _, f| *f |= DescFlags::END), (1, Fault::End)),
        (
            changed(2, &|_, _, f| f.remove(DescFlags::END)),
            (2, Fault::End),
        ),
        (
            changed(1, &|_, _, f| *f |= DescFlags::REPORT),
            (1, Fault::Report),
        ),
        (
            changed(0, &|_, _, f| *f |= DescFlags::DONE),
            (0, Fault::Report),
        ),
        (changed(1, &|a, _, _| *a += 1), (1, Fault::Piece)),
        (changed(1, &|_, l, _| *l += 1), (1, Fault::Piece)),
        (changed(2, &|_, l, _| *l -= 1), (3, Fault::Missing)),
        (good[1..].to_vec(), (0, Fault::Piece)),
        (
            vec![Descriptor::Context(TxOffload::default())],
            (0, Fault::NotData),
        ),
    ];
    for (i, (descriptors, (index, fault))) in cases.iter().enumerate() {
        let found = check(&packet, descriptors).map(|f| (f.index, f.fault));
        // A piece that is cut short is seen in its own descriptor or as bytes left over.
        assert_eq!(found, Some((*index, *fault)), "case {i}");
    }
}

fn described(packet: &TxMbuf) -> Vec<Descriptor> {
    let mut out: Vec<Descriptor> = packet
        .segments()
        .filter(|s| !s.is_empty())
        .map(|s| Descriptor::Data {
            addr: s.data().as_ptr().addr(),
            len: s.len() as u32,
            flags: DescFlags::empty(),
        })
        .collect();
    if let Some(Descriptor::Data { flags, .. }) = out.last_mut() {
        *flags = DescFlags::END | DescFlags::REPORT;
    }
    out
}

fn check(packet: &TxMbuf, descriptors: &[Descriptor]) -> Option<driver_sim::DescriptorFault> {
    // Both as one slice and as a ring that wraps after the first descriptor.
    let whole = Gather::new(descriptors, &[], packet, TxOffload::default()).check();
    let (a, b) = descriptors.split_at(1);
    assert_eq!(
        Gather::new(a, b, packet, TxOffload::default()).check(),
        whole
    );
    let bad =
        Hardware::new(Each(|_: &[u8]| ())).packet(&Gather::new(a, b, packet, TxOffload::default()));
    assert_eq!(bad.err(), whole.err().map(BadPacket::Descriptor));
    whole.err()
}

#[test]
fn fault_o1_packets_that_end_on_each_of_the_last_slots_complete() {
    let set = set();
    for size in [8, 9] {
        for end in size - 3..size {
            for k in 1..4 {
                let mut queue = queue(size);
                send(&mut queue, packet(&vec![1; end - k + 1], 0, &set), &set);
                queue.run_device(1);
                queue.drain();
                send(&mut queue, packet(&vec![2; k], 0, &set), &set);
                assert!(queue.slots()[end].is_some());
                send(&mut queue, packet(&[3, 3], 0, &set), &set);
                assert_eq!(queue.run_device(9), 2);
                assert_eq!(queue.drain(), 2);
                check_law(&queue);
                assert!(set.is_full());
            }
        }
    }
}

#[test]
fn fault_o3_rings_that_are_no_power_of_two_wrap_right() {
    let set = set();
    for size in [24, 100, 1000] {
        let mut queue = queue(size);
        let mut want = Vec::new();
        while queue.stats().descriptors < 3 * size as u64 {
            let m = packet(&vec![1; want.len() % 3 + 1], want.len() as u8, &set);
            want.push(m.to_vec());
            send(&mut queue, m, &set);
            queue.run_device(1);
        }
        assert_eq!(queue.backend().sink().frames, want);
        queue.drain();
        assert!(set.is_full());
    }
}

#[test]
fn fault_o9_offload_of_one_packet_does_not_leak_into_the_next() {
    let set = set();
    let mut queue = queue(64);
    let payload = vec![5; 3000];
    let tso = Ask::default();
    let sums = Ask {
        mss: 0,
        ..Ask::default()
    };
    let (tso_bytes, tso_ask) = tcp_packet(&tso, &payload);
    let (sum_bytes, sum_ask) = tcp_packet(&sums, b"odd");
    let with = |bytes: &[u8], ask| {
        let mut m = chain(bytes, &[bytes.len()], &set);
        m.set_offload(ask);
        Some(m)
    };
    let mut burst = [
        with(&tso_bytes, tso_ask),
        with(&tso_bytes, TxOffload::default()),
        with(&sum_bytes, sum_ask),
        with(&tso_bytes, tso_ask),
    ];
    assert_eq!(queue.send(&mut burst, &set), 4);
    queue.run_device(4);
    let frames = tso.frames(&payload);
    let want = [
        &frames[..],
        std::slice::from_ref(&tso_bytes),
        &sums.frames(b"odd")[..],
        &frames[..],
    ]
    .concat();
    assert_eq!(queue.backend().sink().frames, want);
    assert_eq!(queue.stats().contexts, 3);
}

#[test]
fn fault_p2_context_descriptors_do_not_upset_completion() {
    let set = set();
    let mut queue = queue(10);
    let (bytes, ask) = tcp_packet(&Ask::default(), &[1; 1500]);
    for round in 0..100 {
        let mut m = chain(&bytes, &[52, bytes.len() - 52], &set);
        // A new context each time, since the last one is in force otherwise.
        m.set_offload(TxOffload {
            tso_mss: 1000 + round,
            ..ask
        });
        send(&mut queue, m, &set);
        send(&mut queue, packet(&[9], 0, &set), &set);
        assert_eq!(queue.run_device(9), 2);
        assert_eq!(queue.drain(), 2);
        assert!(set.is_full());
        assert_eq!(queue.room(), 10);
    }
    assert_eq!((queue.stats().contexts, queue.device_stats().bad), (100, 0));
}

#[test]
fn fault_p4_a_ring_full_to_the_brim_completes_every_packet() {
    let set = set();
    for rs_interval in [1, 3, 8] {
        let config = TxConfig {
            ring_size: 8,
            rs_interval,
            free_thresh: 1,
            ..TxConfig::default()
        };
        let mut queue = collecting(config);
        for _ in 0..20 {
            for i in 0..8 {
                send(&mut queue, packet(&[7], i, &set), &set);
            }
            assert_eq!(queue.room(), 0);
            for _ in 0..4 {
                queue.run_device(2);
                queue.drain();
                check_law(&queue);
            }
            queue.drain_all();
            assert_eq!(queue.room(), 8);
            assert!(set.is_full());
        }
        assert_eq!(queue.stats().completed, 160);
    }
}

#[test]
fn fault_p6_completed_but_unreclaimed_packets_are_freed_at_stop() {
    let set = set();
    let mut queue = queue(32);
    for i in 0..10 {
        send(&mut queue, packet(&[70, 70], i, &set), &set);
    }
    queue.run_device(10);
    assert_eq!(queue.reset(), 0, "all of them were done");
    assert_eq!((queue.stats().completed, queue.stats().reset), (10, 0));
    assert!(set.is_full());
}

#[test]
fn fault_q3_reports_are_asked_for_every_interval_whatever_the_bursts() {
    let set = set();
    for burst in [7, 8, 9] {
        let config = TxConfig {
            ring_size: 20,
            rs_interval: 8,
            free_thresh: 10,
            ..TxConfig::default()
        };
        let mut queue = TxQueue::new(config, Null::default()).unwrap();
        for _ in 0..50 {
            let mut packets: Vec<Option<Mbuf>> =
                (0..burst).map(|i| Some(packet(&[4], i, &set))).collect();
            assert_eq!(queue.send(&mut packets, &set), burst as usize);
            queue.run_device(usize::MAX);
        }
        let stats = *queue.stats();
        assert_eq!(stats.reports, stats.descriptors / 8);
        assert_eq!(stats.head_reads, 0, "no completion was missed");
        queue.drain_all();
        assert!(set.is_full());
    }
}

#[test]
fn fault_q5_each_packet_is_checked_against_the_room_there_is() {
    let set = set();
    let mut rng = fastrand::Rng::with_seed(5);
    let mut queue = queue(64);
    for _ in 0..100 {
        let mut burst: Vec<Option<Mbuf>> = (0..16)
            .map(|i| Some(packet(&vec![2; rng.usize(1..=16)], i, &set)))
            .collect();
        let before = queue.room();
        let taken = queue.send(&mut burst, &set);
        let next = burst
            .get(taken)
            .and_then(Option::as_ref)
            .map_or(65, |m| m.nsegs());
        assert!(
            queue.room() < next,
            "{before} free at first: stopped too early"
        );
        check_law(&queue);
        queue.run_device(rng.usize(0..20));
        queue.drain();
    }
    queue.reset();
    assert!(set.is_full());
}

#[test]
fn fault_r1_empty_segments_take_no_descriptor_and_empty_packets_are_dropped() {
    let set = set();
    let mut queue = queue(16);
    let packets: [&[usize]; 6] = [&[5, 0, 7], &[0, 0], &[0], &[0, 3], &[3, 0], &[1]];
    let mut burst: Vec<Option<Mbuf>> = packets
        .iter()
        .map(|lengths| Some(packet(lengths, 1, &set)))
        .collect();
    assert_eq!(queue.send(&mut burst, &set), 6);
    let stats = *queue.stats();
    assert_eq!(
        (stats.posted, stats.dropped_empty, stats.descriptors),
        (4, 2, 5)
    );
    queue.run_device(usize::MAX);
    let lengths: Vec<usize> = queue.backend().sink().frames.iter().map(Vec::len).collect();
    assert_eq!(lengths, [12, 3, 3, 1]);
    assert_eq!(queue.device_stats().bad, 0);
    queue.drain();
    check_law(&queue);
    assert!(set.is_full());
}

#[test]
fn fault_v1_bursts_around_and_far_above_255() {
    let set = mbuf::BufferSet::builder(66_000).build().unwrap();
    for count in [255, 256, 257, 65_535] {
        let config = TxConfig {
            ring_size: 65_536,
            ..TxConfig::default()
        };
        let mut queue = TxQueue::new(config, Null::default()).unwrap();
        let mut burst: Vec<Option<Mbuf>> = (0..count).map(|_| None).collect();
        set.header_bulk(&mut burst).unwrap();
        for m in burst.iter_mut().flatten() {
            m.append(1).unwrap()[0] = 1;
        }
        assert_eq!(queue.send(&mut burst, &set), count);
        assert_eq!(queue.run_device(usize::MAX), count);
        assert_eq!(queue.drain_all(), count);
        assert!(set.is_full());
    }
}
