//! Describing and building a pool.

use crate::alarm::Alarms;
use crate::backend::Backend;
use crate::budget::Budget;
use crate::error::{CreateError, Exhausted};
use crate::pool::RawPool;
use crate::region::Region;
use std::any::Any;
use std::ptr::NonNull;

/// Objects that a thread's cache holds at most.
#[doc(alias = "RTE_MEMPOOL_CACHE_MAX_SIZE")]
pub const MAX_CACHE: usize = 512;

/// Objects that a pool holds at most.
pub const MAX_OBJECTS: usize = 1 << 31;

/// Alignment that an object has at most, in bytes.
pub(crate) const MAX_ALIGN: usize = 2 << 20;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// The built-in backends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum BackendKind {
    /// [`Lifo`](crate::backend::Lifo): warm objects first. The default.
    #[default]
    Lifo,
    /// [`Ring`](crate::backend::Ring): first in, first out, without a lock.
    Ring,
}

pub(crate) enum Choice {
    Kind(BackendKind),
    Spsc,
    Custom(Box<dyn Backend>),
}

/// Describes a pool; [`build`](Self::build) makes it.
///
/// ```
/// use mempool::{BackendKind, RawPool};
///
/// let pool = RawPool::builder(256)
///     .name("headers")
///     .capacity(4096)
///     .cache(128)
///     .backend(BackendKind::Ring)
///     .build_with(|object, index| {
///         // SAFETY: each object is ours here, and has 256 zeroed bytes.
///         unsafe { object.cast::<u64>().write(index as u64) };
///     })?;
/// assert_eq!(pool.available(), 4096);
/// # Ok::<(), mempool::CreateError>(())
/// ```
#[must_use = "nothing is built before `build`"]
pub struct Builder {
    pub(crate) object_size: usize,
    pub(crate) align: usize,
    pub(crate) drop_object: Option<unsafe fn(NonNull<u8>)>,
    pub(crate) name: Box<str>,
    pub(crate) capacity: usize,
    pub(crate) cache: Option<usize>,
    pub(crate) workers: usize,
    pub(crate) spread: bool,
    pub(crate) huge_pages: bool,
    pub(crate) prefault: bool,
    pub(crate) stride: Option<usize>,
    pub(crate) region: Option<Region>,
    pub(crate) zero_region: bool,
    pub(crate) unique: bool,
    pub(crate) backend: Choice,
    pub(crate) private: Option<Box<dyn Any + Send + Sync>>,
    pub(crate) budget: Option<Budget>,
    pub(crate) alarms: Option<Alarms>,
}

impl Builder {
    pub(crate) fn new(object_size: usize) -> Self {
        Self {
            object_size,
            align: LINE,
            drop_object: None,
            name: "".into(),
            capacity: 1024,
            cache: None,
            workers: 64,
            spread: true,
            huge_pages: false,
            prefault: false,
            stride: None,
            region: None,
            zero_region: false,
            unique: false,
            backend: Choice::Kind(BackendKind::default()),
            private: None,
            budget: None,
            alarms: None,
        }
    }

    /// A name for people; it need not be unique. See also [`unique_name`](Self::unique_name).
    pub fn name(mut self, name: &str) -> Self {
        self.name = name.into();
        self.unique = false;
        self
    }

    /// Objects of the pool; 1024 unless given.
    pub fn capacity(mut self, objects: usize) -> Self {
        self.capacity = objects;
        self
    }

    /// As many objects as it takes for `in_flight` of them to be held by `threads` threads together
    /// whatever their caches keep: `in_flight + threads * cache`, with [`MAX_CACHE`] for the cache
    /// unless one was given.
    ///
    /// That is the sizing rule. With fewer, a get may fail while others' caches have enough; those
    /// are called back then, and the next try finds them ([`Exhausted`](crate::Exhausted)).
    ///
    /// ```
    /// // A ring of 1024 descriptors, filled by one thread and drained by another.
    /// let pool = mempool::RawPool::builder(2048).cache(256).sized_for(1024, 2).build()?;
    /// assert_eq!(pool.capacity(), 1536);
    /// # Ok::<(), mempool::CreateError>(())
    /// ```
    pub fn sized_for(mut self, in_flight: usize, threads: usize) -> Self {
        let cache = self.cache.unwrap_or(MAX_CACHE);
        self.capacity = in_flight.saturating_add(threads.saturating_mul(cache));
        self
    }

