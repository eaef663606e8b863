//! What can go wrong, with the numbers.

use crate::RawPool;

/// A get that could not be satisfied. Nothing changed.
#[doc(alias = "ENOBUFS")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "pool exhausted: asked for {asked}, {available} available to this thread, \
     {cached_elsewhere} in caches of other threads{}",
    if *over_budget { ", budget used up" } else { "" }
)]
pub struct Exhausted {
    /// Objects asked for.
    pub asked: usize,
    /// Objects in this thread's cache and in the backend at that moment, as far as the budget allows.
    pub available: usize,
    /// Objects in other threads' caches: free, but out of this thread's reach. If they would have
    /// been enough, those threads give them back, each at its next operation on the pool: try again,
    /// or wait ([`RawPool::get_bulk_timeout`]).
    pub cached_elsewhere: usize,
    /// Whether the pool's [`Budget`](crate::Budget) is the reason.
    pub over_budget: bool,
}

/// Objects that could not be shown in place. Nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InPlaceError {
    /// No cache holds as many.
    #[error("asked for {asked} in place, a cache holds {cache}: use get_bulk")]
    BeyondCache {
        /// Objects asked for.
        asked: usize,
        /// Objects that a cache of this pool holds at most.
        cache: usize,
    },
    /// The pool has no cache for this thread, or the thread has it open already, or caches are called
    /// back just now.
    #[error("asked for {asked} in place, but this thread has no cache to open here: use get_bulk")]
    NoCache {
        /// Objects asked for.
        asked: usize,
    },
    /// There are not as many.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
}

/// A [`LocalCache`](crate::LocalCache) that could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LocalCacheError {
    /// A cache of none, or of more than a cache may hold.
    #[error("local cache of {asked} objects asked for, 1 to {max} possible here")]
    BadSize {
        /// Objects asked for.
        asked: usize,
        /// The smaller of [`crate::MAX_CACHE`] and the pool's capacity.
        max: usize,
    },
    /// The allocator gave no memory for the array.
    #[error("no memory for a local cache of {asked} objects")]
    NoMemory {
        /// Objects asked for.
        asked: usize,
        /// What the allocator said.
        #[source]
        source: std::collections::TryReserveError,
    },
}

/// A pool that could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// Objects of no bytes.
    #[error("objects must have at least one byte")]
    ZeroObjectSize,
    /// A pool of no objects.
    #[error("a pool must hold at least one object")]
    ZeroCapacity,
    /// More objects than a pool can count.
    #[error("{asked} objects asked for, at most {max} possible")]
    TooManyObjects {
        /// Objects asked for.
        asked: usize,
        /// [`crate::MAX_OBJECTS`].
        max: usize,
    },
    /// The alignment is no power of two, or absurdly large.
    #[error("alignment {align} is not a power of two of at most {max}")]
    BadAlign {
        /// Bytes asked for.
        align: usize,
        /// Largest alignment, in bytes.
        max: usize,
    },
    /// The cache is larger than a cache may be, or than the pool.
    #[error("cache of {asked} objects asked for, at most {max} possible here")]
    CacheTooLarge {
        /// Objects asked for.
        asked: usize,
        /// The smaller of [`crate::MAX_CACHE`] and the capacity.
        max: usize,
    },
    /// More workers than there are ids.
    #[error("caches for {asked} workers asked for, at most {max} possible")]
    TooManyWorkers {
        /// Workers asked for.
        asked: usize,
        /// [`crate::MAX_WORKERS`].
        max: usize,
    },
    /// The distance between objects is no multiple of their alignment, or less than their size.
    #[error("stride {stride} is no multiple of alignment {align} of at least {object_size} bytes")]
    BadStride {
        /// Bytes asked for.
        stride: usize,
        /// Alignment of objects, in bytes.
        align: usize,
        /// Bytes of an object.
        object_size: usize,
    },
    /// The caller's region does not hold all objects.
    #[error(
        "a region of {bytes} bytes holds {holds} objects of {object_size} bytes, {stride} apart; \
         {asked} asked for"
    )]
    RegionTooSmall {
        /// Bytes of the region.
        bytes: usize,
        /// Bytes of an object.
        object_size: usize,
        /// Bytes from one object to the next.
        stride: usize,
        /// Objects asked for.
        asked: usize,
        /// Objects that lie wholly within the region.
        holds: usize,
    },
    /// The caller's region is less aligned than objects must be.
    #[error("a region at {address:#x} is not aligned to {align} bytes")]
    RegionMisaligned {
        /// Where the region begins.
        address: usize,
        /// Alignment of objects, in bytes.
        align: usize,
    },
    /// Another pool has the name that was to be unique.
    #[error("there is a pool named {name:?}")]
    NameTaken {
        /// The name.
        name: Box<str>,
    },
    /// The arena would not fit into the address space.
    #[error("{capacity} objects of {object_size} bytes exceed the address space")]
    TooLarge {
        /// Bytes of an object.
        object_size: usize,
        /// Objects asked for.
        capacity: usize,
    },
    /// The caller's backend already holds something.
    #[error("the backend already holds {len} objects")]
    BackendNotEmpty {
        /// Objects in it.
        len: usize,
    },
    /// The caller's backend has not room for all objects.
    #[error("the backend has room for {room} objects, {needed} needed")]
    BackendTooSmall {
        /// Objects it can hold.
        room: usize,
        /// Objects of the pool.
        needed: usize,
    },
    /// The system gave no memory.
    #[error("no memory for {bytes} bytes")]
    NoMemory {
        /// Bytes asked for.
        bytes: usize,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// A pool that could not be destroyed yet. The handle is in it: nothing is lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DestroyError {
    /// Objects are missing.
    #[error("{outstanding} objects outstanding, {cached_elsewhere} in caches of other threads")]
    Outstanding {
        /// The pool.
        handle: RawPool,
        /// Objects that somebody holds.
        outstanding: usize,
        /// Objects in the caches of other threads, which must flush (or end) first.
        cached_elsewhere: usize,
    },
    /// There are other handles.
    #[error("{handles} handles of the pool exist, this one included")]
    StillShared {
        /// The pool.
        handle: RawPool,
        /// Handles, `handle` included.
        handles: usize,
    },
}

impl DestroyError {
    /// The pool that was not destroyed.
    pub fn into_handle(self) -> RawPool {
        match self {
            Self::Outstanding { handle, .. } | Self::StillShared { handle, .. } => handle,
        }
    }
}
