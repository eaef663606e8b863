//! Models of pools that are found while they end.

use crate::{Pool, RawPool};
use loom::thread;

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(model);
}

fn pool() -> RawPool {
    let pool = Pool::build(|b| b.capacity(1).workers(0).name("found"), |_| 7u8);
    pool.unwrap().into_raw()
}

#[test]
fn loom_fault_y8_a_pool_that_ends_is_found_alive_or_not_at_all() {
    check(|| {
        let pool = pool();
        let name = pool.pool_ref();
        let other = thread::spawn(move || {
            let Some(found) = RawPool::find("found") else {
                return;
            };
            let object = found.get().expect("nobody else takes it");
            drop(found);
            // SAFETY: got from this pool, and not used afterwards.
            unsafe { name.put(object) };
        });
        drop(pool);
        other.join().unwrap();
    });
}

#[test]
fn loom_a_pool_that_was_destroyed_is_not_found_and_one_that_was_found_is_not_destroyed() {
    check(|| {
        let pool = pool();
        let name = pool.pool_ref();
        let other = thread::spawn(move || {
            let object = RawPool::find("found").map(|found| found.get().unwrap());
            // The found handle is dropped; the object keeps the pool alive.
            if let Some(object) = object {
                // SAFETY: got from this pool, and not used afterwards.
                unsafe { name.put(object) };
            }
            object.is_some()
        });
        let destroyed = pool.try_destroy().is_ok();
        if destroyed {
            assert!(RawPool::find("found").is_none());
        }
        let found = other.join().unwrap();
        assert!(destroyed || found);
    });
}
