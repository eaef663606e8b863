//! Copies, reads, and packets made of bytes.

use crate::support::*;
use mbuf::{BufferSet, CopyError, Packet};

#[test]
fn bsd_copym_of_a_header_without_bytes_before_a_full_plain_mbuf() {
    let set = set();
    let m = chain(&set, &[0, MLEN, 10]);
    let copy = m.ref_copy(0, MLEN + 10, &set).unwrap();
    copy.check().unwrap();
    assert_eq!(copy.to_vec(), numbered(0, MLEN + 10));
    assert_eq!(copy.first().capacity(), MHLEN);
    assert_eq!((copy.first().len(), copy.nsegs()), (MHLEN, 3));
    let headers: Vec<_> = copy.segments().map(|s| s.is_header()).collect();
    assert_eq!(headers, [true, false, false]);
}

#[test]
fn bsd_copym_edges() {
    let set = set();
    let mut m = chain(&set, &[10, 500, 0, 10]);
    m.set_user(4);
    let copy = |off, len| m.ref_copy(off, len, &set);
    let mid = copy(5, 510).unwrap();
    assert_eq!((mid.to_vec(), mid.user()), (numbered(5, 510), 0));
    assert!(mid.segments().nth(1).unwrap().is_shared());
    assert_eq!(mid.first().lead(), 5, "inline bytes at the same place");
    assert!(!mid.first().is_header() && copy(0, 3).unwrap().first().is_header());
    assert_eq!(
        copy(0, 3).unwrap().user(),
        4,
        "the header goes along from 0"
    );
    for (off, len) in [(0, 0), (10, 0), (520, 0)] {
        let empty = copy(off, len).unwrap();
        assert_eq!((empty.pkt_len(), empty.nsegs()), (0, 1));
    }
    for (off, len) in [(521, 0), (520, 1), (0, 521), (1, usize::MAX)] {
        assert!(matches!(copy(off, len), Err(CopyError::Range(_))));
    }
}

#[test]
fn bsd_dup_pkt_takes_the_smallest_storage_with_the_lead() {
    let set = set();
    let mut m = chain(&set, &[70, 0, 60]);
    m.set_user(5);
    for (lead, class) in [
        (14, 0),
        (15, 2048),
        (1918, 2048),
        (1919, 2050),
        (65_406, 65_536),
    ] {
        let copy = m.deep_copy(lead, &set).unwrap();
        holds(&copy, 130, &[130]);
        assert_eq!(
            (clustered(&copy)[0], copy.first().headroom()),
            (class, lead)
        );
        assert_eq!(copy.user(), 5);
    }
    for lead in [65_407, usize::MAX] {
        assert!(matches!(m.deep_copy(lead, &set), Err(CopyError::Alloc(_))));
    }
    holds(&m, 130, &[70, 0, 60]);
}

#[test]
fn bsd_copydata_edges() {
    let set = set();
    let m = chain(&set, &[0, 10, 0, 500, 0]);
    let mut out = [0; 6];
    m.copy_to(7, &mut out).unwrap();
    assert_eq!(out, numbered(7, 6)[..]);
    for off in [0, 510] {
        m.copy_to(off, &mut []).unwrap();
    }
    assert!(m.copy_to(511, &mut []).is_err());
    assert!(m.copy_to(505, &mut out).is_err());
    assert_eq!(out, numbered(7, 6)[..], "unchanged");
}

#[test]
fn bsd_getptr_skips_empty_mbufs_and_ends_behind_the_last() {
    let set = set();
    let m = chain(&set, &[0, 10, 0, 0, 20, 0]);
    let place = |off| m.locate(off).map(|(seg, at)| (seg.data().as_ptr(), at));
    assert_eq!(place(0), Ok((address(&m, 1), 0)));
    assert_eq!(place(9), Ok((address(&m, 1), 9)));
    assert_eq!(place(10), Ok((address(&m, 4), 0)));
    assert_eq!(place(30), Ok((address(&m, 5), 0)));
    assert!(place(31).is_err() && place(usize::MAX).is_err());
    let m = chain(&set, &[10]);
    assert_eq!(m.locate(10).unwrap().1, 10);
}

#[test]
fn bsd_apply_visits_pieces_and_stops_when_told() {
    let set = set();
    let m = chain(&set, &[10, 0, 10, 500]);
    let lens: Vec<_> = m.pieces(5, 20).unwrap().map(<[u8]>::len).collect();
    assert_eq!(lens, [5, 10, 5]);
    let mut visited = 0;
    let found = m.pieces(0, 520).unwrap().find_map(|piece| {
        visited += 1;
        piece.contains(&15).then_some(visited)
    });
    assert_eq!((found, visited), (Some(2), 2));
    assert_eq!(m.pieces(520, 0).unwrap().count(), 0);
    assert!(m.pieces(520, 1).is_err() && m.pieces(1, usize::MAX).is_err());
}

#[test]
fn bsd_devget_leads_and_falls_back_to_small_mbufs() {
    let set = BufferSet::bsd_builder(64, 1).build().unwrap();
    let bytes = numbered(0, 1500);
    let m = set.copy_in(&bytes, 64).unwrap();
    assert_eq!(
        (m.nsegs(), m.first().headroom(), clustered(&m)),
        (1, 64, vec![2048])
    );
    let taken = [2048, 2050, 4096, 8192, 9344, 12288, 16384, 65536];
    let hold: Vec<_> = taken
        .map(|class| set.header_with(class))
        .into_iter()
        .collect();
    let small = set.copy_in(&bytes, 64).unwrap();
    small.check().unwrap();
    assert_eq!((small.to_vec(), small.first().headroom()), (bytes, 64));
    assert!(clustered(&small).iter().all(|&class| class == 0));
    assert!(
        set.copy_in(&[1; 200], MHLEN + 1).is_err(),
        "no such lead inline"
    );
    let empty = set.copy_in(&[], 16).unwrap();
    assert_eq!((empty.pkt_len(), empty.first().headroom()), (0, 16));
    drop((m, hold, small, empty));
    assert!(set.is_full());
}

#[test]
fn bsd_get_clr_and_alignment() {
    let set = set();
    drop(chain(&set, &[MHLEN]));
    let m = set.plain_zeroed().unwrap();
    assert_eq!(m.to_vec(), [0; MLEN]);
    let mut m = set.header().unwrap();
    m.align_end(20).unwrap();
    assert_eq!((m.first().lead(), m.first().lead() % 8), (120, 0));
    assert!(m.align_end(MHLEN + 1).is_err() && m.align_end(usize::MAX).is_err());
    m.align_end(MHLEN).unwrap();
    m.append(1).unwrap();
    assert!(m.align_end(20).is_err(), "on an empty mbuf only");
    assert_eq!(m.first().lead(), 0);
}
