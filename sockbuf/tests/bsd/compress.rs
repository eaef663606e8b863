//! Packing: its rules, one by one.

use mbuf::{BufferSet, Kind, Mbuf, Packet, Storage};
use sockbuf::{RecordBuf, SockBuf};

use crate::common::{content, pieces, pools, received};

fn with_eor(mut m: Mbuf) -> Mbuf {
    m.set_eor(true);
    m
}

fn control(set: &BufferSet, bytes: &[u8]) -> Mbuf {
    let mut m = received(set, bytes, 0);
    m.set_kind(Kind::Control);
    m
}

/// Lengths of the mbufs, and where a sender's record ends.
fn shape(rb: &RecordBuf) -> Vec<(usize, bool)> {
    let segs = rb.records().flat_map(|record| record.segments());
    segs.map(|seg| (seg.len(), seg.is_eor())).collect()
}

#[test]
fn sb_compress_1_an_end_in_the_middle_moves_to_the_last() {
    let set = pools();
    let mut rb = RecordBuf::new(65536);
    let mut m = with_eor(received(&set, &[1; 1000], 0));
    m.cat(received(&set, &[2; 1000], 0));
    rb.append(m);
    assert_eq!(shape(&rb), [(1000, false), (1000, true)]);
    rb.append(received(&set, &[3; 10], 0));
    assert_eq!(
        rb.nrecords(),
        2,
        "what is appended behind an end is another record"
    );
}

#[test]
fn sb_compress_2_empty_mbufs_are_freed() {
    let set = pools();
    let mut rb = RecordBuf::new(65536);
    let before = set.in_use();
    rb.append(pieces(&set, &[b"", b"", b""]));
    assert!(rb.is_empty() && rb.charge() == 0);
    assert_eq!(set.in_use(), before);
    rb.append(pieces(&set, &[b"", &[1; 900], b"", &[2; 900], b""]));
    assert_eq!(shape(&rb), [(900, false), (900, false)]);
}

#[test]
fn sb_compress_2_an_empty_mbuf_stays_when_nothing_else_can_carry_the_end() {
    let set = pools();
    let mut rb = RecordBuf::new(65536);
    rb.append(with_eor(received(&set, b"", 0)));
    assert_eq!(
        shape(&rb),
        [(0, true)],
        "nothing before it, nothing behind it"
    );

    let mut rb = RecordBuf::new(65536);
    rb.append(received(&set, &[1; 1000], 0));
    rb.append(with_eor(received(&set, b"", 0)));
    assert_eq!(shape(&rb), [(1000, true)], "carried by the one before");

    let mut rb = RecordBuf::new(65536);
    rb.append(control(&set, &[1; 8]));
    rb.append(with_eor(received(&set, b"", 0)));
    assert_eq!(
        shape(&rb),
        [(8, false), (0, true)],
        "that one is of another kind"
    );

    let mut rb = RecordBuf::new(65536);
    let mut m = with_eor(received(&set, b"", 0));
    m.cat(received(&set, &[1; 1000], 0));
    rb.append(m);
    assert_eq!(shape(&rb), [(1000, true)], "carried by the one behind");
}

#[test]
fn sb_compress_3_takes_a_quarter_of_the_cluster_and_not_a_byte_more() {
    let set = pools();
    for (len, segs) in [(512, 1), (513, 2)] {
        let mut sb = SockBuf::new(65536);
        sb.write(&[1; 500], &set).expect("space");
        assert_eq!(
            sb.first().expect("one").storage(),
            Storage::Cluster { class: 2048 }
        );
        sb.append_packed(received(&set, &vec![2; len], 0));
        assert_eq!((sb.segs(), sb.len()), (segs, 500 + len));
    }
}

#[test]
fn sb_compress_3_takes_what_there_is_room_for() {
    let set = pools();
    for (first, segs) in [(214, 1), (215, 2)] {
        let mut sb = SockBuf::new(65536);
        sb.write(&vec![1; first], &set).expect("space");
        assert_eq!(sb.first().expect("one").storage(), Storage::Inline);
        sb.append_packed(received(&set, &[2; 10], 0));
        assert_eq!(sb.segs(), segs, "plain mbufs hold 224");
    }
}

#[test]
fn sb_compress_3_does_not_write_what_is_shared() {
    let set = pools();
    let mut sb = SockBuf::new(65536);
    sb.write(&[1; 500], &set).expect("space");
    let sent = sb.ref_copy(0, 500, &set).expect("copy");
    sb.append_packed(received(&set, b"more", 0));
    assert_eq!((sb.segs(), sent.to_vec()), (2, vec![1; 500]));
}

#[test]
fn sb_compress_3_mixes_no_kinds() {
    let set = pools();
    let mut rb = RecordBuf::new(65536);
    rb.append(control(&set, &[1; 8]));
    rb.append(received(&set, &[2; 8], 0));
    rb.append(received(&set, &[3; 8], 0));
    rb.append(control(&set, &[4; 8]));
    assert_eq!(shape(&rb), [(8, false), (16, false), (8, false)]);
    assert_eq!((rb.len(), rb.data_len()), (32, 16));
}

#[test]
fn sb_compress_3_copies_in_order_and_goes_on_with_what_is_large() {
    let set = pools();
    let mut sb = SockBuf::new(1 << 20);
    sb.write(&[0; 300], &set).expect("space");
    sb.append_packed(pieces(
        &set,
        &[&[1; 100], &[2; 1448], &[3; 50], &[4; 512], &[5; 513]],
    ));
    let lens: Vec<usize> = sb.segments().map(|seg| seg.len()).collect();
    assert_eq!(lens, [400, 1448 + 50 + 512, 513]);
    let want = [
        vec![0; 300],
        vec![1; 100],
        vec![2; 1448],
        vec![3; 50],
        vec![4; 512],
        vec![5; 513],
    ];
    assert_eq!(content(&sb), want.concat());
}

#[test]
fn sb_compress_4_links_are_charged() {
    let set = pools();
    let mut sb = SockBuf::new(65536);
    sb.append_packed(pieces(&set, &[&[1; 1448], &[2; 1448]]));
    assert_eq!((sb.segs(), sb.charge()), (2, 2 * 2304));
}

#[test]
fn sb_compress_5_copied_bytes_hand_their_end_on() {
    let set = pools();
    let mut rb = RecordBuf::new(65536);
    rb.append(received(&set, &[1; 100], 0));
    rb.append(with_eor(received(&set, &[2; 20], 0)));
    assert_eq!(shape(&rb), [(120, true)]);
}

/// One mbuf is freed, not the chain behind it.
#[test]
fn sb_known5_packing_frees_single_mbufs() {
    let set = pools();
    let mut sb = SockBuf::new(65536);
    sb.append_packed(received(&set, &[0; 200], 0));
    let before = set.in_use();
    sb.append_packed(pieces(&set, &[&[1; 10], &[2; 1448], &[3; 1448]]));
    assert_eq!(sb.len(), 200 + 10 + 2 * 1448);
    assert_eq!(set.in_use() - before, 4, "two mbufs, two clusters");
}
