//! This thread's cache, opened for writes in place.

use crate::cache::{Slot, Taken};
use crate::checked::CHECKED;
use crate::pool_ref::PoolRef;
use crate::stats::Writers;
use crate::worker;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// This thread's cache of one pool, open: objects that are put back are written straight into it,
/// without a temporary array.
///
/// While it is open the cache counts as taken: other calls on the same pool from this thread go to
/// the backend. Dropping the cursor publishes what was written. A cursor that is forgotten
/// ([`std::mem::forget`]) leaks what the cache held and leaves this worker id without a cache in
/// this pool; nothing else.
///
/// A thread without a cache gets a cursor too; each push goes to the backend then
/// ([`is_cached`](Self::is_cached) says so).
///
/// ```
/// use mempool::RawPool;
///
/// let pool = RawPool::builder(128).capacity(64).cache(16).build()?;
/// let objects = [pool.get()?, pool.get()?, pool.get()?];
/// // SAFETY: the pool lives longer than the cursor; the objects are the pool's, and given up.
/// unsafe {
///     let mut cursor = pool.pool_ref().open_put();
///     for object in objects {
///         cursor.push(object);
///     }
/// }
/// assert!(pool.is_full());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a cursor that is dropped at once has only closed the cache again"]
pub struct PutCursor {
    slot: NonNull<Slot>,
    base: NonNull<NonNull<u8>>,
    len: usize,
    /// Room of the cache; 0 without one.
    limit: usize,
    pool: PoolRef,
    /// The cache is this thread's.
    not_send: PhantomData<*mut ()>,
}

impl PoolRef {
    /// Opens this thread's cache for writes in place.
    ///
    /// # Safety
    /// The pool lives until the cursor is dropped; an object of it that is out, or one that was
    /// pushed into a cached cursor, sees to that. The cursor is dropped before its thread's
    /// thread-locals are (that is, it is not kept in one).
    #[inline(always)]
    pub unsafe fn open_put(self) -> PutCursor {
        // SAFETY: the pool lives; the slot is ours.
        let taken = unsafe {
            match self.own_slot() {
                Some(slot) => slot.take().map(|taken| (NonNull::from(slot), taken)),
                None => self
                    .slot_slow()
                    .and_then(|slot| Some((slot, slot.as_ref().take()?))),
            }
        };
        let (slot, taken) = taken.unwrap_or((
            NonNull::dangling(),
            Taken {
                base: NonNull::dangling(),
                len: 0,
                limit: 0,
            },
        ));
        PutCursor {
            slot,
            base: taken.base,
            len: taken.len,
            limit: taken.limit,
            pool: self,
            not_send: PhantomData,
        }
    }

    /// This thread's slot, if it gets an id now.
    ///
    /// # Safety
    /// As for [`open_put`](Self::open_put).
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn slot_slow(self) -> Option<NonNull<Slot>> {
        // SAFETY: the pool lives; the slot at our own offset is ours. Flushing the caches of a
        // closed pool does not free it, since something else keeps it, as the caller promises.
        unsafe {
            let gate = &self.inner().gate;
            if gate.end() == 0 {
                if gate.is_suspended() {
                    self.give_back_cache();
                }
                return None;
            }
            worker::current_or_register();
            self.own_slot().map(NonNull::from)
        }
    }

    /// Makes room for `n` objects in the open cache `slot`, which has not as much, by flushing its
    /// older half; says how many are left in it. `None`, and nothing done, if that would not do.
    ///
    /// All by value, so that an inlined cursor can live in registers.
    ///
    /// # Safety
    /// `len` and `limit` are those of an open cursor over `slot` of this pool (any `slot` if
    /// `limit` is 0), and the caller forgets the content if this unwinds.
    #[cold]
    #[inline(never)]
    unsafe fn make_room(
        self,
        slot: NonNull<Slot>,
        len: usize,
        limit: usize,
        n: usize,
    ) -> Option<usize> {
        let half = limit / 2;
        if n > half || half == 0 {
            return None;
        }
        // SAFETY: the cursor took this slot, whose pool lives. There is less room than `n <= half`,
        // so `len > limit - half >= half`, and something stays cached: the released units are not
        // the last.
        unsafe {
            let slot = slot.as_ref();
            slot.counters.missed(Writers::Owner);
            let kept = self.flush_oldest(
                slot,
                Taken {
                    base: slot.base(),
                    len,
                    limit,
                },
                half,
            );
            self.release(half);
            Some(kept)
        }
    }

    /// One object to the backend, from an open cursor.
    ///
    /// # Safety
    /// As for [`PoolRef::put`].
    #[cold]
    #[inline(never)]
    unsafe fn backend_put_one(self, obj: NonNull<u8>) {
        // SAFETY: as the caller promises.
        unsafe { self.backend_put(&[obj]) };
    }

    /// Any number of objects to the backend, from an open cursor.
    ///
    /// # Safety
    /// As for [`PoolRef::put_bulk`].
    #[cold]
    #[inline(never)]
    unsafe fn backend_put_many(self, objs: &[NonNull<u8>]) {
        if !objs.is_empty() {
            // SAFETY: as the caller promises.
            unsafe { self.backend_put(objs) };
        }
    }
}

