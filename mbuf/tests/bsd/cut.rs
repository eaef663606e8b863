//! Adj, split, cat.

use crate::support::*;
use mbuf::{EditError, Packet};

#[test]
fn bsd_split_fault_m2_at_every_odd_place() {
    let set = set();
    // Inline up to both rooms, clusters, chains of them, with empties.
    for lens in [
        &[MHLEN][..],
        &[2048],
        &[100, MLEN],
        &[500, 500],
        &[0, 100, 0, 0, MLEN, 0],
        &[0, 0],
    ] {
        let len: usize = lens.iter().sum();
        let places = [
            0,
            1,
            100,
            MHLEN - 1,
            MHLEN,
            MHLEN + 1,
            500,
            len.wrapping_sub(1),
            len,
        ];
        for at in places.into_iter().filter(|&at| at <= len) {
            let mut m = chain(&set, lens);
            m.set_user(8);
            let tail = m.split(at, &set).unwrap();
            holds_part(&m, 0, at);
            holds_part(&tail, at, len - at);
            assert_eq!((m.user(), tail.user()), (8, 8), "the header is duplicated");
            let clusters = tail.segments().chain(m.segments());
            let shared = clusters.filter(|s| s.is_shared()).count();
            assert!([0, 2].contains(&shared), "the cluster that is cut, twice");
        }
        for at in [len + 1, usize::MAX] {
            let mut m = chain(&set, lens);
            let e = m.split(at, &set).unwrap_err();
            assert!(matches!(e, EditError::Range(_)), "{e}");
            holds(&m, len, lens);
        }
        assert!(set.is_full());
    }
}

#[track_caller]
fn holds_part(m: &mbuf::Mbuf, from: usize, len: usize) {
    m.check().unwrap();
    assert!(m.to_vec() == numbered(from, len), "bytes from {from}");
}

#[test]
fn bsd_split_at_the_ends_leaves_one_empty_header_mbuf() {
    let set = set();
    let mut m = chain(&set, &[100, 500]);
    let tail = m.split(600, &set).unwrap();
    holds(&m, 600, &[100, 500]);
    assert_eq!(
        (tail.nsegs(), tail.pkt_len(), tail.first().is_header()),
        (1, 0, true)
    );
    let tail = m.split(0, &set).unwrap();
    holds(&tail, 600, &[100, 500]);
    assert_eq!(
        (m.nsegs(), m.pkt_len(), m.first().is_header()),
        (1, 0, true)
    );
}

#[test]
fn bsd_split_at_the_end_leaves_empty_mbufs_where_they_are() {
    let set = set();
    let mut m = chain(&set, &[100, 0, 0]);
    let tail = m.split(100, &set).unwrap();
    holds(&m, 100, &[100, 0, 0]);
    assert_eq!((tail.nsegs(), tail.first().is_header()), (1, true));
}

#[test]
fn bsd_split_shares_clusters_and_copies_inline_bytes() {
    let set = set();
    let mut m = chain(&set, &[500]);
    let before = address(&m, 0);
    let mut tail = m.split(300, &set).unwrap();
    assert_eq!(address(&tail, 0) as usize - before as usize, 300);
    assert!(
        m.append(1).is_err() && tail.prepend(1).is_err(),
        "read-only"
    );
    drop(tail);
    m.append(1).unwrap();

    let mut m = chain(&set, &[0, MLEN]);
    let mut tail = m.split(1, &set).unwrap();
    assert_eq!(tail.nsegs(), 2, "more than a header mbuf holds");
    tail.data_mut().unwrap().fill(0);
    holds(&m, 1, &[0, 1]);
}

#[test]
fn bsd_cat_copies_what_fits_and_links_the_rest() {
    let set = set();
    let mut m = chain(&set, &[100]);
    m.cat_packed(chain(&set, &[20, 0, 24, 1, 30]));
    m.check().unwrap();
    let lens: Vec<_> = m.segments().map(|s| s.len()).collect();
    assert_eq!(lens, [144, 1, 30]);
    assert_eq!(m.to_vec(), [numbered(0, 100), numbered(0, 75)].concat());
    assert_eq!(set.in_use(), 3, "what was copied is free");

    // All of it, into the last segment.
    m.cat_packed(chain(&set, &[50, 50]));
    assert_eq!((m.nsegs(), m.pkt_len()), (3, 275));
    m.cat_packed(chain(&set, &[0]));
    assert_eq!((m.nsegs(), set.in_use()), (3, 3));
}

#[test]
fn bsd_cat_never_copies_into_shared_storage() {
    let set = set();
    let mut m = chain(&set, &[500]);
    let sharer = m.clone_packet(&set).unwrap();
    m.cat_packed(chain(&set, &[10]));
    assert_eq!((m.nsegs(), m.pkt_len()), (2, 510));
    assert_eq!(sharer.to_vec(), numbered(0, 500));
}

#[test]
fn bsd_cat_keeps_our_header_and_drops_the_other() {
    let set = set();
    for packed in [false, true] {
        let (mut m, mut tail) = (chain(&set, &[100]), chain(&set, &[100]));
        m.set_user(1);
        tail.set_user(2);
        if packed {
            m.cat_packed(tail);
        } else {
            m.cat(tail);
        }
        assert_eq!((m.user(), m.pkt_len()), (1, 200));
    }
}

#[test]
fn bsd_adj_fault_m4_fault_m6_exact_or_refused() {
    let set = set();
    for lens in [&[3, 1, 0, 2, 100][..], &[106], &[0, 106, 0], &[500, 6]] {
        let len: usize = lens.iter().sum();
        for n in [0, 1, 4, 5, len - 1, len] {
            let mut m = chain(&set, lens);
            m.trim_front(n).unwrap();
            holds_part(&m, n, len - n);
            assert_eq!(m.nsegs(), lens.len(), "mbufs stay");
            let mut m = chain(&set, lens);
            m.trim_back(n).unwrap();
            holds_part(&m, 0, len - n);
            assert_eq!(m.nsegs(), lens.len());
        }
        let mut m = chain(&set, lens);
        for n in [len + 1, usize::MAX] {
            assert_eq!(m.trim_front(n).unwrap_err().have, len);
            assert_eq!(m.trim_back(n).unwrap_err().len, n);
        }
        holds(&m, len, lens);
    }
}
