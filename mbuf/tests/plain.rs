//! Bursts that are plain by type: what comes in, what goes out, and that nothing odd stays in.

use mbuf::{AllocError, BufferSet, Buffers, Mbuf, Packet, PlainBurst, PlainRing};
use std::collections::VecDeque;

fn set() -> BufferSet {
    BufferSet::standard(300, 40).unwrap()
}

#[test]
fn fault_v1_bursts_of_any_length_are_filled_and_freed() {
    let set = BufferSet::standard(2000, 8).unwrap();
    let mut burst = PlainBurst::<600>::new();
    for n in [0, 1, 2, 7, 8, 31, 255, 256, 257, 600] {
        burst.fill(set.mbuf_pool(), n).unwrap();
        assert_eq!((burst.len(), set.in_use()), (n, n));
        for (index, mut packet) in burst.iter_mut().enumerate() {
            packet
                .append(8)
                .unwrap()
                .copy_from_slice(&index.to_le_bytes());
        }
        for (index, packet) in burst.iter().enumerate() {
            assert_eq!(packet.to_vec(), index.to_le_bytes());
            packet.check().unwrap();
        }
    }
    // Filled again while full: what was there went back first, also where fewer are asked for.
    burst.fill(set.mbuf_pool(), 3).unwrap();
    assert_eq!((burst.len(), set.in_use()), (3, 3));
    burst.fill(set.mbuf_pool(), 600).unwrap();
    burst.fill(set.mbuf_pool(), 600).unwrap();
    assert_eq!(set.in_use(), 600);
    assert!(burst.iter().all(|packet| packet.pkt_len() == 0));
    burst.clear();
    assert!(set.is_full() && burst.is_empty() && burst.pool().is_none());
}

#[test]
fn a_fill_that_fails_takes_nothing() {
    let set = set();
    let mut burst = PlainBurst::<400>::new();
    burst.fill(set.mbuf_pool(), 10).unwrap();
    let error = burst.fill(set.mbuf_pool(), 401).unwrap_err();
    assert_eq!(
        error,
        AllocError::BurstTooLong {
            asked: 401,
            room: 400
        }
    );
    assert_eq!(burst.len(), 10, "nothing changed");
    let error = burst.fill(set.mbuf_pool(), 301).unwrap_err();
    assert!(
        matches!(error, AllocError::Exhausted { of: Buffers::Mbufs, short } if short.asked == 301)
    );
    assert!(burst.is_empty() && set.is_full());
}

/// Returns why it does not belong into a plain burst, if it came back.
fn refused(burst: &mut PlainBurst<8>, packet: Mbuf) -> bool {
    burst.push(packet).is_err()
}

#[test]
fn only_plain_packets_of_the_bursts_pool_come_in() {
    let (one, two) = (set(), set());
    let mut burst = PlainBurst::<8>::new();
    assert!(!refused(&mut burst, one.header().unwrap()));
    assert!(!refused(&mut burst, one.plain().unwrap()));
    assert!(refused(&mut burst, two.header().unwrap()), "another pool's");
    let mut chained = one.header().unwrap();
    chained.cat(one.plain().unwrap());
    assert!(refused(&mut burst, chained));
    assert!(
        refused(&mut burst, one.header_with(2000).unwrap()),
        "with a cluster"
    );
    let shared = one.header().unwrap().into_shared();
    let second = shared.clone();
    let Err(shared) = shared.try_into_unique() else {
        unreachable!("there are two owners")
    };
    drop(second);
    assert!(!refused(&mut burst, shared.try_into_unique().unwrap()));
    // Cut back to one segment, it is plain again.
    let mut chained = one.header().unwrap();
    chained.cat(one.plain().unwrap());
    let (head, rest) = chained.split_first();
    assert!(!refused(&mut burst, head) && !refused(&mut burst, rest.unwrap()));
    assert_eq!(burst.len(), 5);
    for _ in 0..3 {
        assert!(!refused(&mut burst, one.header().unwrap()));
    }
    assert!(refused(&mut burst, one.header().unwrap()), "full");
    drop(burst);
    assert!(one.is_full() && two.is_full());
}

#[test]
fn an_empty_burst_takes_packets_of_any_pool() {
    let (one, two) = (set(), set());
    let mut burst = PlainBurst::<8>::new();
    burst.fill(one.mbuf_pool(), 1).unwrap();
    let first = burst.pop().unwrap();
    assert!(burst.pop().is_none());
    burst.push(two.header().unwrap()).unwrap();
    assert_eq!(burst.pool(), Some(two.mbuf_pool().raw().pool_ref()));
    assert!(burst.push(first).is_err());
    drop(burst);
    assert!(one.is_full() && two.is_full());
}

