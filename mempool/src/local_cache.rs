//! A cache that its caller owns: for threads beyond the worker ids, and for whoever wants one more.

use crate::builder::MAX_CACHE;
use crate::cache::Slot;
use crate::error::{Exhausted, LocalCacheError};
use crate::pool::RawPool;
use crate::stats::{PoolStats, Writers};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// A cache of one pool that belongs to whoever holds it, not to a thread. It works as the caches
/// of threads do, needs no worker id and may be sent to another thread.
///
/// It owns a handle of the pool. What it holds counts as *held* ([`RawPool::in_use`]): no count of
/// the pool can look into it. A pool whose caller holds up to H objects at a time, with caches and
/// local caches of S objects in all, never runs dry if its capacity is at least H + S less the size
/// of the cache that is asked.
///
/// Dropping it flushes it; forgetting it leaks what it holds, and the pool.
///
/// ```
/// use mempool::RawPool;
///
/// let pool = RawPool::builder(2048).capacity(256).cache(0).build()?;
/// let mut cache = pool.local_cache(32)?;
/// let object = cache.get()?;
/// assert_eq!((cache.len(), pool.in_use()), (15, 16));
/// // SAFETY: it is this pool's, got above, and not used afterwards.
/// unsafe { cache.put(object) };
/// drop(cache);
/// assert!(pool.is_full());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "rte_mempool_cache")]
pub struct LocalCache {
    slot: Slot,
    /// Before the handle: nothing of the cache is left when the pool goes.
    _array: Array,
    pool: RawPool,
}

/// The memory of a local cache. A raw pointer, since the slot points into it.
struct Array(NonNull<[MaybeUninit<NonNull<u8>>]>);

