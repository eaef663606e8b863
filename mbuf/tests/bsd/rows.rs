//! Rows of the table that are short here: making, freeing, storage, headers.
//!
//! What of the table cannot be said here, and why:
//!
//! - `init_hdr` and `remove_hdr`: whether an mbuf may head a packet is decided when it is allocated; any
//!   mbuf can be first, and `reset_header` clears what is said.
//! - The `how` argument: allocation never sleeps; waiting is the pool's (`get_timeout`).
//! - `extfree_register`: an owner's destructor is its free routine, and there may be any number.
//! - Null arguments: there is an mbuf behind every handle; `None` in arrays is a test below.
//! - Negative lengths and lengths that panic: all are `usize`, and what is not there is an error.
//! - Types of mbufs (`MT_*`): there are none, so that `cat` need not compare them.
//! - "Chain freed on failure" is said by the signature: by value or by `&mut`.

use super::support::{MHLEN, MLEN, chain, holds, set};
use mbuf::{
    AllocError, BufferSet, EditError, External, Mbuf, NoRoom, Packet, PacketList, PrivateArea,
    Received, Storage, TxOffload, free_bulk,
};
use std::sync::Arc;

/// Says all that can be said of a packet.
fn talkative(m: &mut Mbuf) {
    m.set_user(1);
    m.set_vlan(Some(2));
    m.set_timestamp(Some(3));
    m.set_priority(Some(4));
    m.set_received(Received::default());
    m.set_offload(TxOffload {
        l3_len: 20,
        ..TxOffload::default()
    });
}

fn is_silent(m: &Mbuf) -> bool {
    m.received().is_none()
        && (m.user(), m.offload()) == (0, TxOffload::default())
        && (m.vlan(), m.timestamp(), m.priority()) == (None, None, None)
}

#[test]
fn bsd_get_and_get_hdr_are_empty_alone_and_silent_after_any_use() {
    let set = BufferSet::bsd_builder(1, 1)
        .configure(|b| b.cache(0))
        .build()
        .unwrap();
    type Get = fn(&BufferSet) -> Result<Mbuf, AllocError>;
    let kinds: [(Get, usize, bool); 2] = [
        (BufferSet::plain, MLEN, false),
        (BufferSet::header, MHLEN, true),
    ];
    for _ in 0..3 {
        for (get, room, heads) in kinds {
            let mut m = get(&set).unwrap();
            assert_eq!((m.pkt_len(), m.nsegs(), m.first().lead()), (0, 1, 0));
            assert_eq!((m.capacity(), m.first().is_header()), (room, heads));
            assert!(is_silent(&m) && m.first().next().is_none());
            m.check_fresh(set.mbuf_pool()).unwrap();
            talkative(&mut m);
            m.append(room).unwrap();
            m.trim_front(3).unwrap();
            assert!(set.plain().is_err() && set.header().is_err());
        }
    }
    assert_eq!(set.stats().mbufs.failures, 12, "each refusal is counted");
}

#[test]
fn bsd_reset_hdr_keeps_length_storage_and_the_wish_to_be_wiped() {
    let set = set();
    let mut m = chain(&set, &[1000, 20]);
    m.wipe_on_free();
    talkative(&mut m);
    m.reset_header();
    assert!(is_silent(&m));
    holds(&m, 1020, &[1000, 20]);
    assert_eq!(m.first().storage(), Storage::Cluster { class: 2048 });
    assert!(m.segments().all(|seg| seg.is_wiped_on_free()));
    assert!(m.first().is_header());
}

#[test]
fn bsd_clget_takes_the_smallest_class_and_starts_at_its_start() {
    let set = set();
    let classes = [2048, 2050, 4096, 8192, 9344, 12288, 16384, 65536];
    let mut below = 0;
    for class in classes {
        for len in [below + 1, class] {
            let mut m = set.header().unwrap();
            m.set_lead(40).unwrap();
            set.attach_cluster(&mut m, len).unwrap();
            assert_eq!(m.first().storage(), Storage::Cluster { class }, "{len}");
            assert_eq!((m.first().lead(), m.pkt_len()), (0, 0));
            assert_eq!(m.first().tailroom(), class, "its own room is none of it");
        }
        below = class;
    }
    let mut m = set.header().unwrap();
    set.attach_cluster(&mut m, 0).unwrap();
    assert_eq!(m.capacity(), 2048);
}

