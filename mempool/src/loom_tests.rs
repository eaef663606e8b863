//! Models of what threads do to each other, run in all interleavings (up to a bound on preemptions).
//!
//! `RUSTFLAGS="--cfg loom -Cdebug-assertions" cargo test --release -p mempool --lib loom`

mod local_cache;
mod spsc;

use crate::backend::{Backend, Lifo, Ring};
use crate::{BackendKind, Pool, PoolRef, RawPool, worker};
use loom::thread;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// An object of a backend under test: a cell that the model checker watches.
struct Watched(loom::cell::UnsafeCell<u8>);

fn watched(n: usize) -> Vec<NonNull<u8>> {
    let one = || Box::leak(Box::new(Watched(loom::cell::UnsafeCell::new(0))));
    (0..n).map(|_| NonNull::from(one()).cast()).collect()
}

/// Uses an object as only its one holder may.
fn touch(obj: NonNull<u8>) {
    // SAFETY: made by `watched`.
    unsafe { obj.cast::<Watched>().as_ref() }.0.with_mut(|_| ());
}

fn free(obj: NonNull<u8>) {
    // SAFETY: made by `watched`, and out of the backend for good.
    drop(unsafe { Box::from_raw(obj.cast::<Watched>().as_ptr()) });
}

fn get_one(backend: &impl Backend) -> Option<NonNull<u8>> {
    let mut out = [MaybeUninit::uninit()];
    backend.get_bulk(&mut out).ok()?;
    // SAFETY: written after success.
    Some(unsafe { out[0].assume_init() })
}

/// Two threads take one and put it back, one of them `rounds` times; each object is in one hand at a
/// time.
fn take_and_put_back<B: Backend + 'static>(backend: B, rounds: usize) {
    let backend = loom::sync::Arc::new(backend);
    backend.put_bulk(&watched(2));
    let other = thread::spawn({
        let backend = backend.clone();
        move || {
            for _ in 0..rounds {
                let obj = get_one(&*backend).expect("two objects, two threads");
                touch(obj);
                assert!(backend.len() <= 2);
                backend.put_bulk(&[obj]);
            }
        }
    });
    let obj = get_one(&*backend).expect("two objects, two threads");
    touch(obj);
    backend.put_bulk(&[obj]);
    other.join().unwrap();
    assert_eq!(backend.len(), 2);
    while let Some(obj) = get_one(&*backend) {
        touch(obj);
        free(obj);
    }
}

#[test]
fn loom_fault_c5_ring_of_two_with_two_producers_and_consumers() {
    check(5, || take_and_put_back(Ring::new(2), 1));
}

/// A thread reads a head and is stopped while another goes past it.
#[test]
fn loom_fault_c5_ring_of_two_with_a_stale_head() {
    check(3, || take_and_put_back(Ring::new(2), 2));
}

#[test]
fn loom_lifo() {
    check(6, || take_and_put_back(Lifo::new(2), 1));
}

#[test]
fn loom_ring_takes_two_or_none() {
    check(5, || {
        let ring = loom::sync::Arc::new(Ring::new(2));
        ring.put_bulk(&watched(2));
        let other = thread::spawn({
            let ring = ring.clone();
            move || {
                let mut out = [MaybeUninit::uninit(); 2];
                if ring.get_bulk(&mut out).is_ok() {
                    // SAFETY: written after success.
                    let objs = out.map(|obj| unsafe { obj.assume_init() });
                    objs.iter().for_each(|&obj| touch(obj));
                    ring.put_bulk(&objs);
                }
            }
        });
        if let Some(obj) = get_one(&*ring) {
            touch(obj);
            ring.put_bulk(&[obj]);
        }
        other.join().unwrap();
        assert_eq!(ring.len(), 2);
        while let Some(obj) = get_one(&*ring) {
            touch(obj);
            free(obj);
        }
    });
}

/// Counts how many values are alive, outside of the model, and lets the model watch its uses.
struct Alive(Arc<AtomicUsize>, loom::cell::UnsafeCell<()>);

impl Alive {
    /// Uses the value as only its holder may.
    fn touch(&self) {
        self.1.with_mut(|_| ());
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.touch();
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn alive(capacity: usize, cache: usize, kind: BackendKind) -> (Pool<Alive>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let configure = |b: crate::Builder| b.capacity(capacity).cache(cache).workers(2).backend(kind);
    let pool = Pool::build(configure, |_| {
        count.fetch_add(1, Ordering::Relaxed);
        Alive(count.clone(), loom::cell::UnsafeCell::new(()))
    });
    (pool.unwrap(), count)
}

#[test]
fn loom_cache_changes_hands_when_a_thread_ends() {
    check(3, || {
        let builder = RawPool::builder(8).capacity(4).cache(2).workers(2);
        let pool = builder.build().unwrap();
        let work = |pool: RawPool| {
            move || {
                let obj = pool.get().expect("enough for all");
                // SAFETY: got above, given up.
                unsafe { pool.pool_ref().put(obj) };
                worker::retire_now();
            }
        };
        let first = thread::spawn(work(pool.clone()));
        let second = thread::spawn(work(pool.clone()));
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!((pool.cached(), pool.in_use()), (0, 0));
    });
}

/// The handle goes away here while another thread puts the last object back.
fn teardown(cache: usize, kind: BackendKind) {
    let (pool, count) = alive(2, cache, kind);
    let value = pool.get().unwrap();
    let other = thread::spawn(move || {
        value.touch();
        drop(value);
        worker::retire_now();
    });
    drop(pool);
    worker::retire_now();
    other.join().unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 0);
}

#[test]
fn loom_teardown_without_caches() {
    check(6, || teardown(0, BackendKind::Lifo));
}

#[test]
fn loom_teardown_with_caches() {
    check(5, || teardown(2, BackendKind::Lifo));
}

#[test]
fn loom_teardown_by_two_threads_with_handles_and_objects() {
    check(2, || {
        let (pool, count) = alive(3, 1, BackendKind::Lifo);
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (pool, value) = (pool.clone(), pool.get().unwrap());
                thread::spawn(move || {
                    drop(pool);
                    value.touch();
                    drop(value);
                    worker::retire_now();
                })
            })
            .collect();
        drop(pool);
        worker::retire_now();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(count.load(Ordering::Relaxed), 0);
    });
}

