//! Faults that others have had, as scenarios of ours: segment sizes, exact fits, the threshold's rule,
//! empty pools.

mod common;

use common::{failing_set, pattern, piece, see, send, set, spliced, tcb, v4, v6};
use mbuf::{BufferSet, OffloadFlags, Packet};
use sockbuf::SockBuf;
use tcp_output::policy::{Copy, Reference, Threshold};
use tcp_output::*;

#[test]
fn fault_j2_every_tso_frame_is_whole_segments() {
    let set = BufferSet::bsd(2048, 160).expect("pools");
    let mut frames = 0;
    for data in [1448u32, 1460, 536, 8948, 32_000, 40_000] {
        for total in [65536, 131_072, 200_001] {
            let mut sb = SockBuf::new(1 << 20);
            sb.write(&pattern(0, total), &set).expect("space");
            for ends in [v4(), v6()] {
                let mut sender = Sender::new(tcb(ends, data + 12), Copy);
                let mut stream = 0;
                for packet in send(&mut sender, &sb, &set) {
                    let seen = see(&packet);
                    if seen.offload.flags.contains(OffloadFlags::TSO) {
                        frames += 1;
                        assert_eq!(u32::from(seen.offload.tso_mss), data);
                        assert!(
                            seen.payload.len().is_multiple_of(data as usize)
                                && seen.payload.len() > data as usize
                        );
                        assert!(packet.pkt_len() + MAX_LINK_HEADER <= MAX_PACKET);
                    } else {
                        assert!(seen.payload.len() <= data as usize);
                    }
                    stream += seen.payload.len();
                }
                assert_eq!(stream, total);
            }
        }
    }
    assert!(frames > 50);
}

#[test]
fn fault_x2_no_packet_is_longer_than_the_mtu() {
    let set = set();
    for payload in 1448 - 12..=1448 + 12 {
        for sacks in 0..=3 {
            let mut sb = SockBuf::new(1 << 20);
            sb.write(&pattern(0, payload), &set).expect("space");
            let mut tcb = tcb(v4(), 1460);
            tcb.rcv.sacks = sacks;
            let mut sender = Sender::new(tcb, Reference);
            let lengths: Vec<usize> = send(&mut sender, &sb, &set)
                .iter()
                .map(Packet::pkt_len)
                .collect();
            assert!(
                lengths.iter().all(|&len| len <= 1500),
                "{payload} bytes, {sacks} blocks: {lengths:?}"
            );
        }
    }
}

#[test]
fn fault_x6_two_segments_without_an_ack_are_consecutive() {
    let set = set();
    let mut sb = SockBuf::new(1 << 20);
    let mut sender = Sender::new(tcb(v4(), 1460), Reference);
    let mut next = u32::MAX - 20_000;
    for len in [100u32, 200, 30_000] {
        sb.write(&pattern(0, len as usize), &set).expect("space");
        for packet in send(&mut sender, &sb, &set) {
            let seen = see(&packet);
            assert_eq!(seen.seq, next);
            next = next.wrapping_add(seen.payload.len() as u32);
        }
    }
    assert_eq!(sender.tcb().send.nxt, Seq(next));
}

#[test]
fn fault_b9_exact_fit_keeps_room_for_the_link_header() {
    let set = set();
    // Timestamps over IPv4: 52 bytes of headers.
    for (class, next_class) in [(2048usize, 2050), (4096, 8192), (16384, 65536)] {
        let exact = class - 64 - 52;
        for (len, expected) in [(exact - 1, class), (exact, class), (exact + 1, next_class)] {
            let mut sb = SockBuf::new(1 << 20);
            sb.append_stream(piece(&set, 0, true, &pattern(0, 100)));
            sb.write(&pattern(100, len - 100), &set).expect("space");
            let mut sender = Sender::new(tcb(v4(), 60_000), Threshold { factor: 5 });
            let packet = send(&mut sender, &sb, &set).swap_remove(0);
            assert_eq!(
                packet.first().storage(),
                mbuf::Storage::Cluster { class: expected },
                "{len}"
            );
            let (lead, trail) = (packet.first().headroom(), packet.first().tailroom());
            assert!(
                lead >= 64 && trail < 8,
                "{len} bytes: lead {lead}, trail {trail}"
            );
            assert!(see(&packet).payload == pattern(0, len));
        }
    }
}