#[test]
fn bsd_clget_that_fails_leaves_the_mbuf_or_nothing() {
    let set = BufferSet::bsd_builder(8, 1)
        .configure(|b| b.cache(0))
        .build()
        .unwrap();
    let mut m = set.header().unwrap();
    let (asked, largest) = (65_537, 65_536);
    let too_large = AllocError::NoClass { asked, largest };
    assert_eq!(set.attach_cluster(&mut m, asked), Err(too_large));
    assert_eq!(set.header_with(asked).err(), Some(too_large));
    let only = set.header_with(2048).unwrap();
    assert!(set.attach_cluster(&mut m, 2048).is_err());
    assert!(set.header_with(2048).is_err() && set.plain_with(2048).is_err());
    assert_eq!(
        (m.first().storage(), m.capacity()),
        (Storage::Inline, MHLEN)
    );
    drop(only);
    m.append(1).unwrap();
    let occupied = set.attach_cluster(&mut m, 2048);
    assert!(matches!(occupied, Err(AllocError::Occupied { len: 1, .. })));
    drop(m);
    assert!(set.is_full(), "no header mbuf is left over");
}

#[test]
fn bsd_extadd_is_the_sole_owner_and_writable_if_asked() {
    let set = set();
    let memory: [(External, bool); 3] = [
        (vec![7; 600].into(), true),
        (Arc::<[u8]>::from([7; 600]).into(), false),
        (External::from_owner([7; 600]), false),
    ];
    for (external, writable) in memory {
        let mut m = set.header().unwrap();
        m.attach(external).unwrap();
        assert_eq!((m.first().storage_refs(), m.pkt_len()), (1, 600));
        assert_eq!(m.first().is_writable(), writable);
        assert_eq!(m.data_mut().is_some(), writable);
        assert_eq!(m.first().charge(), 256 + 600);
    }
}

#[test]
fn bsd_extref_shares_the_buffer_but_not_the_place() {
    let set = set();
    let mut from = chain(&set, &[1000]);
    let mut to = set.header().unwrap();
    let shared = from.ref_copy(0, 1000, &set).unwrap().into_shared();
    to.attach_shared(&shared, 0).unwrap();
    drop(shared);
    assert_eq!(from.first().storage_refs(), 2);
    from.trim_front(100).unwrap();
    to.trim_back(900).unwrap();
    holds(&to, 100, &[100]);
    assert_eq!((from.pkt_len(), from.first().data()[0]), (900, 100));
    assert!(!from.is_writable() && !to.is_writable());
    // What has storage already is left alone.
    let other = chain(&set, &[10]).into_shared();
    assert!(to.attach_shared(&other, 0).is_err());
    holds(&to, 100, &[100]);
    assert_eq!(other.owners(), 1);
}

#[test]
fn bsd_free_releases_one_mbuf_and_returns_the_next() {
    let set = set();
    let mut rest = Some(chain(&set, &[10, 3000, 0, 20]));
    for left in [3, 2, 1, 0] {
        let (one, behind) = rest.take().unwrap().split_first();
        drop(one);
        rest = behind;
        assert_eq!(rest.as_ref().map_or(0, Packet::nsegs), left);
        assert_eq!(set.mbuf_pool().raw().in_use(), left);
    }
    assert!(set.is_full());
}

#[test]
fn bsd_freem_and_purge_take_nothing_as_well() {
    let set = set();
    let mut none: [Option<Mbuf>; 9] = [const { None }; 9];
    free_bulk(&mut none);
    free_bulk::<Mbuf>(&mut []);
    assert_eq!(PacketList::new().purge(), 0);
    let mut list: PacketList = [chain(&set, &[10, 3000]), chain(&set, &[5])]
        .into_iter()
        .collect();
    drop(list.dequeue());
    assert_eq!((list.len(), list.bytes()), (1, 5), "the next packet stays");
}

