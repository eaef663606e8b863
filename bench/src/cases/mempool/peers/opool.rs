//! opool: guards over boxes in a bounded queue.

#![allow(unsafe_code)] // the contract of a store

use super::{Buffer, buffer, one_by_one};
use crate::cases::mempool::CAPACITY;
use crate::cases::mempool::stores::{Lane, Store};
use opool::{Pool, PoolAllocator, RefGuard};
use std::mem::MaybeUninit;

/// Makes the objects.
pub(in super::super) struct Make;

impl PoolAllocator<Buffer> for Make {
    fn allocate(&self) -> Buffer {
        buffer()
    }
}

/// A pool that was filled at first.
pub(in super::super) struct Opool(Pool<Make, Buffer>);

// SAFETY: a guard owns its box.
unsafe impl Store for Opool {
    const NAME: &'static str = "opool";
    type Lane<'a> = Way<'a>;

    fn build() -> Result<Self, String> {
        Ok(Opool(Pool::new_prefilled(CAPACITY, Make)))
    }

    fn lane(&self) -> Way<'_> {
        Way(&self.0)
    }

    fn missing(&self) -> Option<usize> {
        Some(CAPACITY - self.0.len())
    }
}

/// The pool's calls.
pub(in super::super) struct Way<'a>(&'a Pool<Make, Buffer>);

// SAFETY: a guard owns its box.
unsafe impl<'a> Lane for Way<'a> {
    type Item = RefGuard<'a, Make, Buffer>;

    one_by_one!();

    #[inline(always)]
    fn get_one(&mut self) -> Self::Item {
        self.0.get()
    }

    #[inline(always)]
    unsafe fn put_one(&mut self, item: Self::Item) {
        drop(item);
    }

    #[inline(always)]
    fn line(item: &mut Self::Item) -> *mut u64 {
        item.as_mut_ptr().cast()
    }
}
