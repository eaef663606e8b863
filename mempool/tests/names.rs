//! Pools are found by name and by address, and walked.

use mempool::{CreateError, RawPool, pools};
use std::ptr::NonNull;
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

/// One test at a time: a walk holds handles of all pools, those of other tests too.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn named(name: &str) -> RawPool {
    RawPool::builder(64).capacity(4).name(name).build().unwrap()
}

#[test]
fn mp_11_a_unique_name_is_given_once() {
    let _alone = alone();
    let unique = || RawPool::builder(64).capacity(4).unique_name("mp_11");
    let first = unique().build().unwrap();
    let error = unique()
        .build_with(|_, _| panic!("not even begun"))
        .unwrap_err();
    assert!(matches!(&error, CreateError::NameTaken { name } if **name == *"mp_11"));
    assert_eq!(error.to_string(), "there is a pool named \"mp_11\"");
    // Who does not ask for it may have the same name, and stands in the way, too.
    let second = named("mp_11");
    let found = RawPool::find("mp_11").unwrap();
    assert_eq!(found.pool_ref(), first.pool_ref());
    drop((first, found));
    assert_eq!(
        RawPool::find("mp_11").unwrap().pool_ref(),
        second.pool_ref()
    );
    assert!(unique().build().is_err());
    drop(second);
    unique().build().unwrap().try_destroy().unwrap();
}

#[test]
fn mp_11_a_name_taken_while_building_is_an_error_and_objects_are_dropped() {
    let _alone = alone();
    let mut other = None;
    let result = RawPool::builder(64)
        .capacity(4)
        .unique_name("mp_11 late")
        .build_with(|_, _| {
            other.get_or_insert_with(|| named("mp_11 late"));
        });
    assert!(matches!(result, Err(CreateError::NameTaken { .. })));
    let found = RawPool::find("mp_11 late").unwrap();
    assert_eq!(
        Some(found.pool_ref()),
        other.as_ref().map(RawPool::pool_ref)
    );
}

#[test]
fn mp_11_of_many_threads_one_gets_the_name() {
    let _alone = alone();
    for _ in 0..50 {
        let barrier = Barrier::new(4);
        let pools: Vec<_> = std::thread::scope(|scope| {
            let build = || {
                barrier.wait();
                RawPool::builder(8)
                    .capacity(1)
                    .unique_name("race")
                    .build()
                    .ok()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(build)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert_eq!(pools.iter().flatten().count(), 1);
    }
}

#[test]
fn no_name_is_not_a_name() {
    let _alone = alone();
    let unnamed = || RawPool::builder(8).capacity(1);
    let _pools = [
        unnamed().build().unwrap(),
        unnamed().unique_name("").build().unwrap(),
    ];
    unnamed().unique_name("").build().unwrap();
    assert!(RawPool::find("").is_none());
}

#[test]
fn mp_16_look_up_walk_and_dump() {
    let _alone = alone();
    let pool = named("mp_16");
    let found = RawPool::find("mp_16").unwrap();
    assert_eq!(found.pool_ref(), pool.pool_ref());
    let mine = |pools: Vec<RawPool>| pools.iter().filter(|p| p.name() == "mp_16").count();
    assert_eq!(mine(pools()), 1);
    for pool in pools() {
        assert!(pool.to_string().lines().count() <= 24);
    }
    // A handle that was found keeps the pool.
    drop(pool);
    assert_eq!(mine(pools()), 1);
    drop(found);
    assert_eq!(mine(pools()), 0);
    assert!(RawPool::find("mp_16").is_none());
}

#[test]
fn fault_y8_a_pool_that_was_freed_is_not_found() {
    let _alone = alone();
    for destroy in [false, true] {
        let pool = named("fault_y8");
        let object = pool.object(0).unwrap();
        if destroy {
            pool.try_destroy().unwrap();
        } else {
            drop(pool);
        }
        assert!(RawPool::find("fault_y8").is_none());
        let same = RawPool::owner_of(object).is_some_and(|pool| pool.name() == "fault_y8");
        assert!(!same);
        assert!(pools().iter().all(|pool| pool.name() != "fault_y8"));
    }
}

#[test]
fn fault_y8_a_pool_that_is_being_freed_is_not_found() {
    let _alone = alone();
    let pool = named("closing");
    let name = pool.pool_ref();
    let object = pool.get().unwrap();
    drop(pool);
    assert!(RawPool::find("closing").is_none());
    assert!(RawPool::owner_of(object).is_none());
    // Its name is free.
    let next = RawPool::builder(8)
        .capacity(1)
        .unique_name("closing")
        .build();
    assert!(next.is_ok());
    // SAFETY: got above, not used afterwards.
    unsafe { name.put(object) };
}

#[test]
fn a_pool_that_is_being_built_is_not_found() {
    let _alone = alone();
    let builder = RawPool::builder(8).capacity(2).name("half built");
    let pool = builder.build_with(|object, _| {
        assert!(RawPool::find("half built").is_none());
        assert!(RawPool::owner_of(object).is_none());
    });
    assert!(RawPool::find("half built").is_some());
    drop(pool);
}

#[test]
fn try_destroy_that_refuses_keeps_the_pool_in_the_list() {
    let _alone = alone();
    let pool = named("refused");
    let object = pool.get().unwrap();
    let pool = pool.try_destroy().unwrap_err().into_handle();
    let found = RawPool::find("refused").unwrap();
    let pool = pool.try_destroy().unwrap_err().into_handle();
    drop(found);
    // SAFETY: got above, not used afterwards.
    unsafe { pool.pool_ref().put(object) };
    assert!(RawPool::find("refused").is_some());
    pool.try_destroy().unwrap();
}

#[test]
fn objects_know_their_pool() {
    let _alone = alone();
    let pools = ["one", "two"].map(|name| {
        RawPool::builder(100)
            .capacity(3)
            .name(name)
            .build()
            .unwrap()
    });
    for pool in &pools {
        for object in pool.objects() {
            let last = object.map_addr(|addr| addr.saturating_add(99));
            for address in [object, last] {
                let owner = RawPool::owner_of(address).unwrap();
                assert_eq!(owner.pool_ref(), pool.pool_ref());
            }
            let behind = object.map_addr(|addr| addr.saturating_add(100));
            assert!(RawPool::owner_of(behind).is_none());
        }
    }
    assert!(RawPool::owner_of(NonNull::from(&mut 0u8)).is_none());
}

#[test]
fn pools_that_end_while_others_look_for_them() {
    let _alone = alone();
    std::thread::scope(|scope| {
        for worker in 0..3 {
            scope.spawn(move || {
                for _ in 0..300 {
                    let pool = named("restless");
                    let object = pool.get().unwrap();
                    drop(RawPool::owner_of(object));
                    if let Some(found) = RawPool::find("restless") {
                        assert_eq!((found.capacity(), found.name()), (4, "restless"));
                    }
                    if worker == 0 {
                        drop(pools());
                    }
                    // SAFETY: got above, not used afterwards.
                    unsafe { pool.pool_ref().put(object) };
                }
            });
        }
    });
    assert!(RawPool::find("restless").is_none());
}
