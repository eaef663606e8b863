//! Creating pools, and what DPDK's pool tests (rows MP1 to MP16) say as far as it applies.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::{assert_whole, give, take};
use mempool::backend::{FailAt, Lifo, Ring};
use mempool::{BackendKind, CreateError, MAX_CACHE, MAX_OBJECTS, MAX_WORKERS, RawPool};

const N: usize = 527;

fn configurations() -> Vec<RawPool> {
    let mut pools = Vec::new();
    for kind in [BackendKind::Lifo, BackendKind::Ring] {
        for cache in [0, 512] {
            let builder = RawPool::builder(2048)
                .capacity(N)
                .cache(cache)
                .backend(kind);
            let pool = builder.build_with(|obj, index| {
                // SAFETY: ours during the call, 2048 bytes.
                unsafe { obj.cast::<u32>().write(index as u32) };
            });
            pools.push(pool.unwrap());
        }
    }
    pools
}

#[test]
fn mp_2_one_object_is_missing_after_a_get() {
    for pool in configurations() {
        let obj = pool.get().unwrap();
        assert_eq!((pool.available(), pool.in_use()), (N - 1, 1));
        give(&pool, &[obj]);
        assert_whole(&pool);
    }
}

#[test]
fn mp_5_two_objects_one_by_one() {
    for pool in configurations() {
        let first = pool.get().unwrap();
        give(&pool, &[first]);
        let (first, second) = (pool.get().unwrap(), pool.get().unwrap());
        assert_ne!(first, second);
        assert!(format!("{pool:?}").contains("in_use: 2"));
        give(&pool, &[first]);
        give(&pool, &[second]);
        assert_whole(&pool);
    }
}

#[test]
fn mp_6_content_survives_in_the_pool() {
    for pool in configurations() {
        for _ in 0..2 {
            let mut held = Vec::new();
            while let Ok(obj) = pool.get() {
                held.push(obj);
            }
            assert_eq!(held.len(), N);
            for &obj in &held {
                // SAFETY: held by us; initialised bytes.
                let bytes = unsafe { std::slice::from_raw_parts(obj.as_ptr(), 2048) };
                let index = u32::from_ne_bytes(bytes[..4].try_into().unwrap());
                assert_eq!(pool.contains(obj), Some(index as usize));
                assert!(bytes[4..].iter().all(|&byte| byte == 0));
            }
            for obj in held {
                give(&pool, &[obj]);
            }
        }
        assert_whole(&pool);
    }
}

#[test]
fn mp_7_without_cache_full_to_empty_to_full() {
    for kind in [BackendKind::Lifo, BackendKind::Ring] {
        let pool = RawPool::builder(2048)
            .capacity(N)
            .cache(0)
            .backend(kind)
            .build()
            .unwrap();
        assert!(pool.is_full());
        let held: Vec<_> = (0..N).map(|_| pool.get().unwrap()).collect();
        let error = pool.get().unwrap_err();
        assert_eq!((error.asked, error.available, pool.available()), (1, 0, 0));
        for obj in held {
            give(&pool, &[obj]);
        }
        assert!(pool.is_full());
        assert_whole(&pool);
    }
}

#[test]
fn mp_9_caches_beyond_the_maximum_are_refused() {
    let error = RawPool::builder(64)
        .capacity(4096)
        .cache(512 + 32)
        .build()
        .unwrap_err();
    assert!(matches!(
        error,
        CreateError::CacheTooLarge {
            asked: 544,
            max: MAX_CACHE
        }
    ));
    let error = RawPool::builder(64)
        .capacity(100)
        .cache(101)
        .build()
        .unwrap_err();
    assert!(matches!(
        error,
        CreateError::CacheTooLarge {
            asked: 101,
            max: 100
        }
    ));
}