#[test]
fn packets_that_were_taken_out_are_ordinary_and_the_rest_stays_plain() {
    let set = set();
    let mut burst = PlainBurst::<8>::new();
    burst.fill(set.mbuf_pool(), 8).unwrap();
    for (index, mut packet) in burst.iter_mut().enumerate() {
        packet.set_user(index as u64);
        packet.set_lead(20).unwrap();
        packet.append(30).unwrap().fill(index as u8);
        packet.prepend(20).unwrap().fill(0xff);
        assert!(packet.prepend(1).is_err());
        packet.trim_front(5).unwrap();
        packet.trim_back(40).unwrap();
        assert!(packet.trim_back(6).is_err());
        assert_eq!(packet.data_mut(), [0xff; 5]);
    }
    let mut third = burst.swap_remove(3).unwrap();
    assert_eq!((third.user(), burst[3].user()), (3, 7));
    assert!(burst.swap_remove(7).is_none());
    third.cat(burst.pop().unwrap());
    let shared = third.into_shared();
    let clone = shared.clone();
    assert_eq!((burst.len(), set.in_use()), (6, 8));
    drop(burst);
    assert_eq!(set.in_use(), 2);
    drop((shared, clone));
    assert!(set.is_full());
}

#[test]
fn a_burst_outlives_the_pools_handles_and_frees_on_any_thread() {
    let set = set();
    let mut burst = PlainBurst::<32>::new();
    burst.fill(set.mbuf_pool(), 32).unwrap();
    let raw = set.mbuf_pool().raw().clone();
    std::thread::spawn(move || drop(burst)).join().unwrap();
    assert!(raw.is_full());
    let mut burst = PlainBurst::<32>::new();
    burst.fill(set.mbuf_pool(), 32).unwrap();
    drop((set, raw));
    assert_eq!(burst[31].pkt_len(), 0);
}

#[test]
fn a_ring_is_a_queue_of_what_bursts_hand_over_whatever_its_size() {
    let set = set();
    let mut rng = fastrand::Rng::with_seed(5);
    for capacity in [0, 1, 3, 16, 50] {
        let mut ring = PlainRing::new(capacity);
        let mut model = VecDeque::new();
        let mut burst = PlainBurst::<20>::new();
        for round in 0..200_u32 {
            let asked = rng.usize(0..=20);
            burst.fill(set.mbuf_pool(), asked).unwrap();
            for mut packet in burst.iter_mut() {
                packet
                    .append(4)
                    .unwrap()
                    .copy_from_slice(&round.to_le_bytes());
            }
            let taken = ring.push_burst(&mut burst).unwrap();
            assert_eq!(taken, asked.min(capacity - model.len()));
            assert_eq!(burst.len(), asked - taken);
            model.extend(std::iter::repeat_n(round, taken));
            let seen = (0..ring.len()).map(|at| ring.get(at).unwrap().to_vec());
            assert!(seen.eq(model.iter().map(|round| round.to_le_bytes().to_vec())));
            assert!(ring.get(ring.len()).is_none());
            let freed = ring.free_front(rng.usize(0..=capacity + 1));
            drop(model.drain(..freed));
            assert_eq!(
                (ring.len(), ring.room()),
                (model.len(), capacity - model.len())
            );
            assert_eq!(set.in_use(), ring.len() + burst.len());
        }
        drop((ring, burst));
        assert!(set.is_full(), "a ring of {capacity}");
    }
}

#[test]
fn a_ring_takes_no_burst_of_another_pool_until_it_is_empty() {
    let (ours, theirs) = (set(), set());
    let mut ring = PlainRing::new(8);
    let mut burst = PlainBurst::<4>::new();
    burst.fill(ours.mbuf_pool(), 3).unwrap();
    ring.push_burst(&mut burst).unwrap();
    burst.fill(theirs.mbuf_pool(), 4).unwrap();
    let refused = ring.push_burst(&mut burst).unwrap_err();
    assert_eq!((refused.asked, refused.held, burst.len()), (4, 3, 4));
    ring.free_front(3);
    assert!(ours.is_full());
    assert_eq!(ring.push_burst(&mut burst).unwrap(), 4);
    // The pool lives as long as the ring holds its packets.
    drop((theirs, burst));
    drop(ring);
}

#[test]
fn a_packet_taken_out_of_the_middle_leaves_the_others_in_order() {
    let set = set();
    let mut burst = PlainBurst::<5>::new();
    burst.fill(set.mbuf_pool(), 5).unwrap();
    for (at, mut packet) in burst.iter_mut().enumerate() {
        packet.append(1).unwrap()[0] = at as u8;
    }
    assert_eq!(burst.remove(1).unwrap().to_vec(), [1]);
    assert!(burst.remove(4).is_none());
    let left: Vec<u8> = burst.iter().map(|packet| packet.to_vec()[0]).collect();
    assert_eq!(left, [0, 2, 3, 4]);
}
