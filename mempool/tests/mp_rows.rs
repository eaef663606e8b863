//! DPDK's pool test, rows MP1 to MP8, over all backends and kinds of caches.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::{Sent, assert_whole, give};
use mempool::{BackendKind, Builder, Exhausted, LocalCache, RawPool};
use std::ptr::NonNull;
use std::thread;
use std::time::{Duration, Instant};

const N: usize = 527;
const SIZE: usize = 2048;

/// A pool, used through its own caches or through one of the caller's.
struct Via {
    pool: RawPool,
    cache: Option<LocalCache>,
}

impl Via {
    fn get(&mut self) -> Result<NonNull<u8>, Exhausted> {
        match &mut self.cache {
            Some(cache) => cache.get(),
            None => self.pool.get(),
        }
    }

    fn put(&mut self, obj: NonNull<u8>) {
        match &mut self.cache {
            // SAFETY: the tests put what they got, once.
            Some(cache) => unsafe { cache.put(obj) },
            None => give(&self.pool, &[obj]),
        }
    }

    fn available(&self) -> usize {
        self.pool.available() + self.cache.as_ref().map_or(0, LocalCache::len)
    }
}

/// The built-in backends, by what they make of a builder.
fn backends() -> [fn(Builder) -> Builder; 3] {
    [
        |b| b.backend(BackendKind::Lifo),
        |b| b.backend(BackendKind::Ring),
        // SAFETY: the tests below use their pools on one thread; MP8 says for itself.
        |b| unsafe { b.spsc_backend() },
    ]
}

fn pool(configure: fn(Builder) -> Builder, cache: usize) -> RawPool {
    let builder = configure(RawPool::builder(SIZE).capacity(N).cache(cache));
    let pool = builder.build_with(|obj, index| {
        // SAFETY: ours during the call, and large enough.
        unsafe { obj.cast::<u32>().write(index as u32) };
    });
    pool.unwrap()
}

/// Row MP1: what the others run on.
fn mp_1_configurations() -> Vec<Via> {
    let mut all = Vec::new();
    for configure in backends() {
        for (cache, local) in [(0, 0), (512, 0), (0, 512), (512, 512)] {
            let pool = pool(configure, cache);
            let cache = (local > 0).then(|| pool.local_cache(local).unwrap());
            all.push(Via { pool, cache });
        }
    }
    all
}

/// Frees the user's cache, and sees that nothing is missing.
fn end(via: Via) {
    let Via { pool, cache } = via;
    drop(cache);
    assert_whole(&pool);
    pool.try_destroy().unwrap();
}

#[test]
fn mp_1_mp_2_one_object_is_missing_after_a_get() {
    for mut via in mp_1_configurations() {
        let obj = via.get().unwrap();
        assert_eq!(via.available(), N - 1);
        via.put(obj);
        assert_eq!(via.available(), N);
        end(via);
    }
}

#[test]
fn mp_1_mp_5_two_objects_one_by_one() {
    for mut via in mp_1_configurations() {
        let first = via.get().unwrap();
        via.put(first);
        let (first, second) = (via.get().unwrap(), via.get().unwrap());
        assert_ne!(first, second);
        assert!(format!("{:?} {:?}", via.pool, via.cache).contains("capacity: 527"));
        via.put(first);
        via.put(second);
        end(via);
    }
}

#[test]
fn mp_1_mp_6_content_survives_in_the_pool() {
    for mut via in mp_1_configurations() {
        for _ in 0..2 {
            let held: Vec<_> = std::iter::from_fn(|| via.get().ok()).collect();
            assert_eq!((held.len(), via.available()), (N, 0));
            for &obj in &held {
                // SAFETY: held by us; initialised bytes.
                let bytes = unsafe { std::slice::from_raw_parts(obj.as_ptr(), SIZE) };
                let index = u32::from_ne_bytes(bytes[..4].try_into().unwrap());
                assert_eq!(via.pool.contains(obj), Some(index as usize));
                assert!(bytes[4..].iter().all(|&byte| byte == 0));
            }
            held.into_iter().for_each(|obj| via.put(obj));
        }
        end(via);
    }
}

