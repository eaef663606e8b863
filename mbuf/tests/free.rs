//! The four strategies against each other: same pools afterwards, every slot empty, and the
//! three cases of the idea they come from (nulls, mixed pools, shared).

mod common;

use common::{random_packet, uncached};
use fastrand::Rng;
use mbuf::{BufferSet, FreeStrategy, Mbuf, MbufPool, Packet, Room, TxMbuf, free_bulk_with};

const ROOM: Room = Room {
    header: 64,
    plain: 64,
    charge: 192,
};

/// `pinned.rs` runs all of this over pools whose rooms are in memory of the caller's.
#[allow(dead_code, reason = "as a module of that file it has another above it")]
const PINNED: bool = false;

fn pool(capacity: usize, cache: usize) -> MbufPool {
    let configure = |b: mempool::Builder| b.capacity(capacity).cache(cache);
    if crate::PINNED {
        let areas = [vec![0; 64 * capacity.div_ceil(2)], vec![0; 64 * capacity]];
        MbufPool::pinned(ROOM, 64, areas, configure).unwrap()
    } else {
        MbufPool::new(ROOM, configure).unwrap()
    }
}

fn available(pool: &MbufPool) -> usize {
    pool.raw().available()
}

/// Takes everything out of the pool: all there, each once.
#[track_caller]
fn holds_each_once(pool: &MbufPool) {
    let all: Vec<Mbuf> = std::iter::from_fn(|| pool.header().ok()).collect();
    let mut places: Vec<*const u8> = all.iter().map(|m| m.first().data().as_ptr()).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(
        (all.len(), places.len()),
        (pool.raw().capacity(), pool.raw().capacity())
    );
}

/// Caches off, small enough to overflow, and ample.
const CACHES: [usize; 4] = [0, 1, 8, 64];

#[test]
fn random_arrays_leave_the_pools_alike() {
    for seed in 0..400 {
        for how in FreeStrategy::ALL {
            let set = uncached();
            let other = pool(64, 16);
            let mut rng = Rng::with_seed(seed);
            let mut keep = Vec::new();
            let mut shared = Vec::new();
            let mut slots: Vec<Option<TxMbuf>> = (0..rng.usize(0..40))
                .map(|_| match rng.u8(0..5) {
                    0 => None,
                    1 => Some(other.header().unwrap().into()),
                    2 => {
                        let m = random_packet(&mut rng, &set, 3, &mut keep).0.into_shared();
                        shared.push(m.clone());
                        Some(m.into())
                    }
                    3 => Some(random_packet(&mut rng, &set, 4, &mut keep).0.into()),
                    _ => Some(set.header().unwrap().into()),
                })
                .collect();
            free_bulk_with(how, &mut slots);
            assert!(slots.iter().all(Option::is_none), "{how}: a slot is left");
            assert_eq!(other.raw().in_use(), 0, "{how}, seed {seed}");
            let still: usize = shared.iter().map(Packet::nsegs).sum();
            let kept: usize = keep.iter().map(Packet::nsegs).sum();
            let mbufs = set.pools().next().unwrap().in_use();
            assert_eq!(mbufs, still + kept, "{how}, seed {seed}");
            for m in shared {
                assert_eq!(m.owners(), 1, "{how}, seed {seed}");
                m.check().unwrap();
            }
            drop(keep);
            assert!(set.is_full(), "{how}, seed {seed}: {} left", set.in_use());
            holds_each_once(&other);
        }
    }
}

#[test]
fn dpdk_b14_four_bursts_give_back_exact_counts() {
    for how in FreeStrategy::ALL {
        let (a, b) = (pool(128, 0), pool(128, 0));
        for p in [&a, &b] {
            let mut slots: [Option<Mbuf>; 128] = [const { None }; 128];
            p.header_bulk(&mut slots).unwrap();
            assert_eq!(available(p), 0);
            assert!(p.header().is_err());
            for (i, quarter) in slots.chunks_mut(32).enumerate() {
                free_bulk_with(how, quarter);
                assert_eq!(available(p), 32 * (i + 1), "{how}");
            }
        }
    }
}

#[test]
fn dpdk_b15_four_allocations_one_free() {
    for how in FreeStrategy::ALL {
        let p = pool(128, 0);
        let mut slots: [Option<Mbuf>; 128] = [const { None }; 128];
        for quarter in slots.chunks_mut(32) {
            p.header_bulk(quarter).unwrap();
        }
        free_bulk_with(how, &mut slots);
        assert_eq!(available(&p), 128, "{how}");
    }
}

