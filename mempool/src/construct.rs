//! From a description to a pool: checks, memory, caches, the first fill.

use crate::arena::Arena;
use crate::backend::{AnyBackend, Backend, Lifo, Ring, SpscRing};
use crate::builder::{BackendKind, Builder, Choice, LINE, MAX_ALIGN, MAX_CACHE, MAX_OBJECTS};
use crate::cache::Slot;
use crate::checked::{Checks, GUARD};
use crate::error::CreateError;
use crate::inner::Inner;
use crate::pool::RawPool;
use crate::pool_ref::PoolRef;
use crate::region::Needs;
use crate::registry;
use crate::stats::Counters;
use crate::suspend::Gate;
use crate::sync::{AtomicUsize, Ordering, Padded};
use crate::units::Units;
use crate::worker::MAX_WORKERS;
use std::collections::TryReserveError;
use std::ptr::NonNull;

impl Builder {
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
        let unique = self.unique;
        if unique {
            // Once more when the pool is made: this spares what building costs, and a region's content.
            registry::check_name(&self.name)?;
        }
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
        inner.checks.arm(inner);
        fill(inner);
        registry::add(pool, unique)?;
        std::mem::forget(unfinished);
        // SAFETY: counted at creation.
        Ok(unsafe { RawPool::from_counted(pool) })
    }

    /// Bytes kept free on either side of an object. Memory whose layout the caller decides has none.
    fn guard(&self) -> usize {
        let laid_out = self.region.is_some() || self.stride.is_some();
        if laid_out { 0 } else { GUARD }
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
        let guarded = object_size.checked_add(2 * self.guard());
        let Some(mut stride) = guarded.and_then(|size| size.checked_next_multiple_of(align)) else {
            return Err(too_large);
        };
        if let Some(exact) = self.stride {
            if exact < stride || !exact.is_multiple_of(align) {
                return Err(CreateError::BadStride {
                    stride: exact,
                    align,
                    object_size,
                });
            }
            stride = exact;
        } else if self.spread && align <= LINE && stride % (2 * LINE) == 0 {
            stride = stride.saturating_add(LINE);
        }
        match stride.checked_mul(capacity) {
            Some(bytes) if bytes <= isize::MAX as usize - 4 * MAX_ALIGN => Ok((stride, bytes)),
            _ => Err(too_large),
        }
    }

    fn allocate(self) -> Result<PoolRef, CreateError> {
        let (stride, bytes) = self.layout()?;
        let cache_size = self.cache_size()?;
        let guard = self.guard();
        let backend = match self.backend {
            Choice::Kind(kind) => built_in(kind, self.capacity)?,
            Choice::Spsc => spsc(self.capacity)?,
            Choice::Custom(backend) => check(backend, self.capacity)?,
        };
        let lead = guard.next_multiple_of(self.align);
        let arena = match self.region {
            Some(region) => {
                let needs = Needs {
                    object_size: self.object_size,
                    stride,
                    align: self.align,
                    capacity: self.capacity,
                };
                region.into_arena(&needs, self.zero_region, self.prefault)?
            }
            None => memory(lead + bytes, self.align, self.huge_pages, self.prefault)?,
        };
        let (slots, arrays) = caches(self.workers, cache_size)?;
        let slots_end = size_of_val(&*slots);
        let inner = Box::new(Inner {
            // Slots without caches are only there for their counters.
            gate: Gate::new(if cache_size == 0 { 0 } else { slots_end }),
            slots: NonNull::from(Box::leak(slots)).cast(),
            slots_end,
            cache_size,
            // SAFETY: `lead` bytes and all objects fit.
            base: unsafe { arena.base().add(lead) },
            stride,
            object_size: self.object_size,
            align: self.align,
            capacity: self.capacity,
            backend,
            counters: Counters::default(),
            name: self.name,
            private: self.private,
            arena,
            _arrays: arrays,
            drop_object: self.drop_object,
            constructed: AtomicUsize::new(0),
            budget: self.budget,
            alarms: self.alarms.map(Box::new),
            checks: Checks::new(self.capacity, guard > 0),
            units: Padded(Units::one()),
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
    backend.map_err(|source| no_memory_for(capacity, source))
}

fn spsc(capacity: usize) -> Result<AnyBackend, CreateError> {
    // SAFETY: whoever chose this backend promised what it asks for.
    let ring = unsafe { SpscRing::try_new(capacity) };
    ring.map(AnyBackend::Spsc)
        .map_err(|source| no_memory_for(capacity, source))
}

fn no_memory_for(pointers: usize, source: TryReserveError) -> CreateError {
    CreateError::NoMemory {
        bytes: pointers.saturating_mul(size_of::<NonNull<u8>>()),
        source: std::io::Error::new(std::io::ErrorKind::OutOfMemory, source),
    }
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
