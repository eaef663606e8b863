//! What a refusal says: why, of what, and with which numbers.

mod common;

use common::uncached;
use mbuf::{AllocError, BufferSet, Buffers, Mbuf, NoRoom, OutOfRange, Packet};
use std::sync::{Arc, Barrier};

#[test]
fn no_room_says_whether_it_is_too_small_read_only_or_not_empty() {
    let set = uncached();
    let mut m = set.header().unwrap();
    let have = m.capacity();
    let asked = have + 1;
    let small = NoRoom::TooSmall { asked, have };
    assert_eq!(m.append(asked).unwrap_err(), small);
    assert_eq!(m.set_lead(asked), Err(small));
    assert_eq!(m.align_end(asked), Err(small));
    let (asked, have) = (1, 0);
    assert_eq!(m.prepend(1), Err(NoRoom::TooSmall { asked, have }));

    m.append(3).unwrap();
    let (asked, len) = (0, 3);
    assert_eq!(m.set_lead(0), Err(NoRoom::NotEmpty { asked, len }));

    let mut m = set.header_with(2048).unwrap();
    m.append(100).unwrap();
    m.trim_front(50).unwrap();
    let sharers = [0, 1].map(|at| m.ref_copy(at, 10, &set).unwrap());
    let (asked, refs) = (1, 3);
    let shared = NoRoom::ReadOnly { asked, refs };
    assert_eq!(m.append(1).unwrap_err(), shared);
    assert_eq!(m.prepend(1).unwrap_err(), shared);
    drop(sharers);
    m.prepend(1).unwrap();

    // Nobody shares it, but nobody may write it either.
    let mut m = set.header().unwrap();
    m.attach(Arc::<[u8]>::from([7; 9])).unwrap();
    let (asked, refs) = (1, 1);
    let error = m.append(1).unwrap_err();
    assert_eq!(error, NoRoom::ReadOnly { asked, refs });
    assert_eq!(
        error.to_string(),
        "asked for 1 bytes of room in read-only storage with 1 references"
    );
}

#[test]
fn exhausted_says_of_what_and_what_the_pool_knows() {
    let set = BufferSet::builder(8)
        .class(2048, 2)
        .configure(|b| b.cache(2))
        .build()
        .unwrap();
    let kept = [2048, 1000].map(|len| set.header_with(len).unwrap());
    let Err(AllocError::Exhausted { of, short }) = set.header_with(1000) else {
        panic!("there were two clusters")
    };
    assert_eq!(of, Buffers::Clusters { class: 2048 });
    assert_eq!((short.asked, short.available), (1, 0));

    // Two in the cache of a thread that has not ended.
    let theirs = set.clone();
    let barrier = Arc::new(Barrier::new(2));
    let met = barrier.clone();
    let thread = std::thread::spawn(move || {
        let both: Vec<Mbuf> = (0..2).map(|_| theirs.plain().unwrap()).collect();
        drop(both);
        met.wait();
        met.wait();
    });
    barrier.wait();
    let error = std::iter::from_fn(|| Some(set.header()))
        .take(8)
        .collect::<Result<Vec<_>, _>>()
        .unwrap_err();
    let AllocError::Exhausted { of, short } = error else {
        panic!("there are eight mbufs")
    };
    assert_eq!((of, short.over_budget), (Buffers::Mbufs, false));
    assert!(short.cached_elsewhere > 0);
    let text = error.to_string();
    assert!(text.starts_with("mbufs: "), "{text}");
    assert!(text.contains("in caches of other threads"), "{text}");
    barrier.wait();
    thread.join().unwrap();
    drop(kept);
}

#[test]
fn a_place_behind_the_end_is_not_called_a_range_of_no_bytes() {
    let set = uncached();
    let mut m = set.copy_in(b"five!", 0).unwrap();
    let error = m.split(9, &set).unwrap_err();
    assert_eq!(error.to_string(), "byte 9 is behind the end of 5 bytes");
    let (offset, len, have) = (4, 2, 5);
    let range = OutOfRange { offset, len, have };
    assert_eq!(
        range.to_string(),
        "range of 2 bytes at 4 is outside of 5 bytes"
    );
}

/// Prefetching is a hint: whatever the packet, nothing of it changes.
#[test]
fn dpdk_b20_prefetching_changes_nothing() {
    let set = uncached();
    let mut m = set.copy_in(&[1; 3000], 20).unwrap();
    m.cat(set.plain().unwrap());
    let mut empty = set.header().unwrap();
    empty.attach(Vec::new()).unwrap();
    for packet in [m.into_shared(), empty.into_shared()] {
        let before = packet.dump().to_string();
        packet.prefetch_header();
        packet.prefetch_meta();
        packet.prefetch_data();
        assert_eq!(packet.dump().to_string(), before);
    }
    assert!(set.is_full());
}

#[test]
fn append_with_gives_an_empty_header_a_cluster_and_keeps_its_headroom() {
    let set = uncached();
    let mut m = set.header().unwrap();
    m.set_lead(100).unwrap();
    m.append_with(2000, &set).unwrap().fill(3);
    assert_eq!((m.nsegs(), m.first().headroom()), (1, 100));
    assert_eq!(m.first().capacity(), 4096, "2048 would not hold both");
    assert!(m.first().is_header());
    // With bytes in it, or more than one segment, it stays as it is.
    let mut m = set.copy_in(b"x", 0).unwrap();
    m.append_with(2000, &set).unwrap();
    assert_eq!(m.nsegs(), 2);
    // No class for headroom and bytes together: rather without than not at all.
    let mut m = set.header().unwrap();
    m.set_lead(8).unwrap();
    m.append_with(65_536, &set).unwrap();
    assert_eq!((m.nsegs(), m.pkt_len()), (2, 65_536));
    m.check().unwrap();
}
