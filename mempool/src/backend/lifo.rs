//! A stack under a lock: what was put last comes back first, while it is still warm.

use super::Backend;
use crate::sync::Mutex;
use std::collections::TryReserveError;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// A fixed array under a mutex, used as a stack of bursts. The default backend.
///
/// Each call is one lock and one copy. A burst comes back in the order in which it was put.
#[doc(alias = "rte_mempool_stack")]
pub struct Lifo {
    stack: Mutex<Stack>,
    room: usize,
}

struct Stack {
    entries: Box<[MaybeUninit<NonNull<u8>>]>,
    len: usize,
}

// SAFETY: the pointers are only carried; whose they are is the pool's business.
unsafe impl Send for Stack {}

impl Lifo {
    /// An empty stack with room for `room` objects.
    ///
    /// # Panics
    /// If so many pointers do not fit into the address space.
    pub fn new(room: usize) -> Self {
        Self::over(Box::new_uninit_slice(room))
    }

    /// As [`new`](Self::new), but lack of memory is an error.
    pub(crate) fn try_new(room: usize) -> Result<Self, TryReserveError> {
        let mut entries = Vec::new();
        entries.try_reserve_exact(room)?;
        // SAFETY: so many are allocated, and `MaybeUninit` asks for no content.
        unsafe { entries.set_len(room) };
        Ok(Self::over(entries.into_boxed_slice()))
    }

    fn over(entries: Box<[MaybeUninit<NonNull<u8>>]>) -> Self {
        let room = entries.len();
        let stack = Mutex::new(Stack { entries, len: 0 });
        Self { stack, room }
    }
}

// SAFETY: entries below `len` are those that were put and not got yet, and a get takes them off
// under the lock, which also orders put before get. All of `out` is written before `Ok`.
unsafe impl Backend for Lifo {
    /// # Panics
    /// If there is no room: somebody put what they did not get.
    fn put_bulk(&self, objs: &[NonNull<u8>]) {
        let mut stack = self.stack.lock();
        let len = stack.len;
        let Some(free) = stack.entries[len..].get_mut(..objs.len()) else {
            drop(stack);
            super::ring::overfull(self.room, objs.len());
        };
        // SAFETY: `free` has `objs.len()` entries, and is ours alone under the lock.
        unsafe {
            free.as_mut_ptr()
                .cast::<NonNull<u8>>()
                .copy_from_nonoverlapping(objs.as_ptr(), objs.len());
        }
        stack.len = len + objs.len();
    }

    fn get_bulk(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), usize> {
        let mut stack = self.stack.lock();
        let Some(rest) = stack.len.checked_sub(out.len()) else {
            return Err(stack.len);
        };
        out.copy_from_slice(&stack.entries[rest..stack.len]);
        stack.len = rest;
        Ok(())
    }

    fn len(&self) -> usize {
        self.stack.lock().len
    }

    fn room(&self) -> usize {
        self.room
    }
}
