//! The ring for one producer and one consumer.

use super::*;
use crate::backend::SpscRing;

/// Puts one object, when there is room.
fn put_one(ring: &SpscRing, obj: NonNull<u8>) {
    while ring.try_put_bulk(&[obj]).is_err() {
        thread::yield_now();
    }
}

fn get_when_there(ring: &SpscRing) -> NonNull<u8> {
    loop {
        if let Some(obj) = get_one(ring) {
            return obj;
        }
        thread::yield_now();
    }
}

/// Objects travel through a ring of two, so that slots are used again. The producer touches each
/// before it puts it; the consumer touches and frees it after it got it. Nothing else orders them.
fn travel(objects: usize) {
    // SAFETY: one thread puts, one gets.
    let ring = loom::sync::Arc::new(unsafe { SpscRing::new(2) });
    let producer = thread::spawn({
        let ring = ring.clone();
        move || {
            for obj in watched(objects) {
                touch(obj);
                put_one(&ring, obj);
            }
        }
    });
    for _ in 0..objects {
        let obj = get_when_there(&ring);
        touch(obj);
        assert!(ring.len() <= 2);
        free(obj);
    }
    producer.join().unwrap();
    assert_eq!(ring.len(), 0);
}

#[test]
fn loom_spsc_passes_objects_on_and_uses_slots_again() {
    check(3, || travel(4));
}

/// A bulk that wraps around is taken whole or not at all, whoever looks at the length.
#[test]
fn loom_spsc_bulk_that_wraps_around() {
    check(3, || {
        // SAFETY: one thread puts, one gets.
        let ring = loom::sync::Arc::new(unsafe { SpscRing::new(2) });
        let objs = watched(3);
        ring.put_bulk(&objs[..1]);
        let producer = thread::spawn({
            let ring = ring.clone();
            let objs = [Sent(objs[1]), Sent(objs[2])];
            move || {
                let objs = objs.map(|Sent(obj)| obj);
                objs.iter().for_each(|&obj| touch(obj));
                while ring.try_put_bulk(&objs).is_err() {
                    thread::yield_now();
                }
            }
        });
        touch(get_when_there(&ring));
        let mut out = [MaybeUninit::uninit(); 2];
        while let Err(there) = ring.get_bulk(&mut out) {
            assert_eq!(there, 0, "both or none");
            thread::yield_now();
        }
        // SAFETY: written after success.
        let got = out.map(|obj| unsafe { obj.assume_init() });
        got.iter().for_each(|&obj| touch(obj));
        assert_eq!(got, objs[1..]);
        producer.join().unwrap();
        objs.into_iter().for_each(free);
    });
}

struct Sent(NonNull<u8>);

// SAFETY: an address; whoever receives it owns the object.
unsafe impl Send for Sent {}

/// One thread takes, another puts back, and the last handle goes meanwhile.
#[test]
fn loom_spsc_teardown() {
    check(4, || {
        let count = Arc::new(AtomicUsize::new(0));
        // SAFETY: the main thread takes, the other gives after it was spawned.
        let configure = |b: crate::Builder| unsafe { b.capacity(2).cache(0).spsc_backend() };
        let pool = Pool::build(configure, |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Alive(count.clone(), loom::cell::UnsafeCell::new(()))
        });
        let pool = pool.unwrap();
        let value = pool.get().unwrap();
        let other = thread::spawn(move || {
            value.touch();
            drop(value);
            worker::retire_now();
        });
        let second = pool.get().unwrap();
        second.touch();
        assert!(pool.raw().in_use() <= 2);
        drop(pool);
        other.join().unwrap();
        drop(second);
        worker::retire_now();
        assert_eq!(count.load(Ordering::Relaxed), 0);
    });
}
