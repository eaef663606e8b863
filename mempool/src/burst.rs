//! Values of pools in an inline array: taken in bulk, and given back in bulk from that very array.
//!
//! When a burst (or what is left of its iterator) is dropped, runs of values of one pool are handed
//! to that pool as they lie in the array. This reads the name of the pool beside each value, and
//! copies each address once, into the cache.

mod iter;
mod put_back;

pub use iter::{Drain, IntoIter};

use crate::error::Exhausted;
use crate::typed::{Pool, Pooled};
use put_back::put_back;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Up to `N` values, of any pools of `T`, in an array without an allocation. Dereferences to a
/// slice of guards.
///
/// Forgetting it leaks its values, nothing else. If a backend unwinds while values are given back,
/// those of the run that was under way are lost, and the others are given back nevertheless.
///
/// ```
/// use mempool::{Burst, Pool};
///
/// let (small, large) = (Pool::new(64, |_| vec![0u8; 64])?, Pool::new(64, |_| vec![0u8; 2048])?);
/// let mut burst: Burst<Vec<u8>, 32> = small.get_bulk::<32>()?;
/// burst.truncate(16);
/// burst.fill_exact(&large, 8)?;
/// burst.push(small.get()?).expect("room for 7 more");
/// for value in &mut burst[..] {
///     value[0] = 1;
/// }
/// assert_eq!((burst.len(), large.raw().in_use()), (25, 8));
/// drop(burst); // three runs, three bulk puts
/// assert!(small.raw().is_full() && large.raw().is_full());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropped at once, its values go straight back"]
pub struct Burst<T: Send + 'static, const N: usize> {
    /// The first `len` are written.
    values: [MaybeUninit<Pooled<T>>; N],
    len: usize,
}

/// A burst without room for one more; the value is given back.
#[derive(thiserror::Error)]
#[error("a burst of {capacity} is full")]
pub struct Full<T: Send + 'static> {
    /// What was to be pushed.
    pub value: Pooled<T>,
    /// Values that the burst holds.
    pub capacity: usize,
}

/// A burst that could not be filled. Nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FillError {
    /// The burst has not so much room.
    #[error("asked for {asked} more values, a burst of {capacity} has room for {room} more")]
    NoRoom {
        /// Values asked for.
        asked: usize,
        /// Values that still fit.
        room: usize,
        /// Values that it holds at most.
        capacity: usize,
    },
    /// The pool has not as many.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
}

impl<T: Send + 'static, const N: usize> Burst<T, N> {
    /// An empty burst.
    pub const fn new() -> Self {
        Self {
            values: [const { MaybeUninit::uninit() }; N],
            len: 0,
        }
    }

    /// Values that it holds at most: `N`.
    pub const fn capacity(&self) -> usize {
        N
    }

    /// How many more fit.
    pub const fn room(&self) -> usize {
        N - self.len
    }

    /// Whether none fits any more.
    pub const fn is_full(&self) -> bool {
        self.len == N
    }

    /// Takes `n` more values from `pool`, or none.
    ///
    /// # Errors
    /// [`FillError`] if they do not fit, or the pool has not as many within this thread's reach.
    pub fn fill_exact(&mut self, pool: &Pool<T>, n: usize) -> Result<(), FillError> {
        let room = self.room();
        if n > room {
            return Err(FillError::NoRoom {
                asked: n,
                room,
                capacity: N,
            });
        }
        Ok(self.take_bulk(pool, n)?)
    }

    /// Fills all the room with values of `pool`, or takes none.
    ///
    /// # Errors
    /// [`Exhausted`] if there are not as many within this thread's reach.
    pub fn fill_all(&mut self, pool: &Pool<T>) -> Result<(), Exhausted> {
        self.take_bulk(pool, self.room())
    }

    /// Takes as many values of `pool` as there are and fit, and says how many.
    pub fn fill(&mut self, pool: &Pool<T>) -> usize {
        let room = &mut self.values[self.len..];
        let got = pool.raw().get_burst(as_addresses(room));
        self.len += got;
        got
    }

    #[inline]
    fn take_bulk(&mut self, pool: &Pool<T>, n: usize) -> Result<(), Exhausted> {
        let room = &mut self.values[self.len..][..n];
        pool.raw().get_bulk(as_addresses(room))?;
        self.len += n;
        Ok(())
    }

    /// Appends a value.
    ///
    /// # Errors
    /// [`Full`], with the value in it.
    #[inline]
    pub fn push(&mut self, value: Pooled<T>) -> Result<(), Full<T>> {
        match self.values.get_mut(self.len) {
            Some(free) => {
                free.write(value);
                self.len += 1;
                Ok(())
            }
            None => Err(Full { value, capacity: N }),
        }
    }

    /// Takes the last value out.
    #[inline]
    pub fn pop(&mut self) -> Option<Pooled<T>> {
        self.len = self.len.checked_sub(1)?;
        // SAFETY: entries below the old `len` are written, and this one is no longer the burst's.
        Some(unsafe { self.values[self.len].assume_init_read() })
    }

    /// Takes a value out, and lets the last one take its place. `None` if there is no such one.
    #[inline]
    pub fn swap_remove(&mut self, index: usize) -> Option<Pooled<T>> {
        let last = self.len.checked_sub(1)?;
        if index > last {
            return None;
        }
        self.swap(index, last);
        self.pop()
    }

    /// Gives all but the first `len` values back.
    pub fn truncate(&mut self, len: usize) {
        let Some(over) = self.len.checked_sub(len) else {
            return;
        };
        self.len = len;
        // SAFETY: written, and no longer the burst's.
        unsafe { put_back(&mut self.values[len..][..over]) };
    }

    /// Gives all values back.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Takes all values out, one after the other; those that are not taken when the iterator is
    /// dropped are given back.
    pub fn drain(&mut self) -> Drain<'_, T> {
        let len = std::mem::take(&mut self.len);
        // SAFETY: written, and no longer the burst's.
        unsafe { Drain::over(&mut self.values[..len]) }
    }
}

/// The same slots, for addresses of objects: what a guard is.
fn as_addresses<T: Send + 'static>(
    slots: &mut [MaybeUninit<Pooled<T>>],
) -> &mut [MaybeUninit<NonNull<u8>>] {
    // SAFETY: a guard is laid out as the address of its object; whatever a pool of `T` writes here
    // is one. `MaybeUninit` asks for no content, neither before nor after.
    unsafe { &mut *(std::ptr::from_mut(slots) as *mut [MaybeUninit<NonNull<u8>>]) }
}

impl<T: Send + 'static, const N: usize> Drop for Burst<T, N> {
    #[inline]
    fn drop(&mut self) {
        self.clear();
    }
}

impl<T: Send + 'static, const N: usize> Deref for Burst<T, N> {
    type Target = [Pooled<T>];

    #[inline]
    fn deref(&self) -> &[Pooled<T>] {
        // SAFETY: the first `len` are written.
        unsafe { self.values[..self.len].assume_init_ref() }
    }
}

impl<T: Send + 'static, const N: usize> DerefMut for Burst<T, N> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Pooled<T>] {
        // SAFETY: as in `deref`. A guard put in the place of another is a guard.
        unsafe { self.values[..self.len].assume_init_mut() }
    }
}

impl<T: Send + 'static, const N: usize> Default for Burst<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send + std::fmt::Debug + 'static, const N: usize> std::fmt::Debug for Burst<T, N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Send + 'static> std::fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Full")
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}
