//! Allocators, called directly: no pool, no bound. Their heap has had all objects already, and
//! something still lies behind them: otherwise each free may give memory back to the system.

#![allow(unsafe_code)] // raw memory

use super::one_by_one;
use crate::cases::mempool::stores::{Lane, Store, empty};
use crate::cases::mempool::{CAPACITY, OBJECT};
use std::alloc::{GlobalAlloc, Layout, System};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// As the allocators align by themselves.
const LAYOUT: Layout = match Layout::from_size_align(OBJECT, 16) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};

/// An allocator by its name.
pub(in super::super) trait Named: GlobalAlloc + Send + Sync + 'static {
    const NAME: &'static str;
    const THIS: Self;
}

impl Named for System {
    const NAME: &'static str = "glibc";
    const THIS: Self = System;
}

impl Named for mimalloc::MiMalloc {
    const NAME: &'static str = "mimalloc";
    const THIS: Self = mimalloc::MiMalloc;
}

/// Memory from `A`; what it holds lies behind the objects' room.
pub(in super::super) struct Heap<A: Named>(NonNull<u8>, PhantomData<A>);
/// The calls of `A`.
pub(in super::super) struct Way<A>(PhantomData<A>);

// SAFETY: nobody uses what it holds, and the allocator is for all threads.
unsafe impl<A: Named> Sync for Heap<A> {}

impl<A: Named> Drop for Heap<A> {
    fn drop(&mut self) {
        // SAFETY: got from the same allocator and layout.
        unsafe { Way::<A>(PhantomData).put_one(self.0) };
    }
}

/// The C library's `malloc`.
pub(super) type Glibc = Heap<System>;
/// Microsoft's.
pub(super) type Mimalloc = Heap<mimalloc::MiMalloc>;

// SAFETY: an allocator hands out memory that is nobody else's, and takes it back on any thread.
unsafe impl<A: Named> Store for Heap<A> {
    const NAME: &'static str = A::NAME;
    type Lane<'a> = Way<A>;

    fn build() -> Result<Self, String> {
        let mut way = Way::<A>(PhantomData);
        let all: Vec<_> = (0..CAPACITY).map(|_| way.get_one()).collect();
        let behind = way.get_one();
        for object in all {
            // SAFETY: just got.
            unsafe { way.put_one(object) };
        }
        Ok(Heap(behind, PhantomData))
    }

    fn lane(&self) -> Way<A> {
        Way(PhantomData)
    }

    fn missing(&self) -> Option<usize> {
        None
    }
}

// SAFETY: null is refused; the rest is an object each.
unsafe impl<A: Named> Lane for Way<A> {
    type Item = NonNull<u8>;

    one_by_one!();

    #[inline(always)]
    fn get_one(&mut self) -> NonNull<u8> {
        // SAFETY: the size is not zero.
        NonNull::new(unsafe { A::THIS.alloc(LAYOUT) }).unwrap_or_else(|| empty())
    }

    #[inline(always)]
    unsafe fn put_one(&mut self, item: NonNull<u8>) {
        // SAFETY: it came from the same allocator and layout.
        unsafe { A::THIS.dealloc(item.as_ptr(), LAYOUT) };
    }

    #[inline(always)]
    fn line(item: &mut NonNull<u8>) -> *mut u64 {
        item.as_ptr().cast()
    }
}
