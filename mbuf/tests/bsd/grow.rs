//! Prepend, copyback, makespace: room where there was none.

use crate::support::*;
use mbuf::{AllocError, EditError, OffloadFlags, Packet, TxOffload};

#[test]
fn bsd_prepend_in_the_leading_room() {
    let set = set();
    let mut m = chain(&set, &[50]);
    m.trim_front(20).unwrap();
    let (used, before) = (set.in_use(), address(&m, 0));
    let front = m.prepend_with(20, &set).unwrap();
    assert_eq!(before as usize - front.as_ptr() as usize, 20);
    front.copy_from_slice(&numbered(0, 20));
    holds(&m, 50, &[50]);
    assert!(m.prepend_with(0, &set).unwrap().is_empty());
    assert_eq!((set.in_use(), m.nsegs()), (used, 1));
}

#[test]
fn bsd_prepend_moves_the_header_to_a_new_mbuf() {
    let set = set();
    let mut m = chain(&set, &[50, 50]);
    let offload = TxOffload {
        flags: OffloadFlags::TSO,
        tso_mss: 1448,
        ..TxOffload::default()
    };
    m.set_offload(offload);
    m.set_user(6);
    m.prepend_with(21, &set).unwrap().fill(0xee);
    m.check().unwrap();
    assert_eq!((m.nsegs(), m.pkt_len()), (3, 121));
    assert_eq!((m.offload(), m.user()), (offload, 6));
    // Data at the end of the room, down to a multiple of 8: more headers fit in front.
    assert_eq!(m.first().headroom(), (MHLEN - 21) & !7);
    let (_, rest) = m.split_first();
    let rest = rest.unwrap();
    assert_eq!((rest.user(), rest.offload()), (0, TxOffload::default()));
    holds(&rest, 100, &[50, 50]);
}

#[test]
fn bsd_prepend_of_more_than_the_inline_room() {
    let set = set();
    let mut m = chain(&set, &[50]);
    m.prepend_with(MHLEN + 1, &set).unwrap().fill(0);
    assert_eq!((clustered(&m), m.pkt_len()), (vec![2048, 0], 195));
    for n in [65_537, usize::MAX] {
        let e = m.prepend_with(n, &set).unwrap_err();
        assert!(matches!(e, AllocError::NoClass { .. }), "{e}");
    }
    assert_eq!((m.nsegs(), m.pkt_len()), (2, 195));
}

#[test]
fn bsd_append_across_a_new_segment() {
    let set = set();
    let mut m = chain(&set, &[100]);
    m.append_with(44, &set)
        .unwrap()
        .copy_from_slice(&numbered(100, 44));
    assert_eq!(m.nsegs(), 1);
    m.append_with(300, &set)
        .unwrap()
        .copy_from_slice(&numbered(144, 300));
    holds(&m, 444, &[144, 300]);
    let sharer = m.ref_copy(200, 100, &set).unwrap();
    m.append_with(1, &set).unwrap()[0] = 188;
    holds(&m, 445, &[144, 300, 1]);
    assert!(m.append_with(0, &set).unwrap().is_empty());
    assert!(m.append_with(usize::MAX, &set).is_err());
    drop(sharer);
}

#[test]
fn bsd_copyback_within_and_beyond() {
    let set = set();
    let mut m = chain(&set, &[10, 0, 10]);
    m.write_at(5, &[0xee; 10], &set).unwrap();
    let mut want = numbered(0, 20);
    want[5..15].fill(0xee);
    assert_eq!((m.to_vec(), m.nsegs()), (want.clone(), 3));
    // The last mbuf's trailing room is used first, the rest is in a cluster.
    m.write_at(15, &[0xdd; 1000], &set).unwrap();
    want.truncate(15);
    want.resize(1015, 0xdd);
    assert_eq!(
        (m.to_vec(), clustered(&m)),
        (want.clone(), vec![0, 0, 0, 2048])
    );
    assert_eq!(m.segments().nth(2).unwrap().len(), MLEN);
    m.write_at(3, &[], &set).unwrap();
    assert_eq!((m.to_vec(), m.nsegs()), (want, 4));
}

