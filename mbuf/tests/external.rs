//! External storage: who may write it, and that its owner is let go once, last, and in peace.

mod common;

use common::owner::{inside, times, with};
use common::uncached;
use mbuf::{AttachError, External, Mbuf, MbufPool, Packet, Room, SharedMbuf, Storage};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Raw memory whose callback counts.
fn raw(len: usize) -> (External, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let memory = NonNull::from(Box::leak(vec![0u8; len].into_boxed_slice()));
    let (address, counted) = (memory.cast::<u8>().expose_provenance().get(), calls.clone());
    let free = move || {
        let start = std::ptr::with_exposed_provenance_mut::<u8>(address);
        let whole = std::ptr::slice_from_raw_parts_mut(start, len);
        // SAFETY: the box that was leaked above.
        drop(unsafe { Box::from_raw(whole) });
        counted.fetch_add(1, Ordering::Relaxed);
    };
    // SAFETY: ours alone until the callback.
    let external = unsafe { External::from_raw_parts_mut(memory.cast(), len, free) };
    (external, calls)
}

#[test]
fn dpdk_b32_attach_clone_detach_and_the_callback_at_the_last() {
    let set = uncached();
    let (external, calls) = raw(1024);
    assert_eq!((external.len(), external.refs()), (1024, 1));
    let mut m = set.header().unwrap();
    m.attach_empty(external).unwrap();
    assert_eq!(
        m.first().storage(),
        Storage::External {
            len: 1024,
            writable: true
        }
    );
    assert_eq!((m.pkt_len(), m.first().tailroom()), (0, 1024));
    assert_eq!(m.first().storage_refs(), 1);
    m.append(100).unwrap().fill(3);
    let mut clone = m.ref_copy(0, 100, &set).unwrap();
    assert!(matches!(clone.first().storage(), Storage::External { .. }));
    assert_eq!((m.first().storage_refs(), times(&calls)), (2, 0));
    let third = m.first().external().unwrap();
    assert_eq!(third.refs(), 3);
    drop(third);
    assert!(m.detach());
    assert_eq!((clone.first().storage_refs(), times(&calls)), (1, 0));
    assert_eq!((m.pkt_len(), m.first().storage()), (0, Storage::Inline));
    assert_eq!(m.capacity(), set.header_room());
    assert_eq!(m.first().charge(), set.room().charge);
    m.check().unwrap();
    assert_eq!(clone.to_vec(), [3; 100]);
    assert!(clone.detach());
    assert_eq!(times(&calls), 1, "exactly then");
    assert!(!clone.detach() && !m.detach());
    drop((m, clone));
    assert!(set.is_full());
    assert_eq!(times(&calls), 1);
}

#[test]
fn dpdk_b13_indirect_mbufs_have_the_bytes_of_another_pools_mbuf() {
    let room = |bytes| Room {
        header: bytes,
        plain: bytes,
        charge: 192,
    };
    let a = MbufPool::new(room(2048), |b| b.capacity(4)).unwrap();
    let b = MbufPool::new(room(1), |b| b.capacity(4)).unwrap();
    let mut m = a.header().unwrap();
    m.set_lead(128).unwrap();
    m.append(4).unwrap().copy_from_slice(&[1, 2, 3, 4]);
    let m = m.into_shared();
    let mut first = b.header().unwrap();
    let own = first.first().data().as_ptr();
    first.attach_shared(&m, 0).unwrap();
    assert_eq!(first.first().data().as_ptr(), m.first().data().as_ptr());
    assert_eq!((first.first().lead(), m.owners()), (128, 2));
    assert_eq!(first.first().headroom(), 0, "and yet read-only");
    // Attached to what is attached: to the same bytes, not one behind the other.
    let first = first.into_shared();
    let mut second = b.header().unwrap();
    second.attach_shared(&first, 0).unwrap();
    assert_eq!(second.first().data().as_ptr(), m.first().data().as_ptr());
    assert_eq!((first.owners(), second.first().storage_refs()), (1, 2));
    let mut first = first.try_into_unique().unwrap();
    assert!(first.detach());
    assert_eq!(first.first().data().as_ptr(), own);
    assert_eq!((second.first().storage_refs(), m.owners()), (1, 2));
    let m = m.try_into_unique().unwrap_err();
    assert!(second.detach());
    assert_eq!(m.owners(), 1);
    let mut m = m.try_into_unique().unwrap();
    m.data_mut().unwrap()[0] = 9;
    drop((m, first, second));
    assert!(a.raw().is_full() && b.raw().is_full());
}

