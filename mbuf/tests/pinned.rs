//! Pools whose rooms are in memory of the caller's: all that holds for other pools, and that every
//! room is where it was said to be.

#[path = "free.rs"]
mod free;

use mbuf::{BufferSet, CreateError, Mbuf, MbufPool, Packet, PinnedArea, Room, free_bulk};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const PINNED: bool = true;

const ROOM: Room = Room {
    header: 2048,
    plain: 2048,
    charge: 2176,
};

/// 128 mbufs of 2048 bytes in one area.
fn pool() -> MbufPool {
    MbufPool::pinned(ROOM, 2048, [vec![0; 128 * 2048]], |b| {
        b.capacity(128).cache(32)
    })
    .unwrap()
}

fn fresh(pool: &MbufPool) -> Mbuf {
    let mut m = pool.header().unwrap();
    m.set_lead(128).unwrap();
    m
}

#[test]
fn dpdk_b33_b2_b3_all_can_be_had_twice_and_are_fresh() {
    let pool = pool();
    for _ in 0..2 {
        let mut all: Vec<Mbuf> = (0..128).map(|_| pool.header().unwrap()).collect();
        assert!(pool.header().is_err());
        for m in &mut all {
            assert_eq!((m.first().lead(), m.pkt_len(), m.nsegs()), (0, 0, 1));
            assert_eq!((m.capacity(), m.first().tailroom()), (2048, 2048));
            assert_eq!(m.first().storage(), mbuf::Storage::Inline);
            m.set_lead(192).unwrap();
            m.append(30).unwrap().fill(7);
        }
    }
    assert!(pool.raw().is_full());
}

#[test]
fn dpdk_b33_b4_to_b9_edits() {
    let pool = pool();
    for _ in 0..2 {
        let mut m = fresh(&pool);
        m.append(1464).unwrap().fill(0xff);
        assert!(m.append(2048 - 128 - 1464 + 1).is_err());
        m.append(50).unwrap().fill(0xff);
        m.trim_back(50).unwrap();
        assert!(m.trim_back(1465).is_err());
        let at = m.first().data().as_ptr();
        m.prepend(20).unwrap().fill(1);
        m.prepend(30).unwrap().fill(1);
        assert_eq!(
            (m.first().data().as_ptr().addr(), m.pkt_len()),
            (at.addr() - 50, 1514)
        );
        assert!(m.prepend(128 - 50 + 1).is_err());
        m.trim_front(50).unwrap();
        assert_eq!((m.first().data().as_ptr(), m.pkt_len()), (at, 1464));
        assert!(m.trim_front(1465).is_err());
        assert!(m.to_vec().iter().all(|&b| b == 0xff));
        m.check().unwrap();
    }
}

#[test]
fn dpdk_b33_b10_segment_by_segment() {
    let pool = pool();
    let mut m = pool.header().unwrap();
    for _ in 1..128 {
        m.cat(pool.plain().unwrap());
    }
    let mut rest = Some(m);
    while let Some(m) = rest {
        let (first, others) = m.split_first();
        drop(first);
        rest = others;
    }
    assert!(pool.raw().is_full());
}

/// Clones come from a pool of the common kind.
#[test]
fn dpdk_b33_b11_clones_share_the_pinned_bytes() {
    let pool = pool();
    let set = BufferSet::standard(64, 8).unwrap();
    let mut m = fresh(&pool);
    m.append(4).unwrap().copy_from_slice(b"abcd");
    let m = m.into_shared();
    let mut clone = set.header().unwrap();
    clone.attach_shared(&m, 0).unwrap();
    assert_eq!((clone.to_vec(), m.owners()), (b"abcd".to_vec(), 2));
    let copy = clone.ref_copy(1, 2, &set).unwrap();
    assert_eq!(copy.first().data().as_ptr(), m.first().data()[1..].as_ptr());
    drop((m, clone));
    assert_eq!((copy.to_vec(), pool.raw().in_use()), (b"bc".to_vec(), 1));
    drop(copy);
    assert!(pool.raw().is_full() && set.is_full());
}

#[test]
fn dpdk_b33_b12_b29_to_b31_copies_and_reads_over_chains() {
    let pool = pool();
    let set = BufferSet::standard(64, 8).unwrap();
    for lens in [
        &[100usize, 100, 100][..],
        &[1024, 0, 100],
        &[1464, 50, 256, 800, 10],
    ] {
        let mut count = 0u8;
        let mut packet: Option<Mbuf> = None;
        for &len in lens {
            let mut m = fresh(&pool);
            for byte in m.append(len).unwrap() {
                *byte = count;
                count = count.wrapping_add(1);
            }
            match &mut packet {
                None => packet = Some(m),
                Some(p) => p.cat(m),
            }
        }
        let packet = packet.unwrap();
        packet.check().unwrap();
        let total = packet.pkt_len();
        let expected: Vec<u8> = (0..total).map(|at| at as u8).collect();
        assert_eq!(packet.to_vec(), expected);
        let whole = packet.byte_copy(0, total, 14, &set).unwrap();
        assert_eq!((whole.nsegs(), whole.to_vec()), (1, expected.clone()));
        let by_ref = packet.ref_copy(7, total - 7, &set).unwrap();
        assert_eq!(by_ref.to_vec(), expected[7..]);
        let mut out = [0; 60];
        packet.copy_to(99, &mut out).unwrap();
        assert_eq!(out, expected[99..159]);
        assert!(packet.copy_to(total - 59, &mut out).is_err());
        assert!(packet.copy_to(usize::MAX, &mut out).is_err());
        assert_eq!(packet.byte_copy(total, 0, 0, &set).unwrap().pkt_len(), 0);
        assert!(packet.byte_copy(total + 1, 0, 0, &set).is_err());
    }
    assert!(pool.raw().is_full() && set.is_full());
}

