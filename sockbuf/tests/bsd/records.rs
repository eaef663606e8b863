//! Records: appending and taking them apart.

use mbuf::{AllocError, BufferSet, Kind, Mbuf, Packet};
use sockbuf::{AppendError, ControlError, Message, Messages, RecordBuf, Side};

use crate::common::{pieces, pools, received};

fn message(set: &BufferSet, data: &[u8]) -> Mbuf {
    let said = Message {
        level: 1,
        kind: 2,
        data,
    };
    said.to_mbuf(set).expect("mbuf")
}

fn data(rb: &RecordBuf) -> Vec<Vec<u8>> {
    let bytes = |record: sockbuf::Record<'_>| {
        let mut bytes = vec![0; record.data_len()];
        record.copy_to(0, &mut bytes).expect("all of it");
        bytes
    };
    rb.records().map(bytes).collect()
}

#[test]
fn sb_append_joins_the_last_record_or_begins_the_first() {
    let set = pools();
    let mut rb = RecordBuf::new(65536);
    rb.append(received(&set, b"one", 0));
    rb.append_record(received(&set, b"two", 0));
    rb.append(received(&set, b"and", 0));
    assert_eq!(data(&rb), [b"one".to_vec(), b"twoand".to_vec()]);
    assert_eq!((rb.nrecords(), rb.segs()), (2, 2));
}

#[test]
fn sb_append_begins_a_record_behind_an_end() {
    let set = pools();
    let mut rb = RecordBuf::new(65536);
    let mut m = received(&set, b"one", 0);
    m.set_eor(true);
    rb.append(m);
    rb.append(received(&set, b"two", 0));
    rb.append(received(&set, b"and", 0));
    assert_eq!(data(&rb), [b"one".to_vec(), b"twoand".to_vec()]);
    let ends: Vec<bool> = rb.records().map(|record| record.is_eor()).collect();
    assert_eq!(ends, [true, false]);
}

#[test]
fn sb_appendrecord_links_its_first_mbuf_even_if_empty() {
    let set = pools();
    let mut rb = RecordBuf::new(65536);
    for _ in 0..3 {
        rb.append_record(received(&set, b"", 0));
    }
    assert_eq!((rb.nrecords(), rb.segs(), rb.len()), (3, 3, 0));
    assert_eq!((rb.charge(), rb.is_empty()), (3 * 256, false));
    rb.append_record(pieces(&set, &[b"", b"", b"x"]));
    assert_eq!(
        (rb.nrecords(), rb.segs()),
        (4, 4),
        "the others of a chain are packed"
    );
}

#[test]
fn sb_appendrecord_does_not_copy_into_the_record_before() {
    let set = pools();
    let mut rb = RecordBuf::new(65536);
    rb.append_record(received(&set, b"one", 0));
    rb.append_record(received(&set, b"two", 0));
    assert_eq!((rb.segs(), rb.nrecords()), (2, 2));
}

#[test]
fn sb_appendrecord_moves_an_end_from_the_first_mbuf_to_the_last() {
    let set = pools();
    let mut rb = RecordBuf::new(65536);
    let mut first = received(&set, &[1; 1000], 0);
    first.set_eor(true);
    first.cat(received(&set, &[2; 1000], 0));
    rb.append_record(first);
    let mut alone = received(&set, b"alone", 0);
    alone.set_eor(true);
    rb.append_record(alone);
    let ends: Vec<Vec<bool>> = rb
        .records()
        .map(|record| record.segments().map(|seg| seg.is_eor()).collect())
        .collect();
    assert_eq!(ends, [vec![false, true], vec![true]]);
}

#[test]
fn sb_appendaddr_is_address_control_data() {
    let set = pools();
    let mut rb = RecordBuf::new(65536);
    let control = message(&set, b"ttl");
    rb.append_address(
        b"addr",
        Some(received(&set, b"data", 0)),
        Some(control),
        &set,
    )
    .expect("space");
    rb.append_address(b"other", None, None, &set)
        .expect("space");
    let record = rb.front().expect("two");
    let kinds: Vec<Kind> = record.segments().map(|seg| seg.kind()).collect();
    assert_eq!(kinds, [Kind::Address, Kind::Control, Kind::Data]);
    assert_eq!(record.address(), Some(&b"addr"[..]));
    let said: Vec<&[u8]> = record.control().map(|message| message.data).collect();
    assert_eq!(said, [b"ttl"]);
    assert_eq!((rb.len(), rb.data_len()), (4 + 24 + 4 + 5, 4));

    let parts = rb.take_record().expect("two");
    assert_eq!(parts.address.expect("said").to_vec(), b"addr");
    assert_eq!(parts.control.expect("said").pkt_len(), 24);
    assert_eq!(parts.data.expect("said").to_vec(), b"data");
    let parts = rb.take_record().expect("one");
    assert!(parts.data.is_none() && parts.control.is_none());
    assert_eq!((rb.nrecords(), rb.len(), rb.data_len()), (0, 0, 0));
    assert!(rb.take_record().is_none());
}

