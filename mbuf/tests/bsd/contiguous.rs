//! Pullup, pulldown, defrag.

use crate::support::*;
use mbuf::{EditError, Packet};

#[test]
fn bsd_pullup_does_nothing_when_contiguous_even_if_shared() {
    let set = set();
    let m = chain(&set, &[500, 20]);
    let copy = m.clone_packet(&set).unwrap();
    let (before, used) = (address(&m, 0), set.in_use());
    let m = m.pullup(500, &set).unwrap();
    assert_eq!((address(&m, 0), set.in_use()), (before, used));
    holds(&m, 520, &[500, 20]);
    drop(copy);
}

#[test]
fn bsd_pullup_uses_the_room_behind() {
    let set = set();
    let mut m = chain(&set, &[40, 60, 30]);
    let (before, used) = (address(&m, 0), set.in_use());
    m.make_contiguous(70, &set).unwrap();
    assert_eq!((address(&m, 0), set.in_use()), (before, used));
    holds(&m, 130, &[70, 30, 30]);
    m.make_contiguous(100, &set).unwrap();
    holds(&m, 130, &[100, 30]);
    assert_eq!(set.in_use(), used - 1, "a segment that ran empty is freed");
}

#[test]
fn bsd_pullup_moves_data_when_the_room_is_in_front() {
    let set = set();
    let mut m = set.header().unwrap();
    m.set_lead(101).unwrap();
    m.append(40).unwrap().copy_from_slice(&numbered(0, 40));
    let mut next = set.plain().unwrap();
    next.append(100)
        .unwrap()
        .copy_from_slice(&numbered(40, 100));
    m.cat(next);
    m.make_contiguous(139, &set).unwrap();
    holds(&m, 140, &[139, 1]);
    assert_eq!(m.first().lead(), 5, "aligned to 8 as before");
    m.make_contiguous(140, &set).unwrap();
    holds(&m, 140, &[140]);
    assert_eq!(m.first().lead(), 0, "no room left for the alignment");
}

#[test]
fn bsd_pullup_takes_a_cluster_beyond_the_inline_room() {
    let set = set();
    let mut m = chain(&set, &[40, 200, 200]);
    m.set_user(3);
    let used = set.in_use();
    m.make_contiguous(MHLEN + 1, &set).unwrap();
    holds(&m, 440, &[145, 95, 200]);
    assert_eq!(
        (clustered(&m)[0], m.user(), set.in_use()),
        (2048, 3, used + 1)
    );
    m.make_contiguous(440, &set).unwrap();
    holds(&m, 440, &[440]);
    assert_eq!(set.in_use(), 2);
}

/// The cluster is not ours alone: the bytes go elsewhere, into the inline room if they fit there.
#[test]
fn bsd_pullup_of_a_shared_first_segment_leaves_the_sharer_alone() {
    let set = set();
    for (n, class) in [(110, 0), (400, 2048)] {
        let mut m = set.header_with(2048).unwrap();
        m.append(100).unwrap().copy_from_slice(&numbered(0, 100));
        let sharer = m.clone_packet(&set).unwrap();
        m.cat(chain(&set, &[0]));
        let mut next = set.plain_with(2048).unwrap();
        next.append(400)
            .unwrap()
            .copy_from_slice(&numbered(100, 400));
        m.cat(next);
        m.make_contiguous(n, &set).unwrap();
        holds(&m, 500, &[n, 500 - n]);
        assert_eq!((clustered(&m)[0], m.first().is_shared()), (class, false));
        assert!(!sharer.first().is_shared());
        assert_eq!(sharer.to_vec(), numbered(0, 100));
    }
    assert!(set.is_full());
}

#[test]
fn bsd_pullup_skips_empty_segments() {
    let set = set();
    let m = chain(&set, &[0, 0, 10, 0, 20]);
    let m = m.pullup(10, &set).unwrap();
    holds(&m, 30, &[10, 20]);
    let m = m.pullup(30, &set).unwrap();
    holds(&m, 30, &[30]);
    let m = chain(&set, &[0, 0]).pullup(0, &set).unwrap();
    holds(&m, 0, &[0, 0]);
}