#[test]
fn bsd_copyback_fills_the_gap_with_zeros() {
    let set = set();
    // Rooms that were used before.
    for _ in 0..2 {
        let mut m = chain(&set, &[10]);
        m.write_at(1000, &[1, 2, 3], &set).unwrap();
        m.check().unwrap();
        let mut want = numbered(0, 10);
        want.resize(1000, 0);
        want.extend([1, 2, 3]);
        assert_eq!(m.to_vec(), want);
        m.write_at(0, &[9; 1003], &set).unwrap();
        m.write_at(1010, &[], &set).unwrap();
        assert_eq!(m.to_vec()[1003..], [0; 7]);
    }
}

#[test]
fn bsd_copyback_never_writes_shared_storage() {
    let set = set();
    let mut m = chain(&set, &[500, 500, 500]);
    let sharer = m.clone_packet(&set).unwrap();
    let third = address(&m, 2);
    m.write_at(490, &[0xee; 20], &set).unwrap();
    let shared: Vec<_> = m.segments().map(|s| s.is_shared()).collect();
    assert_eq!(
        shared,
        [false, false, true],
        "what is not written stays shared"
    );
    assert_eq!(address(&m, 2), third);
    m.write_at(1490, &[0xee; 20], &set).unwrap();
    let mut want = numbered(0, 1510);
    want[490..510].fill(0xee);
    want[1490..].fill(0xee);
    assert_eq!(m.to_vec(), want);
    assert_eq!(sharer.to_vec(), numbered(0, 1500));
}

#[test]
fn bsd_unshare_copies_what_the_range_touches() {
    let set = set();
    for (off, len, own) in [
        (500, 500, [false, true, false]),
        (499, 2, [true, true, false]),
        (500, 0, [false, false, false]),
        (0, 1500, [true, true, true]),
    ] {
        let mut m = chain(&set, &[500, 500, 500]);
        let sharer = m.clone_packet(&set).unwrap();
        m.make_range_writable(off, len, &set).unwrap();
        let shared: Vec<_> = m.segments().map(|s| !s.is_shared()).collect();
        assert_eq!(shared, own, "{len} at {off}");
        holds(&m, 1500, &[500, 500, 500]);
        drop(sharer);
    }
}

#[test]
fn bsd_copyback_of_too_much_changes_nothing() {
    let set = set();
    let mut m = chain(&set, &[10, 10]);
    let used = set.in_use();
    // More than all the pools hold, and more than a length can be.
    let e = m.write_at(1 << 40, &[1], &set).unwrap_err();
    assert!(matches!(e, EditError::Alloc(_)), "{e}");
    let e = m.write_at(usize::MAX, &[1], &set).unwrap_err();
    assert!(matches!(e, EditError::Range(_)), "{e}");
    holds(&m, 20, &[10, 10]);
    assert_eq!(set.in_use(), used);
}

#[test]
fn bsd_makespace_moves_the_shorter_side() {
    let set = set();
    let spread = |skip: usize, n: usize| {
        let mut m = set.header_with(2048).unwrap();
        m.set_lead(400).unwrap();
        m.append(100).unwrap().copy_from_slice(&numbered(0, 100));
        let used = set.in_use();
        m.make_space(skip, n, &set).unwrap().fill(0xee);
        m.check().unwrap();
        let mut want = numbered(0, 100);
        want.splice(skip..skip, std::iter::repeat_n(0xee, n));
        assert_eq!(m.to_vec(), want);
        assert_eq!(set.in_use(), used);
        m.first().lead()
    };
    assert_eq!(spread(20, 30), 370, "the front moves into the leading room");
    assert_eq!(spread(80, 30), 400, "the end moves into the trailing room");
    assert_eq!(
        spread(20, 500),
        400,
        "the longer side, where only that fits"
    );
    assert_eq!(spread(0, 10), 390);
    assert_eq!(spread(100, 10), 400);
    assert_eq!(spread(100, 0), 400);
}

