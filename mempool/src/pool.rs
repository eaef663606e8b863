//! The raw layer: counted handles and uncounted names of a pool.

use crate::arena::MemoryKind;
use crate::budget::Budget;
use crate::builder::Builder;
use crate::error::{DestroyError, Exhausted};
use crate::inner::Inner;
use crate::pool_ref::PoolRef;
use crate::registry;
use crate::stats::{PoolStats, WorkerStats};
use crate::sync::Ordering;
use crate::worker;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

/// A pool of equal objects; a counted handle.
///
/// Getting is safe, since an address alone does no harm; putting back is a promise and therefore
/// `unsafe`, on [`PoolRef`]. Whoever wants neither uses [`Pool<T>`](crate::Pool).
///
/// ```
/// use mempool::RawPool;
///
/// let pool = RawPool::builder(2048).name("packets").capacity(1024).build()?;
/// let object = pool.get()?;
/// assert_eq!(pool.in_use(), 1);
/// // SAFETY: it is this pool's object, and is not used afterwards.
/// unsafe { pool.pool_ref().put(object) };
/// assert!(pool.is_full());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "rte_mempool")]
#[doc(alias = "rte_mempool_dump")]
pub struct RawPool(NonNull<Inner>);

// SAFETY: the shared part is built for any number of threads: atomics, a backend that is `Sync`, and
// caches that only the thread with the right worker id touches.
unsafe impl Send for RawPool {}
// SAFETY: as above.
unsafe impl Sync for RawPool {}
impl RawPool {
    /// Starts to describe a pool of objects of `object_size` bytes.
    #[doc(alias = "rte_mempool_create")]
    pub fn builder(object_size: usize) -> Builder {
        Builder::new(object_size)
    }

    /// Takes over one handle's count.
    ///
    /// # Safety
    /// The caller counted it.
    pub(crate) unsafe fn from_counted(pool: PoolRef) -> Self {
        Self(pool.0)
    }

    #[inline(always)]
    pub(crate) fn inner(&self) -> &Inner {
        // SAFETY: a handle keeps the pool alive.
        unsafe { self.pool_ref().inner() }
    }

    /// The pool's name, for headers and for putting objects back.
    #[inline(always)]
    pub fn pool_ref(&self) -> PoolRef {
        PoolRef(self.0)
    }

    /// Takes one object: this thread's newest, if it has any cached.
    ///
    /// # Errors
    /// [`Exhausted`] if neither this thread's cache nor the backend has one.
    #[doc(alias = "rte_mempool_get")]
    #[inline(always)]
    pub fn get(&self) -> Result<NonNull<u8>, Exhausted> {
        // SAFETY: a handle keeps the pool alive.
        unsafe { self.pool_ref().get() }
    }

    /// Fills `out` with objects, the newest that this thread has cached if those are enough, or takes none.
    /// What was put last comes last.
    ///
    /// # Errors
    /// [`Exhausted`] if this thread's cache and the backend have not as many together. Nothing changed
    /// then, and what `out` holds is of no meaning.
    #[doc(alias = "rte_mempool_get_bulk")]
    #[inline(always)]
    pub fn get_bulk(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), Exhausted> {
        // SAFETY: a handle keeps the pool alive.
        unsafe { self.pool_ref().get_bulk(out) }
    }

    /// As [`get`](Self::get), but waits for an object up to `timeout`; [`Duration::MAX`] is for ever.
    ///
    /// While somebody waits, caches are out of use: each thread gives back what it has cached at its
    /// next operation on the pool, and what is put goes to who waits. A thread that does nothing
    /// keeps its cache; so let it call [`flush_thread_cache`](Self::flush_thread_cache) before.
    ///
    /// # Errors
    /// [`Exhausted`] if there is none by then.
    #[doc(alias = "PR_WAITOK")]
    pub fn get_timeout(&self, timeout: Duration) -> Result<NonNull<u8>, Exhausted> {
        let mut out = [MaybeUninit::uninit()];
        self.get_bulk_timeout(&mut out, timeout)?;
        // SAFETY: written after success.
        Ok(unsafe { out[0].assume_init() })
    }

