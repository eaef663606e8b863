//! After a pool was built and a thread has used one, nothing allocates.

#[path = "support/helpers.rs"]
mod helpers;

use mempool::{BackendKind, RawPool};
use std::alloc::{GlobalAlloc, Layout, System};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: forwards to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

// One test in this binary: nobody else allocates meanwhile.
#[test]
fn nothing_allocates_after_creation() {
    let first = RawPool::builder(8).build().unwrap();
    helpers::give(&first, &[first.get().unwrap()]);
    for kind in [BackendKind::Lifo, BackendKind::Ring] {
        for cache in [0, 8, 512] {
            let builder = RawPool::builder(64)
                .capacity(1000)
                .cache(cache)
                .backend(kind);
            let pool = builder.build().unwrap();
            let mut out = [MaybeUninit::uninit(); 300];
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            for n in [1, 7, 8, 100, 300] {
                let out = &mut out[..n];
                for _ in 0..10 {
                    pool.get_bulk(out).unwrap();
                    // SAFETY: written after success; objects are given up once.
                    unsafe {
                        let mut cursor = pool.pool_ref().open_put();
                        for obj in out.iter() {
                            cursor.push(obj.assume_init());
                        }
                    }
                    let obj = pool.get().unwrap();
                    helpers::give(&pool, &[obj]);
                }
            }
            pool.flush_thread_cache();
            assert!(pool.is_full());
            assert!(pool.get_bulk(&mut [MaybeUninit::uninit(); 1001]).is_err());
            assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before);
        }
    }
}
