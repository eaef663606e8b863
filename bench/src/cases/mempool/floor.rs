//! The least that a get or put on one thread must do: copy the pointers, and count them.
//!
//! The array is as long as the store; the caller's is on its stack. Bursts under [`CALL`] pointers
//! are copied in place, sixteen bytes at a time: a call of `memcpy` costs more than it saves there.

#![allow(unsafe_code)] // copies pointers unchecked

use super::CAPACITY;
use super::arena::Arena;
use super::stores::{Lane, Store};
use std::cell::Cell;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

type Ptr = NonNull<u8>;

/// Pointers from which on `memcpy` is called.
const CALL: usize = 16;

/// An array of pointers that is used from its end.
pub(super) struct Floor {
    entries: Box<[Cell<Ptr>]>,
    /// How many were there when the last lane was dropped.
    len: Cell<usize>,
    /// What the pointers are into.
    _arena: Arena,
}

// SAFETY: an entry below a lane's length is handed out once; there is one lane at a time, of the one
// thread that has the cell.
unsafe impl Store for Floor {
    const NAME: &'static str = "floor";
    type Lane<'a> = Top<'a>;

    fn build() -> Result<Self, String> {
        let arena = Arena::new();
        Ok(Floor {
            entries: arena.objects().map(Cell::new).collect(),
            len: Cell::new(CAPACITY),
            _arena: arena,
        })
    }

    fn lane(&self) -> Top<'_> {
        Top {
            base: NonNull::from(&*self.entries).cast(),
            // A second lane finds nothing.
            len: self.len.replace(0),
            left: &self.len,
        }
    }

    fn missing(&self) -> Option<usize> {
        Some(CAPACITY - self.len.get())
    }
}

/// The end of the array.
pub(super) struct Top<'a> {
    base: NonNull<Ptr>,
    len: usize,
    left: &'a Cell<usize>,
}

impl Drop for Top<'_> {
    fn drop(&mut self) {
        self.left.set(self.len);
    }
}

/// Copies `n` pointers.
///
/// # Safety
/// So many are readable at `from` and writable at `to`, which do not overlap.
#[inline(always)]
unsafe fn copy(from: *const MaybeUninit<Ptr>, to: *mut MaybeUninit<Ptr>, n: usize) {
    /// Sixteen bytes.
    type Two = [MaybeUninit<Ptr>; 2];
    // SAFETY: by contract; all accesses are below `n`.
    unsafe {
        if n >= CALL {
            return to.copy_from_nonoverlapping(from, n);
        }
        let mut at = 0;
        while at + 2 <= n {
            to.add(at)
                .cast::<Two>()
                .write_unaligned(from.add(at).cast::<Two>().read_unaligned());
            at += 2;
            // Keeps the loop from being turned into a call.
            black_box(());
        }
        if at < n {
            to.add(at).write(from.add(at).read());
        }
    }
}

// SAFETY: entries below `len` are each handed out once. That the array is not used beyond its ends
// is the plan's business, which the cell checks: no more is given back than was taken, and no more
// is taken than a fifth of the array.
unsafe impl Lane for Top<'_> {
    type Item = Ptr;

    #[inline(always)]
    fn get(&mut self, out: &mut [MaybeUninit<Ptr>]) {
        self.len -= out.len();
        // SAFETY: see above.
        unsafe {
            let from = self.base.add(self.len).as_ptr().cast_const();
            copy(from.cast(), out.as_mut_ptr(), out.len());
        }
    }

    #[inline(always)]
    unsafe fn put(&mut self, items: &mut [MaybeUninit<Ptr>]) {
        // SAFETY: see above.
        unsafe {
            let to = self.base.add(self.len).as_ptr();
            copy(items.as_ptr(), to.cast(), items.len());
            // The array is read by somebody, as far as the compiler knows.
            black_box(self.base);
        }
        self.len += items.len();
    }

    #[inline(always)]
    fn get_one(&mut self) -> Ptr {
        self.len -= 1;
        // SAFETY: see above.
        unsafe { self.base.add(self.len).read() }
    }

    #[inline(always)]
    unsafe fn put_one(&mut self, item: Ptr) {
        // SAFETY: see above.
        unsafe { self.base.add(self.len).write(item) };
        black_box(self.base);
        self.len += 1;
    }

    #[inline(always)]
    fn line(item: &mut Ptr) -> *mut u64 {
        item.as_ptr().cast()
    }
}