#[test]
fn dpdk_b11_a_clone_of_a_chain_shares_every_segments_bytes() {
    let set = uncached();
    let mut m = set.header().unwrap();
    m.append(4).unwrap().fill(1);
    let mut tail = set.plain_with(2048).unwrap();
    tail.append(4).unwrap().fill(2);
    m.cat(tail);
    let m = m.into_shared();
    let clone_of = |m: &SharedMbuf| {
        let mut clone = set.header().unwrap();
        clone.attach_shared(m, 0).unwrap();
        let mut tail = set.plain().unwrap();
        tail.attach_shared(m, 1).unwrap();
        clone.cat(tail);
        clone
    };
    let clone = clone_of(&m);
    assert_eq!(clone.to_vec(), m.to_vec());
    let clone = clone.into_shared();
    let second = clone_of(&clone);
    assert_eq!(second.to_vec(), m.to_vec());
    let refs = |p: &Mbuf| p.segments().map(|s| s.storage_refs()).collect::<Vec<_>>();
    assert_eq!((refs(&second), m.owners()), (vec![2, 3], 2));
    let mut more = set.header().unwrap();
    assert_eq!(
        more.attach_shared(&m, 2),
        Err(AttachError::NoSegment { asked: 2, have: 2 })
    );
    drop((m, clone));
    assert_eq!(second.to_vec(), [1, 1, 1, 1, 2, 2, 2, 2]);
    drop((second, more));
    assert!(set.is_full());
}

#[test]
fn only_memory_that_nobody_else_can_see_is_writable() {
    let set = uncached();
    static STATIC: [u8; 3] = [7; 3];
    let writable: [External; 2] = [vec![7; 3].into(), vec![7; 3].into_boxed_slice().into()];
    for storage in writable {
        let mut m = with(&set, storage);
        assert_eq!(m.to_vec(), [7; 3]);
        m.data_mut().unwrap().fill(8);
        m.trim_front(1).unwrap();
        m.prepend(1).unwrap()[0] = 9;
        assert_eq!(m.to_vec(), [9, 8, 8]);
    }
    let alone: Arc<[u8]> = Arc::from([7u8; 3]);
    let read_only: [External; 4] = [
        alone.into(),
        STATIC[..].into(),
        External::from_owner(vec![7; 3]),
        External::from_owner("\x07\x07\x07"),
    ];
    for storage in read_only {
        let mut m = with(&set, storage);
        assert_eq!(m.to_vec(), [7; 3]);
        assert!(!m.first().is_writable() && !m.first().is_shared());
        assert!(m.data_mut().is_none());
        m.trim_front(1).unwrap();
        m.trim_back(1).unwrap();
        assert_eq!((m.first().headroom(), m.first().tailroom()), (0, 0));
        assert!(m.prepend(1).is_err() && m.append(1).is_err());
        m.trim_back(1).unwrap();
        assert!(m.set_lead(1).is_err());
        assert_eq!(m.first().charge(), set.room().charge + 3);
    }
    assert!(set.is_full());
}

#[test]
fn shared_storage_is_read_only_until_one_is_left() {
    let set = uncached();
    let mut m = with(&set, vec![1, 2, 3]);
    let mut copy = m.ref_copy(1, 2, &set).unwrap();
    assert!(m.data_mut().is_none() && copy.data_mut().is_none());
    assert_eq!((m.first().headroom(), m.first().tailroom()), (0, 0));
    drop(m);
    copy.data_mut().unwrap().fill(9);
    copy.prepend(1).unwrap()[0] = 8;
    assert_eq!(copy.to_vec(), [8, 9, 9]);
    let handle = copy.first().external().unwrap();
    assert!(copy.data_mut().is_none(), "a handle is a reference too");
    assert_eq!(handle.data(), [8, 9, 9]);
    drop(handle);
    assert!(copy.data_mut().is_some());
}

#[test]
fn a_failing_attach_leaves_the_mbuf_as_it_was_and_lets_the_storage_go() {
    let set = uncached();
    let mut with_data = set.header().unwrap();
    with_data.append(2).unwrap().fill(5);
    let with_cluster = set.header_with(2048).unwrap();
    let with_external = with(&set, Vec::new());
    for (mut m, capacity) in [(with_data, 144), (with_cluster, 2048), (with_external, 0)] {
        let (before, storage) = (m.to_vec(), m.first().storage());
        let (external, dropped) = inside();
        let len = before.len();
        assert_eq!(
            m.attach(external),
            Err(AttachError::Occupied { len, capacity })
        );
        assert_eq!(times(&dropped), 1);
        assert_eq!((m.to_vec(), m.first().storage()), (before, storage));
        let other = set.header().unwrap().into_shared();
        assert!(m.attach_shared(&other, 0).is_err());
        assert_eq!(other.owners(), 1);
        m.check().unwrap();
    }
    let too_long = (1 << 30) + 1;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let free = move || {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    // Address space only.
    let zeroes = Box::leak(vec![0u8; too_long].into_boxed_slice());
    let at = NonNull::from(&mut *zeroes).cast();
    // SAFETY: ours, and freed below.
    let external = unsafe { External::from_raw_parts(at, too_long, free) };
    let mut m = set.header().unwrap();
    assert_eq!(
        m.attach(external),
        Err(AttachError::TooLong {
            len: too_long,
            max: 1 << 30
        })
    );
    assert_eq!((times(&calls), m.capacity()), (1, 144));
    // SAFETY: leaked above, and no longer referred to.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(at.as_ptr(), too_long)) });
    drop(m);
    assert!(set.is_full());
}
