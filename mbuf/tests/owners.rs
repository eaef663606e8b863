//! Owners of external storage: let go once, last, and in peace.

mod common;

use common::owner::{inside, times, with};
use common::uncached;
use mbuf::{
    BufferSet, External, FreeStrategy, Mbuf, MbufPool, Packet, PacketList, PacketQueue, Room,
    TxMbuf, free_bulk_with,
};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Each holds the one before: letting the last go must not take a stack frame for each.
#[test]
fn a_long_row_of_packets_that_hold_each_other_is_freed_without_recursion() {
    let room = Room {
        header: 8,
        plain: 8,
        charge: 192,
    };
    let pool = MbufPool::new(room, |b| b.capacity(200_002).cache(0)).unwrap();
    let mut last = pool.header().unwrap();
    for _ in 0..100_000 {
        let held = last.into_shared();
        let mut tail = pool.plain().unwrap();
        tail.attach_shared(&held, 0).unwrap();
        drop(held);
        last = pool.header().unwrap();
        last.cat(tail);
    }
    assert_eq!(pool.raw().in_use(), 200_001);
    drop(last);
    assert!(pool.raw().is_full());
}

#[test]
fn bytes_in_their_owner_stay_valid_until_it_is_dropped() {
    let set = uncached();
    let (external, dropped) = inside();
    let mut all: Vec<Mbuf> = (0..5).map(|_| with(&set, external.clone())).collect();
    drop(external);
    while let Some(m) = all.pop() {
        assert!(
            m.to_vec()
                .iter()
                .enumerate()
                .all(|(at, &b)| at == b as usize)
        );
        assert_eq!(times(&dropped), 0);
        drop(m);
    }
    assert_eq!(times(&dropped), 1);
}

