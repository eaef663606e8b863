//! The shape in which all variants are measured: a store of objects, and a thread's way into it.

#![allow(unsafe_code)] // the contract of a store

use super::CAPACITY;
use std::collections::HashSet;
use std::mem::MaybeUninit;

/// A store of at least [`CAPACITY`] objects of [`OBJECT`](super::OBJECT) bytes.
///
/// # Safety
/// An object that was handed out is nobody else's until it is given back, by whatever thread: also
/// items that are not `Send` may change threads, if the store is `Sync`.
pub(super) unsafe trait Store: Sized + 'static {
    /// The variant's name.
    const NAME: &'static str;
    /// Whether a lane has a cache of [`CACHE`](super::CACHE) objects.
    const CACHED: bool = false;
    /// A thread's way into the store.
    type Lane<'a>: Lane;

    /// A full one.
    ///
    /// # Errors
    /// Why it cannot be had.
    fn build() -> Result<Self, String>;

    /// This thread's way; its cache, if there is one, is empty.
    fn lane(&self) -> Self::Lane<'_>;

    /// Objects that are neither in the store nor in a cache of it, where that can be told; exact
    /// while no lane is in use.
    fn missing(&self) -> Option<usize>;

    /// Calls of the backend so far, gets and puts, where they are counted.
    fn calls(&self) -> Option<[u64; 2]> {
        None
    }
}

/// A thread's way into a store.
///
/// # Safety
/// After a get all of `out` is written, and each item owns one object.
pub(super) unsafe trait Lane {
    /// What owns an object: a pointer, or a guard.
    type Item;

    /// Fills `out`, by the store's call for many if it has one.
    fn get(&mut self, out: &mut [MaybeUninit<Self::Item>]);

    /// Gives all of `items` back, by the store's call for many if it has one.
    ///
    /// # Safety
    /// All are written, came from this lane's store, and count as moved out afterwards.
    unsafe fn put(&mut self, items: &mut [MaybeUninit<Self::Item>]);

    /// Gets one.
    fn get_one(&mut self) -> Self::Item;

    /// Gives one back.
    ///
    /// # Safety
    /// It came from this lane's store.
    unsafe fn put_one(&mut self, item: Self::Item);

    /// The object's first line, for its owner to read and write.
    fn line(item: &mut Self::Item) -> *mut u64;
}

/// A store that is short of objects: the cell fails.
#[cold]
#[inline(never)]
pub(super) fn empty() -> ! {
    panic!("the store has not as many objects as were asked for")
}

/// Writes `value` into the first line of each object.
///
/// # Safety
/// All of `items` are written and the caller's.
#[inline(always)]
pub(super) unsafe fn write_lines<L: Lane>(items: &mut [MaybeUninit<L::Item>], value: &mut u64) {
    for item in items {
        // SAFETY: by contract; the owner may write.
        unsafe { L::line(item.assume_init_mut()).write(*value) };
        *value = value.wrapping_add(1);
    }
}

/// The sum of the first words of the objects.
///
/// # Safety
/// As for [`write_lines`], and the words are written.
#[inline(always)]
pub(super) unsafe fn read_lines<L: Lane>(items: &mut [MaybeUninit<L::Item>]) -> u64 {
    items.iter_mut().fold(0, |sum, item| {
        // SAFETY: by contract.
        sum.wrapping_add(unsafe { L::line(item.assume_init_mut()).read() })
    })
}

/// Whether every object is back, and none is there twice. Empties the store once and fills it again.
///
/// # Errors
/// What is wrong.
pub(super) fn audit<S: Store>(store: &S) -> Result<(), String> {
    if let Some(missing @ 1..) = store.missing() {
        return Err(format!("{}: {missing} objects are not back", S::NAME));
    }
    let mut lane = store.lane();
    let mut all: Vec<_> = (0..CAPACITY).map(|_| lane.get_one()).collect();
    let distinct: HashSet<usize> = all.iter_mut().map(|item| line_of(&lane, item)).collect();
    for item in all {
        // SAFETY: it came from this lane.
        unsafe { lane.put_one(item) };
    }
    if distinct.len() == CAPACITY {
        return Ok(());
    }
    Err(format!(
        "{}: {} objects were handed out twice",
        S::NAME,
        CAPACITY - distinct.len()
    ))
}

fn line_of<L: Lane>(_: &L, item: &mut L::Item) -> usize {
    L::line(item).addr()
}

/// Does something with each variant of a question.
pub(super) trait Visit {
    /// A store that threads can share.
    fn shared<S: Store + Sync>(&mut self) -> Result<(), String>;
}

/// Ours, the backends without caches, and the yardsticks.
pub(super) fn own(visit: &mut impl Visit) -> Result<(), String> {
    use super::{ours, yardstick};
    visit.shared::<ours::Ours>()?;
    visit.shared::<ours::Ring>()?;
    visit.shared::<ours::LifoNoCache>()?;
    visit.shared::<ours::RingNoCache>()?;
    visit.shared::<yardstick::MutexLifo>()?;
    visit.shared::<yardstick::MutexLifoCache>()
}

/// Those, and what only one getting and one giving thread may use.
pub(super) fn one_way(visit: &mut impl Visit) -> Result<(), String> {
    own(visit)?;
    visit.shared::<super::ours::SpscNoCache>()
}

/// The peers, in builds that have them.
pub(super) fn peers(visit: &mut impl Visit) -> Result<(), String> {
    #[cfg(feature = "peers")]
    super::peers::all(visit)?;
    let _ = visit;
    Ok(())
}
