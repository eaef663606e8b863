//! Fixed-size object pools: one arena, a common backend, a cache per thread, bulk get and put.
//!
//! A **pool** is one contiguous *arena* of equal objects. Objects that nobody holds rest in a common
//! *backend* (a LIFO stack under a lock, a multi-producer multi-consumer ring, a ring for one producer
//! and one consumer, or one that you bring) or in the *cache* of a thread. A cache is an array used as a
//! stack: getting and putting an object is an index, a compare and a copy, without atomic
//! read-modify-writes and without a lock.
//!
//! Three layers:
//!
//! * [`Pool<T>`](Pool) – typed and safe. Values are constructed once; a [`Pooled<T>`](Pooled) guard
//!   returns its value on drop and may outlive every handle of the pool. A [`Burst`] is an inline
//!   array of them, filled and given back in bulk.
//! * [`RawPool`] – a counted handle that hands out addresses.
//! * [`PoolRef`] – a pointer-sized, copyable, uncounted name of a pool, to be kept in object headers.
//!   With it objects are put back, one by one, in bulk, or by a [`PutCursor`], which writes straight
//!   into this thread's cache: no free path needs a temporary array of pointers. A [`GetCursor`]
//!   reads in place what a get would copy.
//!
//! Bulk calls are all or nothing, bursts take what there is. Objects are initialised once, when the
//! pool is built, and keep their *resting state* while they are in the pool: neither get nor put
//! touches them.
//!
//! ```
//! use mempool::Pool;
//!
//! let pool = Pool::new(64, |_index| Vec::<u8>::with_capacity(1500))?;
//! let mut packet = pool.get()?;
//! packet.extend_from_slice(b"payload");
//! drop(packet); // back in the pool as it stands, bytes and capacity
//! assert!(pool.raw().is_full());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When memory goes away
//!
//! Each object that is not in the backend keeps its pool alive, and so do handles. Dropping the last
//! handle *closes* the pool: caches are no longer used, and the arena is freed when the last object
//! has come back. Objects that sit in the cache of another thread come back when that thread next
//! puts into the pool or ends. [`RawPool::try_destroy`] refuses, with numbers, as long as anything is missing.
//!
//! # When caches have what a get lacks
//!
//! They are *suspended*: each thread gives its cache back at its next operation on the pool. The get
//! fails, with numbers ([`Exhausted`]), and may be tried again; or it waits
//! ([`RawPool::get_timeout`]), and what is put meanwhile goes to it. [`Builder::sized_for`] is the
//! sizing rule by which that never happens.
//!
//! # Misuse
//!
//! Builds with debug assertions or the feature `checked` ([`CHECKED`]) find double puts, foreign
//! objects and writes past either end of an object; [`RawPool::audit`] looks at every object.
//!
//! # Memory and names
//!
//! A pool maps its own memory, or takes a [`region`](Builder::region) of the caller's;
//! [`RawPool::mapping`] tells what it got, as the kernel sees it. [`RawPool::find`],
//! [`RawPool::owner_of`] and [`pools`] find pools again.
//!
//! # Workers
//!
//! A thread becomes a *worker* when it first misses: it takes the lowest of [`MAX_WORKERS`]
//! process-wide ids, and gives it back, caches flushed, when it ends. In each pool the first
//! [`Builder::workers`] ids have a cache; other threads go to the backend: slower, never wrong. Who
//! wants a cache regardless of ids makes a [`LocalCache`].

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod address;
mod alarm;
mod arena;
mod audit;
pub mod backend;
mod budget;
mod builder;
pub mod burst;
mod cache;
mod checked;
mod construct;
mod cursor;
mod display;
mod error;
mod exchange;
mod get;
mod get_burst;
mod get_cursor;
mod inner;
mod local_cache;
#[cfg(all(test, loom))]
mod loom_names;
#[cfg(all(test, loom))]
mod loom_tests;
mod mapping;
mod names;
mod near;
mod pool;
mod pool_ref;
mod put;
mod region;
mod registry;
mod stats;
mod suspend;
mod sync;
mod teardown;
mod typed;
mod units;
mod wait;
mod worker;

pub use address::Objects;
pub use arena::MemoryKind;
pub use audit::{Audit, AuditError};
pub use backend::Backend;
pub use budget::{BadLimit, Budget};
pub use builder::{BackendKind, Builder, MAX_CACHE, MAX_OBJECTS};
pub use burst::Burst;
pub use checked::{CHECKED, End};
pub use cursor::PutCursor;
pub use error::{CreateError, DestroyError, Exhausted, InPlaceError, LocalCacheError};
pub use get_cursor::GetCursor;
pub use local_cache::LocalCache;
pub use mapping::Mapping;
pub use names::pools;
pub use near::NearCache;
pub use pool::RawPool;
pub use pool_ref::PoolRef;
pub use stats::{PoolStats, WorkerStats};
pub use typed::{Pool, Pooled};
pub use worker::MAX_WORKERS;