fn chain_of(segments: usize, mut next: impl FnMut(usize) -> Mbuf) -> Mbuf {
    let mut head = next(0);
    for i in 1..segments {
        head.cat(next(i));
    }
    head
}

#[test]
fn dpdk_b16_one_packet_of_all_segments() {
    for how in FreeStrategy::ALL {
        let p = pool(128, 0);
        let mut slots = [Some(chain_of(128, |_| p.header().unwrap()))];
        assert_eq!(available(&p), 0);
        free_bulk_with(how, &mut slots);
        assert_eq!(available(&p), 128, "{how}");
    }
}

#[test]
fn dpdk_b17_chains_that_alternate_between_pools() {
    for how in FreeStrategy::ALL {
        let (a, b) = (pool(128, 0), pool(128, 0));
        let mut slots: Vec<Option<Mbuf>> = (0..16)
            .map(|_| {
                let pick = |i: usize| [&a, &b][i / 4 % 2];
                Some(chain_of(16, |i| pick(i).header().unwrap()))
            })
            .collect();
        free_bulk_with(how, &mut slots[..1]);
        assert_eq!((available(&a), available(&b)), (8, 8), "{how}");
        free_bulk_with(how, &mut slots[1..]);
        assert_eq!((available(&a), available(&b)), (128, 128), "{how}");
    }
}

#[test]
fn dpdk_b18_nulls_are_skipped() {
    for how in FreeStrategy::ALL {
        for cache in CACHES {
            let p = pool(64, cache);
            let mut slots: [Option<Mbuf>; 4] = [const { None }; 4];
            p.header_bulk(&mut slots).unwrap();
            let taken = slots[1].take();
            free_bulk_with(how, &mut slots);
            assert_eq!(p.raw().in_use(), 1, "{how}");
            drop(taken);
            assert!(p.raw().is_full(), "{how}");
        }
    }
}

#[test]
fn dpdk_b19_alternating_pools() {
    for how in FreeStrategy::ALL {
        for cache in CACHES {
            let pools = [pool(64, cache), pool(64, cache), pool(64, cache)];
            for mix in [1, 2, 3] {
                let mut slots: Vec<_> = (0..48)
                    .map(|i| Some(pools[i % mix].header().unwrap()))
                    .collect();
                free_bulk_with(how, &mut slots);
                assert!(pools.iter().all(|p| p.raw().is_full()), "{how} of {mix}");
            }
        }
    }
}

#[test]
fn dpdk_b20_a_shared_one_keeps_one_reference() {
    for how in FreeStrategy::ALL {
        for cache in CACHES {
            let p = pool(64, cache);
            let shared = p.header().unwrap().into_shared();
            let mut slots: [Option<TxMbuf>; 4] = [
                Some(p.header().unwrap().into()),
                Some(shared.clone().into()),
                Some(p.header().unwrap().into()),
                Some(p.header().unwrap().into()),
            ];
            free_bulk_with(how, &mut slots);
            assert_eq!((shared.owners(), p.raw().in_use()), (1, 1), "{how}");
            drop(shared);
            assert!(p.raw().is_full(), "{how}");
        }
    }
}

#[test]
fn arrays_of_shared_packets_only_leave_every_packet_alive() {
    for how in FreeStrategy::ALL {
        for cache in CACHES {
            for n in [1, 2, 7, 8, 9, 40] {
                let p = pool(64, cache);
                let owners: Vec<_> = (0..n).map(|_| p.header().unwrap().into_shared()).collect();
                let mut slots: Vec<_> = owners.iter().cloned().map(Some).collect();
                free_bulk_with(how, &mut slots);
                assert!(owners.iter().all(|m| m.owners() == 1), "{how} {n}");
                assert_eq!(p.raw().in_use(), n, "{how} {n}");
                drop(owners);
                assert!(p.raw().is_full(), "{how} {n}");
            }
        }
    }
}

#[test]
fn one_packet_twice_in_one_array_is_freed_once() {
    for how in FreeStrategy::ALL {
        for cache in CACHES {
            let p = pool(64, cache);
            let m = p.header().unwrap().into_shared();
            let mut slots = [Some(m.clone()), None, Some(m)];
            free_bulk_with(how, &mut slots);
            assert_eq!(p.raw().available(), 64, "{how}");
        }
    }
}

