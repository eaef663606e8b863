//! Lists and bounded queues of packets.

mod common;

use common::uncached;
use fastrand::Rng;
use mbuf::{BufferSet, LifeEvent, Mbuf, Packet, PacketList, PacketQueue, QueueStats};
use mempool::backend::FailSwitch;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A packet of `len` bytes that is told from others by its user word.
fn packet(set: &BufferSet, id: u64, len: usize) -> Mbuf {
    let mut m = set.header().unwrap();
    m.append(len).unwrap().fill(id as u8);
    m.set_user(id);
    m
}

fn ids(packets: impl IntoIterator<Item = Mbuf>) -> Vec<u64> {
    packets.into_iter().map(|m| m.user()).collect()
}

fn read_ids(list: &PacketList) -> Vec<u64> {
    list.iter().map(Packet::user).collect()
}

/// Two lists and random operations against two deques.
#[test]
fn bsd_ml_lists_are_those_of_a_model() {
    let set = uncached();
    let mut rng = Rng::with_seed(1);
    let mut lists = [PacketList::new(), PacketList::new()];
    let mut models: [VecDeque<(u64, usize)>; 2] = Default::default();
    for id in 0..20_000 {
        let one = rng.usize(0..2);
        let (list, model) = (&mut lists[one], &mut models[one]);
        match rng.u8(0..10) {
            0..4 if set.in_use() < 200 => {
                let len = rng.usize(0..100);
                list.enqueue(packet(&set, id, len));
                model.push_back((id, len));
            }
            0..7 => {
                let got = list.dequeue();
                assert_eq!(got.map(|m| m.user()), model.pop_front().map(|m| m.0));
            }
            7 => {
                let mut out = [const { None }; 5];
                out[1] = Some(packet(&set, u64::MAX, 0));
                let n = list.dequeue_bulk(&mut out);
                assert_eq!(n, model.len().min(4));
                assert_eq!(out[1].take().unwrap().user(), u64::MAX, "kept");
                let expected: Vec<_> = model.drain(..n).map(|m| m.0).collect();
                assert_eq!(ids(out.into_iter().flatten()), expected);
            }
            8 => {
                let [a, b] = &mut lists;
                a.append(b);
                let (a, b) = models.split_at_mut(1);
                a[0].append(&mut b[0]);
            }
            _ if rng.u8(..) < 10 => {
                assert_eq!(list.purge(), model.len());
                model.clear();
            }
            _ => {
                let mut taken = list.take();
                assert!(list.is_empty() && list.dequeue().is_none());
                list.append(&mut taken);
                assert!(taken.is_empty());
            }
        }
        for (list, model) in lists.iter().zip(&models) {
            let expected: Vec<_> = model.iter().map(|m| m.0).collect();
            assert_eq!(read_ids(list), expected);
            assert_eq!(
                (list.len(), list.is_empty()),
                (model.len(), model.is_empty())
            );
            assert_eq!(list.bytes(), model.iter().map(|m| m.1).sum::<usize>());
        }
    }
    drop(lists);
    assert!(set.is_full(), "a dropped list frees its packets");
}

#[test]
fn bsd_ml_enlist_empties_the_other_and_takes_no_order_away() {
    let set = uncached();
    let list = |range: std::ops::Range<u64>| -> PacketList {
        range.map(|id| packet(&set, id, 10)).collect()
    };
    let (mut a, mut b) = (list(0..3), list(3..5));
    a.append(&mut b);
    assert_eq!((a.len(), a.bytes(), b.len(), b.bytes()), (5, 50, 0, 0));
    b.append(&mut a);
    a.append(&mut PacketList::new());
    assert!(a.is_empty());
    assert_eq!(ids(b.take()), [0, 1, 2, 3, 4]);
    let mut half = list(0..100).into_iter();
    assert_eq!((half.next().unwrap().user(), half.len()), (0, 99));
    drop(half);
    assert!(set.is_full(), "what an iterator did not hand out is freed");
}

