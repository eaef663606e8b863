//! The typed layer: values that are constructed once and used many times.

use crate::builder::Builder;
use crate::burst::Burst;
use crate::error::{CreateError, Exhausted};
use crate::pool::RawPool;
use crate::pool_ref::PoolRef;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::time::Duration;

/// A pool of values. A counted handle; clones share the pool.
///
/// Each value is constructed once, when the pool is built, and dropped when the pool is freed, on
/// whatever thread the last object comes back. In between it keeps its state: what one user leaves
/// in it the next one finds.
///
/// `T` must be `Send`, since any thread may take a value, and `'static`, since values outlive the
/// handles while somebody holds one.
///
/// ```
/// use mempool::Pool;
///
/// let pool = Pool::new(2, |index| index * 10)?;
/// let first = pool.get()?;
/// let second = pool.get()?;
/// assert_eq!(*first + *second, 10);
/// assert!(pool.get().is_err());
/// drop(pool); // the values live on
/// assert_eq!(*second % 10, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Pool<T: Send + 'static> {
    raw: RawPool,
    values: PhantomData<fn() -> T>,
}

/// A value of a pool, given back on drop. One pointer wide.
///
/// May outlive the pool's handles. Forgetting it leaks the value and thereby the pool.
#[must_use = "dropped at once, the value goes straight back"]
#[repr(transparent)]
pub struct Pooled<T: Send + 'static> {
    object: NonNull<Object<T>>,
    owns: PhantomData<Object<T>>,
}

const _: () = assert!(size_of::<Option<Pooled<u64>>>() == size_of::<usize>());

/// What lies in the arena. The name of the pool comes with the value, so that the guard is one
/// pointer.
#[repr(C)]
struct Object<T> {
    pool: PoolRef,
    value: T,
}

// SAFETY: the guard is the only access to its value, and puts it back on any thread.
unsafe impl<T: Send + 'static> Send for Pooled<T> {}
// SAFETY: `&Pooled<T>` gives out `&T` and nothing else.
unsafe impl<T: Send + Sync + 'static> Sync for Pooled<T> {}

impl<T: Send + 'static> Pool<T> {
    /// A pool of `capacity` values, each made by `construct` from its index, with default settings.
    ///
    /// # Errors
    /// [`CreateError`] says which parameter is impossible, or that memory lacks.
    pub fn new(capacity: usize, construct: impl FnMut(usize) -> T) -> Result<Self, CreateError> {
        Self::build(|builder| builder.capacity(capacity), construct)
    }

    /// As [`new`](Self::new), with a chance to change the settings. The size of objects follows from
    /// `T`; an alignment smaller than `T`'s is raised. If `construct` unwinds, what it had made is
    /// dropped.
    ///
    /// ```
    /// use mempool::{BackendKind, Pool};
    ///
    /// let pool = Pool::build(|b| b.capacity(16).cache(4).backend(BackendKind::Ring), |_| [0u8; 32])?;
    /// assert_eq!(pool.raw().cache_size(), 4);
    /// # Ok::<(), mempool::CreateError>(())
    /// ```
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn build(
        configure: impl FnOnce(Builder) -> Builder,
        mut construct: impl FnMut(usize) -> T,
    ) -> Result<Self, CreateError> {
        // Whatever builder comes back: these three are what the rest relies on.
        let mut builder = configure(Builder::new(size_of::<Object<T>>()))
            .objects_of(size_of::<Object<T>>(), align_of::<Object<T>>());
        builder.drop_object = Some(drop_object::<T>);
        let raw = builder.build_with_ref(|pool, object, index| {
            let value = construct(index);
            // SAFETY: the object is ours here, large and aligned enough.
            unsafe { object.cast().write(Object { pool, value }) };
        })?;
        Ok(Self {
            raw,
            values: PhantomData,
        })
    }

    /// Takes a value.
    ///
    /// A guard that is not kept gives its value back at once, which the compiler remarks:
    ///
    /// ```compile_fail
    /// #![deny(unused_must_use)]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = mempool::Pool::new(2, |index| index)?;
    /// pool.get()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Exhausted`] if there is none within this thread's reach.
    #[inline]
    pub fn get(&self) -> Result<Pooled<T>, Exhausted> {
        let object = self.raw.get()?.cast();
        Ok(Pooled {
            object,
            owns: PhantomData,
        })
    }

    /// As [`get`](Self::get), but waits for a value up to `timeout`; see [`RawPool::get_timeout`].
    ///
    /// # Errors
    /// [`Exhausted`] if there is none by then.
    pub fn get_timeout(&self, timeout: Duration) -> Result<Pooled<T>, Exhausted> {
        let object = self.raw.get_timeout(timeout)?.cast();
        Ok(Pooled {
            object,
            owns: PhantomData,
        })
    }

    /// Takes `N` values, or none.
    ///
    /// # Errors
    /// [`Exhausted`] if there are not so many within this thread's reach.
    #[inline]
    pub fn get_bulk<const N: usize>(&self) -> Result<Burst<T, N>, Exhausted> {
        let mut burst = Burst::new();
        burst.fill_all(self)?;
        Ok(burst)
    }

    /// Takes as many values as there are, up to `N`.
    #[inline]
    pub fn get_burst<const N: usize>(&self) -> Burst<T, N> {
        let mut burst = Burst::new();
        burst.fill(self);
        burst
    }

    /// The pool below, for its counts and statistics.
    pub fn raw(&self) -> &RawPool {
        &self.raw
    }

    /// The pool below, this handle given up.
    pub fn into_raw(self) -> RawPool {
        self.raw
    }
}

/// # Safety
/// `object` is a constructed `Object<T>` that is not used again.
unsafe fn drop_object<T>(object: NonNull<u8>) {
    // SAFETY: as the caller promises.
    unsafe { object.cast::<Object<T>>().drop_in_place() };
}

impl<T: Send + 'static> Clone for Pool<T> {
    fn clone(&self) -> Self {
        Self {
            raw: self.raw.clone(),
            values: PhantomData,
        }
    }
}

impl<T: Send + 'static> std::fmt::Display for Pool<T> {
    /// As the pool below: see [`RawPool`].
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.raw, f)
    }
}

impl<T: Send + 'static> std::fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pool").field(&self.raw).finish()
    }
}

impl<T: Send + 'static> Pooled<T> {
    /// The pool whose value this is.
    #[inline(always)]
    pub(crate) fn pool_ref(&self) -> PoolRef {
        // SAFETY: written when the pool was built, and never changed.
        unsafe { (*self.object.as_ptr()).pool }
    }
}

impl<T: Send + 'static> Deref for Pooled<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: constructed when the pool was built; ours alone while the guard lives.
        unsafe { &(*self.object.as_ptr()).value }
    }
}

impl<T: Send + 'static> DerefMut for Pooled<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and borrowed mutably.
        unsafe { &mut (*self.object.as_ptr()).value }
    }
}

impl<T: Send + 'static> Drop for Pooled<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the pool's own object, got by `get` and given up here.
        unsafe { (*self.object.as_ptr()).pool.put(self.object.cast()) };
    }
}

impl<T: Send + std::fmt::Debug + 'static> std::fmt::Debug for Pooled<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pooled").field(&**self).finish()
    }
}
