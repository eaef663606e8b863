//! What the printers say.

mod common;

use common::uncached;
use mbuf::{
    BufferSet, Checksum, Flow, OffloadFlags, Packet, PacketList, PacketQueue, PacketType,
    PrivateArea, Received, TxOffload,
};

#[test]
fn dpdk_b4_b9_b15_a_packet_is_dumped_whatever_it_holds() {
    let set = uncached();
    let mut m = set.header_with(1464).unwrap();
    m.append(1464).unwrap().fill(0xff);
    for len in [0, 1464, 2928, usize::MAX] {
        let lines = m.hexdump(0, len).to_string();
        let expected = len.min(1464).div_ceil(16);
        assert_eq!(lines.lines().count(), expected, "{len}");
    }
    let last = m.hexdump(1456, 100).to_string();
    let expected = "000005b0  ff ff ff ff ff ff ff ff                          ........\n";
    assert_eq!(last, expected);
    assert_eq!(m.hexdump(1464, 1).to_string(), "");
    assert_eq!(m.hexdump(usize::MAX, usize::MAX).to_string(), "");
}

#[test]
fn hex_runs_over_segments_of_any_length() {
    let set = uncached();
    let bytes: Vec<u8> = (0..90).map(|at| b' ' + at).collect();
    for cuts in [
        vec![],
        vec![0, 1],
        vec![16, 32],
        vec![3, 3, 40, 89],
        vec![90],
    ] {
        let mut m = set.header().unwrap();
        let mut at = 0;
        for end in cuts.iter().copied().chain([90]) {
            let mut part = set.plain().unwrap();
            part.append(end - at)
                .unwrap()
                .copy_from_slice(&bytes[at..end]);
            m.cat(part);
            at = end;
        }
        for (offset, len) in [(0, 90), (5, 30), (33, 57), (89, 1), (90, 5)] {
            let dump = m.hexdump(offset, len).to_string();
            let mut flat = set.plain().unwrap();
            let part = &bytes[offset..(offset + len).min(90)];
            flat.append(part.len()).unwrap().copy_from_slice(part);
            let places = (0..).map(|n| format!("{:08x}", offset + n * 16));
            let plain = flat.hexdump(0, 99).to_string();
            assert_eq!(dump.lines().count(), plain.lines().count());
            for ((line, plain), place) in dump.lines().zip(plain.lines()).zip(places) {
                assert_eq!(
                    line,
                    format!("{place}{}", &plain[8..]),
                    "{cuts:?} {offset} {len}"
                );
            }
        }
    }
    let mut m = set.header().unwrap();
    m.append(4).unwrap().copy_from_slice(b"ab\n\x7f");
    let expected = "00000000  61 62 0a 7f                                      ab..\n";
    assert_eq!(m.hexdump(0, 9).to_string(), expected);
}

#[test]
fn bsd_print_chain_has_one_line_per_segment() {
    let set = uncached();
    let mut m = set.header().unwrap();
    m.set_lead(20).unwrap();
    m.append(100).unwrap();
    let mut next = set.plain_with(2048).unwrap();
    next.append(48).unwrap();
    m.cat(next);
    let copy = m.ref_copy(100, 48, &set).unwrap();
    let dump = m.dump().to_string();
    let lines: Vec<_> = dump.lines().collect();
    assert!(lines[0].starts_with("packet 0x") && lines[0].ends_with("len 148 segs 2 owners 1"));
    assert!(lines[1].starts_with("  0: 0x"), "{dump}");
    assert!(
        lines[1].ends_with("header lead 20 len 100 trail 24 Inline refs 1"),
        "{dump}"
    );
    let second = "lead 0 len 48 trail 2000 Cluster { class: 2048 } refs 2";
    assert!(
        lines[2].starts_with("  1: 0x") && lines[2].ends_with(second),
        "{dump}"
    );
    assert_eq!(lines.len(), if mempool::CHECKED { 4 } else { 3 });
    drop(copy);
    let shared = m.into_shared();
    let other = shared.clone();
    assert!(other.dump().to_string().contains("owners 2\n"));
}

#[test]
fn bsd_print_packet_says_what_is_said_of_it() {
    let set = BufferSet::bsd_builder(8, 1)
        .private(PrivateArea {
            fields: 0,
            tags: 16,
        })
        .build()
        .unwrap();
    let mut m = set.header().unwrap();
    m.set_received(Received {
        port: 2,
        queue: 5,
        packet_type: PacketType::IPV4 | PacketType::UDP,
        ip_checksum: Checksum::Good,
        l4_checksum: Checksum::Bad,
    });
    m.set_vlan(Some(0x123));
    m.set_timestamp(Some(99));
    m.set_flow(Some(Flow::Hash(0xabc)));
    m.set_priority(Some(3));
    m.set_offload(TxOffload {
        flags: OffloadFlags::TSO,
        tso_mss: 536,
        ..TxOffload::default()
    });
    m.add_tag(7, b"tag").unwrap();
    let dump = m.dump().to_string();
    let said = " port 2.5 type IPV4|UDP ip Good l4 Bad vlan 0x0123 time 99 flow Hash(abc) priority 3 \
                offload TSO mss 536\n";
    assert!(dump.contains(said), "{dump}");
    assert!(dump.contains("\n  tag 7: 3 bytes"), "{dump}");
}

#[test]
fn bsd_print_queue_has_one_line_per_packet() {
    let set = uncached();
    let queue = PacketQueue::new(2);
    assert_eq!(
        queue.to_string(),
        "queue limit 2 drops 0: 0 packets of 0 bytes"
    );
    for len in [5, 6, 7] {
        let mut m = set.header().unwrap();
        m.append(len).unwrap();
        queue.enqueue(m);
    }
    let print = queue.to_string();
    let lines: Vec<_> = print.lines().collect();
    assert_eq!(lines[0], "queue limit 2 drops 1: 2 packets of 11 bytes");
    assert!(lines[1].starts_with("  packet 0x") && lines[1].contains(" len 5 segs 1"));
    assert!(lines[2].contains(" len 6 ") && lines.len() == 3);
    let list: PacketList = queue.delist();
    assert_eq!(list.to_string().lines().count(), 3);
}