#[test]
fn bsd_pullup_refuses_more_than_there_is_and_more_than_a_cluster() {
    let set = set();
    let mut m = chain(&set, &[100, 60_000, 6_000]);
    for n in [66_101, usize::MAX] {
        assert!(matches!(
            m.make_contiguous(n, &set),
            Err(EditError::Range(_))
        ));
    }
    let e = m.make_contiguous(65_537, &set).unwrap_err();
    assert!(matches!(e, EditError::Alloc(_)), "{e}");
    holds(&m, 66_100, &[100, 60_000, 6_000]);
    m.make_contiguous(65_536, &set).unwrap();
    holds(&m, 66_100, &[65_536, 564]);
    assert!(m.pullup(66_101, &set).is_err());
    assert!(set.is_full(), "by value: freed on failure");
}

#[test]
fn bsd_pulldown_in_place() {
    let set = set();
    let mut m = chain(&set, &[10, 50, 10]);
    let (before, used) = (address(&m, 1), set.in_use());
    let found = m.pulldown(20, 30, &set).unwrap();
    assert_eq!(
        (found.as_ptr() as usize - before as usize, found.len()),
        (10, 30)
    );
    assert_eq!(set.in_use(), used);
    assert!(m.pulldown(70, 0, &set).unwrap().is_empty());
    holds(&m, 70, &[10, 50, 10]);
}

#[test]
fn bsd_pulldown_never_lends_shared_bytes() {
    let set = set();
    let mut m = chain(&set, &[500, 500]);
    let sharer = m.clone_packet(&set).unwrap();
    let (first, second) = (address(&m, 0), address(&m, 1));
    m.pulldown(100, 20, &set).unwrap().fill(0xee);
    assert_eq!(address(&m, 0), first, "what is before stays");
    m.pulldown(500, 20, &set).unwrap().fill(0xee);
    let lens: Vec<_> = m.segments().map(|s| s.len()).collect();
    assert_eq!((lens, m.pkt_len()), (vec![100, 400, 500], 1000));
    let shared: Vec<_> = m.segments().map(|s| s.is_shared()).collect();
    assert_eq!(shared, [true, false, false]);
    assert_ne!(address(&m, 2), second);
    assert_eq!(sharer.to_vec(), numbered(0, 1000));
    let mut want = numbered(0, 1000);
    want[100..120].fill(0xee);
    want[500..520].fill(0xee);
    assert!(m.to_vec() == want);
}

#[test]
fn bsd_pulldown_uses_the_tailroom_then_the_next_headroom() {
    let set = set();
    let mut m = chain(&set, &[20, 40, 30, 30]);
    let (used, before) = (set.in_use(), address(&m, 1));
    assert_eq!(m.pulldown(40, 70, &set).unwrap(), &numbered(40, 70)[..]);
    holds(&m, 120, &[20, 90, 10]);
    assert_eq!((address(&m, 1), set.in_use()), (before, used - 1));

    // Room behind to the byte.
    let mut m = chain(&set, &[MHLEN - 40, 60]);
    m.pulldown(100, 44, &set).unwrap();
    holds(&m, MHLEN + 20, &[MHLEN, 20]);

    // No room behind, but the next has room in front.
    let mut m = set.header().unwrap();
    m.append(MHLEN)
        .unwrap()
        .copy_from_slice(&numbered(0, MHLEN));
    let mut next = set.plain().unwrap();
    next.set_lead(64).unwrap();
    next.append(60)
        .unwrap()
        .copy_from_slice(&numbered(MHLEN, 60));
    m.cat(next);
    let used = set.in_use();
    assert_eq!(m.pulldown(100, 64, &set).unwrap(), &numbered(100, 64)[..]);
    holds(&m, MHLEN + 60, &[100, 104]);
    assert_eq!(
        (m.segments().nth(1).unwrap().lead(), set.in_use()),
        (20, used)
    );
}

#[test]
fn bsd_pulldown_inserts_a_segment_when_there_is_no_room() {
    let set = set();
    let mut m = chain(&set, &[MHLEN, MLEN, MLEN]);
    let before = address(&m, 0);
    assert_eq!(m.pulldown(100, 300, &set).unwrap(), &numbered(100, 300)[..]);
    holds(&m, 592, &[100, 300, 192]);
    assert_eq!(address(&m, 0), before);
    assert_eq!(clustered(&m), [0, 2048, 0]);
    for (off, len) in [(592, 1), (0, 593), (593, 0), (1, usize::MAX)] {
        assert!(matches!(
            m.pulldown(off, len, &set),
            Err(EditError::Range(_))
        ));
    }
}

#[test]
fn bsd_pulldown_beyond_the_largest_class_fails() {
    let set = set();
    let mut m = chain(&set, &[65_536, 65_536]);
    assert!(matches!(
        m.pulldown(1, 65_537, &set),
        Err(EditError::Alloc(_))
    ));
    holds(&m, 131_072, &[65_536, 65_536]);
    assert_eq!(m.pulldown(1, 65_536, &set).unwrap().len(), 65_536);
}

