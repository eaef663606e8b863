//! What went wrong in other stacks, as far as one packet can show it.

use crate::support::*;
use mbuf::{Chain, Mbuf, Packet};

/// A copy of what fills a cluster up to its end and leaves room for a link header, or just does not.
#[test]
fn fault_b9_data_at_the_end_of_a_cluster_leaves_the_lead() {
    let set = set();
    const LEAD: usize = 64;
    for (len, fits) in [(1983, true), (1984, true), (1985, false), (1001, true)] {
        let mut m = set.header_with(2048).unwrap();
        m.align_end(len).unwrap();
        assert_eq!(m.first().lead() >= LEAD, fits, "{len}");
        assert!(2048 - m.first().lead() - len < 8, "at the end");
        m.append(len).unwrap().fill(1);
        m.check().unwrap();
    }
}

#[test]
fn fault_h6_clone_and_original_freed_in_either_order() {
    let set = set();
    for clone_first in [true, false] {
        let m = chain(&set, &[100, 500, 0, 3000]);
        let clone = m.clone_packet(&set).unwrap();
        let count = |m: &Mbuf| (m.segments().count(), m.nsegs());
        assert_eq!(count(&m), (4, 4));
        assert_eq!(count(&clone), (3, 3), "without the empty one");
        let (first, second) = if clone_first { (clone, m) } else { (m, clone) };
        drop(first);
        assert_eq!(second.to_vec(), numbered(0, 3600));
        assert!(second.is_writable());
        drop(second);
        assert!(set.is_full());
    }
}

/// Empty segments anywhere, and nothing else, through every operation.
#[test]
fn fault_r1_fault_r3_packets_with_nothing_in_them() {
    let set = set();
    for lens in [&[0][..], &[0, 0, 0], &[0, 20, 0], &[20, 0, 0, 20], &[20, 0]] {
        let len: usize = lens.iter().sum();
        let m = || chain(&set, lens);
        for copy in [
            m().ref_copy(0, len, &set),
            m().clone_packet(&set),
            m().deep_copy(0, &set),
        ] {
            assert_eq!(copy.unwrap().to_vec(), numbered(0, len));
        }
        let mut contiguous = m();
        contiguous.make_contiguous(len, &set).unwrap();
        assert_eq!(contiguous.first().len(), len);
        let mut one = m();
        one.defrag(&set).unwrap();
        holds(&one, len, &[len]);
        let mut one = m();
        one.linearize().unwrap();
        holds(&one, len, &[len]);
        let mut pulled = m();
        assert_eq!(pulled.pulldown(0, len, &set).unwrap(), numbered(0, len));
        let mut written = m();
        written.write_at(0, &[5; 50], &set).unwrap();
        assert_eq!(written.to_vec(), [5; 50]);
        let mut grown = m();
        grown.append_with(1, &set).unwrap().fill(1);
        grown.prepend_with(1, &set).unwrap().fill(1);
        assert_eq!(grown.pkt_len(), len + 2);
        assert_eq!(m().split(len / 2, &set).unwrap().pkt_len(), len - len / 2);
        let mut joined = m();
        joined.cat_packed(m());
        joined.cat(m());
        assert_eq!(joined.pkt_len(), 3 * len);
        let mut own = m();
        own.make_writable(&set).unwrap();
        holds(&own, len, lens);
    }
    assert!(set.is_full());
    assert_eq!(set.header_with(0).unwrap().pkt_len(), 0);
}

#[test]
fn fault_r5_nothing_put_behind_nothing() {
    let set = set();
    let mut chain = Chain::new();
    chain.push_back(set.header().unwrap());
    chain.push_back(set.header().unwrap());
    assert_eq!((chain.len(), chain.segs()), (0, 2));
    drop(chain.cut(0).unwrap());
    assert!(chain.is_empty() && set.is_full());
    let mut m = set.header().unwrap();
    m.cat_packed(set.header().unwrap());
    assert_eq!((m.nsegs(), set.in_use()), (1, 1));
}

#[test]
fn fault_s1_a_write_needs_storage_of_its_own() {
    let set = set();
    let mut m = chain(&set, &[500]);
    let clone = m.clone_packet(&set).unwrap();
    assert!(m.data_mut().is_none() && !m.is_writable());
    m.make_range_writable(0, 12, &set).unwrap();
    let data = m.data_mut().unwrap();
    let (to, from) = data[..12].split_at_mut(6);
    to.swap_with_slice(from);
    assert_eq!(clone.to_vec(), numbered(0, 500));
    assert_eq!(m.to_vec()[..12], [6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5]);
}

