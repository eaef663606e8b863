//! This thread's cache, opened for reads in place.
//!
//! The safe form is a closure and not a guard: a safe guard could be kept in a thread-local and be
//! dropped after the thread gave up its worker id, when the cache is another thread's already. A
//! closure's frame is gone before thread-locals are dropped.

use crate::cache::{Slot, Taken};
use crate::checked::CHECKED;
use crate::error::InPlaceError;
use crate::pool::RawPool;
use crate::pool_ref::PoolRef;
use crate::stats::Writers;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// This thread's cache of one pool, open: its newest objects are read where they are, without being
/// copied to an array first. The counterpart of [`PutCursor`](crate::PutCursor).
///
/// It iterates over the objects, newest first; each that it yields is the caller's. What was not
/// consumed when the cursor is dropped stays in the cache.
///
/// While it is open the cache counts as taken: other calls on the same pool from this thread go to
/// the backend. A cursor that is forgotten ([`std::mem::forget`]) leaks what the cache held and
/// leaves this worker id without a cache in this pool; nothing else.
///
/// ```
/// use mempool::RawPool;
///
/// let pool = RawPool::builder(2048).capacity(64).cache(16).build()?;
/// let mut ring = [None; 4];
/// // SAFETY: the pool lives longer than the cursor, which is no thread-local.
/// let mut cursor = unsafe { pool.pool_ref().open_get(4)? };
/// for (slot, object) in ring[..3].iter_mut().zip(&mut cursor) {
///     *slot = Some(object);
/// }
/// drop(cursor);
/// assert_eq!(pool.in_use(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a cursor that is dropped at once has only closed the cache again"]
pub struct GetCursor {
    slot: NonNull<Slot>,
    base: NonNull<NonNull<u8>>,
    /// Objects in the cache.
    len: usize,
    limit: usize,
    /// The newest so many of them were asked for.
    left: usize,
    /// Whether the cache had them.
    hit: bool,
    pool: PoolRef,
    /// The cache is this thread's.
    not_send: PhantomData<*mut ()>,
}

impl RawPool {
    /// Lets `take` look at `n` objects where they are in this thread's cache, the newest last, with
    /// no copy of their addresses made: they are the caller's when `take` returns. If it unwinds,
    /// they stay cached.
    ///
    /// A cache that has fewer is refilled first, as for [`get_bulk`](Self::get_bulk), but with no
    /// more than fit. It is taken meanwhile: calls on this pool from within `take` go to the backend.
    ///
    /// ```
    /// use mempool::RawPool;
    ///
    /// let pool = RawPool::builder(2048).capacity(64).cache(16).build()?;
    /// let descriptors: Vec<usize> = pool.get_in_place(4, |objects| {
    ///     objects.iter().map(|object| object.addr().get()).collect()
    /// })?;
    /// assert_eq!((descriptors.len(), pool.in_use()), (4, 4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`InPlaceError`], with nothing changed and `take` not called: if there are not so many; if `n`
    /// is more than a cache holds, or this thread has none ([`get_bulk`](Self::get_bulk) serves then).
    pub fn get_in_place<R>(
        &self,
        n: usize,
        take: impl FnOnce(&[NonNull<u8>]) -> R,
    ) -> Result<R, InPlaceError> {
        // SAFETY: the handle is borrowed and keeps the pool alive; the cursor is on the stack.
        let mut cursor = unsafe { self.pool_ref().open_get(n) }?;
        let result = take(cursor.as_slice());
        cursor.consume(n);
        Ok(result)
    }
}

impl PoolRef {
    /// Opens this thread's cache for reads in place, with at least `n` objects in it. A cache that
    /// has fewer is refilled first, as for [`RawPool::get_in_place`].
    ///
    /// # Errors
    /// As for [`RawPool::get_in_place`]; nothing changed then.
    ///
    /// # Safety
    /// The pool lives until the cursor is dropped. The cursor is dropped before its thread's
    /// thread-locals are (that is, it is not kept in one).
    #[inline(always)]
    pub unsafe fn open_get(self, n: usize) -> Result<GetCursor, InPlaceError> {
        // SAFETY: the pool lives; the slot is ours.
        unsafe {
            if let Some(slot) = self.own_slot()
                && n <= slot.cached()
                && let Some(taken) = slot.take()
            {
                return Ok(self.cursor_over(NonNull::from(slot), taken, n, true));
            }
            self.open_get_slow(n)
        }
    }

    #[inline(always)]
    fn cursor_over(self, slot: NonNull<Slot>, taken: Taken, n: usize, hit: bool) -> GetCursor {
        GetCursor {
            slot,
            base: taken.base,
            len: taken.len,
            limit: taken.limit,
            left: n,
            hit,
            pool: self,
            not_send: PhantomData,
        }
    }