#[test]
fn bsd_defrag_keeps_the_first_mbuf_first() {
    let (ours, theirs) = (set(), set());
    let mut m = chain(&ours, &[100, 100, 0, 300]);
    m.set_user(9);
    m.defrag(&theirs).unwrap();
    holds(&m, 500, &[500]);
    assert_eq!((clustered(&m), m.user()), (vec![2048], 9));
    assert_eq!((ours.in_use(), theirs.in_use()), (1, 1), "mbuf and cluster");
    drop(m);
    assert!(ours.is_full() && theirs.is_full());
}

#[test]
fn bsd_defrag_of_one_mbuf_is_nothing_and_of_few_bytes_is_inline() {
    let set = set();
    let mut m = chain(&set, &[500]);
    let sharer = m.clone_packet(&set).unwrap();
    m.defrag(&set).unwrap();
    assert!(m.first().is_shared());
    drop((m, sharer));

    let mut m = chain(&set, &[0, 44, 100]);
    m.defrag(&set).unwrap();
    holds(&m, MHLEN, &[MHLEN]);
    assert_eq!((clustered(&m), set.in_use()), (vec![0], 1));

    // A shared cluster that held few bytes is given up for the inline room.
    let mut m = set.header_with(2048).unwrap();
    m.append(44).unwrap().copy_from_slice(&numbered(0, 44));
    let sharer = m.clone_packet(&set).unwrap();
    let mut next = set.plain().unwrap();
    next.append(100)
        .unwrap()
        .copy_from_slice(&numbered(44, 100));
    m.cat(next);
    m.defrag(&set).unwrap();
    holds(&m, MHLEN, &[MHLEN]);
    assert_eq!((clustered(&m), m.first().charge()), (vec![0], 256));
    assert_eq!(sharer.to_vec(), numbered(0, 44));

    let mut m = chain(&set, &[10, 0, 0]);
    m.defrag(&set).unwrap();
    holds(&m, 10, &[10]);
}

#[test]
fn bsd_defrag_of_more_than_a_cluster_leaves_the_chain() {
    let set = set();
    let mut m = chain(&set, &[100, 65_436, 1]);
    assert!(m.defrag(&set).is_err());
    holds(&m, 65_537, &[100, 65_436, 1]);
    m.trim_back(1).unwrap();
    m.defrag(&set).unwrap();
    holds(&m, 65_536, &[65_536]);
}

#[test]
fn bsd_pullup_into_new_storage_keeps_the_lead_or_the_alignment() {
    let set = set();
    for (n, lead) in [(1000, 1001), (1500, 1), (2048, 0)] {
        let mut m = set.header_with(2048).unwrap();
        m.set_lead(1001).unwrap();
        m.append(100).unwrap().copy_from_slice(&numbered(0, 100));
        let sharer = m.clone_packet(&set).unwrap();
        m.cat(set.copy_in(&numbered(100, 2000), 0).unwrap());
        m.make_contiguous(n, &set).unwrap();
        holds(&m, 2100, &[n, 2100 - n]);
        assert_eq!((m.first().lead(), m.first().capacity()), (lead, 2048));
        drop(sharer);
    }
}

/// The mbuf is of a pool with less inline room than the set that storage comes from.
#[test]
fn bsd_pullup_with_buffers_of_another_set_never_counts_on_their_room() {
    let room = mbuf::Room {
        header: 16,
        plain: 16,
        charge: 200,
    };
    let small = mbuf::BufferSet::builder(8).room(room).class(2048, 2);
    let (small, large) = (small.build().unwrap(), set());
    let mut m = small.header_with(2048).unwrap();
    m.append(50).unwrap().copy_from_slice(&numbered(0, 50));
    let sharer = m.clone_packet(&small).unwrap();
    m.cat(large.copy_in(&numbered(50, 50), 0).unwrap());
    m.make_contiguous(100, &large).unwrap();
    holds(&m, 100, &[100]);
    assert_eq!(
        (clustered(&m), m.first().charge()),
        (vec![2048], 200 + 2048)
    );
    let mut again = sharer.clone_packet(&small).unwrap();
    again.make_writable(&large).unwrap();
    holds(&again, 50, &[50]);
    assert_eq!(clustered(&again), [2048]);
    drop((m, again, sharer));
    assert!(small.is_full() && large.is_full());
}