#[test]
fn bsd_ensure_contig_keeps_the_chain_where_pullup_frees_it() {
    let set = BufferSet::bsd_builder(8, 1)
        .configure(|b| b.cache(0))
        .build()
        .unwrap();
    let mut m = chain(&set, &[100, 100]);
    let only = set.header_with(2048).unwrap();
    let short = m.make_contiguous(150, &set);
    assert!(matches!(
        short,
        Err(EditError::Alloc(AllocError::Exhausted { .. }))
    ));
    holds(&m, 200, &[100, 100]);
    let range = m.make_contiguous(201, &set);
    assert!(matches!(range, Err(EditError::Range(_))));
    holds(&m, 200, &[100, 100]);
    assert!(m.pullup(150, &set).is_err());
    drop(only);
    assert!(set.is_full());
}

#[test]
fn bsd_pullup_of_nothing_is_nothing() {
    let set = set();
    for lens in [&[][..], &[0], &[0, 0, 5], &[5]] {
        let lens = if lens.is_empty() { &[0][..] } else { lens };
        let m = chain(&set, lens).pullup(0, &set).unwrap();
        holds(&m, lens.iter().sum(), lens);
    }
}

#[test]
fn bsd_prepend_of_nothing_and_of_too_much_change_nothing() {
    let set = set();
    for lens in [&[0][..], &[10], &[1000, 10]] {
        let mut m = chain(&set, lens);
        assert!(m.prepend_with(0, &set).unwrap().is_empty());
        for n in [65_537, usize::MAX] {
            assert!(matches!(
                m.prepend_with(n, &set),
                Err(AllocError::NoClass { .. })
            ));
        }
        holds(&m, lens.iter().sum(), lens);
    }
    assert!(set.is_full());
}

#[test]
fn bsd_align_is_for_empty_mbufs_that_may_be_written() {
    let set = set();
    for (capacity, len, lead) in [
        (MHLEN, 1, 136),
        (2048, 2048, 0),
        (2048, 60, 1984),
        (2050, 7, 2040),
    ] {
        let mut m = set.header_with(capacity).unwrap();
        m.align_end(len).unwrap();
        assert_eq!((m.first().lead(), lead % 8), (lead, 0));
        m.append(len).unwrap();
    }
    let mut full = chain(&set, &[3]);
    let (asked, len) = (136, 3);
    assert_eq!(full.align_end(3), Err(NoRoom::NotEmpty { asked, len }));
    let mut shared = chain(&set, &[2000]);
    let copy = shared.ref_copy(0, 5, &set).unwrap();
    shared.trim_front(2000).unwrap();
    let refused = shared.align_end(10);
    assert!(
        matches!(refused, Err(NoRoom::ReadOnly { refs: 2, .. })),
        "{refused:?}"
    );
    holds(&copy, 5, &[5]);
}

#[test]
fn bsd_devget_of_no_bytes_is_an_empty_packet() {
    let set = set();
    for lead in [0, 64, 3000] {
        let m = set.copy_in(b"", lead).unwrap();
        assert_eq!((m.pkt_len(), m.nsegs(), m.first().headroom()), (0, 1, lead));
    }
    assert!(set.copy_in(b"", usize::MAX).is_err());
    assert!(set.is_full(), "nothing leaks");
}

#[test]
fn bsd_calc_hdrlen_agrees_with_what_the_header_says() {
    let set = set();
    for lens in [&[0][..], &[1], &[0, 0, 7], &[100, 2000, 0, 60_000]] {
        let m = chain(&set, lens);
        assert_eq!(m.pkt_len(), m.segments().map(|s| s.len()).sum::<usize>());
        assert_eq!(m.nsegs(), m.segments().count());
        m.check().unwrap();
    }
}

#[test]
fn bsd_split_gives_the_tail_the_header_and_the_tags() {
    let area = PrivateArea {
        fields: 8,
        tags: 64,
    };
    let set = BufferSet::bsd_builder(16, 4).private(area).build().unwrap();
    for at in [0, 4, 10, 20, 30] {
        let mut m = chain(&set, &[10, 10, 10]);
        m.add_tag(7, b"seven").unwrap();
        m.private_mut()[0] = 9;
        m.set_vlan(Some(3));
        let tail = m.split(at, &set).unwrap();
        assert_eq!((m.pkt_len(), tail.pkt_len()), (at, 30 - at));
        for part in [&m, &tail] {
            part.check().unwrap();
            assert_eq!(part.tag(7).map(|tag| tag.data), Some(&b"seven"[..]), "{at}");
            assert_eq!((part.vlan(), part.private()[0]), (Some(3), 9));
        }
    }
}
