//! Faults of other stacks that packets, queues and bulk free can show; `bsd/faults.rs` has those of one
//! packet, the others lie beside what they test.
//!
//! Not here, and why:
//!
//! - C5, D8, E2, E4, E6, F4, Y4, Y8 and B7 for rings: pools, caches and backends have them (`mempool`).
//! - D2, D6, D10, G4, I5: rings and devices. A packet cannot be looked at after it was freed: the handle is
//!   gone.
//! - I1 to I11: nothing here sums. H4, L2 to L6, L10, L12: nothing here knows sequence numbers or flags.
//! - F6: a reply that is not sent is a packet that was dropped, which frees it.
//! - L14: there is no limit to exceed here; a socket buffer has one (`sockbuf`).
//! - Y2: a pool's size never changes. Y6: the compiler's answer, a doc test of `Mbuf`.

mod common;

use common::owner::{inside, times};
use common::uncached;
use mbuf::{
    BufferSet, EditError, FreeStrategy, Mbuf, NoRoom, Packet, PacketQueue, ReadError, TxMbuf,
    free_bulk, free_bulk_with,
};
use std::io::Write;

/// Three segments: the first inline, the others in clusters; 100 bytes each, numbered.
fn three(set: &BufferSet) -> Mbuf {
    let mut m: Option<Mbuf> = None;
    for (at, class) in [0, 2048, 4096].into_iter().enumerate() {
        let mut seg = set.header_with(class).unwrap();
        let bytes: Vec<u8> = (0..100).map(|b| (at * 100 + b) as u8).collect();
        seg.append(100).unwrap().copy_from_slice(&bytes);
        match &mut m {
            None => m = Some(seg),
            Some(m) => m.cat(seg),
        }
    }
    m.unwrap()
}

fn orders() -> impl Iterator<Item = [usize; 3]> {
    [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ]
    .into_iter()
}

#[test]
fn fault_b3_reading_at_the_end_gives_nothing_and_never_more() {
    let set = uncached();
    for m in [set.copy_in(&[7; 100], 0).unwrap(), {
        let mut m = set.copy_in(&[7; 60], 0).unwrap();
        m.cat(set.copy_in(&[7; 40], 0).unwrap());
        m
    }] {
        for (offset, len, there) in [
            (100, 1, false),
            (100, 0, true),
            (99, 1, true),
            (99, 2, false),
        ] {
            let (mut out, mut scratch) = (vec![1; len], vec![1; len]);
            assert_eq!(m.copy_to(offset, &mut out).is_ok(), there);
            assert_eq!(m.pieces(offset, len).is_ok(), there);
            match m.read(offset, len, &mut scratch) {
                Ok(read) => assert!(there && read == vec![7; len]),
                Err(e) => assert!(!there && matches!(e, ReadError::Range(_))),
            }
            assert_eq!(out, vec![if there { 7 } else { 1 }; len]);
        }
    }
}

#[test]
fn fault_b7_a_queue_with_one_free_place_takes_one() {
    let set = uncached();
    let queue = PacketQueue::new(3);
    let get = || set.header().unwrap();
    assert!(queue.enqueue(get()) && queue.enqueue(get()));
    assert!(queue.try_enqueue(get()).is_ok());
    let back = queue.try_enqueue(get());
    assert!(back.is_err_and(|m| m.check().is_ok()));
    assert!(!queue.enqueue(get()));
    assert_eq!((queue.len(), queue.drops(), set.in_use()), (3, 1, 3));
}

#[test]
fn fault_c1_copies_whose_head_is_bytes_and_whose_tail_is_shared_leave_no_reference() {
    for shared_before in [false, true] {
        for n in [0, 1, 2, 5] {
            for clones_first in [true, false] {
                let set = uncached();
                let m = three(&set);
                let before = shared_before.then(|| m.ref_copy(150, 100, &set).unwrap());
                let clones: Vec<Mbuf> = (0..n).map(|_| m.clone_packet(&set).unwrap()).collect();
                let refs: Vec<_> = m.segments().map(|seg| seg.storage_refs()).collect();
                let more = usize::from(shared_before);
                assert_eq!(refs, [1, 1 + n + more, 1 + n + more]);
                if clones_first {
                    drop(clones);
                    drop(m);
                } else {
                    drop(m);
                    assert!(clones.iter().all(|c| c.pkt_len() == 300));
                    drop(clones);
                }
                drop(before);
                assert!(set.is_full(), "{n} clones, shared before: {shared_before}");
            }
        }
    }
}