#[test]
fn bsd_makespace_moves_the_longer_side_into_the_only_room() {
    let set = set();
    let mut m = set.header().unwrap();
    m.set_lead(MHLEN - 100).unwrap();
    m.append(100).unwrap().copy_from_slice(&numbered(0, 100));
    m.make_space(80, MHLEN - 100, &set).unwrap().fill(0xee);
    let mut want = numbered(0, 100);
    want.splice(80..80, [0xee; MHLEN - 100]);
    assert_eq!((m.to_vec(), m.nsegs(), m.first().lead()), (want, 1, 0));
}

#[test]
fn bsd_makespace_inserts_mbufs() {
    let set = set();
    let mut m = chain(&set, &[MHLEN, MLEN]);
    m.make_space(100, 50, &set).unwrap().fill(0xee);
    let mut want = numbered(0, MHLEN + MLEN);
    want.splice(100..100, [0xee; 50]);
    assert_eq!(m.to_vec(), want);
    let lens: Vec<_> = m.segments().map(|s| s.len()).collect();
    assert_eq!(lens, [100, 50, 44, MLEN]);

    // In front of all, behind all, and in a segment that others share.
    let mut m = chain(&set, &[500]);
    let sharer = m.clone_packet(&set).unwrap();
    for (skip, lens) in [
        (0, vec![7, 500]),
        (507, vec![7, 500, 7]),
        (107, vec![7, 100, 7, 400, 7]),
    ] {
        m.make_space(skip, 7, &set).unwrap().fill(0xee);
        m.check().unwrap();
        assert_eq!(m.segments().map(|s| s.len()).collect::<Vec<_>>(), lens);
    }
    assert_eq!(sharer.to_vec(), numbered(0, 500));
    let left: Vec<u8> = [m.byte_copy(7, 100, 0, &set), m.byte_copy(114, 400, 0, &set)]
        .into_iter()
        .flat_map(|part| part.unwrap().to_vec())
        .collect();
    assert_eq!(left, numbered(0, 500));
}

#[test]
fn bsd_makespace_beyond_the_end_or_a_cluster_changes_nothing() {
    let set = set();
    let mut m = chain(&set, &[100, 100]);
    assert!(matches!(
        m.make_space(201, 1, &set),
        Err(EditError::Range(_))
    ));
    for n in [65_537, usize::MAX] {
        for skip in [0, 50, 100, 200] {
            let e = m.make_space(skip, n, &set).map(drop).unwrap_err();
            assert!(matches!(e, EditError::Alloc(_)), "{e}");
        }
    }
    holds(&m, 200, &[100, 100]);
}

#[test]
fn bsd_zero_wipes_all_storage_that_is_ours() {
    let set = set();
    let mut m = chain(&set, &[100, 500]);
    let sharer = m.ref_copy(100, 500, &set).unwrap();
    m.trim_back(5).unwrap();
    m.trim_front(5).unwrap();
    assert_eq!(m.zero(), 1, "one segment is shared");
    assert_eq!(m.byte_copy(0, 95, 0, &set).unwrap().to_vec(), [0; 95]);
    assert_eq!(sharer.to_vec(), numbered(100, 500));
    drop(sharer);
    assert_eq!(m.zero(), 0);
    m.prepend(5).unwrap();
    m.append(5).unwrap();
    assert_eq!(m.to_vec(), [0; 600], "the room around the data too");
}

#[test]
fn bsd_dup_hdr_and_move_hdr() {
    let set = set();
    let (mut a, mut b) = (chain(&set, &[10]), chain(&set, &[20]));
    let offload = TxOffload {
        l3_len: 20,
        ..TxOffload::default()
    };
    a.set_offload(offload);
    b.set_user(1);
    b.copy_header_from(&a);
    assert_eq!(
        (b.offload(), b.user()),
        (offload, 0),
        "all of it is replaced"
    );
    a.set_user(2);
    b.move_header_from(&mut a);
    assert_eq!((b.offload(), b.user()), (offload, 2));
    assert_eq!((a.offload(), a.user()), (TxOffload::default(), 0));
    b.reset_header();
    assert_eq!((b.offload(), b.user()), (TxOffload::default(), 0));
    holds(&a, 10, &[10]);
    holds(&b, 20, &[20]);
}