#[test]
fn an_owner_that_will_not_say_where_its_bytes_are_is_dropped() {
    struct Mute(Arc<AtomicUsize>);
    impl AsRef<[u8]> for Mute {
        fn as_ref(&self) -> &[u8] {
            resume_unwind(Box::new("as ordered"))
        }
    }
    impl Drop for Mute {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let mute = Mute(dropped.clone());
    assert!(catch_unwind(AssertUnwindSafe(|| External::from_owner(mute))).is_err());
    assert_eq!(times(&dropped), 1);
}

/// In all orders in which three mbufs and a handle can go, by each way of freeing.
#[test]
fn the_owner_goes_once_in_any_order_of_frees() {
    for how in FreeStrategy::ALL {
        for order in 0..24usize {
            let set = uncached();
            let (external, dropped) = inside();
            let first = with(&set, external.clone());
            let second = first.ref_copy(3, 9, &set).unwrap();
            let third = second.ref_copy(0, 1, &set).unwrap();
            let mut holders = [Some(first), Some(second), Some(third), None];
            let mut handle = Some(external);
            let mut left: Vec<usize> = (0..4).collect();
            for radix in (1..=4).rev() {
                assert_eq!(times(&dropped), 0);
                let next = left.remove(order / [1, 1, 2, 6][radix - 1] % radix);
                if next == 3 {
                    handle = None;
                } else {
                    free_bulk_with(how, &mut holders[next..=next]);
                }
            }
            assert!(handle.is_none() && set.is_full());
            assert_eq!(times(&dropped), 1, "{how} {order}");
        }
    }
}

/// Looks at the pool, allocates and frees there when it goes; then unwinds if ordered to.
struct Busy {
    pool: MbufPool,
    seen: Arc<AtomicUsize>,
    unwinds: bool,
}

impl AsRef<[u8]> for Busy {
    fn as_ref(&self) -> &[u8] {
        b"bytes of a busy one"
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // Everything has been freed before: all but ourselves can be had, through the cache too.
        let mut all: Vec<Option<Mbuf>> = (0..64).map(|_| None).collect();
        if self.pool.header_bulk(&mut all).is_ok() {
            self.seen.fetch_add(1, Ordering::Relaxed);
        }
        mbuf::free_bulk(&mut all);
        if self.unwinds {
            resume_unwind(Box::new("as ordered"));
        }
    }
}

#[test]
fn owners_go_when_all_else_is_free_and_may_use_the_pool_or_unwind() {
    let room = Room {
        header: 64,
        plain: 64,
        charge: 192,
    };
    for how in FreeStrategy::ALL {
        for (cache, unwinds) in [(0, false), (8, false), (16, true), (1, true)] {
            for busy_at in [vec![0], vec![3, 4], vec![7, 20], vec![0, 1, 2]] {
                let pool = MbufPool::new(room, |b| b.capacity(64).cache(cache)).unwrap();
                let seen = Arc::new(AtomicUsize::new(0));
                let other = MbufPool::new(room, |b| b.capacity(64).cache(cache)).unwrap();
                let slot = |at: usize| -> Option<TxMbuf> {
                    let pick = if at % 5 == 4 { &other } else { &pool };
                    let mut m = pick.header().unwrap();
                    if busy_at.contains(&at) {
                        m.attach(External::from_owner(Busy {
                            pool: pool.clone(),
                            seen: seen.clone(),
                            unwinds: unwinds && at == busy_at[0],
                        }))
                        .unwrap();
                        let mut head = pool.header().unwrap();
                        head.cat(m);
                        head.cat(pool.header().unwrap());
                        m = head;
                    }
                    Some(m.into())
                };
                let mut slots: Vec<_> = (0..24).map(slot).collect();
                let result = catch_unwind(AssertUnwindSafe(|| free_bulk_with(how, &mut slots)));
                assert_eq!(result.is_err(), unwinds, "{how}");
                assert!(slots.iter().all(Option::is_none));
                assert_eq!(times(&seen), busy_at.len(), "{how} cache {cache}");
                assert!(pool.raw().is_full() && other.raw().is_full(), "{how}");
            }
        }
    }
}

/// Unwinds when it goes.
struct Unwinding;

impl AsRef<[u8]> for Unwinding {
    fn as_ref(&self) -> &[u8] {
        b"bytes"
    }
}

impl Drop for Unwinding {
    fn drop(&mut self) {
        resume_unwind(Box::new("as ordered"));
    }
}

/// One owner of 200 unwinds: the packets behind it are freed all the same.
#[test]
fn a_list_or_queue_that_is_dropped_goes_on_when_an_owner_unwinds() {
    for at in [0, 63, 64, 199] {
        let set = uncached();
        let filled = || -> PacketList {
            let packet = |index| match index == at {
                true => with(&set, External::from_owner(Unwinding)),
                false => set.header().unwrap(),
            };
            (0..200).map(packet).collect()
        };
        let list = filled();
        assert!(catch_unwind(AssertUnwindSafe(|| drop(list))).is_err());
        assert!(set.is_full(), "list, {at}: {} left", set.in_use());

        let queue = PacketQueue::new(1000);
        queue.enlist(&mut filled());
        assert!(catch_unwind(AssertUnwindSafe(|| queue.purge())).is_err());
        assert!(
            set.is_full() && queue.is_empty(),
            "queue, {at}: {} left",
            set.in_use()
        );

        queue.enlist(&mut filled());
        queue.set_limit(0);
        let mut more = filled();
        assert!(catch_unwind(AssertUnwindSafe(|| queue.enlist(&mut more))).is_err());
        assert_eq!((more.len(), queue.drops()), (0, 200), "at {at}");
        assert!(catch_unwind(AssertUnwindSafe(|| drop(queue))).is_err());
        assert!(set.is_full(), "all, {at}: {} left", set.in_use());
    }
}

/// What an edit lets go of goes last: its owner may unwind, and the packet is as after any success.
#[test]
fn an_edit_is_done_when_an_owner_that_it_lets_go_unwinds() {
    type Edit = fn(&mut Mbuf, &BufferSet);
    let edits: [(&str, Edit); 6] = [
        ("make_contiguous", |m, set| {
            m.make_contiguous(7, set).unwrap()
        }),
        ("make_contiguous within", |m, set| {
            m.make_contiguous(12, set).unwrap();
        }),
        ("defrag", |m, set| m.defrag(set).unwrap()),
        ("pulldown", |m, set| {
            m.pulldown(3, 9, set).unwrap();
        }),
        ("pulldown of the last", |m, set| {
            m.pulldown(4, 9, set).unwrap();
        }),
        ("make_writable", |m, set| m.make_writable(set).unwrap()),
    ];
    for (name, edit) in edits {
        for at in 0..3 {
            let set = uncached();
            let segment = |index| match index == at {
                true => with(&set, External::from_owner(Unwinding)),
                false => with(&set, &b"bytes"[..]),
            };
            let mut m = segment(0);
            m.cat(segment(1));
            m.cat(segment(2));
            let before = m.to_vec();
            let done = catch_unwind(AssertUnwindSafe(|| edit(&mut m, &set)));
            m.check().unwrap();
            assert_eq!(m.to_vec(), before, "{name}, {at}");
            if done.is_ok() {
                assert!(catch_unwind(AssertUnwindSafe(|| drop(m))).is_err());
            } else {
                drop(m);
            }
            assert!(set.is_full(), "{name}, {at}: {} left", set.in_use());
        }
    }
}