    /// As [`get_bulk`](Self::get_bulk), but waits up to `timeout` until all can be had at once. Who asks for many
    /// can wait long while others ask for few: nothing is set aside.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = mempool::RawPool::builder(64).capacity(1).build()?;
    /// let object = pool.get()?;
    /// let short = pool.get_timeout(Duration::from_millis(1));
    /// assert_eq!(short.unwrap_err().available, 0);
    /// let name = pool.pool_ref();
    /// let address = object.addr();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         let object = pool.object(0).unwrap();
    ///         // SAFETY: it was got above, and is given up here.
    ///         unsafe { name.put(object) };
    ///     });
    ///     let again = pool.get_timeout(Duration::MAX).unwrap();
    ///     assert_eq!(again.addr(), address);
    ///     // SAFETY: just got.
    ///     unsafe { name.put(again) };
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Exhausted`] if they cannot be had by then, or at once if the pool has not as many.
    pub fn get_bulk_timeout(
        &self,
        out: &mut [MaybeUninit<NonNull<u8>>],
        timeout: Duration,
    ) -> Result<(), Exhausted> {
        let deadline = Instant::now().checked_add(timeout);
        // SAFETY: a handle keeps the pool alive.
        unsafe { self.pool_ref().get_bulk_until(out, deadline) }
    }

    /// Objects of the pool.
    pub fn capacity(&self) -> usize {
        self.inner().capacity
    }

    /// Objects that somebody holds. Exact while nobody uses the pool.
    #[doc(alias = "rte_mempool_in_use_count")]
    pub fn in_use(&self) -> usize {
        self.inner().in_use()
    }

    /// Objects that nobody holds: those in the backend and in all caches.
    #[doc(alias = "rte_mempool_avail_count")]
    pub fn available(&self) -> usize {
        self.capacity() - self.in_use()
    }

    /// Objects in caches, of all threads. A cache that is open for writes counts as empty.
    pub fn cached(&self) -> usize {
        self.inner().cached()
    }

    /// Whether all objects are available.
    #[doc(alias = "rte_mempool_full")]
    pub fn is_full(&self) -> bool {
        self.in_use() == 0
    }

    /// Bytes of an object, as asked for.
    pub fn object_size(&self) -> usize {
        self.inner().object_size
    }

    /// Bytes from one object to the next.
    pub fn stride(&self) -> usize {
        self.inner().stride
    }

    /// Objects that a thread's cache holds at most; 0 without caches.
    pub fn cache_size(&self) -> usize {
        self.inner().cache_size
    }

    /// The name given at creation. Names need not be unique.
    pub fn name(&self) -> &str {
        &self.inner().name
    }

    /// What kind of memory the pool asked for and was granted; [`mapping`](Self::mapping) is the proof.
    pub fn memory_kind(&self) -> MemoryKind {
        self.inner().arena.kind()
    }

    /// How much of the pool is held or cached, in percent; or of its budget, if that is more.
    #[doc(alias = "m_pool_used")]
    pub fn used_percent(&self) -> u64 {
        let inner = self.inner();
        let own = inner.units.0.away().min(inner.capacity) as u64 * 100 / inner.capacity as u64;
        let shared = inner.budget.as_ref().map_or(0, Budget::used_percent);
        own.max(shared)
    }

    /// What each worker id did here, and has cached: those that any thread ever had.
    pub fn worker_stats(&self) -> impl Iterator<Item = WorkerStats> + '_ {
        self.inner().worker_stats()
    }

    /// Counters and levels.
    pub fn stats(&self) -> PoolStats {
        self.inner().stats()
    }

    /// What [`Builder::private`] gave the pool, if it is a `T`.
    #[doc(alias = "rte_mempool_get_priv")]
    pub fn private<T: 'static>(&self) -> Option<&T> {
        self.inner().private.as_deref()?.downcast_ref()
    }

    /// Gives this thread's cache back to the backend: for a thread that goes idle.
    #[doc(alias = "rte_mempool_cache_flush")]
    pub fn flush_thread_cache(&self) {
        // SAFETY: the handle keeps the pool alive; the slot at our own offset is ours.
        unsafe { self.pool_ref().flush_at(worker::current()) };
    }

    /// Frees the pool now, or says what is missing.
    ///
    /// # Errors
    /// [`DestroyError::StillShared`] if there are other handles; [`DestroyError::Outstanding`] if
    /// objects are held or in other threads' caches. Both give the handle back.
    #[doc(alias = "rte_mempool_free")]
    pub fn try_destroy(self) -> Result<(), DestroyError> {
        self.flush_thread_cache();
        let (handles, missing) = registry::remove_if_unused(&self);
        if handles > 1 {
            return Err(DestroyError::StillShared {
                handle: self,
                handles,
            });
        }
        if missing > 0 {
            let cached_elsewhere = self.cached().min(missing);
            let outstanding = missing - cached_elsewhere;
            return Err(DestroyError::Outstanding {
                handle: self,
                outstanding,
                cached_elsewhere,
            });
        }
        Ok(())
    }
}

impl Clone for RawPool {
    fn clone(&self) -> Self {
        // Relaxed: `self` keeps the pool alive.
        let handles = self.inner().handles.fetch_add(1, Ordering::Relaxed);
        // As `Arc`: forgotten handles must not wrap the count.
        if handles > isize::MAX as usize {
            std::process::abort();
        }
        Self(self.0)
    }
}

impl Drop for RawPool {
    fn drop(&mut self) {
        if self.inner().handles.fetch_sub(1, Ordering::Release) == 1 {
            // SAFETY: the last handle: its unit is ours to give up.
            unsafe { self.pool_ref().close() };
        }
    }
}

impl std::fmt::Debug for RawPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawPool")
            .field("name", &self.name())
            .field("object_size", &self.object_size())
            .field("capacity", &self.capacity())
            .field("in_use", &self.in_use())
            .finish_non_exhaustive()
    }
}