    /// Alignment of objects in bytes, a power of two; 64, a cache line, unless given.
    pub fn align(mut self, bytes: usize) -> Self {
        self.align = bytes;
        self
    }

    /// Objects of `bytes` bytes each, aligned to at least `align`, whatever was said before. For a
    /// layer that lets its own users change a builder and then relies on what objects hold.
    ///
    /// ```
    /// let changed = mempool::RawPool::builder(1).align(1); // by somebody else
    /// let pool = changed.objects_of(100, 64).build()?;
    /// assert_eq!((pool.object_size(), pool.stride() % 64), (100, 0));
    /// # Ok::<(), mempool::CreateError>(())
    /// ```
    pub fn objects_of(mut self, bytes: usize, align: usize) -> Self {
        self.object_size = bytes;
        self.align = self.align.max(align);
        self
    }

    /// Objects that each thread's cache holds at most; 0 for no caches. At most [`MAX_CACHE`] and the
    /// capacity. Unless given, [`MAX_CACHE`] or a quarter of the capacity, whichever is less.
    ///
    /// Caches keep objects from other threads: count `workers * cache` into the capacity. Where
    /// one thread takes and another puts back, each goes to the backend every half cache.
    pub fn cache(mut self, objects: usize) -> Self {
        self.cache = Some(objects);
        self
    }

    /// How many worker ids have a cache in this pool; 64 unless given. Threads beyond that use the
    /// backend. Address space is taken for all, memory only for those used.
    pub fn workers(mut self, ids: usize) -> Self {
        self.workers = ids;
        self
    }

    /// Whether a stride is padded to an odd number of cache lines, so that the same field of all
    /// objects does not fall into few cache sets; true unless given. Only for alignments up to 64.
    pub fn spread(mut self, spread: bool) -> Self {
        self.spread = spread;
        self
    }

    /// Bytes from one object to the next, exactly: a multiple of the alignment, at least an object's
    /// size. Unless given it follows from these two and [`spread`](Self::spread).
    pub fn stride(mut self, bytes: usize) -> Self {
        self.stride = Some(bytes);
        self
    }

    /// Whether to ask for 2 MB pages: reserved ones, else transparent ones, else plain pages.
    /// [`RawPool::memory_kind`] says what was to be had, [`RawPool::mapping`] what is there.
    pub fn huge_pages(mut self, huge: bool) -> Self {
        self.huge_pages = huge;
        self
    }

    /// Whether to bring all memory in now rather than at first use. Memory that is not to be had is
    /// an error then; reserved huge pages that are not, are replaced by others.
    pub fn prefault(mut self, prefault: bool) -> Self {
        self.prefault = prefault;
        self
    }

    /// Which built-in backend to use.
    #[doc(alias = "rte_mempool_set_ops_byname")]
    pub fn backend(mut self, kind: BackendKind) -> Self {
        self.backend = Choice::Kind(kind);
        self
    }

