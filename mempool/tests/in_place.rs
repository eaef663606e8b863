//! Bursts of raw objects, and reading a cache in place.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::{assert_whole, give, give_n, take};
use mempool::backend::{Backend, FailAt, Lifo, Ring, SpscRing};
use mempool::{BackendKind, Exhausted, InPlaceError, RawPool};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread;

const BACKENDS: [BackendKind; 2] = [BackendKind::Lifo, BackendKind::Ring];

fn pool(capacity: usize, cache: usize, kind: BackendKind) -> RawPool {
    let builder = RawPool::builder(64).capacity(capacity).cache(cache);
    builder.backend(kind).build().unwrap()
}

fn burst(pool: &RawPool, n: usize) -> Vec<NonNull<u8>> {
    let mut out = vec![MaybeUninit::uninit(); n];
    let got = pool.get_burst(&mut out);
    // SAFETY: so many are written.
    out[..got]
        .iter()
        .map(|obj| unsafe { obj.assume_init() })
        .collect()
}

#[test]
fn a_burst_takes_what_there_is() {
    for kind in BACKENDS {
        let pool = pool(50, 8, kind);
        let mut held = burst(&pool, 6);
        assert_eq!(
            (held.len(), pool.cached()),
            (6, 0),
            "more than half: no refill"
        );
        give_n(&pool, &mut held, 3);
        held.extend(burst(&pool, 5));
        assert_eq!(
            (held.len(), pool.cached()),
            (8, 2),
            "three cached, four refilled"
        );
        let own = [held[6], held[7]];
        give(&pool, &own);
        held.truncate(6);
        assert_eq!(burst(&pool, 2), own);
        held.extend(own);
        held.extend(burst(&pool, 60));
        assert_eq!((held.len(), pool.available()), (50, 0));
        assert_eq!(pool.stats().failed_gets, 0, "a short one did not fail");
        assert_eq!((burst(&pool, 1), burst(&pool, 0)), (vec![], vec![]));
        assert_eq!(pool.stats().failed_gets, 1);
        give_n(&pool, &mut held, 3);
        let short = burst(&pool, 4);
        assert_eq!(
            (short.len(), pool.cached(), pool.stats().failed_gets),
            (3, 0, 1)
        );
        held.extend(short);
        give(&pool, &held);
        assert_whole(&pool);
    }
}

#[test]
fn a_burst_without_a_cache_or_with_a_backend_that_fails() {
    let (backend, switch) = FailAt::new(Lifo::new(8));
    let builder = RawPool::builder(8).capacity(8).cache(0);
    let pool = builder.custom_backend(Box::new(backend)).build().unwrap();
    let mut held = burst(&pool, 5);
    held.extend(burst(&pool, 5));
    assert_eq!(
        (held.len(), switch.gets()),
        (8, 3),
        "one failed, and said three"
    );
    give_n(&pool, &mut held, 4);
    switch.fail_at(1);
    assert_eq!(burst(&pool, 2), []);
    assert_eq!(pool.stats().failed_gets, 1);
    give(&pool, &held);
    assert_whole(&pool);
}

/// A backend that always says that there is more than enough, and gives none.
struct Liar(Lifo);

// SAFETY: gives out nothing while it lies, else forwards.
unsafe impl Backend for Liar {
    fn put_bulk(&self, objs: &[NonNull<u8>]) {
        self.0.put_bulk(objs);
    }