/// `[a, a', null, shared, b (other pool), chain of 3, a'']` in all 5040 orders.
#[test]
fn fault_g8_every_order_of_odd_packets() {
    for how in FreeStrategy::ALL {
        let (a, b) = (pool(64, 4), pool(64, 4));
        let mut order = [0, 1, 2, 3, 4, 5, 6];
        permute(&mut order, 0, &mut |order| {
            let shared = a.header().unwrap().into_shared();
            let mut slots: Vec<Option<TxMbuf>> = order
                .iter()
                .map(|kind| match kind {
                    2 => None,
                    3 => Some(shared.clone().into()),
                    4 => Some(b.header().unwrap().into()),
                    5 => Some(chain_of(3, |_| a.header().unwrap()).into()),
                    _ => Some(a.header().unwrap().into()),
                })
                .collect();
            free_bulk_with(how, &mut slots);
            assert_eq!(
                (shared.owners(), a.raw().in_use()),
                (1, 1),
                "{how} {order:?}"
            );
            assert_eq!(b.raw().in_use(), 0, "{how} {order:?}");
        });
        assert!(a.raw().is_full() && b.raw().is_full());
        holds_each_once(&a);
        holds_each_once(&b);
    }
}

fn permute(order: &mut [u8; 7], at: usize, run: &mut impl FnMut(&[u8; 7])) {
    if at == order.len() {
        return run(order);
    }
    for i in at..order.len() {
        order.swap(at, i);
        permute(order, at + 1, run);
        order.swap(at, i);
    }
}

#[test]
fn fault_v1_fault_v5_burst_sizes_around_every_boundary() {
    for how in FreeStrategy::ALL {
        for cache in [0, 64, 512] {
            let p = pool(2048, cache);
            for n in [
                0, 1, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 600, 1024, 2048,
            ] {
                let mut slots: Vec<Option<Mbuf>> = (0..n).map(|_| None).collect();
                p.header_bulk(&mut slots).unwrap();
                free_bulk_with(how, &mut slots);
                assert!(p.raw().is_full(), "{how}, cache {cache}, burst {n}");
            }
        }
    }
}

#[test]
fn fault_v3_alternating_pools_of_any_length() {
    for how in FreeStrategy::ALL {
        let (a, b) = (pool(600, 32), pool(600, 32));
        for n in 1..=600 {
            let pick = |i: usize| [&a, &b][i % 2];
            let mut slots: Vec<_> = (0..n).map(|i| Some(pick(i).header().unwrap())).collect();
            free_bulk_with(how, &mut slots);
            assert!(a.raw().is_full() && b.raw().is_full(), "{how} {n}");
        }
    }
}

#[test]
fn dpdk_b2_all_can_be_had_then_none_then_all_again() {
    let p = pool(128, 32);
    for _ in 0..2 {
        let all: Vec<_> = (0..128).map(|_| p.header().unwrap()).collect();
        assert!(p.header().is_err());
        drop(all);
    }
    assert!(p.raw().is_full());
}

#[test]
fn dpdk_b3_fields_are_fresh_after_reuse() {
    let set = BufferSet::bsd(16, 4).unwrap();
    for _ in 0..3 {
        let mut all: Vec<_> = (0..16).map(|_| set.header().unwrap()).collect();
        for m in &mut all {
            assert_eq!((m.first().lead(), m.pkt_len(), m.nsegs()), (0, 0, 1));
            assert_eq!((m.offload(), m.user()), (Default::default(), 0));
            m.set_lead(64).unwrap();
            m.append(30).unwrap().fill(7);
            m.set_user(9);
        }
    }
}

#[test]
fn dpdk_b28_too_many_fail_and_change_nothing() {
    let p = pool(128, 32);
    for n in [129, 1024] {
        let mut slots: Vec<Option<Mbuf>> = (0..n).map(|_| None).collect();
        assert!(p.header_bulk(&mut slots).is_err());
        assert!(slots.iter().all(Option::is_none));
        assert!(p.raw().is_full());
    }
}

#[test]
fn bulk_allocation_frees_what_was_in_the_way() {
    let p = pool(64, 8);
    let mut slots = [Some(p.header().unwrap()), None, Some(p.header().unwrap())];
    p.header_bulk(&mut slots).unwrap();
    assert_eq!(p.raw().in_use(), 3);
}
