//! Faults that other stacks had, as far as a socket buffer can have them.

use std::sync::Arc;

use mbuf::{BufferSet, External, Mbuf, Packet};
use sockbuf::{RecordBuf, SockBuf};

use crate::common::{content, pieces, pools, received};

/// One record of three mbufs, split or trimmed inside of the second, at each of its ends, and beyond.
#[test]
fn fault_a3_counters_after_a_split_inside_a_record() {
    let set = pools();
    for n in [1, 999, 1000, 1001, 1500, 1999, 2000, 2001, 2999, 3000] {
        let mut rb = RecordBuf::new(65536);
        rb.append_record(pieces(&set, &[&[1; 1000], &[2; 1000], &[3; 1000]]));
        drop(rb.cut(n).expect("inside"));
        rb.check("fault_a3");
        let segs = 3 - n / 1000;
        assert_eq!(
            (rb.len(), rb.segs(), rb.charge()),
            (3000 - n, segs, segs * 2304)
        );
        assert_eq!(rb.nrecords(), usize::from(n < 3000));
    }
}

/// A second handle to the bytes cannot change what the buffer counts, nor the bytes.
#[test]
fn fault_a5_no_handle_changes_what_is_in_a_buffer() {
    let set = pools();
    let mut sb = SockBuf::new(65536);
    sb.append_stream(received(&set, &[1; 1000], 100));
    let mut second = sb.ref_copy(0, 1000, &set).expect("copy");
    second.trim_front(10).expect("its own view");
    second.trim_back(10).expect("its own view");
    assert!(second.data_mut().is_none() && second.append(1).is_err() && second.prepend(1).is_err());
    assert_eq!(content(&sb), [1; 1000]);
    sb.check("fault_a5");
    drop(sb.take_all());
    assert_eq!((sb.len(), sb.charge(), sb.segs()), (0, 0, 0));
    assert_eq!(second.to_vec(), [1; 980]);
}

#[test]
fn fault_b3_a_read_at_the_end_of_a_record() {
    let set = pools();
    let mut rb = RecordBuf::new(65536);
    rb.append_record(received(&set, &[3; 100], 0));
    rb.append_record(received(&set, &[4; 100], 0));
    let first = rb.front().expect("two");
    assert!(first.copy_to(100, &mut [0]).is_err());
    assert!(first.copy_to(100, &mut []).is_ok());
    let mut last = [0];
    first.copy_to(99, &mut last).expect("one byte");
    assert_eq!(last, [3]);
}

/// Space ends inside of an mbuf, inline or in a cluster, and at and beyond its ends.
#[test]
fn fault_m2_a_packet_is_split_at_any_length() {
    let set = pools();
    for len in [144, 145, 1448] {
        let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
        for space in [0, 1, 143, 144, 145, len - 1, len, len + 1] {
            let mut sb = SockBuf::new(space);
            let rest = sb.append_some(received(&set, &bytes, 0), &set);
            let taken = space.min(len);
            assert_eq!(content(&sb), bytes[..taken]);
            let rest = rest.map_or(Vec::new(), |rest| rest.to_vec());
            assert_eq!(rest, bytes[taken..], "{len} bytes, space {space}");
        }
    }
    assert!(set.is_full());
}

#[test]
fn fault_m4_drops_of_0_of_almost_all_of_all_and_of_more() {
    let set = pools();
    for (n, left) in [
        (0, Some(2896)),
        (2895, Some(1)),
        (2896, Some(0)),
        (2897, None),
    ] {
        let mut sb = SockBuf::new(65536);
        sb.append_stream(pieces(&set, &[&[1; 1448], &[2; 1448]]));
        let dropped = sb.drop_front(n);
        assert_eq!(dropped.is_ok(), left.is_some());
        assert_eq!(sb.len(), left.unwrap_or(2896), "never cleared silently");
    }
}

#[test]
fn fault_m6_a_drop_longer_than_a_tiny_first_mbuf() {
    let set = pools();
    let mut sb = SockBuf::new(65536);
    sb.append_stream(pieces(&set, &[b"a", b"bc", b"defghi"]));
    sb.drop_front(4).expect("inside");
    assert_eq!((content(&sb), sb.segs()), (b"efghi".to_vec(), 1));
}

/// Storage that somebody else still holds outlives the drop, and goes once, with its last holder.
#[test]
fn fault_m8_a_drop_leaves_storage_to_its_other_owners() {
    let set = pools();
    let bytes: Arc<[u8]> = Arc::from(vec![5; 4000]);
    let storage = External::from(bytes.clone());
    let mut m = set.header().expect("mbuf");
    m.attach(storage.clone()).expect("empty");
    let mut sb = SockBuf::new(65536);
    sb.append_stream(m);
    let sent = sb.ref_copy(1000, 1000, &set).expect("copy");
    sb.drop_front(4000).expect("all");
    assert_eq!(Arc::strong_count(&bytes), 2, "its owner is still there");
    assert_eq!(sent.to_vec(), [5; 1000]);
    drop(sent);
    assert_eq!(Arc::strong_count(&bytes), 2);
    drop(storage);
    assert_eq!(Arc::strong_count(&bytes), 1);
    assert!(set.is_full());
}

