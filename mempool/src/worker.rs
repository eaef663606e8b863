//! Worker ids: which thread owns which caches.
//!
//! A thread's id is kept as the byte offset of its slot in every pool's table of slots, so that the
//! hot path is a load, a compare and an add. Threads that have no id (yet, or any more) hold a value
//! beyond every table. An id is given back when its thread ends, with release, after the caches were
//! flushed, and is taken with acquire: successive owners of a slot are ordered.

use crate::cache::Slot;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};
use std::cell::Cell;

/// Worker ids in a process: so many threads at a time can have caches.
pub const MAX_WORKERS: usize = 256;

/// Offset of a thread that has not asked for an id, or got none.
const UNREGISTERED: usize = usize::MAX - 1;
/// Offset of a thread whose thread-locals are being dropped: it never asks again.
const RETIRED: usize = usize::MAX;

#[cfg(not(loom))]
thread_local! {
    // Constant and without a destructor: usable until the very end of the thread.
    static CURRENT: Cell<usize> = const { Cell::new(UNREGISTERED) };
    static EXIT: Exit = const { Exit(Cell::new(None)) };
}
#[cfg(loom)]
loom::thread_local! {
    static CURRENT: Cell<usize> = Cell::new(UNREGISTERED);
    static EXIT: Exit = Exit(Cell::new(None));
}

/// This thread's slot offset, or a value beyond all tables.
#[inline(always)]
pub(crate) fn current() -> usize {
    CURRENT.with(Cell::get)
}

/// As [`current`], but a thread that has no id asks for one.
pub(crate) fn current_or_register() -> usize {
    let offset = current();
    if offset == UNREGISTERED {
        register()
    } else {
        offset
    }
}

#[cold]
fn register() -> usize {
    let Some(id) = ids().take() else {
        return UNREGISTERED;
    };
    if EXIT.try_with(|exit| exit.0.set(Some(id))).is_err() {
        ids().give_back(id);
        CURRENT.with(|current| current.set(RETIRED));
        return RETIRED;
    }
    let offset = id * size_of::<Slot>();
    CURRENT.with(|current| current.set(offset));
    offset
}

/// Upper bound of the slot offsets that any thread ever had.
pub(crate) fn offsets_end() -> usize {
    ids().high_water.load(Ordering::Relaxed) * size_of::<Slot>()
}

/// Runs at thread end: flushes the caches and gives the id back.
struct Exit(Cell<Option<usize>>);

impl Drop for Exit {
    fn drop(&mut self) {
        if let Some(id) = self.0.take() {
            retire(id);
        }
    }
}

fn retire(id: usize) {
    // Under the model checker the offset is a thread-local that may be gone already.
    #[cfg(not(loom))]
    CURRENT.with(|current| current.set(RETIRED));
    #[cfg(loom)]
    let _ = CURRENT.try_with(|current| current.set(RETIRED));
    crate::registry::flush_worker(id * size_of::<Slot>());
    ids().give_back(id);
}

/// Ends this thread's life as a worker now: models call it where a thread would end.
#[cfg(all(test, loom))]
pub(crate) fn retire_now() {
    if let Some(id) = EXIT.with(|exit| exit.0.take()) {
        retire(id);
    }
}

#[cfg(not(loom))]
fn ids() -> &'static Ids {
    static IDS: Ids = Ids {
        used: [const { AtomicU64::new(0) }; MAX_WORKERS / 64],
        high_water: AtomicUsize::new(0),
    };
    &IDS
}
#[cfg(loom)]
fn ids() -> &'static Ids {
    loom::lazy_static! {
        static ref IDS: Ids = Ids {
            used: std::array::from_fn(|_| AtomicU64::new(0)),
            high_water: AtomicUsize::new(0),
        };
    }
    &IDS
}

/// The ids in use, one bit each.
struct Ids {
    used: [AtomicU64; MAX_WORKERS / 64],
    high_water: AtomicUsize,
}

impl Ids {
    /// Takes the lowest free id.
    fn take(&self) -> Option<usize> {
        for (index, word) in self.used.iter().enumerate() {
            let mut used = word.load(Ordering::Relaxed);
            while used != u64::MAX {
                let bit = used.trailing_ones();
                match word.compare_exchange(
                    used,
                    used | 1 << bit,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        let id = index * 64 + bit as usize;
                        self.high_water.fetch_max(id + 1, Ordering::Relaxed);
                        return Some(id);
                    }
                    Err(now) => used = now,
                }
            }
        }
        None
    }

    /// Frees an id; what the owner did is visible to the next owner.
    fn give_back(&self, id: usize) {
        self.used[id / 64].fetch_and(!(1 << (id % 64)), Ordering::Release);
    }
}
