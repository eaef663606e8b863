//! A pool whose bookkeeping finds no memory is an error, not an abort. A binary of its own: the
//! allocator refuses large requests.

use mempool::{BackendKind, CreateError, MAX_OBJECTS, RawPool};
use std::alloc::{GlobalAlloc, Layout, System};

struct Stingy;

// SAFETY: forwards to the system's allocator, or gives nothing.
unsafe impl GlobalAlloc for Stingy {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > 1 << 30 {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: came from `alloc` above, that is, from the system.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Stingy = Stingy;

#[test]
fn fault_o7_no_memory_for_a_built_in_backend_is_an_error() {
    for kind in [BackendKind::Lifo, BackendKind::Ring] {
        let builder = RawPool::builder(1).align(1).spread(false);
        let error = builder.capacity(MAX_OBJECTS).cache(0).backend(kind).build();
        assert!(
            matches!(error, Err(CreateError::NoMemory { bytes, .. }) if bytes == 8 * MAX_OBJECTS),
            "{error:?}"
        );
    }
}
