//! lockfree-object-pool's linear pool: guards, pages of 32 objects, no bound. The objects are boxes: with
//! arrays that lie in the page, making a page takes so much stack that each get has to probe it.

#![allow(unsafe_code)] // the contract of a store

use super::{Buffer, buffer, one_by_one};
use crate::cases::mempool::CAPACITY;
use crate::cases::mempool::stores::{Lane, Store};
use lockfree_object_pool::{LinearObjectPool, LinearReusable};
use std::mem::MaybeUninit;

/// One pool, which has made its objects already.
pub(in super::super) struct Linear(LinearObjectPool<Buffer>);

// SAFETY: a guard owns its object, and may be dropped on any thread, by the crate's own word.
unsafe impl Store for Linear {
    const NAME: &'static str = "lockfree-object-pool";
    type Lane<'a> = Way<'a>;

    fn build() -> Result<Self, String> {
        let pool = LinearObjectPool::new(buffer, |_| ());
        let all: Vec<_> = (0..CAPACITY).map(|_| pool.pull()).collect();
        drop(all);
        Ok(Linear(pool))
    }

    fn lane(&self) -> Way<'_> {
        Way(&self.0)
    }

    fn missing(&self) -> Option<usize> {
        None
    }
}

/// The pool's calls.
pub(in super::super) struct Way<'a>(&'a LinearObjectPool<Buffer>);

// SAFETY: a guard owns its object.
unsafe impl<'a> Lane for Way<'a> {
    type Item = LinearReusable<'a, Buffer>;

    one_by_one!();

    #[inline(always)]
    fn get_one(&mut self) -> Self::Item {
        self.0.pull()
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