#[test]
fn bsd_ml_purge_frees_long_lists_of_chains_in_bulk() {
    let set = BufferSet::bsd_builder(1000, 200).build().unwrap();
    let mut list = PacketList::new();
    for id in 0..300 {
        let mut m = packet(&set, id, 20);
        (id % 3 == 0).then(|| m.cat(set.plain_with(100).unwrap()));
        list.enqueue(m);
    }
    assert_eq!(list.purge(), 300);
    assert!(list.is_empty() && set.is_full());
    assert_eq!(list.purge(), 0);
}

#[test]
fn bsd_mq_enqueue_drops_the_newest_and_counts_it() {
    let set = uncached();
    let queue = PacketQueue::new(3);
    let taken: Vec<bool> = (0..5)
        .map(|id| queue.enqueue(packet(&set, id, 7)))
        .collect();
    assert_eq!(taken, [true, true, true, false, false]);
    assert!(queue.is_full());
    let stats = QueueStats {
        len: 3,
        bytes: 21,
        limit: 3,
        drops: 2,
    };
    assert_eq!((queue.stats(), set.in_use()), (stats, 3));
    let back = queue.try_enqueue(packet(&set, 9, 0)).unwrap_err();
    assert_eq!(
        (back.user(), queue.drops()),
        (9, 2),
        "given back, not dropped"
    );
    assert_eq!(queue.dequeue().unwrap().user(), 0);
    queue.try_enqueue(back).unwrap();
    assert_eq!(ids(queue.delist()), [1, 2, 9]);
    assert!(queue.is_empty() && queue.dequeue().is_none());
}

#[test]
fn bsd_mq_push_drops_the_oldest_and_counts_it() {
    let set = uncached();
    let queue = PacketQueue::new(3);
    let kept: Vec<bool> = (0..5).map(|id| queue.push(packet(&set, id, 7))).collect();
    assert_eq!(kept, [true, true, true, false, false]);
    assert_eq!((queue.drops(), set.in_use()), (2, 3));
    assert_eq!(ids(queue.delist()), [2, 3, 4]);
    let closed = PacketQueue::new(0);
    assert!(!closed.push(packet(&set, 1, 1)) && !closed.enqueue(packet(&set, 1, 1)));
    assert_eq!((closed.len(), closed.drops(), set.in_use()), (0, 2, 0));
}

/// The rule is BSD's: what counts is the length before.
#[test]
fn bsd_mq_enlist_takes_all_below_the_limit_and_none_at_it() {
    let set = uncached();
    let list = |n: u64| -> PacketList { (0..n).map(|id| packet(&set, id, 1)).collect() };
    let queue = PacketQueue::new(4);
    let mut three = list(3);
    assert_eq!((queue.enlist(&mut three), three.len()), (0, 0));
    assert_eq!(queue.enlist(&mut list(10)), 0, "below it: all");
    assert_eq!((queue.len(), queue.drops()), (13, 0), "and above it then");
    let mut more = list(5);
    assert_eq!(queue.enlist(&mut more), 5, "at it or above: none");
    assert!(more.is_empty());
    assert_eq!((queue.len(), queue.drops(), set.in_use()), (13, 5, 13));
    assert!(!queue.enqueue(packet(&set, 1, 1)));
    assert!(!queue.push(packet(&set, 99, 1)), "one for one, still above");
    assert_eq!((queue.len(), queue.drops()), (13, 7));
    assert_eq!(queue.purge(), 13);
    assert_eq!((queue.drops(), set.in_use()), (7, 0), "a purge is no drop");
    assert_eq!(PacketQueue::new(0).enlist(&mut list(2)), 2);
    assert_eq!(queue.enlist(&mut PacketList::new()), 0);
}

#[test]
fn bsd_mq_set_maxlen_keeps_what_is_there() {
    let set = uncached();
    let queue = PacketQueue::new(5);
    (0..5).for_each(|id| assert!(queue.enqueue(packet(&set, id, 1))));
    queue.set_limit(2);
    assert_eq!((queue.len(), queue.is_full()), (5, true));
    assert!(!queue.enqueue(packet(&set, 9, 1)));
    (0..4).for_each(|_| drop(queue.dequeue()));
    assert!(queue.enqueue(packet(&set, 5, 1)) && !queue.enqueue(packet(&set, 6, 1)));
    queue.set_limit(3);
    assert!(queue.enqueue(packet(&set, 7, 1)));
    assert_eq!((ids(queue.delist()), queue.drops()), (vec![4, 5, 7], 2));
}

