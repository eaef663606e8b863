//! DPDK's own scenarios for what is done to a packet: table 3b, B4 to B13, B23, B28 to B31, B35.

use mbuf::{BufferSet, Mbuf, NoRoom, OffloadFlags, Packet, ReadError, Room, SharedMbuf, TxOffload};

/// Room in front of the data, as DPDK's pools have it.
const HEADROOM: usize = 128;
const ROOM: usize = 2048;
const HELLO: u32 = 0x42424242;

/// Pool A: 128 mbufs of 2048 bytes each, inline.
fn pool_a() -> BufferSet {
    let room = Room {
        header: ROOM,
        plain: ROOM,
        charge: ROOM,
    };
    let builder = BufferSet::builder(128).room(room);
    builder.configure(|b| b.cache(32)).build().unwrap()
}

fn fresh(set: &BufferSet) -> Mbuf {
    set.header_with_lead(HEADROOM, ROOM - HEADROOM).unwrap()
}

fn with(set: &BufferSet, bytes: &[u8]) -> Mbuf {
    set.copy_in(bytes, HEADROOM).unwrap()
}

/// The packet that B6 to B8 start from: 1464 bytes.
fn packet(set: &BufferSet) -> Mbuf {
    let mut m = fresh(set);
    assert_eq!(m.pkt_len(), 0);
    m.append(1464).unwrap().fill(0x66);
    m
}

#[test]
fn dpdk_b4_append_sets_both_lengths() {
    let set = pool_a();
    let m = packet(&set);
    assert_eq!((m.pkt_len(), m.first().len(), m.nsegs()), (1464, 1464, 1));
    assert!(format!("{m:?}").contains("1464"));
}

#[test]
fn dpdk_b5_append_beyond_the_tailroom_changes_nothing() {
    let set = pool_a();
    let mut m = packet(&set);
    let room = m.first().tailroom();
    assert_eq!(room, ROOM - HEADROOM - 1464);
    let e = m.append(room + 1).unwrap_err();
    let (asked, have) = (room + 1, room);
    assert_eq!(e, NoRoom::TooSmall { asked, have });
    assert!(m.append(usize::MAX).is_err());
    assert_eq!((m.pkt_len(), m.first().tailroom()), (1464, room));
    m.check().unwrap();
}

#[test]
fn dpdk_b6_append_and_trim() {
    let set = pool_a();
    let mut m = packet(&set);
    m.append(50).unwrap();
    assert_eq!(m.pkt_len(), 1514);
    m.trim_back(50).unwrap();
    assert_eq!((m.pkt_len(), m.first().len()), (1464, 1464));
    let e = m.trim_back(1465).unwrap_err();
    assert_eq!((e.len, e.have), (1465, 1464));
    assert_eq!(m.to_vec(), [0x66; 1464]);
}

#[test]
fn dpdk_b7_prepend_into_the_headroom() {
    let set = pool_a();
    let mut m = packet(&set);
    let data = m.first().data().as_ptr();
    let front = m.prepend(20).unwrap().as_ptr();
    assert_eq!((data as usize - front as usize, m.pkt_len()), (20, 1484));
    let front = m.prepend(30).unwrap().as_ptr();
    assert_eq!((data as usize - front as usize, m.pkt_len()), (50, 1514));
    let headroom = m.first().headroom();
    assert_eq!(headroom, HEADROOM - 50);
    let e = m.prepend(headroom + 1).unwrap_err();
    let (asked, have) = (headroom + 1, headroom);
    assert_eq!(e, NoRoom::TooSmall { asked, have });
    assert_eq!(m.pkt_len(), 1514);
    m.check().unwrap();
}

#[test]
fn dpdk_b8_trim_front_gives_the_first_data_back() {
    let set = pool_a();
    for _ in 0..2 {
        let mut m = packet(&set);
        let data = m.first().data().as_ptr();
        m.prepend(50).unwrap();
        m.trim_front(50).unwrap();
        assert_eq!((m.first().data().as_ptr(), m.pkt_len()), (data, 1464));
        assert!(m.trim_front(1465).is_err());
        assert_eq!(m.to_vec(), [0x66; 1464]);
    }
    assert!(set.is_full());
}