#[test]
fn loom_handle_from_an_object_races_with_the_last_drop() {
    check(3, || {
        let (pool, count) = alive(1, 0, BackendKind::Lifo);
        let raw = pool.into_raw();
        let obj = raw.get().unwrap().addr();
        let base = raw.object(0).unwrap();
        assert_eq!(base.addr(), obj);
        struct Out(PoolRef, NonNull<u8>);
        // SAFETY: the object is this thread's to give to another.
        unsafe impl Send for Out {}
        let out = Out(raw.pool_ref(), base);
        let other = thread::spawn(move || {
            let Out(name, obj) = { out };
            // SAFETY: the object keeps the pool alive until it is put.
            unsafe {
                let handle = name.handle();
                name.put(obj);
                drop(handle);
            }
            worker::retire_now();
        });
        drop(raw);
        worker::retire_now();
        other.join().unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 0);
    });
}

/// A value that a handle took before it was dropped is not overlooked.
#[test]
fn loom_try_destroy_succeeds_only_if_nothing_is_out() {
    check(3, || {
        let (pool, count) = alive(1, 0, BackendKind::Lifo);
        let other = thread::spawn({
            let pool = pool.clone();
            move || {
                let value = pool.get().unwrap();
                drop(pool);
                worker::retire_now();
                value
            }
        });
        let destroyed = pool.into_raw().try_destroy().is_ok();
        worker::retire_now();
        assert!(!destroyed, "a handle or a value was out all the time");
        drop(other.join().unwrap());
        assert_eq!(count.load(Ordering::Relaxed), 0);
    });
}

/// A get that fails makes the other thread give its cache back, and may take all then.
#[test]
fn loom_recall_brings_back_what_another_thread_cached() {
    check(3, || {
        let pool = RawPool::builder(8).capacity(2).cache(2).workers(2);
        let pool = pool.build().unwrap();
        let other = thread::spawn({
            let pool = pool.clone();
            move || {
                for _ in 0..2 {
                    if let Ok(obj) = pool.get() {
                        // SAFETY: got above, given up.
                        unsafe { pool.pool_ref().put(obj) };
                    }
                }
                worker::retire_now();
            }
        });
        let mut out = [MaybeUninit::uninit(); 2];
        if pool.get_bulk(&mut out).is_ok() {
            // SAFETY: written after success, given up.
            unsafe { pool.pool_ref().put_bulk(&out.map(|obj| obj.assume_init())) };
        }
        other.join().unwrap();
        worker::retire_now();
        assert_eq!((pool.cached(), pool.in_use()), (0, 0));
        assert_eq!(pool.audit().unwrap().backend, 2);
    });
}

/// A wait ends whatever the other thread does meanwhile: no wake is lost.
fn waiting(cache: usize, kind: BackendKind) {
    let builder = RawPool::builder(8).capacity(1).cache(cache).workers(2);
    let pool = builder.backend(kind).build().unwrap();
    let held = pool.get().unwrap();
    let object = pool.object(0).unwrap();
    assert_eq!(held, object);
    let name = pool.pool_ref();
    struct Out(PoolRef, NonNull<u8>);
    // SAFETY: the object is this thread's to give to another.
    unsafe impl Send for Out {}
    let out = Out(name, object);
    let other = thread::spawn(move || {
        let Out(name, object) = { out };
        // SAFETY: given up by the main thread.
        unsafe { name.put(object) };
        worker::retire_now();
    });
    let again = pool.get_timeout(std::time::Duration::MAX).unwrap();
    other.join().unwrap();
    // SAFETY: just got.
    unsafe { name.put(again) };
    worker::retire_now();
    assert_eq!((pool.cached(), pool.in_use()), (0, 0));
}

#[test]
fn loom_no_wake_is_lost_by_a_stack() {
    check(4, || waiting(0, BackendKind::Lifo));
}

#[test]
fn loom_no_wake_is_lost_by_a_ring() {
    check(4, || waiting(0, BackendKind::Ring));
}

#[test]
fn loom_no_wake_is_lost_by_a_cache() {
    check(3, || waiting(1, BackendKind::Lifo));
}
