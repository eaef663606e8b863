//! The uncounted name of a pool: what object headers keep, and what puts objects back.

use crate::error::Exhausted;
use crate::inner::Inner;
use crate::pool::RawPool;
use crate::sync::Ordering;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// The name of a pool: a pointer, to be kept in object headers, not counted.
///
/// It means something while a handle of the pool lives or an object of it is out; all that depends
/// on that is `unsafe`.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PoolRef(pub(crate) NonNull<Inner>);

// SAFETY: a name; what is done with it is `unsafe`, and fine on any thread, as above.
unsafe impl Send for PoolRef {}
// SAFETY: as for `Send`.
unsafe impl Sync for PoolRef {}

impl PoolRef {
    /// Takes one object.
    ///
    /// # Errors
    /// As for [`RawPool::get`].
    ///
    /// # Safety
    /// The pool lives during the call.
    #[inline(always)]
    pub unsafe fn get(self) -> Result<NonNull<u8>, Exhausted> {
        // SAFETY: the pool lives; the slot is ours.
        unsafe {
            let obj = match self.own_slot().and_then(|slot| slot.pop()) {
                Some(obj) => obj,
                None => self.get_slow()?,
            };
            self.on_got(&[MaybeUninit::new(obj)]);
            Ok(obj)
        }
    }

    /// Fills `out`, or takes none.
    ///
    /// # Errors
    /// As for [`RawPool::get_bulk`].
    ///
    /// # Safety
    /// The pool lives during the call.
    #[inline(always)]
    pub unsafe fn get_bulk(self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), Exhausted> {
        // SAFETY: the pool lives; the slot is ours.
        unsafe {
            match self.own_slot() {
                Some(slot) if slot.pop_bulk(out) => {}
                _ => self.get_bulk_slow(out)?,
            }
            self.on_got(out);
            Ok(())
        }
    }

    /// Puts one object back. It may be the last thing that kept the pool alive.
    ///
    /// # Safety
    /// `obj` is the address of an object of this pool that the caller got, owns and gives up; what
    /// rests in it is as the pool's users agreed.
    #[doc(alias = "rte_mempool_put")]
    #[inline(always)]
    #[track_caller]
    pub unsafe fn put(self, obj: NonNull<u8>) {
        // SAFETY: the object keeps the pool alive; the slot is ours.
        unsafe {
            self.on_put(&[obj]);
            match self.own_slot() {
                Some(slot) if slot.push(obj) => {}
                _ => self.put_slow(obj),
            }
        }
    }

    /// Puts objects back.
    ///
    /// # Safety
    /// As for [`put`](Self::put), for each of `objs`, which are distinct. If it is empty, the pool lives.
    #[doc(alias = "rte_mempool_put_bulk")]
    #[inline(always)]
    #[track_caller]
    pub unsafe fn put_bulk(self, objs: &[NonNull<u8>]) {
        // SAFETY: the objects keep the pool alive; the slot is ours.
        unsafe {
            self.on_put(objs);
            match self.own_slot() {
                Some(slot) if slot.push_bulk(objs) => {}
                _ => self.put_bulk_slow(objs),
            }
        }
    }

    /// A handle, unless the last one was dropped already.
    ///
    /// # Safety
    /// The pool lives during the call.
    pub unsafe fn handle(self) -> Option<RawPool> {
        // SAFETY: as the caller promises.
        let handles = unsafe { &self.inner().handles };
        let mut count = handles.load(Ordering::Relaxed);
        while count != 0 && count <= isize::MAX as usize {
            // Relaxed: whoever reads the handle later got it from us.
            match handles.compare_exchange_weak(
                count,
                count + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                // SAFETY: just counted.
                Ok(_) => return Some(unsafe { RawPool::from_counted(self) }),
                Err(now) => count = now,
            }
        }
        None
    }

    /// Bytes of an object, as asked for.
    ///
    /// # Safety
    /// The pool lives during the call.
    pub unsafe fn object_size(self) -> usize {
        // SAFETY: as the caller promises.
        unsafe { self.inner() }.object_size
    }

    /// Objects of the pool.
    ///
    /// # Safety
    /// The pool lives during the call.
    pub unsafe fn capacity(self) -> usize {
        // SAFETY: as the caller promises.
        unsafe { self.inner() }.capacity
    }

    /// As [`RawPool::private`].
    ///
    /// # Safety
    /// The pool lives for `'a`.
    pub unsafe fn private<'a, T: 'static>(self) -> Option<&'a T> {
        // SAFETY: as the caller promises.
        unsafe { self.inner() }.private.as_deref()?.downcast_ref()
    }

    /// The address that it consists of.
    #[inline(always)]
    pub fn addr(self) -> usize {
        self.0.addr().get()
    }
}

impl std::fmt::Debug for PoolRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PoolRef({:p})", self.0)
    }
}