#[test]
fn impossible_parameters_are_errors_with_numbers() {
    let build = |size, capacity, align| {
        RawPool::builder(size)
            .capacity(capacity)
            .align(align)
            .build()
            .unwrap_err()
    };
    assert!(matches!(build(0, 1, 64), CreateError::ZeroObjectSize));
    assert!(matches!(build(1, 0, 64), CreateError::ZeroCapacity));
    assert!(matches!(
        build(1, 1, 48),
        CreateError::BadAlign { align: 48, .. }
    ));
    assert!(matches!(
        build(1, 1, 0),
        CreateError::BadAlign { align: 0, .. }
    ));
    assert!(matches!(build(1, 1, 1 << 40), CreateError::BadAlign { .. }));
    let asked = MAX_OBJECTS + 1;
    assert!(matches!(
        build(1, asked, 64),
        CreateError::TooManyObjects { .. }
    ));
    let workers = RawPool::builder(1)
        .workers(MAX_WORKERS + 1)
        .build()
        .unwrap_err();
    assert!(matches!(
        workers,
        CreateError::TooManyWorkers {
            asked: 257,
            max: 256
        }
    ));
    let backend = RawPool::builder(1)
        .capacity(9)
        .custom_backend(Box::new(Lifo::new(8)));
    let error = backend.build().unwrap_err();
    assert!(matches!(
        error,
        CreateError::BackendTooSmall { room: 8, needed: 9 }
    ));
    assert_eq!(
        error.to_string(),
        "the backend has room for 8 objects, 9 needed"
    );
}

