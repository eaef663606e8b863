//! Backends that unwind under a bulk free or a bulk allocation, and bulk frees by threads that end.

use mbuf::{FreeStrategy, Mbuf, MbufPool, Packet, Room, TxMbuf, free_bulk_with};
use mempool::backend::{Backend, Lifo};
use std::cell::RefCell;
use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const ROOM: Room = Room {
    header: 64,
    plain: 64,
    charge: 192,
};

/// Does what it is asked, then unwinds if ordered to.
struct Wild(Lifo, Arc<AtomicBool>);

impl Wild {
    fn maybe_unwind(&self) {
        if self.1.load(Ordering::Relaxed) {
            resume_unwind(Box::new("as ordered"));
        }
    }
}

// SAFETY: forwards to a backend that keeps the contract, or unwinds.
unsafe impl Backend for Wild {
    fn put_bulk(&self, objs: &[NonNull<u8>]) {
        self.0.put_bulk(objs);
        self.maybe_unwind();
    }

    fn get_bulk(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), usize> {
        self.0.get_bulk(out)?;
        self.maybe_unwind();
        Ok(())
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

fn wild(cache: usize) -> (MbufPool, Arc<AtomicBool>) {
    let order = Arc::new(AtomicBool::new(false));
    let backend = Box::new(Wild(Lifo::new(128), order.clone()));
    let configure = |b: mempool::Builder| b.capacity(128).cache(cache).custom_backend(backend);
    (MbufPool::new(ROOM, configure).unwrap(), order)
}

fn calm(cache: usize) -> MbufPool {
    MbufPool::new(ROOM, |b| b.capacity(128).cache(cache)).unwrap()
}

/// All that can still be had is there once, fresh.
fn assert_no_duplicates(pool: &MbufPool) {
    let mut seen = HashSet::new();
    let all: Vec<Mbuf> = std::iter::from_fn(|| pool.header().ok()).collect();
    for m in &all {
        assert!(seen.insert(m.first().data().as_ptr()), "handed out twice");
        assert_eq!((m.nsegs(), m.pkt_len()), (1, 0));
    }
}

fn unwinding(order: &AtomicBool, run: impl FnOnce()) {
    order.store(true, Ordering::Relaxed);
    let _ = std::panic::catch_unwind(AssertUnwindSafe(run));
    order.store(false, Ordering::Relaxed);
}

#[test]
fn a_bulk_free_that_unwinds_leaves_empty_slots_and_no_duplicates() {
    for how in FreeStrategy::ALL {
        for cache in [0, 1, 2, 8, 16] {
            for (len, shape) in [1, 5, 8, 9, 16, 40]
                .into_iter()
                .flat_map(|n| [(n, 0), (n, 1), (n, 2), (n, 3)])
            {
                let ((a, order), b) = (wild(cache), calm(4));
                let mut slots: Vec<Option<TxMbuf>> = (0..len)
                    .map(|at| match (shape, at % 4) {
                        (1, 1) => Some(b.header().unwrap().into()),
                        (2, 2) => {
                            let mut m = a.header().unwrap();
                            m.cat(b.header().unwrap());
                            m.cat(a.header().unwrap());
                            Some(m.into())
                        }
                        (3, 0) => None,
                        _ => Some(a.header().unwrap().into()),
                    })
                    .collect();
                unwinding(&order, || free_bulk_with(how, &mut slots));
                assert!(slots.iter().all(Option::is_none), "{how} {len} {shape}");
                assert_no_duplicates(&a);
                assert_no_duplicates(&b);
            }
        }
    }
}

#[test]
fn a_bulk_allocation_that_unwinds_leaves_empty_slots() {
    for cache in [0, 1, 8] {
        for len in [1, 4, 9, 64] {
            let (pool, order) = wild(cache);
            drop(pool.header().unwrap());
            let mut out: Vec<Option<Mbuf>> = (0..len).map(|_| None).collect();
            unwinding(&order, || {
                let _ = pool.header_bulk(&mut out);
            });
            assert!(
                out.iter()
                    .all(|m| m.as_ref().is_none_or(|m| m.check().is_ok()))
            );
            drop(out);
            assert_no_duplicates(&pool);
        }
    }
}

struct FreedAtExit(Vec<Option<Mbuf>>, FreeStrategy);

impl Drop for FreedAtExit {
    fn drop(&mut self) {
        free_bulk_with(self.1, &mut self.0);
    }
}

thread_local! {
    static EARLY: RefCell<Vec<FreedAtExit>> = const { RefCell::new(Vec::new()) };
    static LATE: RefCell<Vec<FreedAtExit>> = const { RefCell::new(Vec::new()) };
}

/// Thread-locals that go before and after the pools' own.
#[test]
fn fault_e8_bulk_frees_while_a_thread_ends_leave_nothing_cached() {
    for how in FreeStrategy::ALL {
        for len in [4, 30] {
            let pools = [calm(16), calm(3)];
            let theirs = pools.clone();
            let burst = move || {
                let slots = (0..len).map(|at| Some(theirs[at % 2].header().unwrap()));
                FreedAtExit(slots.collect(), how)
            };
            let thread = std::thread::spawn(move || {
                EARLY.with_borrow_mut(|early| early.reserve(2));
                let (first, second) = (burst(), burst());
                LATE.with_borrow_mut(|late| late.push(first));
                EARLY.with_borrow_mut(|early| early.push(second));
            });
            thread.join().unwrap();
            for pool in pools {
                assert_eq!((pool.raw().cached(), pool.raw().in_use()), (0, 0), "{how}");
            }
        }
    }
}
