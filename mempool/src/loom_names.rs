//! Models of pools that are found while they end.

use crate::{Pool, RawPool, worker};
use loom::thread;
use std::sync::Arc;

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
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
        let other = thread::spawn(|| {
            if let Some(found) = RawPool::find("found") {
                assert_eq!(found.capacity(), 1);
            }
        });
        drop(pool);
        assert!(other.join().is_ok());
    });
}

#[test]
fn loom_a_pool_that_was_destroyed_is_not_found() {
    check(|| {
        let pool = pool();
        let other = thread::spawn(|| RawPool::find("found").is_some());
        let destroyed = pool.try_destroy().is_ok();
        if destroyed {
            assert!(RawPool::find("found").is_none());
        }
        let found = other.join().unwrap();
        assert!(destroyed || found);
    });
}

#[test]
fn loom_a_found_pool_gives_an_object_while_another_destroys_it() {
    check(|| {
        let value = Arc::new(());
        let pool = Pool::build(
            |b| b.capacity(1).workers(0).name("found"),
            |_| value.clone(),
        );
        let pool = pool.unwrap().into_raw();
        let name = pool.pool_ref();
        let other = thread::spawn(move || {
            let Some(found) = RawPool::find("found") else {
                return;
            };
            let object = found.get().expect("nobody else takes it");
            drop(found);
            // SAFETY: got from this pool, and not used afterwards.
            unsafe { name.put(object) };
            worker::retire_now();
        });
        let destroyed = pool.try_destroy().is_ok();
        assert!(
            !destroyed || Arc::strong_count(&value) == 1,
            "gone means gone"
        );
        other.join().unwrap();
        assert_eq!(Arc::strong_count(&value), 1);
    });
}