#[test]
fn fault_j14_threshold_looks_at_the_first_mbuf_and_nothing_else() {
    let set = set();
    for (first, header) in [(0usize, true), (0, false), (2048, true), (4096, false)] {
        let capacity = match (first, header) {
            (0, true) => 144,
            (0, false) => 224,
            (class, _) => class,
        };
        for len in [5 * capacity - 1, 5 * capacity, 5 * capacity + 1] {
            for off in [0usize, 100, 130] {
                let mut sb = SockBuf::new(1 << 20);
                sb.append_stream(piece(&set, first, header, &pattern(0, 100)));
                sb.append_stream(piece(&set, 65536, false, &pattern(100, len + off - 100)));
                let mut tcb = tcb(v4(), 60_000);
                tcb.send.nxt += off as u32;
                tcb.send.max += off as u32;
                let mut by_rule = Sender::new(tcb.clone(), Threshold { factor: 5 });
                let ours: Vec<Vec<u8>> = send(&mut by_rule, &sb, &set)
                    .iter()
                    .map(Packet::to_vec)
                    .collect();
                let stats = by_rule.tcb().stats;
                let copied = u64::from(capacity * 5 < len);
                assert_eq!(
                    (stats.copied_packets, stats.referenced_packets),
                    (copied, 1 - copied),
                    "{len} at {off}"
                );
                let mut by_reference = Sender::new(tcb, Reference);
                let theirs: Vec<Vec<u8>> = send(&mut by_reference, &sb, &set)
                    .iter()
                    .map(Packet::to_vec)
                    .collect();
                assert_eq!(ours, theirs);
            }
        }
    }
}

#[test]
fn fault_j14_no_payload_asks_no_policy() {
    struct Never;
    impl CopyPolicy for Never {
        fn choose(&self, _: &SendPlan<'_>) -> How {
            panic!("asked about a packet without payload");
        }
    }
    let set = set();
    let mut tcb = tcb(v4(), 1460);
    tcb.flags |= TcbFlags::ACK_NOW;
    assert_eq!(
        send(&mut Sender::new(tcb, Never), &SockBuf::new(1000), &set).len(),
        1
    );
}

#[test]
fn fault_w8_empty_cluster_pool_loses_nothing() {
    let (set, switches) = failing_set(256, 64);
    let sb = spliced(&set, 45, 1448);
    let mut sender = Sender::new(tcb(v4(), 1460), Threshold { factor: 5 });
    switches[8].fail_at(1);
    let packets = send(&mut sender, &sb, &set);
    assert_eq!((packets.len(), packets[0].nsegs()), (1, 46));
    assert!(see(&packets[0]).payload == pattern(0, 45 * 1448));
    let stats = sender.tcb().stats;
    assert_eq!((stats.fallbacks, stats.referenced_packets), (1, 1));
}

#[test]
fn fault_j4_segments_longer_than_a_cluster_are_chains() {
    let set = set();
    let sb = spliced(&set, 30, 2000);
    let mut stream = Vec::new();
    let mut sender = Sender::new(tcb(v4(), 9000), Reference);
    for packet in send(&mut sender, &sb, &set) {
        let seen = see(&packet);
        assert_eq!(
            seen.offload.tso_mss,
            if seen.payload.len() > 8988 { 8988 } else { 0 }
        );
        stream.extend(seen.payload);
    }
    assert!(stream == pattern(0, 60_000));
}

#[test]
fn fault_j10_fin_and_push_only_where_the_data_ends() {
    let set = set();
    for len in (1..3 * 1448 + 2)
        .step_by(97)
        .chain([1448, 2 * 1448, 3 * 1448])
    {
        for tso in [false, true] {
            let mut sb = spliced(&set, 1, 1);
            sb.write(&pattern(1, len - 1), &set).expect("space");
            let mut tcb = tcb(v4(), 1460);
            tcb.state = State::FinWait1;
            let mut sender = Sender::new(tcb, Reference).with_tso(tso);
            let packets = send(&mut sender, &sb, &set);
            for (i, packet) in packets.iter().enumerate() {
                let last = i + 1 == packets.len();
                let flags = see(packet).flags;
                assert_eq!(flags.contains(&"FIN"), last, "{len} bytes, packet {i}");
                assert_eq!(flags.contains(&"PSH"), last, "{len} bytes, packet {i}");
            }
            assert_eq!(sender.tcb().send.nxt - sender.tcb().una, len as u32 + 1);
        }
    }
}

#[test]
fn copy_without_a_class_refers() {
    let set = BufferSet::builder(256)
        .class(2048, 64)
        .build()
        .expect("pools");
    let mut sb = SockBuf::new(1 << 20);
    sb.write(&pattern(0, 14480), &set).expect("space");
    let mut sender = Sender::new(tcb(v4(), 1460), Copy);
    let packets = send(&mut sender, &sb, &set);
    assert_eq!(sender.tcb().stats.referenced_packets, 1);
    assert!(see(&packets[0]).payload == pattern(0, 14480));
    let shared = sb.segments().filter(|seg| seg.is_shared()).count();
    assert_eq!(
        (shared, sb.segs()),
        (7, 8),
        "the last 144 bytes stand in an inline mbuf"
    );
}