#[test]
fn fault_c3_a_packet_of_three_segments_on_three_queues_is_freed_once_by_the_last() {
    for how in FreeStrategy::ALL {
        for order in orders() {
            let set = uncached();
            let m = three(&set).into_shared();
            let mut queues: [[Option<TxMbuf>; 1]; 3] =
                std::array::from_fn(|_| [Some(m.clone().into())]);
            drop(m);
            let out = set.in_use();
            for (left, queue) in (0..3).rev().zip(order) {
                assert_eq!(set.in_use(), out);
                free_bulk_with(how, &mut queues[queue]);
                let rest = queues.iter().flatten().flatten().next();
                assert_eq!(rest.map_or(0, Packet::references), left);
                assert!(rest.is_none_or(|m| m.check().is_ok()));
            }
            assert!(set.is_full(), "{how} {order:?}");
        }
    }
}

/// Lengths, links and bytes that one thread writes are there when another has the packet, and its
/// buffers can be used again by the first when the other has freed it.
#[test]
fn fault_c9_what_was_written_is_there_on_the_other_side() {
    let set = BufferSet::standard(64, 16).unwrap();
    let queue = PacketQueue::new(8);
    let packets: usize = if cfg!(miri) { 50 } else { 2000 };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sent = 0;
            while sent < packets {
                let Ok(mut m) = set.copy_in(&sent.to_le_bytes(), sent % 60) else {
                    std::thread::yield_now();
                    continue;
                };
                if let Ok(tail) = set.copy_in(&vec![sent as u8; 300 + sent % 300], 0) {
                    m.cat(tail);
                }
                m.set_user(sent as u64);
                while let Err(back) = queue.try_enqueue(m) {
                    m = back;
                    std::thread::yield_now();
                }
                sent += 1;
            }
        });
        let mut seen = 0;
        while seen < packets {
            let Some(m) = queue.dequeue() else {
                std::thread::yield_now();
                continue;
            };
            m.check().unwrap();
            let bytes = m.to_vec();
            let (front, tail) = bytes.split_at(8);
            assert_eq!((front, m.user()), (&seen.to_le_bytes()[..], seen as u64));
            assert!(tail.iter().all(|&b| b == seen as u8));
            seen += 1;
        }
    });
    assert!(set.is_full());
}

#[test]
fn fault_d4_of_a_burst_that_is_used_in_part_the_rest_is_freed() {
    for how in FreeStrategy::ALL {
        let set = uncached();
        let mut burst: [Option<Mbuf>; 32] = [const { None }; 32];
        set.header_bulk(&mut burst).unwrap();
        let used: Vec<Mbuf> = burst[..10].iter_mut().filter_map(Option::take).collect();
        assert_eq!(set.in_use(), 32);
        free_bulk_with(how, &mut burst);
        assert_eq!(set.in_use(), 10, "22 were freed");
        assert!(used.iter().all(|m| m.check_fresh(set.mbuf_pool()).is_ok()));
        drop(used);
        assert!(set.is_full());
    }
}

#[test]
fn fault_f8_a_packet_given_away_to_a_call_that_fails_is_freed_as_a_whole() {
    let set = uncached();
    assert!(matches!(
        three(&set).pullup(301, &set),
        Err(EditError::Range(_))
    ));
    assert!(set.is_full());
}

#[test]
fn fault_f10_too_little_room_leaves_the_packet_to_the_caller() {
    let set = uncached();
    let mut m = set.copy_in(b"packet", 10).unwrap();
    let (asked, have) = (11, 10);
    assert_eq!(m.prepend(11), Err(NoRoom::TooSmall { asked, have }));
    assert_eq!(
        (m.to_vec().as_slice(), m.first().headroom()),
        (&b"packet"[..], 10)
    );
    m.prepend(10).unwrap();
    m.check().unwrap();
}

#[test]
fn fault_g2_direct_external_direct_in_any_order_of_completion() {
    for how in FreeStrategy::ALL {
        for order in orders() {
            let set = uncached();
            let (external, dropped) = inside();
            let mut m = set.copy_in(&[1; 50], 0).unwrap();
            let mut middle = set.plain().unwrap();
            middle.attach(external).unwrap();
            m.cat(middle);
            m.cat(set.plain_with(2048).unwrap());
            m.append(70).unwrap().fill(3);
            let copies = [
                m.clone_packet(&set).unwrap(),
                m.ref_copy(60, 100, &set).unwrap(),
            ];
            let [a, b] = copies.map(Some);
            let mut all = [Some(m), a, b];
            for (at, index) in order.into_iter().enumerate() {
                assert_eq!(times(&dropped), 0, "before {at}");
                assert!(all.iter().flatten().all(|m| m.check().is_ok()));
                free_bulk_with(how, &mut all[index..=index]);
            }
            assert_eq!(
                (times(&dropped), set.is_full()),
                (1, true),
                "{how} {order:?}"
            );
        }
    }
}