    /// Opens a cache that has fewer than `n`, or is not there yet.
    ///
    /// # Safety
    /// As for [`open_get`](Self::open_get).
    #[cold]
    #[inline(never)]
    unsafe fn open_get_slow(self, n: usize) -> Result<GetCursor, InPlaceError> {
        let mut told = false;
        // SAFETY: the pool lives; the slot is ours. Whatever is restored was taken just before.
        unsafe {
            let slot = match self.own_slot() {
                Some(slot) => Some(NonNull::from(slot)),
                None => self.slot_slow(),
            };
            let Some((slot, taken)) = slot.and_then(|slot| Some((slot, slot.as_ref().take()?)))
            else {
                return Err(InPlaceError::NoCache { asked: n });
            };
            let Taken { len, limit, .. } = taken;
            if n > limit {
                slot.as_ref().restore(len, limit);
                return Err(InPlaceError::BeyondCache {
                    asked: n,
                    cache: limit,
                });
            }
            slot.as_ref().counters.missed(Writers::Owner);
            let mut taken = taken;
            loop {
                let found = taken.len;
                match self.refill_below(slot.as_ref(), &taken, n) {
                    Ok(len) => taken.len = len,
                    Err(available) => {
                        slot.as_ref().restore(found, limit);
                        let exhausted = self.exhausted(n, available + found, found);
                        let counters = (&slot.as_ref().counters, Writers::Owner);
                        self.got(&[], Err(exhausted), counters)?;
                        return Err(exhausted.into());
                    }
                }
                let Some(alarms) = self.inner().alarms.as_ref().filter(|_| !told) else {
                    return Ok(self.cursor_over(slot, taken, n, false));
                };
                // Whoever is called finds the cache in its place, and may take from it.
                told = true;
                slot.as_ref().restore(taken.len, limit);
                alarms.after_get(self.inner(), taken.len - found);
                match slot.as_ref().take() {
                    Some(again) => taken = again,
                    None => return Err(InPlaceError::NoCache { asked: n }),
                }
            }
        }
    }

    /// Sees to it that the taken cache has `n` objects, as [`refill`](Self::refill) would: half a
    /// cache from the backend (or what fits) if that will do, else or if there are fewer, exactly
    /// what is missing. Says how many it has then; after a failure it is as it was.
    ///
    /// # Safety
    /// The pool lives; `taken` is what was taken from `slot` by this thread; `n <= limit`.
    unsafe fn refill_below(self, slot: &Slot, taken: &Taken, n: usize) -> Result<usize, usize> {
        let &Taken { len, limit, .. } = taken;
        let Some(missing @ 1..) = n.checked_sub(len) else {
            return Ok(len);
        };
        let usual = (limit / 2).min(limit - len);
        // SAFETY: `missing` and `usual` fit on top of `len`.
        unsafe {
            if missing < usual
                && let Ok(len) = self.insert_oldest(slot, taken, usual)
            {
                return Ok(len);
            }
            self.insert_oldest(slot, taken, missing)
        }
    }

    /// Takes `k` objects from the backend and puts them under those that are there, so that the
    /// hottest remain the newest.
    ///
    /// # Safety
    /// As for [`refill_below`](Self::refill_below); `len + k <= limit`.
    unsafe fn insert_oldest(self, slot: &Slot, taken: &Taken, k: usize) -> Result<usize, usize> {
        let &Taken { base, len, .. } = taken;
        // SAFETY: all within the array, which is ours while the slot is taken. The backend writes
        // the first `k` entries only, so that the `len` entries above survive its failure.
        unsafe {
            base.copy_to(base.add(k), len);
            let result = self.backend_get(taken.room(k), &slot.counters, Writers::Owner);
            if result.is_err() {
                base.add(k).copy_to(base, len);
            }
            result.map(|()| len + k)
        }
    }
}

impl GetCursor {
    /// The pool whose cache this is.
    #[inline(always)]
    pub fn pool(&self) -> PoolRef {
        self.pool
    }

    /// The objects that were asked for and not consumed yet, the newest last.
    #[inline(always)]
    pub fn as_slice(&self) -> &[NonNull<u8>] {
        // SAFETY: `left <= len` entries are written, and the array is ours while the slot is taken.
        unsafe {
            std::slice::from_raw_parts(self.base.add(self.len - self.left).as_ptr(), self.left)
        }
    }

    /// Takes the newest `k`, all at once; of the slice the last is the newest. `None`, and nothing
    /// done, if fewer are left of those that were asked for.
    #[inline(always)]
    pub fn consume(&mut self, k: usize) -> Option<&[NonNull<u8>]> {
        self.left = self.left.checked_sub(k)?;
        self.len -= k;
        // SAFETY: written, and not overwritten while the cursor, which is borrowed, is open.
        let objects = unsafe { std::slice::from_raw_parts(self.base.add(self.len).as_ptr(), k) };
        self.consumed(objects);
        Some(objects)
    }
}

impl GetCursor {
    /// Objects leave the cache.
    #[inline(always)]
    fn consumed(&self, objects: &[NonNull<u8>]) {
        if CHECKED {
            for &object in objects {
                // SAFETY: the pool lives, as the opener promised.
                unsafe { self.pool.on_got(&[MaybeUninit::new(object)]) };
            }
        }
    }
}

impl Iterator for GetCursor {
    type Item = NonNull<u8>;

    #[inline(always)]
    fn next(&mut self) -> Option<NonNull<u8>> {
        self.left = self.left.checked_sub(1)?;
        self.len -= 1;
        // SAFETY: entries below the old `len` are written.
        let object = unsafe { self.base.add(self.len).read() };
        self.consumed(&[object]);
        Some(object)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for GetCursor {}
impl std::iter::FusedIterator for GetCursor {}

impl Drop for GetCursor {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this thread's slot, taken when the cursor was opened; `len` entries are written.
        // The pool lives, as the opener promised.
        unsafe {
            let slot = self.slot.as_ref();
            if self.hit {
                slot.close(self.len, self.limit);
            } else {
                slot.restore(self.len, self.limit);
            }
        }
    }
}

impl std::fmt::Debug for GetCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GetCursor")
            .field("pool", &self.pool)
            .field("left", &self.left)
            .field("len", &self.len)
            .finish()
    }
}