    fn get_bulk(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), usize> {
        if out.len() > 3 {
            return Err(usize::MAX);
        }
        self.0.get_bulk(out)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

#[test]
fn a_burst_ends_whatever_the_backend_says() {
    for cache in [0, 32] {
        let builder = RawPool::builder(8).capacity(64).cache(cache);
        let pool = builder
            .custom_backend(Box::new(Liar(Lifo::new(64))))
            .build()
            .unwrap();
        let held = burst(&pool, 20);
        assert_eq!(held.len(), 3);
        give(&pool, &held);
        pool.flush_thread_cache();
        assert!(pool.is_full());
    }
}

#[test]
fn fault_v1_bursts_around_powers_of_two() {
    for kind in BACKENDS {
        for cache in [0, 512] {
            let pool = pool(70_000, cache, kind);
            for n in [0, 1, 255, 256, 257, 511, 512, 513, 65_535, 65_536, 70_001] {
                let held = burst(&pool, n);
                assert_eq!(held.len(), n.min(70_000));
                assert_eq!(pool.in_use(), held.len());
                give(&pool, &held);
                let in_place = pool.get_in_place(n, <[_]>::to_vec);
                match in_place {
                    Ok(held) if n <= cache && cache > 0 => give(&pool, &held),
                    Err(InPlaceError::BeyondCache { asked, cache: 512 }) if n > 512 => {
                        assert_eq!(asked, n);
                    }
                    Err(InPlaceError::NoCache { asked }) if cache == 0 => assert_eq!(asked, n),
                    other => panic!("{n}: {other:?}"),
                }
                assert!(pool.is_full());
            }
            assert_whole(&pool);
        }
    }
}

/// In place and by copy: the same objects, the same cache and the same exchanges after it.
#[test]
fn dpdk_3c_in_place_takes_what_a_copy_would() {
    for kind in BACKENDS {
        let (copied, in_place) = (pool(1000, 32, kind), pool(1000, 32, kind));
        for n in [1, 15, 16, 17, 3, 13, 32, 31, 0, 5] {
            let cached = copied.cached();
            if cached > 16 && n > cached {
                // A copy empties the cache before half of one comes in; in place that may not fit.
                copied.flush_thread_cache();
                in_place.flush_thread_cache();
            }
            let mut by_copy = take(&copied, n).unwrap();
            let mut read = in_place.get_in_place(n, <[_]>::to_vec).unwrap();
            by_copy.sort_unstable();
            read.sort_unstable();
            let indices = |pool: &RawPool, objs: &[NonNull<u8>]| -> Vec<_> {
                objs.iter().map(|&obj| pool.contains(obj)).collect()
            };
            assert_eq!(
                indices(&in_place, &read),
                indices(&copied, &by_copy),
                "get {n}"
            );
            assert_eq!(in_place.stats(), copied.stats(), "get {n}");
            give_n(&copied, &mut by_copy, n / 3);
            give_n(&in_place, &mut read, n / 3);
        }
    }
}

#[test]
fn in_place_refills_with_no_more_than_fit() {
    for kind in BACKENDS {
        let pool = pool(100, 32, kind);
        let held = take(&pool, 20).unwrap();
        give(&pool, &held);
        assert_eq!(pool.cached(), 20);
        let read = pool.get_in_place(30, <[_]>::to_vec).unwrap();
        assert_eq!(read[10..], held, "hot ones stay on top");
        assert_eq!((pool.cached(), pool.in_use()), (2, 30), "12 fitted");
        give(&pool, &read);
        assert_whole(&pool);
    }
}

#[test]
fn in_place_shows_the_newest_last_and_refills_under_them() {
    for kind in BACKENDS {
        let pool = pool(100, 8, kind);
        let held = take(&pool, 7).unwrap();
        let [a, b, c] = held[..3] else {
            unreachable!("took seven")
        };
        give(&pool, &[a, b, c]);
        // SAFETY: the pool lives; the cursor is on the stack; objects are given up once.
        unsafe {
            let mut cursor = pool.pool_ref().open_get(2).unwrap();
            assert_eq!((cursor.as_slice(), cursor.len()), (&[b, c][..], 2));
            assert_eq!(pool.cached(), 0, "open: counts as taken");
            assert_eq!(cursor.consume(3), None);
            assert_eq!(cursor.consume(1), Some(&[c][..]));
            assert_eq!(cursor.as_slice(), [b]);
            assert_eq!(cursor.next(), Some(b));
            assert_eq!((cursor.next(), cursor.consume(0)), (None, Some(&[][..])));
            drop(cursor);
            assert_eq!(pool.cached(), 1);
            give(&pool, &[b, c]);

            let mut cursor = pool.pool_ref().open_get(6).unwrap();
            assert_eq!(cursor.as_slice()[3..], [a, b, c], "hot ones stay on top");
            let new = cursor.as_slice()[0];
            assert_eq!(cursor.by_ref().take(5).count(), 5);
            drop(cursor);
            assert_eq!(
                (pool.cached(), pool.in_use()),
                (2, 9),
                "half refilled, five taken"
            );
            assert_eq!(pool.get().unwrap(), new, "not consumed, so still cached");
        }
    }
}

#[test]
fn in_place_refill_that_fails_falls_back_or_leaves_all_as_it_was() {
    for kind in BACKENDS {
        let pool = pool(100, 32, kind);
        let mut held = take(&pool, 96).unwrap();
        give_n(&pool, &mut held, 3);
        assert_eq!(pool.cached(), 3);
        let before: Vec<_> = pool.get_in_place(3, <[_]>::to_vec).unwrap();
        give(&pool, &before);
        let failed = Exhausted {
            asked: 8,
            available: 7,
            cached_elsewhere: 0,
            over_budget: false,
        };
        assert_eq!(pool.get_in_place(8, |_| ()), Err(failed.into()));
        assert_eq!((pool.cached(), pool.stats().failed_gets), (3, 1));
        assert_eq!(pool.get_in_place(3, <[_]>::to_vec).unwrap(), before);
        give(&pool, &before);
        held.extend(pool.get_in_place(7, <[_]>::to_vec).unwrap());
        assert_eq!((held.len(), pool.available()), (100, 0));
        give(&pool, &held);
        assert_whole(&pool);
    }
}

#[test]
fn in_place_beyond_what_a_cache_can_do_is_an_error_with_numbers() {
    let pool = pool(100, 8, BackendKind::Lifo);
    let error = pool.get_in_place(9, |_| ()).unwrap_err();
    assert_eq!(error, InPlaceError::BeyondCache { asked: 9, cache: 8 });
    assert_eq!(
        error.to_string(),
        "asked for 9 in place, a cache holds 8: use get_bulk"
    );
    let all = pool.get_in_place(8, |objs| {
        // The cache is open: calls go to the backend, and a second opening is refused.
        let nested = pool.get_in_place(1, |_| ()).unwrap_err();
        assert_eq!(nested, InPlaceError::NoCache { asked: 1 });
        give(&pool, &take(&pool, 2).unwrap());
        pool.flush_thread_cache();
        objs.to_vec()
    });
    give(&pool, &all.unwrap());
    assert_whole(&pool);
    let one_worker = RawPool::builder(8)
        .capacity(64)
        .cache(8)
        .workers(1)
        .build()
        .unwrap();
    let step = Arc::new(std::sync::Barrier::new(2));
    let threads = [(), ()].map(|()| {
        let (pool, step) = (one_worker.clone(), step.clone());
        thread::spawn(move || {
            let own = pool.get_in_place(1, |objs| objs[0].addr().get());
            step.wait();
            own
        })
    });
    let results = threads.map(|thread| thread.join().unwrap());
    let refused = Err(InPlaceError::NoCache { asked: 1 });
    assert!(
        results.contains(&refused),
        "one worker id has a cache: {results:?}"
    );
}

#[test]
fn in_place_that_unwinds_keeps_the_objects_cached() {
    let pool = pool(100, 8, BackendKind::Lifo);
    let result = catch_unwind(AssertUnwindSafe(|| {
        let _ = pool.get_in_place(3, |_| panic!("on purpose"));
    }));
    assert!(result.is_err());
    assert_eq!((pool.in_use(), pool.cached()), (0, 4));
    assert_whole(&pool);
}

#[test]
fn a_forgotten_get_cursor_leaks_its_cache_and_nothing_else() {
    thread::spawn(|| {
        let pool = pool(100, 8, BackendKind::Lifo);
        // SAFETY: the pool lives; a forgotten cursor is never used again.
        let mut cursor = unsafe { pool.pool_ref().open_get(4) }.unwrap();
        let obj = cursor.next().unwrap();
        std::mem::forget(cursor);
        assert_eq!((pool.cached(), pool.in_use()), (0, 4));
        give(&pool, &[obj]);
        assert_eq!((pool.cached(), pool.in_use()), (0, 3));
        let error = pool.get_in_place(1, |_| ()).unwrap_err();
        assert_eq!(error, InPlaceError::NoCache { asked: 1 });
        assert_eq!(take(&pool, 97).unwrap().len(), 97);
    })
    .join()
    .unwrap();
}

/// A bulk of two for a queue with one free slot: refused, and the queue as it was.
#[test]
fn fault_b7_a_bulk_of_two_does_not_fit_one_free_slot() {
    let bytes = [0_u8; 6];
    let objs = bytes.each_ref().map(NonNull::from);
    // SAFETY: used by this thread alone.
    let spsc = unsafe { SpscRing::new(4) };
    let queues: [(&dyn Backend, [NonNull<u8>; 3]); 3] = [
        (&spsc, [objs[1], objs[2], objs[3]]),
        (&Ring::new(4), [objs[1], objs[2], objs[3]]),
        (&Lifo::new(4), [objs[1], objs[2], objs[3]]),
    ];
    for (queue, expected) in queues {
        // Not at the start of the array: the two would wrap around.
        queue.put_bulk(&objs[..1]);
        queue.get_bulk(&mut [MaybeUninit::uninit()]).unwrap();
        queue.put_bulk(&objs[1..4]);
        let put = catch_unwind(AssertUnwindSafe(|| queue.put_bulk(&objs[4..])));
        let message = *put.unwrap_err().downcast::<String>().unwrap();
        assert!(
            message.starts_with("2 more objects put than fit"),
            "{message}"
        );
        assert_eq!(queue.len(), 3);
        let mut out = [MaybeUninit::uninit(); 3];
        assert_eq!(queue.get_bulk(&mut [MaybeUninit::uninit(); 4]), Err(3));
        queue.get_bulk(&mut out).unwrap();
        // SAFETY: written after success.
        assert_eq!(out.map(|obj| unsafe { obj.assume_init() }), expected);
    }
    spsc.put_bulk(&objs[..3]);
    assert_eq!(spsc.try_put_bulk(&objs[4..]), Err(1));
    assert_eq!(spsc.try_put_bulk(&objs[4..5]), Ok(()));
    assert_eq!((spsc.len(), spsc.try_put_bulk(&objs[..1])), (4, Err(0)));
}