#[test]
fn queues_note_what_they_do_with_a_packet() {
    use LifeEvent::{Alloc, Dequeued, Dropped, Free, Queued};
    if !mempool::CHECKED {
        return;
    }
    let set = BufferSet::builder(1)
        .configure(|b| b.cache(0))
        .build()
        .unwrap();
    let (open, closed) = (PacketQueue::new(1), PacketQueue::new(0));
    open.enqueue(set.header().unwrap());
    let m = open.dequeue().unwrap();
    assert_eq!(m.history().collect::<Vec<_>>(), [Dequeued, Queued, Alloc]);
    closed.enqueue(m);
    let m = set.header().unwrap();
    let events: Vec<_> = m.history().take(3).collect();
    assert_eq!(events, [Alloc, Free, Dropped]);
    closed.enlist(&mut PacketList::from_iter([m]));
    let events: Vec<_> = set.header().unwrap().history().take(5).collect();
    assert_eq!(events, [Alloc, Free, Dequeued, Dropped, Queued]);
}

/// Producers by every way, consumers by every way: each packet comes out once or is counted.
#[test]
fn a_queue_between_threads_loses_nothing_that_it_does_not_count() {
    const EACH: u64 = 3000;
    let set = BufferSet::bsd_builder(600, 8).build().unwrap();
    let queue = PacketQueue::new(32);
    let (got, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let produce = |way: u64| {
        let mut rng = Rng::with_seed(way);
        let (mut made, mut refused) = (0, 0);
        while made < EACH {
            let Ok(m) = set.header() else {
                std::thread::yield_now();
                continue;
            };
            made += 1;
            match rng.u8(0..4) {
                0 => drop(queue.enqueue(m)),
                1 => drop(queue.push(m)),
                2 => refused += u64::from(queue.try_enqueue(m).is_err()),
                _ => drop(queue.enlist(&mut PacketList::from_iter([m]))),
            }
        }
        refused
    };
    let consume = |way: u64| loop {
        let last = done.load(Ordering::Acquire);
        let n = match way {
            0 => u64::from(queue.dequeue().is_some()),
            _ => queue.delist().len() as u64,
        };
        got.fetch_add(n, Ordering::Relaxed);
        if n == 0 && last {
            return;
        }
    };
    let refused: u64 = std::thread::scope(|scope| {
        let producers = [1, 2].map(|way| scope.spawn(move || produce(way)));
        let consumers = [0, 1].map(|way| scope.spawn(move || consume(way)));
        let refused = producers.map(|p| p.join().unwrap()).iter().sum();
        done.store(true, Ordering::Release);
        consumers.into_iter().for_each(|c| c.join().unwrap());
        refused
    });
    let out = got.load(Ordering::Relaxed) + queue.drops() + refused;
    assert_eq!((out, queue.len()), (2 * EACH, 0));
    assert!(set.is_full());
}

/// Queueing needs no buffers: with every allocation failing it goes on.
#[test]
fn lists_and_queues_allocate_no_buffer() {
    let switch = FailSwitch::new();
    let set = BufferSet::bsd_builder(64, 8)
        .fail_switch(&switch)
        .build()
        .unwrap();
    let packets: Vec<_> = (0..8).map(|id| packet(&set, id, 1)).collect();
    switch.fail_at(1);
    let queue = PacketQueue::new(4);
    for m in packets {
        queue.push(m);
    }
    let mut list = queue.delist();
    assert_eq!(read_ids(&list), [4, 5, 6, 7]);
    assert_eq!(queue.enlist(&mut list), 0);
    assert_eq!(queue.purge(), 4);
    assert!(set.header().is_err(), "the switch was on all along");
    assert!(set.is_full());
}