#[test]
fn fault_g6_an_owner_stays_where_its_bytes_are_while_tables_of_packets_grow() {
    let set = uncached();
    let (external, dropped) = inside();
    let mut reader = set.header().unwrap();
    reader.attach(external).unwrap();
    let place = reader.first().data().as_ptr();
    let mut table = Vec::new();
    for at in 0..100 {
        table.push(reader.ref_copy(at % 64, 1, &set).unwrap());
        assert_eq!(reader.first().data().as_ptr(), place);
    }
    drop(reader);
    for (at, m) in table.iter().enumerate() {
        assert_eq!(m.to_vec(), [(at % 64) as u8]);
    }
    assert_eq!(times(&dropped), 0);
    let mut table: Vec<_> = table.into_iter().map(Some).collect();
    free_bulk(&mut table);
    assert_eq!(times(&dropped), 1);
}

#[test]
fn fault_h2_a_packet_of_three_segments_is_written_as_a_whole() {
    let set = uncached();
    let m = three(&set);
    let mut file = Vec::new();
    m.write_to(&mut file).unwrap();
    assert_eq!((file.len(), &file), (m.pkt_len(), &m.to_vec()));
    assert_eq!(m.io_slices().map(|s| s.len()).sum::<usize>(), 300);
}

/// A driver with a reference copy wants a trailer, a tag and padding: the stack's bytes, which it
/// will send again, stay as they are.
#[test]
fn fault_l8_a_driver_cannot_write_into_what_the_stack_keeps() {
    let set = uncached();
    let mut kept = set.header_with(2048).unwrap();
    kept.set_lead(64).unwrap();
    kept.append(1000).unwrap().fill(0x5a);
    kept.trim_back(10).unwrap();
    for _ in 0..3 {
        let mut frame = kept.ref_copy(0, 990, &set).unwrap();
        let (asked, refs) = (4, 2);
        let refused = NoRoom::ReadOnly { asked, refs };
        assert_eq!(frame.append(4).unwrap_err(), refused);
        assert_eq!(frame.prepend(4).unwrap_err(), refused);
        assert!(frame.data_mut().is_none());
        frame.append_with(4, &set).unwrap().fill(0xfc);
        frame.prepend_with(4, &set).unwrap().fill(0x81);
        frame.write_at(4, &[1; 12], &set).unwrap();
        frame.writer(Some(&set)).write_all(&[0; 60]).unwrap();
        frame.check().unwrap();
        assert_eq!(frame.to_vec()[16..994], [0x5a; 978]);
        drop(frame);
        assert_eq!(kept.to_vec(), [0x5a; 990]);
        // Also what lies behind its end.
        kept.append(10).unwrap();
        assert_eq!(kept.to_vec(), [0x5a; 1000]);
        kept.trim_back(10).unwrap();
    }
}

/// Bytes that are dropped from a packet while somebody else still fills or reads them: freed by the
/// last of the two, once.
#[test]
fn fault_m8_memory_in_use_elsewhere_outlives_the_packet() {
    let set = uncached();
    let (external, dropped) = inside();
    let mut m = set.copy_in(b"front", 0).unwrap();
    let mut seg = set.plain().unwrap();
    seg.attach(external.clone()).unwrap();
    m.cat(seg);
    m.trim_front(5).unwrap();
    m.trim_back(64).unwrap();
    drop(m);
    assert!(set.is_full());
    assert_eq!((times(&dropped), external.refs()), (0, 1));
    assert_eq!(external.data()[63], 63);
    drop(external);
    assert_eq!(times(&dropped), 1);
}

#[test]
fn fault_t6_fault_t8_lengths_about_two_to_the_31_are_refused_and_change_nothing() {
    let set = uncached();
    let mut m = three(&set);
    for n in [
        0x7fff_ffff,
        0x8000_0000,
        0x8000_0840,
        u32::MAX as usize,
        1 << 32,
        usize::MAX,
    ] {
        assert!(m.append(n).is_err() && m.prepend(n).is_err() && m.set_lead(n).is_err());
        assert!(m.trim_front(n).is_err() && m.trim_back(n).is_err());
        assert!(m.align_end(n).is_err() && m.locate(n).is_err());
        assert!(m.split(n, &set).is_err() && m.make_contiguous(n, &set).is_err());
        assert!(m.pulldown(n, 1, &set).is_err() && m.pulldown(1, n, &set).is_err());
        assert!(m.make_space(n, 1, &set).is_err() && m.make_space(1, n, &set).is_err());
        assert!(m.append_with(n, &set).is_err() && m.prepend_with(n, &set).is_err());
        assert!(m.write_at(n, b"x", &set).is_err());
        assert!(m.ref_copy(n, 1, &set).is_err() && m.ref_copy(0, n, &set).is_err());
        assert!(m.byte_copy(0, 1, n, &set).is_err() && m.pieces(0, n).is_err());
        assert!(set.copy_in(b"x", n).is_err() && set.header_with(n).is_err());
        m.check().unwrap();
        assert_eq!((m.pkt_len(), m.nsegs()), (300, 3));
    }
    drop(m);
    assert!(set.is_full());
}
