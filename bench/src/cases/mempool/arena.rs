//! Memory for the stores that have no pool of their own: objects laid out as our pools lay them out.

#![allow(unsafe_code)] // memory whose owners are elsewhere

use super::{CAPACITY, OBJECT};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// Bytes from one object to the next: an odd number of cache lines, as our pools have it.
const STRIDE: usize = OBJECT
    + if (OBJECT / LINE).is_multiple_of(2) {
        LINE
    } else {
        0
    };
const LINE: usize = 64;
const _: () = assert!(STRIDE % (2 * LINE) == LINE);

#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "only its size counts")] [u8; LINE]);

/// Memory of [`CAPACITY`] objects, as the system gives it.
pub(super) struct Arena(NonNull<[MaybeUninit<Line>]>);

// SAFETY: the arena itself touches nothing; who owns an object is said by the store around it.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    pub(super) fn new() -> Self {
        let lines = Box::new_uninit_slice(CAPACITY * STRIDE / LINE);
        Arena(NonNull::from(Box::leak(lines)))
    }

    /// The objects' addresses; they hold as long as the arena.
    pub(super) fn objects(&self) -> impl Iterator<Item = NonNull<u8>> + use<> {
        let base = self.0.cast::<u8>();
        // SAFETY: within the allocation.
        (0..CAPACITY).map(move |index| unsafe { base.add(index * STRIDE) })
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: it came from a box, and whoever had an object is gone: the store owns the arena.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
