//! crossbeam's bounded queue as a list of free objects.

#![allow(unsafe_code)] // pointers in a queue

use super::one_by_one;
use crate::cases::mempool::CAPACITY;
use crate::cases::mempool::arena::Arena;
use crate::cases::mempool::stores::{Lane, Store, empty};
use crossbeam_queue::ArrayQueue;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// An address on its way.
#[derive(Clone, Copy)]
struct Free(NonNull<u8>);

// SAFETY: only carried; what it is of lives as long as the queue.
unsafe impl Send for Free {}

/// Free objects, first in, first out.
pub(in super::super) struct Freelist {
    queue: ArrayQueue<Free>,
    _arena: Arena,
}

// SAFETY: what was popped is in the queue no more; the queue orders threads.
unsafe impl Store for Freelist {
    const NAME: &'static str = "crossbeam-queue";
    type Lane<'a> = Way<'a>;

    fn build() -> Result<Self, String> {
        let (queue, arena) = (ArrayQueue::new(CAPACITY), Arena::new());
        for object in arena.objects() {
            let _ = queue.push(Free(object));
        }
        Ok(Freelist {
            queue,
            _arena: arena,
        })
    }

    fn lane(&self) -> Way<'_> {
        Way(&self.queue)
    }

    fn missing(&self) -> Option<usize> {
        Some(CAPACITY - self.queue.len())
    }
}

/// The queue's calls.
pub(in super::super) struct Way<'a>(&'a ArrayQueue<Free>);

// SAFETY: each was popped.
unsafe impl Lane for Way<'_> {
    type Item = NonNull<u8>;

    one_by_one!();

    #[inline(always)]
    fn get_one(&mut self) -> NonNull<u8> {
        self.0.pop().unwrap_or_else(|| empty()).0
    }

    #[inline(always)]
    unsafe fn put_one(&mut self, item: NonNull<u8>) {
        // There is room: no more comes back than was there.
        let _ = self.0.push(Free(item));
    }

    #[inline(always)]
    fn line(item: &mut NonNull<u8>) -> *mut u64 {
        item.as_ptr().cast()
    }
}
