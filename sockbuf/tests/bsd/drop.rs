//! Dropping: bytes, records, everything.

use mbuf::{Mbuf, Packet};
use sockbuf::{PastEnd, RecordBuf, SockBuf};

use crate::common::{content, pieces, pools, received};

/// Three records of two mbufs each: 1000 and 500 bytes of 1, 2 and 3.
fn three(set: &mbuf::BufferSet) -> RecordBuf {
    let mut rb = RecordBuf::new(65536);
    for byte in 1..=3 {
        rb.append_record(pieces(set, &[&[byte; 1000], &[byte; 600]]));
    }
    rb
}

#[test]
fn sb_drop_past_the_end_says_both_numbers_and_changes_nothing() {
    let set = pools();
    let (mut rb, mut sb) = (three(&set), SockBuf::new(65536));
    sb.write(&[1; 1536], &set).expect("space");
    let before = (rb.held(), rb.nrecords(), sb.held());
    for asked in [4801, usize::MAX] {
        assert_eq!(rb.drop_front(asked), Err(PastEnd { asked, have: 4800 }));
    }
    let asked = 2560;
    assert_eq!(sb.drop_front(asked), Err(PastEnd { asked, have: 1536 }));
    assert_eq!((rb.held(), rb.nrecords(), sb.held()), before);
}

#[test]
fn sb_drop_across_mbufs_and_records() {
    let set = pools();
    let steps = [
        (0, 3, 6),
        (1, 3, 6),
        (999, 3, 5),
        (600, 2, 4),
        (1599, 2, 3),
        (1, 1, 2),
        (1600, 0, 0),
    ];
    let (mut rb, mut left) = (three(&set), 4800);
    for (n, records, segs) in steps {
        rb.drop_front(n).expect("inside");
        left -= n;
        assert_eq!((rb.len(), rb.data_len()), (left, left));
        assert_eq!((rb.nrecords(), rb.segs()), (records, segs), "after {n}");
    }
    assert_eq!((rb.charge(), rb.is_empty()), (0, true));
    let mut rb = three(&set);
    rb.drop_front(1600 + 1600 + 1)
        .expect("over two records into the third");
    assert_eq!((rb.nrecords(), rb.len()), (1, 1599));
    rb.append(received(&set, &[4; 10], 0));
    assert_eq!(
        rb.front().expect("one").data_len(),
        1609,
        "the last record is still the last"
    );
}

#[test]
fn sb_drop_removes_what_it_leaves_empty_in_the_same_record_only() {
    let set = pools();
    let mut rb = RecordBuf::new(65536);
    let mut record = received(&set, &[1; 100], 0);
    record.cat(received(&set, b"", 0));
    let packet = |part: Mbuf| Some(part);
    rb.append_address(b"from", packet(record), None, &set)
        .expect("space");
    rb.append_record(received(&set, b"", 0));
    rb.append_record(received(&set, b"last", 0));
    assert_eq!(rb.segs(), 5);
    rb.drop_front(104).expect("the first record");
    assert_eq!(
        (rb.nrecords(), rb.segs()),
        (2, 2),
        "a datagram without a byte is one, too"
    );
    rb.drop_front(0).expect("nothing");
    assert_eq!(
        (rb.nrecords(), rb.segs()),
        (1, 1),
        "left empty at the front"
    );
    rb.drop_front(4).expect("all");
    assert!(rb.is_empty());
    rb.drop_front(0).expect("0 of nothing");
}

#[test]
fn sb_drop_of_addresses_and_control_counts_data_right() {
    let set = pools();
    let mut rb = RecordBuf::new(65536);
    rb.append_address(b"0123456789", Some(received(&set, b"data", 0)), None, &set)
        .expect("space");
    for (n, data) in [(3, 4), (7, 4), (1, 3), (3, 0)] {
        rb.drop_front(n).expect("inside");
        assert_eq!(rb.data_len(), data);
    }
}

#[test]
fn sb_droprecord_removes_the_first_and_is_nothing_on_an_empty_buffer() {
    let set = pools();
    let mut rb = three(&set);
    rb.drop_front(1200).expect("into the second mbuf");
    for left in [2, 1, 0] {
        assert!(rb.drop_record());
        assert_eq!((rb.nrecords(), rb.len()), (left, left * 1600));
    }
    assert!(!rb.drop_record() && rb.cut_record().is_none());
    assert!(set.is_full());
}

#[test]
fn sb_cut_hands_out_what_is_used_up() {
    let set = pools();
    let mut rb = three(&set);
    let gone = rb.cut(2700).expect("inside").expect("three mbufs");
    assert_eq!((gone.pkt_len(), gone.nsegs()), (2600, 3));
    assert_eq!(gone.check(), Ok(()));
    // Appended elsewhere it is one packet: where records ended is the buffer's, not its own.
    let mut other = RecordBuf::new(65536);
    other.append_record(gone);
    assert_eq!((other.nrecords(), other.len()), (1, 2600));
}

#[test]
fn sb_flush_leaves_nothing() {
    let set = pools();
    let mut rb = three(&set);
    rb.append_record(received(&set, b"", 0));
    let all = rb.take_all().expect("all");
    assert_eq!((all.pkt_len(), all.nsegs()), (4800, 7));
    assert_eq!(
        (
            rb.len(),
            rb.data_len(),
            rb.charge(),
            rb.segs(),
            rb.nrecords()
        ),
        (0, 0, 0, 0, 0)
    );
    assert!(rb.take_all().is_none());
    rb.append(received(&set, b"again", 0));
    assert_eq!((rb.len(), rb.nrecords()), (5, 1));
}

#[test]
fn sb_release_frees_all_and_takes_nothing_more() {
    let set = pools();
    let (mut rb, mut sb) = (three(&set), SockBuf::new(65536));
    sb.write(&[1; 5000], &set).expect("space");
    sb.set_urgent(3);
    rb.release();
    sb.release();
    assert!(set.is_full());
    assert_eq!((rb.space(), sb.space(), sb.urgent()), (0, 0, None));
    assert!(sb.write(b"x", &set).is_err());
    assert!(rb.append_control(received(&set, b"x", 0), None).is_err());
}

#[test]
fn sb_oobmark_counts_down_and_may_be_ahead_of_the_data() {
    let set = pools();
    let mut sb = SockBuf::new(65536);
    sb.write(&[0; 100], &set).expect("space");
    sb.drop_front(50).expect("read");
    sb.set_urgent(80);
    assert_eq!((sb.urgent(), sb.until_mark(1000)), (Some(80), 80));
    sb.write(&[1; 100], &set).expect("space");
    sb.drop_front(79).expect("read");
    assert_eq!((sb.urgent(), sb.at_mark()), (Some(1), false));
    sb.drop_front(1).expect("read");
    assert!(sb.at_mark() && sb.until_mark(7) == 7);
    sb.drop_front(0).expect("nothing");
    assert!(sb.at_mark(), "nothing was read");
    sb.drop_front(1).expect("read");
    assert_eq!((sb.urgent(), sb.at_mark()), (None, false));
    sb.set_urgent(usize::MAX);
    assert_eq!(sb.urgent(), None, "no such place");
    sb.set_urgent(0);
    sb.clear_urgent();
    assert_eq!((sb.urgent(), content(&sb).len()), (None, 69));
}
