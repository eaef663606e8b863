//! Describing and building a pool.

use crate::arena::Arena;
use crate::backend::{AnyBackend, Backend, Lifo, Ring};
use crate::cache::Slot;
use crate::error::CreateError;
use crate::inner::Inner;
use crate::pool::{PoolRef, RawPool};
use crate::registry;
use crate::stats::Counters;
use crate::sync::{AtomicUsize, Ordering, Padded};
use crate::worker::MAX_WORKERS;
use std::any::Any;
use std::ptr::NonNull;

/// Objects that a thread's cache holds at most.
#[doc(alias = "RTE_MEMPOOL_CACHE_MAX_SIZE")]
pub const MAX_CACHE: usize = 512;

/// Objects that a pool holds at most.
pub const MAX_OBJECTS: usize = 1 << 31;

/// Alignment that an object has at most, in bytes.
const MAX_ALIGN: usize = 2 << 20;

/// Bytes of a cache line.
const LINE: usize = 64;

/// The built-in backends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum BackendKind {
    /// [`Lifo`]: warm objects first. The default.
    #[default]
    Lifo,
    /// [`Ring`]: first in, first out, without a lock.
    Ring,
}

enum Choice {
    Kind(BackendKind),
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
    object_size: usize,
    align: usize,
    pub(crate) drop_object: Option<unsafe fn(NonNull<u8>)>,
    name: Box<str>,
    capacity: usize,
    cache: Option<usize>,
    workers: usize,
    spread: bool,
    huge_pages: bool,
    prefault: bool,
    backend: Choice,
    private: Option<Box<dyn Any + Send + Sync>>,
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
            backend: Choice::Kind(BackendKind::default()),
            private: None,
        }
    }

    /// A name for people; it need not be unique.
    pub fn name(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// Objects of the pool; 1024 unless given.
    pub fn capacity(mut self, objects: usize) -> Self {
        self.capacity = objects;
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

    /// Whether to ask for 2 MB pages: reserved ones, else transparent ones, else plain pages.
    /// [`RawPool::memory_kind`] says what was to be had.
    pub fn huge_pages(mut self, huge: bool) -> Self {
        self.huge_pages = huge;
        self
    }

    /// Whether to touch all memory now rather than at first use.
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

    /// A backend of the caller's own, empty, with room for all objects.
    pub fn custom_backend(mut self, backend: Box<dyn Backend>) -> Self {
        self.backend = Choice::Custom(backend);
        self
    }

    /// Something that belongs to the pool as a whole: see [`RawPool::private`].
    pub fn private(mut self, value: impl Any + Send + Sync) -> Self {
        self.private = Some(Box::new(value));
        self
    }

    /// Builds the pool; objects are zeroed.
    ///
    /// # Errors
    /// [`CreateError`] says which parameter is impossible, or that memory lacks.
    pub fn build(self) -> Result<RawPool, CreateError> {
        self.build_with(|_, _| ())
    }

    /// Builds the pool; `init` is called once for each object (address, index) before any of them can
    /// be taken. The memory is zeroed before. An `init` that unwinds gives all memory back.
    ///
    /// # Errors
    /// As for [`build`](Self::build).
    pub fn build_with(
        self,
        mut init: impl FnMut(NonNull<u8>, usize),
    ) -> Result<RawPool, CreateError> {
        self.build_with_ref(|_, object, index| init(object, index))
    }

    /// As [`build_with`](Self::build_with), with the name of the pool being built, to be stored in
    /// the objects. It must not be used before the pool is built.
    ///
    /// # Errors
    /// As for [`build`](Self::build).
    pub fn build_with_ref(
        self,
        mut init: impl FnMut(PoolRef, NonNull<u8>, usize),
    ) -> Result<RawPool, CreateError> {
        let capacity = self.capacity;
        let unfinished = Unfinished(self.allocate()?);
        let pool = unfinished.0;
        // SAFETY: just made, and freed by `unfinished` only.
        let inner = unsafe { pool.inner() };
        for index in 0..capacity {
            // SAFETY: within the arena.
            let object = unsafe { inner.base.add(index * inner.stride) };
            init(pool, object, index);
            inner.constructed.store(index + 1, Ordering::Relaxed);
        }
        fill(inner);
        std::mem::forget(unfinished);
        if inner.cache_size > 0 {
            registry::add(pool);
        }
        // SAFETY: counted at creation.
        Ok(unsafe { RawPool::from_counted(pool) })
    }

    fn cache_size(&self) -> Result<usize, CreateError> {
        let max = MAX_CACHE.min(self.capacity);
        if self.workers > MAX_WORKERS {
            return Err(CreateError::TooManyWorkers {
                asked: self.workers,
                max: MAX_WORKERS,
            });
        }
        match self.cache {
            Some(asked) if asked > max => Err(CreateError::CacheTooLarge { asked, max }),
            _ if self.workers == 0 => Ok(0),
            Some(asked) => Ok(asked),
            None => Ok(MAX_CACHE.min(self.capacity / 4)),
        }
    }

    /// Bytes from object to object, and of all.
    fn layout(&self) -> Result<(usize, usize), CreateError> {
        let Self {
            object_size,
            capacity,
            align,
            ..
        } = *self;
        if object_size == 0 {
            return Err(CreateError::ZeroObjectSize);
        }
        if capacity == 0 {
            return Err(CreateError::ZeroCapacity);
        }
        if capacity > MAX_OBJECTS {
            return Err(CreateError::TooManyObjects {
                asked: capacity,
                max: MAX_OBJECTS,
            });
        }
        if !align.is_power_of_two() || align > MAX_ALIGN {
            return Err(CreateError::BadAlign {
                align,
                max: MAX_ALIGN,
            });
        }
        let too_large = CreateError::TooLarge {
            object_size,
            capacity,
        };
        let Some(mut stride) = object_size.checked_next_multiple_of(align) else {
            return Err(too_large);
        };
        if self.spread && align <= LINE && stride % (2 * LINE) == 0 {
            stride = stride.saturating_add(LINE);
        }
        match stride.checked_mul(capacity) {
            Some(bytes) if bytes <= isize::MAX as usize - 2 * MAX_ALIGN => Ok((stride, bytes)),
            _ => Err(too_large),
        }
    }

    fn allocate(self) -> Result<PoolRef, CreateError> {
        let (stride, bytes) = self.layout()?;
        let cache_size = self.cache_size()?;
        let backend = match self.backend {
            Choice::Kind(kind) => built_in(kind, self.capacity)?,
            Choice::Custom(backend) => check(backend, self.capacity)?,
        };
        let arena = memory(bytes, self.align, self.huge_pages, self.prefault)?;
        let (slots, arrays) = caches(self.workers, cache_size)?;
        let slots_end = size_of_val(&*slots);
        let inner = Box::new(Inner {
            // Slots without caches are only there for their counters.
            cached_end: AtomicUsize::new(if cache_size == 0 { 0 } else { slots_end }),
            slots: NonNull::from(Box::leak(slots)).cast(),
            slots_end,
            cache_size,
            base: arena.base(),
            stride,
            object_size: self.object_size,
            capacity: self.capacity,
            backend,
            counters: Counters::default(),
            name: self.name,
            private: self.private,
            arena,
            _arrays: arrays,
            drop_object: self.drop_object,
            constructed: AtomicUsize::new(0),
            refs: Padded(AtomicUsize::new(1)),
            handles: AtomicUsize::new(1),
        });
        Ok(PoolRef(NonNull::from(Box::leak(inner))))
    }
}

/// A pool whose objects are not all initialised yet.
struct Unfinished(PoolRef);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // SAFETY: nobody else knows the pool yet, and the one unit is ours.
        unsafe { self.0.release(1) };
    }
}

