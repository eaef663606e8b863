//! What memory pools get, as the kernel tells it, and where objects lie in it.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::{give, take};
use mempool::{Builder, MemoryKind, RawPool};

const OBJECT: usize = 4096;
const N: usize = 2048;
const BYTES: usize = N * OBJECT;

fn pool(configure: impl FnOnce(Builder) -> Builder) -> RawPool {
    let builder = RawPool::builder(OBJECT).stride(OBJECT).capacity(N);
    configure(builder).build().unwrap()
}

#[test]
fn mp_13_iteration_meets_every_object_once() {
    let pool = pool(|b| b);
    let forward: Vec<_> = pool.objects().collect();
    assert_eq!((forward.len(), pool.objects().len()), (N, N));
    assert!(forward.windows(2).all(|pair| pair[0] < pair[1]));
    for (index, &object) in forward.iter().enumerate() {
        assert_eq!(pool.object(index), Some(object));
    }
    assert!(pool.objects().rev().eq(forward.iter().rev().copied()));
    let mut objects = pool.objects();
    assert_eq!(
        (objects.nth(3), objects.nth_back(1)),
        (pool.object(3), pool.object(N - 2))
    );
    assert_eq!(objects.len(), N - 6);
    assert_eq!(
        (objects.nth(N), objects.next(), objects.next_back()),
        (None, None, None)
    );
}

#[test]
fn mp_14_the_range_holds_all_objects() {
    for spread in [true, false] {
        let pool = RawPool::builder(2048)
            .capacity(527)
            .spread(spread)
            .build()
            .unwrap();
        let range = pool.range();
        assert!(range.len() >= 527 * 2048);
        assert_eq!(Some(range.cast::<u8>()), pool.object(0));
        let last = pool.object(526).unwrap().addr().get() + 2048;
        assert_eq!(last, range.addr().get() + range.len());
    }
    let small = RawPool::builder(8).align(8).capacity(1).build().unwrap();
    assert_eq!(small.range().len(), 8);
}

#[test]
fn mp_15_the_alignment_can_be_asked_for() {
    let align = |builder: Builder| builder.capacity(2).build().unwrap().align();
    assert_eq!(align(RawPool::builder(8)), 64);
    assert_eq!(align(RawPool::builder(8).align(8)), 8);
    assert_eq!(align(RawPool::builder(64).align(8).objects_of(64, 32)), 32);
}

#[cfg(all(target_os = "linux", not(miri)))]
mod linux {
    use super::*;

    fn touch_all(pool: &RawPool) {
        let all = take(pool, pool.capacity()).unwrap();
        for object in &all {
            // SAFETY: ours, just taken.
            unsafe { object.write_volatile(1) };
        }
        give(pool, &all);
    }

    #[test]
    fn plain_memory_comes_in_when_it_is_touched() {
        let pool = pool(|b| b);
        let fresh = pool.mapping().unwrap();
        assert_eq!((fresh.bytes, fresh.resident), (BYTES, 0));
        assert_eq!(fresh.reserved_huge, 0);
        touch_all(&pool);
        assert_eq!(pool.mapping().unwrap().resident, BYTES);
        assert_eq!(pool.memory_kind(), MemoryKind::Pages);
    }

    #[test]
    fn prefaulted_memory_is_there_at_once() {
        let mapping = pool(|b| b.prefault(true)).mapping().unwrap();
        assert_eq!((mapping.bytes, mapping.resident), (BYTES, BYTES));
    }

    #[test]
    fn each_pool_is_a_mapping_of_its_own() {
        let pools: Vec<_> = (0..8).map(|_| pool(|b| b)).collect();
        touch_all(&pools[3]);
        for (index, pool) in pools.iter().enumerate() {
            let mapping = pool.mapping().unwrap();
            let resident = if index == 3 { BYTES } else { 0 };
            assert_eq!((mapping.bytes, mapping.resident), (BYTES, resident));
        }
    }

    /// Whether transparent huge pages are given to those that ask.
    fn transparent_to_be_had() -> bool {
        let state = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        state.is_ok_and(|state| !state.contains("[never]"))
    }

    #[test]
    fn huge_pages_are_what_the_kind_says() {
        let pool = pool(|b| b.huge_pages(true).prefault(true));
        let mapping = pool.mapping().unwrap();
        println!("{:?}: {mapping:?}", pool.memory_kind());
        assert_eq!((mapping.bytes, mapping.resident), (BYTES, BYTES));
        match pool.memory_kind() {
            MemoryKind::HugePages => {
                assert_eq!((mapping.page_size, mapping.reserved_huge), (2 << 20, BYTES));
            }
            kind => {
                // The fall-back: nothing reserved was to be had.
                println!("no reserved huge pages: /proc/sys/vm/nr_hugepages has too few");
                assert_eq!(
                    (mapping.reserved_huge, pool.range().addr().get() % (2 << 20)),
                    (0, 0)
                );
                assert!(mapping.page_size < 2 << 20);
                if transparent_to_be_had() {
                    assert_eq!(kind, MemoryKind::TransparentHugePages);
                    assert!(mapping.transparent_huge >= 2 << 20, "{mapping:?}");
                }
            }
        }
    }

    #[test]
    fn huge_mappings_are_whole_huge_pages() {
        let pool = RawPool::builder(1)
            .align(1 << 20)
            .capacity(3)
            .huge_pages(true)
            .build();
        assert_eq!(pool.unwrap().mapping().unwrap().bytes, 4 << 20);
    }

    #[test]
    fn a_region_shows_the_mappings_that_it_lies_in() {
        let memory = Box::leak(vec![1u8; 1 << 20].into_boxed_slice());
        let builder = RawPool::builder(1024).align(1).stride(1024).capacity(1024);
        let mapping = builder
            .static_region(memory)
            .build()
            .unwrap()
            .mapping()
            .unwrap();
        assert!(
            mapping.bytes >= 1 << 20 && mapping.resident >= 1 << 20,
            "{mapping:?}"
        );
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
#[test]
fn elsewhere_nothing_is_known_of_mappings() {
    let error = pool(|b| b).mapping().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
}