    /// A ring for one taker and one giver at a time, [`SpscRing`](crate::backend::SpscRing): no
    /// locked instruction and no lock. The pool's calls do not change: that no two threads take at
    /// the same time, and no two give, is the caller's promise.
    ///
    /// Without caches ([`cache(0)`](Self::cache)) each get takes and each put gives, so the pool is
    /// for one thread that gets and one that puts; both may be the same, or change when they hand
    /// over by a join, a channel or a lock.
    ///
    /// With caches few calls reach the backend, but which do depends on what a cache holds; so treat
    /// each call as if it did, and mind the silent ones: a thread that ends gives what it cached.
    /// Since who gets fills a cache, also the thread that only gets may give, once, at its end, or
    /// with [`flush_thread_cache`](RawPool::flush_thread_cache). What a thread does at its end happens
    /// before `join` returns; the end of a [`std::thread::scope`] alone does not wait for it.
    ///
    /// Builds with debug assertions panic when two threads are seen in the same role at once.
    ///
    /// ```
    /// use mempool::Pool;
    ///
    /// // SAFETY: this thread gets all values, and the other, which is joined, puts them back.
    /// let configure = |b: mempool::Builder| unsafe { b.capacity(16).cache(0).spsc_backend() };
    /// let pool = Pool::build(configure, |_| [0u8; 64])?;
    /// let (send, receive) = std::sync::mpsc::channel();
    /// let other = std::thread::spawn(move || receive.into_iter().for_each(drop));
    /// for _ in 0..4 {
    ///     send.send(pool.get()?)?;
    /// }
    /// drop(send);
    /// other.join().unwrap();
    /// assert!(pool.raw().is_full());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Safety
    /// At any one time at most one thread *takes* from the backend and at most one *gives* to it,
    /// and of two threads that do the same one after the other, what the first did happens before
    /// what the second does. This holds until the pool's memory is freed.
    ///
    /// To take are all gets, also those that fail, single, in bulk, in bursts, in place, and of
    /// a [`LocalCache`](crate::LocalCache). To give are all puts, drops of
    /// [`Pooled`](crate::Pooled) guards and of [bursts](crate::Burst), pushes into a
    /// [`PutCursor`](crate::PutCursor), flushes, the end of a thread that has a cache in this pool,
    /// the drop of a local cache and that of the pool's last handle,
    /// [`try_destroy`](RawPool::try_destroy), each operation of a thread that has something cached
    /// while caches are called back (because a get failed or waits) or when the pool is closed, and a get
    /// whose [`on_low_water`](Self::on_low_water) callback unwinds. To build the pool is to give: the first giver comes
    /// after it. Counts and statistics are neither. [`RawPool::find`], [`RawPool::owner_of`] and
    /// [`pools`](crate::pools) do not hand such a pool to strangers.
    #[doc(alias = "RTE_MEMPOOL_F_SP_PUT")]
    #[doc(alias = "RTE_MEMPOOL_F_SC_GET")]
    #[doc(alias = "ring_sp_sc")]
    pub unsafe fn spsc_backend(mut self) -> Self {
        self.backend = Choice::Spsc;
        self
    }

    /// A backend of the caller's own, empty, with room for all objects.
    pub fn custom_backend(mut self, backend: Box<dyn Backend>) -> Self {
        self.backend = Choice::Custom(backend);
        self
    }

    /// Charges what is taken to a budget that several pools share.
    pub fn budget(mut self, budget: &Budget) -> Self {
        self.budget = Some(budget.clone());
        self
    }

    /// Calls `call`, with the number of objects that are neither held nor cached, when a get finds
    /// no more than `level`; and not again until it was twice that in between.
    ///
    /// It runs on the thread that gets, which may use the pool in it. Should it unwind, the objects
    /// under way go back.
    pub fn on_low_water(
        mut self,
        level: usize,
        call: impl Fn(usize) + Send + Sync + 'static,
    ) -> Self {
        self.alarms.get_or_insert_default().low = Some((level, Box::new(call)));
        self
    }

    /// Calls `call` whenever a get fails, on the thread that gets, before it returns the same error.
    pub fn on_exhausted(mut self, call: impl Fn(&Exhausted) + Send + Sync + 'static) -> Self {
        self.alarms.get_or_insert_default().exhausted = Some(Box::new(call));
        self
    }

    /// Something that belongs to the pool as a whole: see [`RawPool::private`].
    pub fn private(mut self, value: impl Any + Send + Sync) -> Self {
        self.private = Some(Box::new(value));
        self
    }

    /// Builds the pool; objects are zeroed, unless they lie in a caller's [`region`](Self::region).
    ///
    /// # Errors
    /// [`CreateError`] says which parameter is impossible, or that memory lacks.
    pub fn build(self) -> Result<RawPool, CreateError> {
        self.build_with(|_, _| ())
    }

    /// Builds the pool; `init` is called once for each object (address, index) before any of them can
    /// be taken. The memory is zeroed before, unless it is a caller's [`region`](Self::region). An
    /// `init` that unwinds gives all memory back.
    ///
    /// # Errors
    /// As for [`build`](Self::build).
    pub fn build_with(
        self,
        mut init: impl FnMut(NonNull<u8>, usize),
    ) -> Result<RawPool, CreateError> {
        self.build_with_ref(|_, object, index| init(object, index))
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("object_size", &self.object_size)
            .field("capacity", &self.capacity)
            .field("align", &self.align)
            .field("stride", &self.stride)
            .field("cache", &self.cache)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}