impl Drop for Array {
    fn drop(&mut self) {
        // SAFETY: made from a box, and nobody uses it any more.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

// SAFETY: slot and array are the cache's alone, and objects may be got and put on any thread. Whoever
// sends the cache orders what was done with it before what will be.
unsafe impl Send for LocalCache {}

impl RawPool {
    /// A cache of `size` objects that the caller owns.
    ///
    /// # Errors
    /// [`LocalCacheError`] if `size` is 0, more than [`MAX_CACHE`] or than the capacity, or memory
    /// lacks.
    #[doc(alias = "rte_mempool_cache_create")]
    pub fn local_cache(&self, size: usize) -> Result<LocalCache, LocalCacheError> {
        let max = MAX_CACHE.min(self.capacity());
        if size == 0 || size > max {
            return Err(LocalCacheError::BadSize { asked: size, max });
        }
        let mut array = Vec::new();
        array
            .try_reserve_exact(size)
            .map_err(|source| LocalCacheError::NoMemory {
                asked: size,
                source,
            })?;
        array.resize(size, MaybeUninit::uninit());
        let array = Array(NonNull::from(Box::leak(array.into_boxed_slice())));
        Ok(LocalCache {
            slot: Slot::new(array.0.cast(), size as u32),
            _array: array,
            pool: self.clone(),
        })
    }
}

// SAFETY, for all of it: the handle keeps the pool alive; `&mut self` owns the slot, whose array
// has as many entries as its limit says.
impl LocalCache {
    /// The pool whose objects these are.
    pub fn pool(&self) -> &RawPool {
        &self.pool
    }

    /// Objects in it.
    pub fn len(&self) -> usize {
        self.slot.cached()
    }

    /// Whether there are none in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What this cache exchanged with the backend and, as `cached`, what it holds. The pool's own
    /// [statistics](RawPool::stats) do not contain it.
    pub fn stats(&self) -> PoolStats {
        let mut stats = PoolStats {
            capacity: self.pool.capacity(),
            in_use: self.pool.in_use(),
            ..PoolStats::default()
        };
        stats.add(&self.slot.counters.read(0, self.len(), self.slot.hits()));
        stats
    }

    /// Takes one object: the newest, if there are any here.
    ///
    /// # Errors
    /// [`Exhausted`] if neither this cache nor the backend has one.
    #[doc(alias = "rte_mempool_generic_get")]
    #[inline]
    pub fn get(&mut self) -> Result<NonNull<u8>, Exhausted> {
        // SAFETY: see above.
        if let Some(obj) = unsafe { self.slot.pop() } {
            // SAFETY: the pool lives.
            unsafe { self.pool.pool_ref().on_got(&[MaybeUninit::new(obj)]) };
            return Ok(obj);
        }
        let mut out = [MaybeUninit::uninit()];
        self.get_slow(&mut out)?;
        // SAFETY: written after success.
        Ok(unsafe { out[0].assume_init() })
    }

    /// Fills `out` with objects, the newest here if those are enough, or takes none.
    ///
    /// # Errors
    /// [`Exhausted`] if this cache and the backend have not as many together. Nothing changed then,
    /// and what `out` holds is of no meaning.
    #[inline]
    pub fn get_bulk(&mut self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), Exhausted> {
        // SAFETY: see above.
        if unsafe { self.slot.pop_bulk(out) } {
            // SAFETY: the pool lives; all are written.
            unsafe { self.pool.pool_ref().on_got(out) };
            return Ok(());
        }
        self.get_slow(out)
    }

    /// Fills `out` as far as this cache and the backend can, as [`RawPool::get_burst`] does.
    pub fn get_burst(&mut self, out: &mut [MaybeUninit<NonNull<u8>>]) -> usize {
        // SAFETY: see above.
        if unsafe { self.slot.pop_bulk(out) } {
            // SAFETY: the pool lives; all are written.
            unsafe { self.pool.pool_ref().on_got(out) };
            return out.len();
        }
        self.answer_recall();
        // SAFETY: see above.
        let Some(taken) = (unsafe { self.slot.take() }) else {
            // Lost to a backend that unwound.
            return self.pool.get_burst(out);
        };
        let pool = self.pool.pool_ref();
        // SAFETY: the slot was just taken; so many are written.
        unsafe {
            let got = pool.burst_with_cache(&self.slot, taken, out);
            pool.on_got(&out[..got]);
            got
        }
    }

    #[cold]
    #[inline(never)]
    fn get_slow(&mut self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), Exhausted> {
        self.answer_recall();
        // SAFETY: see above.
        let Some(taken) = (unsafe { self.slot.take() }) else {
            // Lost to a backend that unwound.
            return self.pool.get_bulk(out);
        };
        let pool = self.pool.pool_ref();
        // SAFETY: the slot was just taken; all are written after success.
        unsafe {
            let result = pool.get_with_cache(&self.slot, taken, out);
            // What threads have cached is all out of reach from here.
            let result = result.map_err(|exhausted| Exhausted {
                cached_elsewhere: self.pool.cached(),
                ..exhausted
            });
            pool.got(out, result, (&self.slot.counters, Writers::Owner))?;
            pool.on_got(out);
        }
        Ok(())
    }

    /// Gives this thread's ordinary cache back, if that is asked for.
    fn answer_recall(&self) {
        let pool = self.pool.pool_ref();
        // SAFETY: the handle keeps the pool alive.
        unsafe {
            if pool.inner().gate.is_suspended() {
                pool.give_back_cache();
            }
        }
    }

    /// Puts one object back.
    ///
    /// # Safety
    /// As for [`PoolRef::put`](crate::PoolRef::put).
    #[doc(alias = "rte_mempool_generic_put")]
    #[inline]
    #[track_caller]
    pub unsafe fn put(&mut self, obj: NonNull<u8>) {
        // SAFETY: see above, and as the caller promises.
        unsafe {
            self.pool.pool_ref().on_put(&[obj]);
            if !self.slot.push(obj) {
                self.put_slow(&[obj]);
            }
        }
    }

    /// Puts objects back.
    ///
    /// # Safety
    /// As for [`PoolRef::put_bulk`](crate::PoolRef::put_bulk).
    #[inline]
    #[track_caller]
    pub unsafe fn put_bulk(&mut self, objs: &[NonNull<u8>]) {
        // SAFETY: see above, and as the caller promises.
        unsafe {
            self.pool.pool_ref().on_put(objs);
            if !self.slot.push_bulk(objs) {
                self.put_slow(objs);
            }
        }
    }

    /// # Safety
    /// As for [`put_bulk`](Self::put_bulk).
    #[cold]
    #[inline(never)]
    unsafe fn put_slow(&mut self, objs: &[NonNull<u8>]) {
        let pool = self.pool.pool_ref();
        // SAFETY: see above, and as the caller promises; the slot was just taken.
        unsafe {
            match self.slot.take() {
                Some(taken) => pool.put_with_cache(NonNull::from(&self.slot), taken, objs),
                None if objs.is_empty() => {}
                // Lost to a backend that unwound.
                None => pool.backend_put(objs),
            }
        }
    }

    /// Gives all that it holds to the backend.
    #[doc(alias = "rte_mempool_cache_flush")]
    pub fn flush(&mut self) {
        let pool = self.pool.pool_ref();
        // SAFETY: see above; the entries are written and ours while the slot is taken.
        unsafe {
            let Some(taken) = self.slot.take() else {
                return;
            };
            if taken.len > 0 {
                let objs = taken.slice(0, taken.len);
                pool.give(objs, &self.slot.counters, Writers::Owner);
            }
            self.slot.restore(0, taken.limit);
            pool.release(taken.len);
        }
    }
}

impl Drop for LocalCache {
    #[doc(alias = "rte_mempool_cache_free")]
    fn drop(&mut self) {
        self.flush();
    }
}

impl std::fmt::Debug for LocalCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalCache")
            .field("len", &self.len())
            .field("pool", &self.pool)
            .finish()
    }
}