/// An empty mbuf in front, in the middle and at the end, through all that walks.
#[test]
fn fault_r3_empty_mbufs_are_passed_over() {
    let set = pools();
    let parts: [&[u8]; 6] = [b"", b"ab", b"", b"", b"cd", b""];
    let mut sb = SockBuf::new(65536);
    sb.append_stream(pieces(&set, &parts));
    assert_eq!((sb.segs(), content(&sb)), (2, b"abcd".to_vec()));
    let mut rb = RecordBuf::new(65536);
    rb.append_address(b"", Some(pieces(&set, &parts)), None, &set)
        .expect("space");
    let record = rb.front().expect("one");
    assert_eq!(
        (record.address(), record.segments().count()),
        (Some(&b""[..]), 7)
    );
    let mut two = [0; 2];
    record.copy_to(1, &mut two).expect("inside");
    assert_eq!(&two, b"bc");
    rb.drop_front(2).expect("inside");
    assert_eq!((rb.segs(), rb.data_len()), (2, 2));
}

#[test]
fn fault_r5_empty_into_empty_and_into_full() {
    let set = pools();
    let (mut sb, mut rb) = (SockBuf::new(65536), RecordBuf::new(65536));
    for filled in [false, true] {
        if filled {
            sb.write(b"bytes", &set).expect("space");
            rb.append(received(&set, b"bytes", 0));
        }
        let before = (sb.held(), rb.held(), set.in_use());
        sb.append_stream(pieces(&set, &[b"", b""]));
        sb.append_packed(pieces(&set, &[b"", b""]));
        assert!(sb.append_some(pieces(&set, &[b"", b""]), &set).is_none());
        rb.append(pieces(&set, &[b"", b""]));
        assert_eq!(sb.write(&[], &set), Ok(0));
        assert_eq!((sb.held(), rb.held(), set.in_use()), before);
    }
}

/// A chain of 100 KB into 30 KB of space: what fits goes in, the rest comes back, from that byte on.
#[test]
fn fault_l14_a_chain_larger_than_the_space_comes_back_from_that_byte_on() {
    let set = BufferSet::bsd(1024, 256).expect("pools");
    let bytes: Vec<u8> = (0..100_000_u32).map(|i| (i % 251) as u8).collect();
    let mut parts = bytes.chunks(1448).map(|part| received(&set, part, 0));
    let mut packet: Mbuf = parts.next().expect("many");
    parts.for_each(|part| packet.cat(part));
    let in_use = set.in_use();
    let mut sb = SockBuf::new(30_000);
    let (mut rest, mut got) = (Some(packet), Vec::new());
    let mut rounds = 0;
    while let Some(packet) = rest {
        rest = sb.append_some(packet, &set);
        got.extend(content(&sb));
        sb.drop_front(sb.len()).expect("all");
        rounds += 1;
    }
    assert_eq!((got, rounds), (bytes, 4));
    assert!(set.is_full() && in_use > 0);
}

/// Pools run dry while a user writes: nothing is lost, and writing goes on when they are filled again.
#[test]
fn fault_w_pools_run_dry_and_writing_goes_on_later() {
    let set = BufferSet::bsd_builder(4, 2).configure(|pool| pool.cache(0));
    let set = set.build().expect("pools");
    let bytes: Vec<u8> = (0..300_000_u32).map(|i| (i % 253) as u8).collect();
    let mut sb = SockBuf::new(1 << 20);
    let (mut done, mut got, mut short) = (0, Vec::new(), 0);
    while done < bytes.len() {
        let held = sb.held();
        match sb.write(&bytes[done..], &set) {
            Ok(n) => done += n,
            Err(_) => {
                assert_eq!(sb.held(), held);
                short += 1;
                got.extend(content(&sb));
                sb.drop_front(sb.len()).expect("all");
            }
        }
    }
    got.extend(content(&sb));
    assert_eq!(got, bytes);
    assert!(short >= 2);
}

/// Appending to a stream needs no memory and no limit stops it: what was acknowledged goes in.
#[test]
fn sb_known4_an_append_of_what_was_acknowledged_cannot_fail() {
    let set = BufferSet::bsd_builder(1, 1).configure(|pool| pool.cache(0));
    let set = set.build().expect("pools");
    let mut sb = SockBuf::with_limits(10, 10);
    let m = received(&set, &[1; 100], 0);
    assert!(set.plain().is_err(), "no mbuf is left");
    sb.append_packed(m);
    assert_eq!((sb.len(), sb.space()), (100, 10 - 256));
}
