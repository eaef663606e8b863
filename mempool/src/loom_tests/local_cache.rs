//! Caches that their caller owns.

use super::*;

/// A local cache is sent to another thread, which drops it while the last other handle goes here.
#[test]
fn loom_local_cache_ends_on_another_thread() {
    check(3, || {
        let (pool, count) = alive(3, 0, BackendKind::Lifo);
        let raw = pool.into_raw();
        let mut cache = raw.local_cache(2).unwrap();
        let obj = cache.get().unwrap();
        // SAFETY: got above, given up.
        unsafe { cache.put(obj) };
        let other = thread::spawn(move || {
            drop(cache);
            worker::retire_now();
        });
        drop(raw);
        worker::retire_now();
        other.join().unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 0);
    });
}

/// A local cache here and a thread there take and put back at once.
#[test]
fn loom_local_cache_beside_a_thread() {
    check(3, || {
        let (pool, count) = alive(4, 0, BackendKind::Lifo);
        let raw = pool.raw().clone();
        let other = thread::spawn(move || {
            let value = pool.get().expect("enough for all");
            value.touch();
            drop((value, pool));
            worker::retire_now();
        });
        let mut cache = raw.local_cache(2).unwrap();
        let obj = cache.get().expect("enough for all");
        // SAFETY: got above, given up.
        unsafe { cache.put(obj) };
        cache.flush();
        other.join().unwrap();
        assert_eq!(raw.in_use(), 0);
        drop((cache, raw));
        worker::retire_now();
        assert_eq!(count.load(Ordering::Relaxed), 0);
    });
}
