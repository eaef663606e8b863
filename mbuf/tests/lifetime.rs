//! Who keeps whom alive: packets and pools, across threads, in any order of going.

mod common;

use common::{random_packet, uncached};
use fastrand::Rng;
use mbuf::{BufferSet, FreeStrategy, MbufPool, Packet, Room, TxMbuf, free_bulk_with};

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
