//! bytes: a `BytesMut` for each object, or objects split from slabs that are reclaimed when all of
//! their parts are gone.

#![allow(unsafe_code)] // lengths of bytes that nobody reads

use super::one_by_one;
use crate::cases::mempool::stores::{Lane, Store};
use crate::cases::mempool::{CAPACITY, OBJECT};
use bytes::BytesMut;
use parking_lot::Mutex;
use std::mem::MaybeUninit;

/// Objects of a slab.
const SLAB: usize = 512;

/// Each object is an allocation; this one lies behind their room, as for the allocators.
pub(in super::super) struct WithCapacity(#[expect(dead_code, reason = "only held")] BytesMut);
/// The constructor.
pub(in super::super) struct Allocate;

// SAFETY: a `BytesMut` owns its bytes.
unsafe impl Store for WithCapacity {
    const NAME: &'static str = "bytes";
    type Lane<'a> = Allocate;

    fn build() -> Result<Self, String> {
        let one = || BytesMut::with_capacity(OBJECT);
        let all: Vec<_> = (0..CAPACITY).map(|_| one()).collect();
        let behind = one();
        drop(all);
        Ok(WithCapacity(behind))
    }

    fn lane(&self) -> Allocate {
        Allocate
    }

    fn missing(&self) -> Option<usize> {
        None
    }
}

// SAFETY: as above.
unsafe impl Lane for Allocate {
    type Item = BytesMut;

    one_by_one!();

    #[inline(always)]
    fn get_one(&mut self) -> BytesMut {
        BytesMut::with_capacity(OBJECT)
    }

    #[inline(always)]
    unsafe fn put_one(&mut self, item: BytesMut) {
        drop(item);
    }

    #[inline(always)]
    fn line(item: &mut BytesMut) -> *mut u64 {
        // The capacity is there, whatever the length.
        item.as_mut_ptr().cast()
    }
}

/// Objects are parts of slabs.
pub(in super::super) struct Split(Mutex<Vec<Slabs>>);

/// One thread's slabs, of which it splits one until it is used up.
struct Slabs {
    slabs: Vec<BytesMut>,
    at: usize,
}

impl Slabs {
    fn new() -> Self {
        let slab = || BytesMut::with_capacity(SLAB * OBJECT);
        Slabs {
            slabs: (0..CAPACITY / SLAB).map(|_| slab()).collect(),
            at: 0,
        }
    }

    /// The next slab whose parts are all gone, or a new one.
    #[cold]
    #[inline(never)]
    fn turn(&mut self) {
        for _ in 0..self.slabs.len() {
            self.at = (self.at + 1) % self.slabs.len();
            if self.slabs[self.at].try_reclaim(SLAB * OBJECT) {
                return;
            }
        }
        self.slabs.push(BytesMut::with_capacity(SLAB * OBJECT));
        self.at = self.slabs.len() - 1;
    }
}

// SAFETY: a part owns its bytes.
unsafe impl Store for Split {
    const NAME: &'static str = "bytes-split";
    type Lane<'a> = Splitting<'a>;

    fn build() -> Result<Self, String> {
        Ok(Split(Mutex::new(Vec::new())))
    }

    fn lane(&self) -> Splitting<'_> {
        let slabs = self.0.lock().pop();
        Splitting {
            store: self,
            slabs: slabs.unwrap_or_else(Slabs::new),
        }
    }

    fn missing(&self) -> Option<usize> {
        None
    }
}

/// A thread's slabs, which go back to the store for the next round.
pub(in super::super) struct Splitting<'a> {
    store: &'a Split,
    slabs: Slabs,
}

impl Drop for Splitting<'_> {
    fn drop(&mut self) {
        let slabs = std::mem::replace(
            &mut self.slabs,
            Slabs {
                slabs: Vec::new(),
                at: 0,
            },
        );
        self.store.0.lock().push(slabs);
    }
}

// SAFETY: as above.
unsafe impl Lane for Splitting<'_> {
    type Item = BytesMut;

    one_by_one!();

    #[inline(always)]
    fn get_one(&mut self) -> BytesMut {
        if self.slabs.slabs[self.slabs.at].capacity() < OBJECT {
            self.slabs.turn();
        }
        let slab = &mut self.slabs.slabs[self.slabs.at];
        // SAFETY: the capacity is there, and nobody reads bytes that were not written.
        unsafe { slab.set_len(OBJECT) };
        slab.split()
    }

    #[inline(always)]
    unsafe fn put_one(&mut self, item: BytesMut) {
        drop(item);
    }

    #[inline(always)]
    fn line(item: &mut BytesMut) -> *mut u64 {
        item.as_mut_ptr().cast()
    }
}