#[test]
fn fault_s3_headers_before_a_shared_cluster_go_into_a_new_mbuf() {
    let set = set();
    let mut m = set.header_with(2048).unwrap();
    m.set_lead(100).unwrap();
    m.append(500).unwrap().copy_from_slice(&numbered(0, 500));
    let kept = m.clone_packet(&set).unwrap();
    let mut again = kept.clone_packet(&set).unwrap();
    for packet in [&mut m, &mut again] {
        assert_eq!(packet.first().headroom(), 0);
        packet.prepend_with(20, &set).unwrap().fill(0x45);
        assert_eq!((packet.nsegs(), clustered(packet)[0]), (2, 0));
    }
    drop((m, again));
    assert_eq!(
        (kept.to_vec(), kept.first().headroom()),
        (numbered(0, 500), 100)
    );
}

#[test]
fn fault_s5_views_of_one_cluster_move_apart() {
    let set = set();
    let mut a = chain(&set, &[500]);
    a.cat(chain(&set, &[400]));
    let mut b = a.clone_packet(&set).unwrap();
    a.trim_front(450).unwrap();
    b.trim_back(350).unwrap();
    assert_eq!(a.to_vec()[..50], numbered(450, 50));
    assert_eq!(b.to_vec()[..500], numbered(0, 500));
    assert_eq!((a.pkt_len(), b.pkt_len()), (450, 550));
}

#[test]
fn fault_s7_tailroom_counts_from_the_data() {
    let set = set();
    let mut m = set.header_with(2048).unwrap();
    m.append(600).unwrap();
    m.trim_front(200).unwrap();
    assert_eq!(m.first().tailroom(), 2048 - 200 - 400);
    assert_eq!(m.first().headroom(), 200);
}

#[test]
fn fault_s9_fault_h8_prepend_and_trim_count_once() {
    let set = set();
    let mut m = set.header_with_lead(34, 100).unwrap();
    m.append(100).unwrap().copy_from_slice(&numbered(0, 100));
    m.prepend(20).unwrap();
    m.trim_front(20).unwrap();
    holds(&m, 100, &[100]);
    m.prepend(34).unwrap();
    assert_eq!((m.pkt_len(), m.first().headroom()), (134, 0));
    m.trim_front(34).unwrap();
    holds(&m, 100, &[100]);
}

/// The data has moved from inline room to a cluster: room is what that has.
#[test]
fn fault_s11_headroom_is_that_of_the_storage_that_is_used_now() {
    let set = set();
    let mut m = set.header().unwrap();
    m.set_lead(44).unwrap();
    m.append(100).unwrap().copy_from_slice(&numbered(0, 100));
    m.cat(chain(&set, &[300]));
    m.make_contiguous(400, &set).unwrap();
    assert_eq!(
        (m.first().headroom(), m.first().tailroom()),
        (44, 2048 - 444)
    );
    m.prepend(44).unwrap().fill(1);
    assert!(m.prepend(1).is_err());
    assert_eq!(m.to_vec()[44..144], numbered(0, 100));
}

#[test]
fn fault_t2_lengths_about_64_kilobytes() {
    let set = set();
    for len in [65_534, 65_535, 65_536] {
        let m = set.copy_in(&vec![3; len], 0).unwrap();
        assert_eq!((m.pkt_len(), m.nsegs()), (len, 1));
        let led = set.header_with_lead(65_536 - len, len).unwrap();
        assert_eq!(led.first().tailroom(), len);
        assert!(set.header_with_lead(65_537 - len, len).is_err());
    }
    assert!(set.header_with_lead(usize::MAX, 2).is_err());
    assert!(set.header_with(65_537).is_err());
    assert!(set.is_full());
}

#[test]
fn fault_t4_more_segments_than_a_byte_counts() {
    let set = set();
    for segs in [255, 256, 300] {
        let mut m = chain(&set, &vec![1; segs]);
        assert_eq!((m.nsegs(), m.pkt_len()), (segs, segs));
        let copy = m.deep_copy(0, &set).unwrap();
        assert_eq!(copy.to_vec(), m.to_vec());
        let tail = m.split(segs - 1, &set).unwrap();
        assert_eq!((m.nsegs(), tail.nsegs()), (segs - 1, 1));
        m.cat(tail);
        m.defrag(&set).unwrap();
        holds(&m, segs, &[segs]);
        drop((m, copy));
        assert!(set.is_full());
    }
}