impl PutCursor {
    /// The pool whose cache this is.
    #[inline(always)]
    pub fn pool(&self) -> PoolRef {
        self.pool
    }

    /// Whether there is a cache behind it. If not, each push is a call of the backend: better
    /// collect and use [`push_slice`](Self::push_slice).
    #[inline(always)]
    pub fn is_cached(&self) -> bool {
        self.limit != 0
    }

    /// Whether nothing is in the cache, so that nothing in the cursor keeps the pool alive.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Pointers that the cache may hold; 0 if there is none.
    #[inline(always)]
    pub fn capacity(&self) -> usize {
        self.limit
    }

    /// How many pointers may be written at [`spare_at`](Self::spare_at) without a flush.
    #[inline(always)]
    pub fn room(&self) -> usize {
        self.limit - self.len
    }

    /// Where the next pointers go: [`room`](Self::room) of them, then [`advance`](Self::advance).
    #[inline(always)]
    pub fn spare_at(&self) -> *mut NonNull<u8> {
        // SAFETY: `len <= limit`, and so many entries are allocated. Without a cache, adds 0.
        unsafe { self.base.add(self.len) }.as_ptr()
    }

    /// Puts one object back.
    ///
    /// # Safety
    /// `obj` is an object of [`pool`](Self::pool) that the caller owns and gives up.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn push(&mut self, obj: NonNull<u8>) {
        // SAFETY: the object keeps the pool alive.
        unsafe { self.pool.on_put(&[obj]) };
        if self.len < self.limit || self.make_room(1) {
            // SAFETY: `limit` entries are allocated, and ours while the slot is taken.
            unsafe { self.base.add(self.len).write(obj) };
            self.len += 1;
        } else {
            // SAFETY: as the caller promises.
            unsafe { self.pool.backend_put_one(obj) };
        }
    }

    /// Puts objects back: into the cache if they fit (after its older half was flushed if need be),
    /// else straight to the backend.
    ///
    /// # Safety
    /// `objs` are distinct objects of [`pool`](Self::pool) that the caller owns and gives up.
    #[inline]
    #[track_caller]
    pub unsafe fn push_slice(&mut self, objs: &[NonNull<u8>]) {
        // SAFETY: as the caller promises; the room that `spare` hands out is no part of `objs`.
        unsafe {
            match self.spare(objs.len()) {
                Some(room) => {
                    room.copy_from_nonoverlapping(objs.as_ptr(), objs.len());
                    self.advance(objs.len());
                }
                None => self.pass_slice(objs),
            }
        }
    }

    /// Puts objects back straight to the backend: what does not fit, and is too much to push others out
    /// for it.
    ///
    /// # Safety
    /// As for [`push_slice`](Self::push_slice).
    #[track_caller]
    pub unsafe fn pass_slice(&mut self, objs: &[NonNull<u8>]) {
        // SAFETY: as the caller promises.
        unsafe {
            self.pool.on_put(objs);
            self.pool.backend_put_many(objs);
        }
    }

    /// Room for `n` pointers, to be written before [`advance`](Self::advance). Flushes the older
    /// half of the cache when it is short. `None` if there is no cache, or if `n` neither fits nor
    /// is at most half of it: use [`push_slice`](Self::push_slice) then.
    #[inline(always)]
    pub fn spare(&mut self, n: usize) -> Option<*mut NonNull<u8>> {
        // Without a cache all is 0, and `n` may be 0 as well, but must find no room.
        let fits = n <= self.room() && self.is_cached();
        (fits || self.make_room(n)).then(|| self.spare_at())
    }

    /// Says that `n` pointers were written at [`spare`](Self::spare) or [`spare_at`](Self::spare_at).
    ///
    /// # Safety
    /// They were, at most [`room`](Self::room) of them, with nothing else done to the cursor in
    /// between; they are distinct objects of [`pool`](Self::pool) that the caller owns and gives up.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn advance(&mut self, n: usize) {
        debug_assert!(n <= self.room());
        if CHECKED {
            // SAFETY: so many were written there.
            unsafe {
                let written = std::slice::from_raw_parts(self.spare_at(), n);
                self.pool.on_put(written);
            }
        }
        self.len += n;
    }

    /// Flushes the older half if that makes room for `n` more.
    #[inline(always)]
    fn make_room(&mut self, n: usize) -> bool {
        // If the backend unwinds, the cache is closed empty: what it held is lost.
        let len = std::mem::take(&mut self.len);
        // SAFETY: these are the cursor's, and its content is forgotten already.
        let kept = unsafe { self.pool.make_room(self.slot, len, self.limit, n) };
        self.len = kept.unwrap_or(len);
        kept.is_some()
    }
}

impl Drop for PutCursor {
    #[inline(always)]
    fn drop(&mut self) {
        if self.limit != 0 {
            // SAFETY: this thread's slot, taken when the cursor was opened; `len` entries are
            // written. The pool lives, as the opener promised.
            unsafe { self.slot.as_ref().close(self.len, self.limit) };
        }
    }
}

impl std::fmt::Debug for PutCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PutCursor")
            .field("pool", &self.pool)
            .field("len", &self.len)
            .field("limit", &self.limit)
            .finish()
    }
}