fn built_in(kind: BackendKind, capacity: usize) -> Result<AnyBackend, CreateError> {
    let backend = match kind {
        BackendKind::Lifo => Lifo::try_new(capacity).map(AnyBackend::Lifo),
        BackendKind::Ring => Ring::try_new(capacity).map(AnyBackend::Ring),
    };
    backend.map_err(|source| CreateError::NoMemory {
        bytes: capacity.saturating_mul(size_of::<NonNull<u8>>()),
        source: std::io::Error::new(std::io::ErrorKind::OutOfMemory, source),
    })
}

fn check(backend: Box<dyn Backend>, capacity: usize) -> Result<AnyBackend, CreateError> {
    let len = backend.len();
    if len != 0 {
        return Err(CreateError::BackendNotEmpty { len });
    }
    let room = backend.room();
    if room < capacity {
        return Err(CreateError::BackendTooSmall {
            room,
            needed: capacity,
        });
    }
    Ok(AnyBackend::Custom(backend))
}

fn memory(bytes: usize, align: usize, huge: bool, prefault: bool) -> Result<Arena, CreateError> {
    Arena::new(bytes, align, huge, prefault)
        .map_err(|source| CreateError::NoMemory { bytes, source })
}

/// The table of slots, and the memory of their arrays.
fn caches(workers: usize, cache_size: usize) -> Result<(Box<[Slot]>, Option<Arena>), CreateError> {
    if workers == 0 || cache_size == 0 {
        let slots = (0..workers).map(|_| Slot::new(NonNull::dangling(), 0));
        return Ok((slots.collect(), None));
    }
    // Whole pairs of lines for each worker: no line of pointers is shared.
    let bytes = (cache_size * size_of::<NonNull<u8>>()).next_multiple_of(2 * LINE);
    let arrays = memory(workers * bytes, 2 * LINE, false, false)?;
    let slots = (0..workers)
        .map(|worker| {
            // SAFETY: within the allocation.
            Slot::new(
                unsafe { arrays.base().add(worker * bytes) }.cast(),
                cache_size as u32,
            )
        })
        .collect();
    Ok((slots, Some(arrays)))
}

/// Puts all objects into the backend, the first one on top of a stack.
fn fill(inner: &Inner) {
    let mut burst = Vec::with_capacity(64);
    for index in (0..inner.capacity).rev() {
        // SAFETY: within the arena.
        burst.push(unsafe { inner.base.add(index * inner.stride) });
        if burst.len() == 64 || index == 0 {
            inner.backend.put_bulk(&burst);
            burst.clear();
        }
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("object_size", &self.object_size)
            .field("capacity", &self.capacity)
            .field("align", &self.align)
            .field("cache", &self.cache)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}