#[test]
fn dpdk_b9_bytes_that_are_no_text_can_be_shown() {
    let set = pool_a();
    let mut m = fresh(&set);
    m.append(1464).unwrap().fill(0xff);
    assert!(!format!("{m:?} {:?}", m.first()).is_empty());
}

#[test]
fn dpdk_b10_segment_by_segment() {
    let set = pool_a();
    let mut m = fresh(&set);
    (1..128).for_each(|_| m.cat(fresh(&set)));
    let mut rest = Some(m);
    let mut left = 128;
    while let Some(m) = rest {
        let first;
        (first, rest) = m.split_first();
        drop(first);
        left -= 1;
        assert_eq!(set.in_use(), left);
    }
    assert!(set.is_full());
}

#[test]
fn dpdk_b2_a_clone_from_an_empty_pool_fails() {
    let set = pool_a();
    for _ in 0..2 {
        let all: Vec<_> = (0..128).map(|_| fresh(&set)).collect();
        let e = all[0].clone_packet(&set).unwrap_err();
        assert!(matches!(e, mbuf::CopyError::Alloc(_)), "{e}");
        drop(all);
        assert!(set.is_full());
    }
}

/// Two owners of one packet; then two packets that refer to the same clusters.
#[test]
fn dpdk_b11_clone_and_clone_of_the_clone() {
    let set = BufferSet::bsd(64, 8).unwrap();
    let mut m = set.header_with(2048).unwrap();
    m.append(4).unwrap().copy_from_slice(&HELLO.to_le_bytes());
    let mut next = set.plain_with(2048).unwrap();
    next.append(4).unwrap().copy_from_slice(&7u32.to_le_bytes());
    m.cat(next);
    let refs = |m: &Mbuf| m.segments().map(|s| s.storage_refs()).collect::<Vec<_>>();

    let clone = m.clone_packet(&set).unwrap();
    assert_eq!((refs(&m), clone.to_vec()), (vec![2, 2], m.to_vec()));
    assert_eq!((clone.nsegs(), clone.pkt_len()), (2, 8));
    let second = clone.clone_packet(&set).unwrap();
    assert_eq!(refs(&m), [3, 3]);
    assert_eq!(second.first().data().as_ptr(), m.first().data().as_ptr());
    drop(clone);
    assert_eq!(refs(&second), [2, 2]);
    drop(m);
    assert_eq!((refs(&second), second.to_vec().len()), (vec![1, 1], 8));

    let shared: SharedMbuf = second.into_shared();
    let clone = shared.clone();
    assert_eq!((shared.owners(), clone.to_vec()), (2, shared.to_vec()));
    drop((clone, shared));
    assert!(set.is_full());
}

#[test]
fn dpdk_b12_fault_b1_deep_copies() {
    let set = pool_a();
    let words: Vec<u8> = [HELLO, 7].into_iter().flat_map(u32::to_le_bytes).collect();
    let one = with(&set, &words[..4]);
    let whole = one.deep_copy(HEADROOM, &set).unwrap();
    assert_eq!((whole.to_vec(), whole.nsegs()), (words[..4].to_vec(), 1));
    assert_ne!(whole.first().data().as_ptr(), one.first().data().as_ptr());
    let of_copy = whole
        .clone_packet(&set)
        .unwrap()
        .deep_copy(0, &set)
        .unwrap();
    assert!(of_copy.is_writable());

    let mut two = one;
    two.cat(with(&set, &words[4..]));
    two.set_user(11);
    let whole = two.deep_copy(0, &set).unwrap();
    assert_eq!(
        (whole.to_vec(), whole.nsegs(), whole.user()),
        (words.clone(), 1, 11)
    );
    assert_eq!(two.byte_copy_from(4, 0, &set).unwrap().to_vec(), words[4..]);
    assert_eq!(two.byte_copy(0, 4, 0, &set).unwrap().to_vec(), words[..4]);

    let used = set.in_use();
    for empty in [two.byte_copy(8, 0, 0, &set), two.byte_copy_from(8, 0, &set)] {
        let empty = empty.unwrap();
        assert_eq!((empty.pkt_len(), empty.nsegs()), (0, 1));
        empty.check().unwrap();
    }
    for error in [
        two.byte_copy(9, 0, 0, &set),
        two.byte_copy(8, 1, 0, &set),
        two.byte_copy(9, usize::MAX, 0, &set),
        two.byte_copy_from(9, 0, &set),
        two.ref_copy(9, 0, &set),
    ] {
        assert!(matches!(error, Err(mbuf::CopyError::Range(_))));
    }
    assert_eq!(set.in_use(), used, "no leak in any case");
}