#[test]
fn sb_appendaddr_without_space_for_the_sum_changes_nothing() {
    let set = pools();
    let mut rb = RecordBuf::new(30);
    rb.append_address(
        b"0123456789",
        Some(received(&set, b"0123456789", 0)),
        None,
        &set,
    )
    .expect("20 of 30");
    let before = (rb.held(), rb.nrecords(), set.in_use());
    for (address, asked) in [(&b"01234567"[..], 11), (&b"01234567890"[..], 14)] {
        let data = received(&set, b"012", 0);
        let refused = rb.append_address(address, Some(data), None, &set);
        assert_eq!(refused, Err(AppendError::NoSpace { asked, space: 10 }));
        assert_eq!(
            (rb.held(), rb.nrecords(), set.in_use()),
            before,
            "freed, too"
        );
    }
    rb.append_address(b"0123456", Some(received(&set, b"012", 0)), None, &set)
        .expect("exactly");
    assert_eq!(rb.space(), 0);
    rb.side_mut().set_limits(10, 10);
    let refused = rb.append_address(b"", None, None, &set);
    assert!(matches!(refused, Err(AppendError::NoSpace { asked: 0, space }) if space < 0));
}

#[test]
fn sb_appendaddr_refuses_an_address_longer_than_an_mbuf() {
    let set = pools();
    let mut rb = RecordBuf::new(65536);
    let refused = rb.append_address(&[0; 225], Some(received(&set, b"x", 0)), None, &set);
    let (asked, max) = (225, 224);
    assert_eq!(refused, Err(AppendError::AddressTooLong { asked, max }));
    assert!(rb.is_empty() && set.is_full());
    rb.append_address(&[0; 224], None, None, &set)
        .expect("fits");
}

#[test]
fn sb_appendaddr_without_an_mbuf_changes_nothing() {
    let set = BufferSet::bsd_builder(1, 1).configure(|pool| pool.cache(0));
    let set = set.build().expect("pools");
    let mut rb = RecordBuf::new(65536);
    let data = received(&set, b"data", 0);
    let refused = rb.append_address(b"addr", Some(data), None, &set);
    assert!(matches!(
        refused,
        Err(AppendError::Alloc(AllocError::Exhausted { .. }))
    ));
    assert!(rb.is_empty() && set.is_full());
}

#[test]
fn sb_appendcontrol_is_control_data_and_needs_space_for_both() {
    let set = pools();
    let mut rb = RecordBuf::with_side(Side::receiving(30));
    let refused = rb.append_control(message(&set, b"fd"), Some(received(&set, b"0123456", 0)));
    let (asked, space) = (31, 30);
    assert_eq!(refused, Err(AppendError::NoSpace { asked, space }));
    assert!(rb.is_empty() && set.is_full());
    rb.append_control(message(&set, b"fd"), Some(received(&set, b"012345", 0)))
        .expect("exactly");
    rb.side_mut().set_limits(100, 65536);
    rb.append_control(message(&set, b"fd"), None)
        .expect("control alone");
    assert_eq!((rb.len(), rb.data_len(), rb.nrecords()), (54, 6, 2));
    let second = rb.records().nth(1).expect("two");
    assert_eq!((second.address(), second.data_len()), (None, 0));
}

#[test]
fn sb_createcontrol_has_a_header_and_a_limit() {
    let set = pools();
    for len in [0_usize, 1, 7, 8, 9, 208, 209, 2025, 2032] {
        let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
        let m = message(&set, &bytes);
        assert_eq!(m.pkt_len(), (16 + len).next_multiple_of(8));
        let said: Vec<Message<'_>> = Messages::new(m.first().data()).collect();
        assert_eq!(said.len(), 1);
        assert_eq!(
            (said[0].level, said[0].kind, said[0].data),
            (1, 2, &bytes[..])
        );
    }
    let long = Message {
        level: 0,
        kind: 0,
        data: &[0; 2033],
    };
    let (asked, max) = (2056, 2048);
    assert!(
        matches!(long.to_mbuf(&set), Err(ControlError::TooLong { asked: a, max: m }) if (a, m) == (asked, max))
    );
    assert!(set.is_full());
}

#[test]
fn sb_createcontrol_messages_of_hostile_bytes_end() {
    let mut rng = fastrand::Rng::with_seed(7);
    for seed in 0..2000 {
        rng.seed(seed);
        let bytes: Vec<u8> = (0..rng.usize(0..120)).map(|_| rng.u8(0..40)).collect();
        let all: usize = Messages::new(&bytes).map(|m| m.data.len() + 16).sum();
        assert!(all <= bytes.len(), "seed {seed}");
    }
    for length in [0_u32, 15, 25, u32::MAX] {
        let mut bytes = [0; 24];
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        assert_eq!(Messages::new(&bytes).count(), 0, "{length}");
    }
}

#[test]
fn a_record_is_read_within_its_bounds() {
    let set = pools();
    let mut rb = RecordBuf::new(65536);
    rb.append_record(pieces(&set, &[&[1; 1000], &[2; 1000]]));
    rb.append_record(received(&set, &[9; 10], 0));
    let first = rb.front().expect("two");
    let mut two = [0; 2];
    first.copy_to(999, &mut two).expect("across mbufs");
    assert_eq!(two, [1, 2]);
    assert!(
        first.copy_to(1999, &mut two).is_err(),
        "not into the next record"
    );
    assert!(first.copy_to(usize::MAX, &mut two).is_err());
    assert!(first.copy_to(2000, &mut []).is_ok());
    assert_eq!(two, [1, 2]);
}
