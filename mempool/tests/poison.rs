//! Free objects are poisoned when the crate is built with `--cfg asan` under the address sanitizer.
#![cfg(asan)]

use mempool::{Pool, RawPool};
use std::process::Command;
use std::ptr::NonNull;

/// Runs `misuse` in a process of its own, and expects the sanitizer to end it.
fn assert_reported(test: &str, misuse: impl FnOnce()) {
    if std::env::var_os("MISUSE").is_some() {
        return misuse();
    }
    let this = std::env::current_exe().unwrap();
    let child = Command::new(this)
        .args(["--exact", test, "--nocapture"])
        .env("MISUSE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success(), "nothing was reported");
    assert!(said.contains("use-after-poison"), "{said}");
}

fn pool() -> RawPool {
    let builder = RawPool::builder(64).capacity(4).cache(2);
    builder.build().unwrap()
}

fn read(object: NonNull<u8>) {
    // SAFETY: it is misuse; the sanitizer sees it.
    std::hint::black_box(unsafe { object.read_volatile() });
}

#[test]
fn a_read_of_an_object_that_was_put_back_is_reported() {
    assert_reported("a_read_of_an_object_that_was_put_back_is_reported", || {
        let pool = pool();
        let object = pool.get().unwrap();
        read(object);
        // SAFETY: just got.
        unsafe { pool.pool_ref().put(object) };
        read(object);
    });
}

#[test]
fn a_read_of_an_object_that_nobody_got_is_reported() {
    assert_reported("a_read_of_an_object_that_nobody_got_is_reported", || {
        read(pool().object(3).unwrap());
    });
}

#[test]
fn a_read_past_the_end_of_an_object_is_reported() {
    assert_reported("a_read_past_the_end_of_an_object_is_reported", || {
        let pool = pool();
        let object = pool.get().unwrap();
        // SAFETY: within the arena; not the object's.
        read(unsafe { object.add(64) });
    });
}

#[test]
fn what_is_held_may_be_read_and_written_and_values_are_dropped() {
    let pool = Pool::new(3, |index| vec![index; 10]).unwrap();
    let mut first = pool.get().unwrap();
    first.push(7);
    drop(first);
    let second = pool.get().unwrap();
    assert_eq!(second.len(), 11);
    drop(pool);
    drop(second);
}