/// A copy stands by itself: writing one leaves the other, and what it asks the hardware is its own.
#[test]
fn dpdk_b9_copies_take_the_header_along() {
    let set = pool_a();
    let mut m = packet(&set);
    let offload = TxOffload {
        flags: OffloadFlags::TCP_CSUM,
        l4_len: 20,
        ..TxOffload::default()
    };
    m.set_offload(offload);
    let mut copy = m.deep_copy(0, &set).unwrap();
    assert_eq!(copy.offload(), offload);
    assert_eq!(m.clone_packet(&set).unwrap().offload(), offload);
    assert_eq!(
        m.ref_copy(1, 4, &set).unwrap().offload(),
        TxOffload::default()
    );
    copy.set_offload(TxOffload::default());
    copy.data_mut().unwrap().fill(0);
    assert_eq!((m.offload(), m.to_vec()), (offload, vec![0x66; 1464]));
}

#[test]
fn dpdk_b23_linearize() {
    let cases = [(128, 1), (64, 64), (512, 10), (250, 11), (123, 8)];
    for (len, segs) in cases {
        let set = pool_a();
        let bytes: Vec<u8> = (0..len).map(|at| (at % 255) as u8).collect();
        let mut pieces = bytes.chunks(usize::max(1, len / segs));
        let mut m = with(&set, pieces.next().unwrap());
        pieces.for_each(|piece| m.cat(with(&set, piece)));
        m.linearize().unwrap();
        assert_eq!((m.nsegs(), m.to_vec()), (1, bytes), "{len} in {segs}");
        assert_eq!(set.in_use(), 1, "the other segments are free");
    }
}

#[test]
fn dpdk_b14_linearize_without_tailroom_changes_nothing() {
    let set = pool_a();
    let mut m = fresh(&set);
    m.append(ROOM - HEADROOM - 9).unwrap().fill(1);
    m.cat(with(&set, &[2; 10]));
    let e = m.linearize().unwrap_err();
    let (asked, have) = (10, 9);
    assert_eq!(e, NoRoom::TooSmall { asked, have });
    assert_eq!((m.nsegs(), m.pkt_len()), (2, ROOM - HEADROOM + 1));
    m.trim_back(1).unwrap();
    m.linearize().unwrap();
    assert_eq!((m.nsegs(), m.first().tailroom()), (1, 0));

    let shared = BufferSet::bsd(16, 4).unwrap();
    let mut m = shared.header_with(2048).unwrap();
    m.append(10).unwrap();
    let clone = m.clone_packet(&shared).unwrap();
    m.cat(shared.copy_in(b"x", 0).unwrap());
    let (asked, refs) = (1, 2);
    assert_eq!(m.linearize(), Err(NoRoom::ReadOnly { asked, refs }));
    drop(clone);
    m.linearize().unwrap();
}

#[test]
fn dpdk_b28_impossible_bursts_change_nothing() {
    let set = pool_a();
    for n in [129, 1024, 1 << 16] {
        let mut out: Vec<Option<Mbuf>> = (0..n).map(|_| None).collect();
        assert!(set.header_bulk(&mut out).is_err());
        assert!(out.iter().all(Option::is_none) && set.is_full(), "{n}");
    }
}

#[test]
fn dpdk_b29_read_where_the_bytes_lie() {
    let set = pool_a();
    let m = with(&set, &[0xfe; 50]);
    let got = m.read(0, 50, &mut []).unwrap();
    assert_eq!(
        (got, got.as_ptr()),
        (&[0xfe; 50][..], m.first().data().as_ptr())
    );
}

