//! A race on purpose: whoever runs a race detector runs this first, and expects to be told.
//!
//! Ignored otherwise: it is undefined behaviour, and the one test here that is meant to be reported.

use mempool::RawPool;
use std::ptr::NonNull;
use std::thread;

struct Object(NonNull<u8>);

// SAFETY: it is not: that is the point.
unsafe impl Send for Object {}

/// One thread writes to an object that it has put back; another has got it meanwhile.
#[test]
#[ignore = "undefined behaviour on purpose, for race detectors"]
fn a_write_after_the_put_races_with_the_next_owner() {
    let builder = RawPool::builder(64).capacity(1).cache(0);
    let pool = builder.build().unwrap();
    let held = Object(pool.get().unwrap());
    let name = pool.pool_ref();
    let careless = thread::spawn(move || {
        let Object(object) = { held };
        // SAFETY: the put is right; the write after it is what is to be seen.
        unsafe {
            name.put(object);
            object.write(1);
        }
    });
    let next = pool.get_timeout(std::time::Duration::MAX).unwrap();
    // SAFETY: ours now.
    unsafe {
        next.write(2);
        name.put(next);
    }
    careless.join().unwrap();
}