#[test]
fn fault_o7_sizes_are_computed_without_wrapping() {
    for (size, capacity) in [
        (usize::MAX, 1),
        (usize::MAX - 62, 2),
        (1 << 40, 1 << 26),
        (usize::MAX / 4, 3),
        (isize::MAX as usize, 1),
    ] {
        let error = RawPool::builder(size)
            .capacity(capacity)
            .build()
            .unwrap_err();
        let CreateError::TooLarge {
            object_size,
            capacity: objects,
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!((object_size, objects), (size, capacity));
    }
}

#[test]
fn fault_o7_memory_that_is_not_to_be_had_is_an_error() {
    let error = RawPool::builder(1 << 40)
        .capacity(1 << 20)
        .build()
        .unwrap_err();
    assert!(
        matches!(error, CreateError::NoMemory { bytes, .. } if bytes >= 1 << 60),
        "{error}"
    );
}

#[test]
fn a_backend_that_holds_something_is_refused() {
    use mempool::Backend;
    let backend = Ring::new(4);
    backend.put_bulk(&[std::ptr::NonNull::dangling()]);
    let (backend, _switch) = FailAt::new(backend);
    let error = RawPool::builder(1)
        .capacity(4)
        .custom_backend(Box::new(backend))
        .build();
    assert!(matches!(
        error.unwrap_err(),
        CreateError::BackendNotEmpty { len: 1 }
    ));
}

#[test]
fn mp_14_arena_is_contiguous_and_knows_its_objects() {
    for pool in configurations() {
        let base = pool.object(0).unwrap();
        for index in 0..N {
            let obj = pool.object(index).unwrap();
            assert_eq!(obj.addr().get() - base.addr().get(), index * pool.stride());
            assert_eq!(pool.contains(obj), Some(index));
            let last = obj.map_addr(|addr| addr.saturating_add(2047));
            assert_eq!(pool.contains(last), Some(index));
        }
        assert_eq!(pool.object(N), None);
        assert_eq!(
            pool.contains(base.map_addr(|addr| (addr.get() - 1).try_into().unwrap())),
            None
        );
        let end = base.map_addr(|addr| addr.saturating_add(N * pool.stride()));
        assert_eq!(pool.contains(end), None);
    }
}

#[test]
fn mp_15_objects_are_aligned_as_asked() {
    for align in [1, 8, 64, 256, 4096, 1 << 20] {
        for size in [1, 8, 100] {
            let pool = RawPool::builder(size)
                .capacity(5)
                .align(align)
                .build()
                .unwrap();
            for index in 0..5 {
                assert_eq!(pool.object(index).unwrap().addr().get() % align, 0);
            }
            assert_whole(&pool);
        }
    }
    let pool = RawPool::builder(1).capacity(2).build().unwrap();
    assert_eq!(pool.object(1).unwrap().addr().get() % 64, 0);
}

#[test]
fn strides_are_spread_over_cache_sets() {
    // In checked mode there are eight bytes more at either end.
    let guards = if mempool::CHECKED { 16 } else { 0 };
    let stride = |size: usize, spread| {
        RawPool::builder(size - guards)
            .capacity(1)
            .spread(spread)
            .build()
            .unwrap()
            .stride()
    };
    assert_eq!((stride(2048, true), stride(2048, false)), (2112, 2048));
    assert_eq!(
        (stride(64, true), stride(192, true), stride(129, true)),
        (64, 192, 192)
    );
}

#[test]
fn huge_pages_or_not_the_pool_works() {
    let builder = RawPool::builder(4096)
        .capacity(1000)
        .huge_pages(true)
        .prefault(true);
    let pool = builder.build().unwrap();
    let all = take(&pool, 1000).unwrap();
    for &obj in &all {
        // SAFETY: it is ours, and so large.
        unsafe { obj.add(4095).write(1) };
    }
    give(&pool, &all);
    println!("memory: {:?}", pool.memory_kind());
    assert_whole(&pool);
}

#[test]
fn init_runs_once_per_object_and_may_panic() {
    let built = std::panic::catch_unwind(|| {
        RawPool::builder(8)
            .capacity(10)
            .build_with(|_, index| assert!(index < 7))
    });
    assert!(built.is_err());
    let mut seen = Vec::new();
    let pool = RawPool::builder(8)
        .capacity(10)
        .build_with(|_, index| seen.push(index))
        .unwrap();
    assert_eq!(seen, (0..10).collect::<Vec<_>>());
    assert_whole(&pool);
}

#[test]
fn mp_3_private_data_comes_with_the_pool() {
    let pool = RawPool::builder(8)
        .capacity(4)
        .name("p")
        .private(7u64)
        .build()
        .unwrap();
    assert_eq!(pool.private::<u64>(), Some(&7));
    assert_eq!(pool.private::<u32>(), None);
    assert_eq!(pool.name(), "p");
}

#[test]
fn default_caches_leave_most_of_a_small_pool_to_others() {
    let cache = |n| {
        RawPool::builder(8)
            .capacity(n)
            .build()
            .unwrap()
            .cache_size()
    };
    assert_eq!((cache(1), cache(100), cache(4096)), (0, 25, 512));
}

#[test]
fn the_k_th_get_fails_for_every_k() {
    for k in 1..=10 {
        let (backend, switch) = FailAt::new(Lifo::new(20));
        let builder = RawPool::builder(8).capacity(20).cache(0);
        let pool = builder.custom_backend(Box::new(backend)).build().unwrap();
        switch.fail_at(k);
        let results: Vec<_> = (0..10).map(|_| pool.get()).collect();
        for (index, result) in results.iter().enumerate() {
            assert_eq!(result.is_err(), index as u64 + 1 == k);
        }
        assert_eq!((switch.gets(), pool.in_use()), (10, 9));
        give(&pool, &results.into_iter().flatten().collect::<Vec<_>>());
        assert_whole(&pool);
        assert!(take(&pool, 21).is_err());
    }
}

#[test]
fn a_get_that_is_never_reached_does_not_fail() {
    let (backend, switch) = FailAt::new(Lifo::new(4));
    let builder = RawPool::builder(8).capacity(4).cache(0);
    let pool = builder.custom_backend(Box::new(backend)).build().unwrap();
    let first = pool.get().unwrap();
    switch.fail_at(u64::MAX);
    let second = pool.get().unwrap();
    give(&pool, &[first, second]);
    assert_whole(&pool);
}