#[test]
fn dpdk_b30_read_at_the_edges_without_wrapping() {
    let set = pool_a();
    let mut m = with(&set, &[0xfe; 50]);
    m.prepend(14).unwrap().fill(0xaa);
    m.append(50).unwrap().fill(0xbb);
    let at = |off: usize, len| m.read(off, len, &mut []).map(<[u8]>::as_ptr);
    let data = m.first().data();
    for (off, len) in [(0, 14), (14, 50), (19, 45), (14, 0), (0, 0), (114, 0)] {
        assert_eq!(at(off, len), Ok(data[off..].as_ptr()), "({off}, {len})");
    }
    let max = u32::MAX as usize;
    for (off, len) in [
        (14, 114),
        (14, 115),
        (115, 0),
        (14, max),
        (max, 0),
        (max, max),
        (14, usize::MAX),
        (usize::MAX, 0),
        (usize::MAX, usize::MAX),
    ] {
        let error = at(off, len).unwrap_err();
        assert!(
            matches!(error, ReadError::Range(e) if e.have == 114),
            "({off}, {len})"
        );
    }
}

#[test]
fn dpdk_b31_read_across_segments() {
    let cases: [(&[usize], usize, usize); 8] = [
        (&[100, 100, 100], 0, 300),
        (&[100, 125, 150], 99, 201),
        (&[100, 100], 0, 100),
        (&[114, 200], 14, 150),
        (&[1000, 100], 0, 1000),
        (&[1024, 0, 100], 100, 1001),
        (&[1000, 1, 1000], 1000, 2),
        (&[1464, 50, 256, 800, 10], 1000, 2048),
    ];
    for (lens, off, len) in cases {
        let set = pool_a();
        let all: usize = lens.iter().sum();
        let bytes: Vec<u8> = (0..all).map(|at| at as u8).collect();
        let mut rest = bytes.as_slice();
        let mut m = fresh(&set);
        for &n in lens {
            let (now, later) = rest.split_at(n);
            m.cat(with(&set, now));
            rest = later;
        }
        let mut scratch = vec![0; len];
        let got = m.read(off, len, &mut scratch);
        match bytes.get(off..off + len) {
            Some(want) => assert!(got == Ok(want), "{lens:?}"),
            None => assert!(matches!(got, Err(ReadError::Range(_))), "{lens:?}"),
        }
        if len < all && off == 0 {
            continue; // contiguous: no buffer is needed
        }
        if off + len <= all {
            let mut short = vec![7; len - 1];
            let error = m.read(off, len, &mut short).unwrap_err();
            let (asked, have) = (len, len - 1);
            assert_eq!(error, ReadError::Scratch(NoRoom::TooSmall { asked, have }));
            assert!(short.iter().all(|&b| b == 7), "unchanged");
        }
    }
}

/// A cut between two segments takes no buffer: there is none.
#[test]
fn dpdk_b35_a_chain_cut_by_hand_comes_back_whole() {
    let room = Room {
        header: 512,
        plain: 512,
        charge: 512,
    };
    let set = BufferSet::builder(3).room(room).build().unwrap();
    let mut m = set.copy_in(&[1; 500], 0).unwrap();
    m.cat(set.copy_in(&[2; 500], 0).unwrap());
    m.cat(set.copy_in(&[3; 500], 0).unwrap());
    assert!(set.header().is_err());
    let tail = m.split(1000, &set).unwrap();
    assert_eq!((m.nsegs(), m.pkt_len()), (2, 1000));
    assert_eq!((tail.nsegs(), tail.to_vec()), (1, vec![3; 500]));
    drop((m, tail));
    let mut all: [Option<Mbuf>; 3] = [const { None }; 3];
    set.header_bulk(&mut all).unwrap();
    for m in all.iter().flatten() {
        assert_eq!(
            (m.nsegs(), m.pkt_len(), m.first().next().is_none()),
            (1, 0, true)
        );
    }
}