#[test]
fn dpdk_b33_b27_b28_bulk_allocations() {
    let pool = pool();
    for n in [0, 31, 33, 48, 64, 63, 65, 32] {
        let mut all: Vec<Option<Mbuf>> = (0..n).map(|_| None).collect();
        pool.header_bulk(&mut all).unwrap();
        free_bulk(&mut all);
    }
    for n in [129, 1024] {
        let mut all: Vec<Option<Mbuf>> = (0..n).map(|_| None).collect();
        assert!(pool.header_bulk(&mut all).is_err());
    }
    assert!(pool.raw().is_full());
}

#[test]
fn a_cluster_or_external_storage_comes_and_goes_and_the_room_is_back() {
    let pool = pool();
    let set = BufferSet::standard(64, 8).unwrap();
    let mut m = pool.plain().unwrap();
    let own = m.first().data().as_ptr();
    for _ in 0..2 {
        set.attach_cluster(&mut m, 4096).unwrap();
        assert_ne!(m.first().data().as_ptr(), own);
        assert_eq!(m.first().charge(), 2176 + 4096);
        assert!(m.detach());
        m.attach(vec![1; 9000]).unwrap();
        assert_eq!(m.first().charge(), 2176 + 9000);
        assert!(m.detach());
        assert_eq!((m.first().data().as_ptr(), m.capacity()), (own, 2048));
        assert_eq!(m.first().charge(), 2176);
    }
    m.attach(vec![1; 9000]).unwrap();
    drop(m);
    let all: Vec<Mbuf> = (0..128).map(|_| pool.header().unwrap()).collect();
    assert!(all.iter().any(|m| m.first().data().as_ptr() == own));
}

/// 10000 bytes hold three of 3000; canaries behind each area stay untouched.
#[test]
fn fault_b5_every_room_lies_wholly_in_one_area() {
    const CANARY: u8 = 0xcc;
    let mut memory = [vec![CANARY; 10_100], vec![CANARY; 6_000]];
    let [one, two] = memory
        .each_mut()
        .map(|m| NonNull::from(&mut m[..]).cast::<u8>());
    let areas = || {
        // SAFETY: the vectors live to the end of the test, and are not looked at while a pool lives.
        unsafe {
            [
                PinnedArea::from_raw_parts(one, 10_000, ()),
                PinnedArea::from_raw_parts(two, 6_000, ()),
            ]
        }
    };
    let room = Room {
        header: 3000,
        plain: 2000,
        charge: 3128,
    };
    let make = |n| MbufPool::pinned(room, 3000, areas(), |b| b.capacity(n).cache(0));
    let pool = make(4).unwrap();
    let mut all: Vec<Mbuf> = (0..4).map(|_| pool.header().unwrap()).collect();
    let mut offsets = Vec::new();
    for m in &mut all {
        m.append(3000).unwrap().fill(1);
        let at = m.first().data().as_ptr().addr();
        let from = if at >= one.as_ptr().addr() && at < one.as_ptr().addr() + 10_000 {
            one
        } else {
            two
        };
        offsets.push((from == two, at - from.as_ptr().addr()));
    }
    offsets.sort_unstable();
    assert_eq!(
        offsets,
        [(false, 0), (false, 3000), (false, 6000), (true, 0)]
    );
    drop((all, pool));
    // SAFETY: the pool is gone.
    let bytes = |at: NonNull<u8>, len| unsafe { std::slice::from_raw_parts(at.as_ptr(), len) };
    assert!(bytes(one, 10_100)[9_000..].iter().all(|&b| b == CANARY));
    assert!(bytes(two, 6_000)[3_000..].iter().all(|&b| b == CANARY));
    assert!(make(5).is_ok());
    assert!(matches!(
        make(6),
        Err(CreateError::TooFewSlices {
            needed: 6,
            have: 5,
            slice: 3000
        })
    ));
    assert!(matches!(
        MbufPool::pinned(room, 2999, areas(), |b| b.capacity(4)),
        Err(CreateError::SliceTooSmall {
            slice: 2999,
            room: 3000
        })
    ));
    let bad = Room { plain: 0, ..room };
    assert!(matches!(
        MbufPool::pinned(bad, 3000, areas(), |b| b.capacity(4)),
        Err(CreateError::Room { asked: 0, .. })
    ));
}

struct Counts(Arc<AtomicUsize>);

impl Drop for Counts {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_areas_owner_goes_with_the_last_mbuf_and_also_when_creation_fails() {
    let gone = Arc::new(AtomicUsize::new(0));
    let memory = NonNull::from(Box::leak(vec![0u8; 4 * 64].into_boxed_slice()));
    let area = || {
        // SAFETY: leaked until the end of the test, and used by one pool at a time.
        unsafe { PinnedArea::from_raw_parts(memory.cast(), 4 * 64, Counts(gone.clone())) }
    };
    let room = Room {
        header: 64,
        plain: 64,
        charge: 192,
    };
    let make = |n| MbufPool::pinned(room, 64, [area()], |b| b.capacity(n));
    assert!(make(5).is_err());
    assert_eq!(gone.load(Ordering::Relaxed), 1);
    assert!(make(0).is_err());
    assert_eq!(gone.load(Ordering::Relaxed), 2);
    let pool = make(4).unwrap();
    let mut m = pool.header().unwrap();
    drop(pool);
    m.append(64).unwrap().fill(3);
    assert_eq!(gone.load(Ordering::Relaxed), 2);
    std::thread::spawn(move || drop(m)).join().unwrap();
    assert_eq!(gone.load(Ordering::Relaxed), 3);
    // SAFETY: leaked above; the pools are gone.
    drop(unsafe { Box::from_raw(memory.as_ptr()) });
}
