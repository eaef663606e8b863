//! Who keeps whom alive: packets and pools, across threads, in any order of going.

mod common;

use common::{random_packet, uncached};
use fastrand::Rng;
use mbuf::{BufferSet, External, FreeStrategy, MbufPool, Packet, Room, TxMbuf, free_bulk_with};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn packets_outlive_every_handle_of_their_pools() {
    let set = BufferSet::standard(32, 4).unwrap();
    let mut m = set.header_with(3000).unwrap();
    m.append(3).unwrap().copy_from_slice(b"abc");
    let copy = m.ref_copy(0, 3, &set).unwrap();
    drop(set);
    drop(m);
    assert_eq!(copy.to_vec(), b"abc");
}

/// The last reference to a packet of a pool without handles is dropped by another thread while
/// this one has the pool's cache open: the pool must not go away under it.
#[test]
fn a_pool_may_end_while_a_bulk_free_of_it_is_under_way() {
    for how in FreeStrategy::ALL {
        for _ in 0..300 {
            let room = Room {
                header: 64,
                plain: 64,
                charge: 192,
            };
            let pool = MbufPool::new(room, |b| b.capacity(4).cache(4)).unwrap();
            let a = pool.header().unwrap().into_shared();
            let b = a.clone();
            drop(pool);
            let other = std::thread::spawn(move || drop(b));
            let mut slots = [Some(TxMbuf::from(a)), None];
            free_bulk_with(how, &mut slots);
            other.join().unwrap();
        }
    }
}

#[test]
fn dpdk_b21_shared_by_many_threads_freed_once() {
    let set = uncached();
    for round in 0..50u64 {
        let mut rng = Rng::with_seed(round);
        let originals: Vec<_> = (0..32)
            .map(|_| {
                random_packet(&mut rng, &set, 3, &mut Vec::new())
                    .0
                    .into_shared()
            })
            .collect();
        let threads: Vec<_> = FreeStrategy::ALL
            .into_iter()
            .map(|how| {
                let mut slots: Vec<_> = originals.iter().cloned().map(Some).collect();
                std::thread::spawn(move || free_bulk_with(how, &mut slots))
            })
            .collect();
        drop(originals);
        for t in threads {
            t.join().unwrap();
        }
        assert!(set.is_full(), "round {round}: {} left", set.in_use());
    }
}

#[test]
fn a_cluster_is_writable_again_when_its_other_holder_is_gone() {
    let set = uncached();
    let mut m = set.header_with(2048).unwrap();
    m.append(4).unwrap().copy_from_slice(b"mine");
    let copy = m.ref_copy(1, 2, &set).unwrap();
    assert!(m.data_mut().is_none());
    assert_eq!((m.first().headroom(), m.first().tailroom()), (0, 0));
    assert!(m.append(1).is_err() && m.prepend(1).is_err());
    std::thread::spawn(move || drop(copy)).join().unwrap();
    m.data_mut().unwrap().copy_from_slice(b"ours");
    assert_eq!(m.to_vec(), b"ours");
}

#[test]
fn shared_packet_becomes_exclusive_at_one_owner_only() {
    let set = uncached();
    let a = set.header().unwrap().into_shared();
    let b = a.clone();
    let a = a.try_into_unique().unwrap_err();
    drop(b);
    let mut m = a.try_into_unique().unwrap();
    m.append(1).unwrap()[0] = 1;
    assert_eq!(m.to_vec(), [1]);
}

struct Counted([u8; 64], Arc<AtomicUsize>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn many_threads_share_and_free_one_piece_of_storage() {
    let set = BufferSet::bsd(1024, 8).unwrap();
    for how in FreeStrategy::ALL {
        let dropped = Arc::new(AtomicUsize::new(0));
        let external = External::from_owner(Counted([7; 64], dropped.clone()));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (set, external) = (set.clone(), external.clone());
                std::thread::spawn(move || {
                    for _ in 0..200 {
                        let mut m = set.header().unwrap();
                        m.attach(external.clone()).unwrap();
                        let copies = (0..8).map(|at| m.ref_copy(at, 8, &set).ok());
                        let mut burst: Vec<_> = copies.collect();
                        burst.push(Some(m));
                        assert!(burst.iter().flatten().all(|m| !m.first().is_writable()));
                        free_bulk_with(how, &mut burst);
                    }
                })
            })
            .collect();
        drop(external);
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
        assert!(set.is_full());
    }
}

/// What one thread wrote while it was alone is seen by the next that is.
#[test]
fn writers_take_turns_across_threads() {
    let set = BufferSet::bsd(64, 8).unwrap();
    let mut m = set.header().unwrap();
    m.attach(vec![0; 8]).unwrap();
    for turn in 1..200u8 {
        let copy = m.ref_copy(0, 8, &set).unwrap();
        let reader = std::thread::spawn(move || drop((copy.to_vec(), copy)));
        while !m.first().is_writable() {
            std::hint::spin_loop();
        }
        m.data_mut().unwrap().fill(turn);
        reader.join().unwrap();
    }
    assert_eq!(m.to_vec(), [199; 8]);
}

/// One thread asks and frees while two others free: always wiped, freed once, and the marks of the
/// other mbufs are their own.
#[test]
fn fault_c7_threads_share_a_cluster_and_one_asks() {
    let set = BufferSet::builder(64)
        .class(2048, 1)
        .configure(|b| b.cache(0))
        .build()
        .unwrap();
    for round in 0..500 {
        let mut a = set.header_with(2048).unwrap();
        a.append(2048).unwrap().fill(0xa5);
        let (b, c) = (a.ref_copy(0, 2048, &set), a.ref_copy(9, 9, &set));
        let (b, c) = (b.unwrap(), c.unwrap());
        let asks = std::thread::spawn(move || {
            a.wipe_on_free();
            drop(a);
        });
        let frees = std::thread::spawn(move || drop(b));
        drop(c);
        asks.join().unwrap();
        frees.join().unwrap();
        assert!(set.is_full(), "round {round}");
        let mut cluster = set.header_with(2048).unwrap();
        let cluster = cluster.append(2048).unwrap();
        assert!(cluster.iter().all(|&b| b == 0), "round {round}");
    }
}