#[test]
fn mp_7_without_cache_full_to_empty_to_full() {
    for configure in backends() {
        let pool = pool(configure, 0);
        assert!(pool.is_full());
        let held: Vec<_> = (0..N).map(|_| pool.get().unwrap()).collect();
        let error = pool.get().unwrap_err();
        assert_eq!((error.asked, error.available, pool.available()), (1, 0, 0));
        held.iter().for_each(|&obj| give(&pool, &[obj]));
        assert_whole(&pool);
    }
}

/// One thread gets objects into shared slots for 1/8 s, another puts them back for 1/4 s.
#[test]
fn mp_8_single_producer_and_single_consumer() {
    for configure in backends() {
        let builder = configure(RawPool::builder(64).capacity(64).cache(0).align(8));
        let pool = builder.unique_name("mp_8").build().unwrap();
        let found = RawPool::find("mp_8").map(|found| found.pool_ref());
        // A stranger might take beside the one taker.
        let single = pool.to_string().contains("\"spsc\"");
        assert_eq!(found, (!single).then(|| pool.pool_ref()));
        let slots: [parking_lot::Mutex<Option<Sent>>; 16] = Default::default();
        let start = Instant::now();
        let getter = || {
            let mut got = 0_usize;
            while start.elapsed() < Duration::from_millis(125) {
                for slot in &slots {
                    let mut slot = slot.lock();
                    if slot.is_none() {
                        let obj = pool.get().expect("48 more than there are slots");
                        assert!(pool.contains(obj).is_some());
                        *slot = Some(Sent(obj));
                        got += 1;
                    }
                }
                thread::yield_now();
            }
            got
        };
        let putter = || {
            let mut put = 0_usize;
            while start.elapsed() < Duration::from_millis(250) {
                for slot in &slots {
                    if let Some(Sent(obj)) = slot.lock().take() {
                        assert!(pool.contains(obj).is_some());
                        give(&pool, &[obj]);
                        put += 1;
                    }
                }
                thread::yield_now();
            }
            put
        };
        // SAFETY of a ring for one and one: only the first thread gets, only the second puts, and
        // this one goes on when both have ended.
        let (got, put) = thread::scope(|scope| {
            let (getter, putter) = (scope.spawn(getter), scope.spawn(putter));
            (getter.join().unwrap(), putter.join().unwrap())
        });
        let left: Vec<_> = slots
            .into_iter()
            .filter_map(|slot| slot.into_inner())
            .collect();
        assert_eq!(got, put + left.len());
        assert!(put > 16, "slots were used again");
        left.into_iter().for_each(|Sent(obj)| give(&pool, &[obj]));
        assert_whole(&pool);
    }
}

/// A ring for one and one under caches: this thread gets, the other puts and ends first.
#[test]
fn single_producer_and_single_consumer_with_caches() {
    const ROUNDS: usize = 20_000;
    for cache in [1, 8, 32] {
        let builder = RawPool::builder(64).capacity(128).cache(cache);
        // SAFETY: only this thread gets, and only the other puts until it was joined.
        let pool = unsafe { builder.spsc_backend() }.build().unwrap();
        let (send, receive) = std::sync::mpsc::channel();
        let name = pool.pool_ref();
        let putter = thread::spawn(move || {
            for Sent(obj) in receive {
                // SAFETY: got by the sender, which gave it up.
                unsafe {
                    assert_eq!(obj.cast::<u64>().read(), 7, "object in two hands");
                    obj.cast::<u64>().write(0);
                    name.put(obj);
                }
            }
        });
        let mut sent = 0;
        while sent < ROUNDS {
            let Ok(obj) = pool.get() else {
                thread::yield_now();
                continue;
            };
            // SAFETY: ours, 64 bytes.
            unsafe {
                assert_eq!(obj.cast::<u64>().read(), 0, "object in two hands");
                obj.cast::<u64>().write(7);
            }
            send.send(Sent(obj)).unwrap();
            sent += 1;
        }
        drop(send);
        putter.join().unwrap();
        assert_whole(&pool);
    }
}
