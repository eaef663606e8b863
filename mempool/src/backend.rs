//! Where objects rest that are in no cache: the common backend of a pool.

mod fail_at;
mod lifo;
mod ring;
mod spsc;

pub use fail_at::{FailAt, FailSwitch};
pub use lifo::Lifo;
pub use ring::Ring;
pub use spsc::SpscRing;

use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// A store of free objects that all threads share.
///
/// Methods may use the same pool again: this thread's cache is taken while it exchanges objects with the
/// backend, so that such nested calls go to the backend too. If one unwinds, the objects that were
/// under way are lost, their pool is never freed, and the cache that talked to the backend is closed for
/// good; nothing else happens.
///
/// # Safety
///
/// An implementation hands out only objects that it was given, each at most once per time it was
/// given, and makes what happened before the put visible to whoever gets the object. After `Ok` from
/// [`get_bulk`](Self::get_bulk) all of `out` is written. It serves one pool at a time.
pub unsafe trait Backend: Send + Sync {
    /// Takes in `objs`, all of them. There is room: a pool never puts more objects than it has.
    fn put_bulk(&self, objs: &[NonNull<u8>]);

    /// Fills `out`, or takes nothing and says how many objects there were. After a failure the
    /// content of `out` does not matter.
    ///
    /// # Errors
    /// The number of objects available, when it is less than `out.len()`.
    fn get_bulk(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), usize>;

    /// Objects in it at this moment.
    fn len(&self) -> usize;

    /// Whether there is nothing in it at this moment.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Objects that it can hold; unlimited unless an implementation says otherwise.
    fn room(&self) -> usize {
        usize::MAX
    }

    /// A name for people; the type's, unless an implementation says otherwise.
    fn name(&self) -> &str {
        std::any::type_name::<Self>()
    }
}

// SAFETY: forwards to a backend that keeps the contract.
unsafe impl<B: Backend + ?Sized> Backend for Box<B> {
    fn put_bulk(&self, objs: &[NonNull<u8>]) {
        (**self).put_bulk(objs);
    }

    fn get_bulk(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), usize> {
        (**self).get_bulk(out)
    }

    fn len(&self) -> usize {
        (**self).len()
    }

    fn is_empty(&self) -> bool {
        (**self).is_empty()
    }

    fn room(&self) -> usize {
        (**self).room()
    }

    fn name(&self) -> &str {
        (**self).name()
    }
}

/// The backend of a pool, the built-in ones without a virtual call.
pub(crate) enum AnyBackend {
    Lifo(Lifo),
    Ring(Ring),
    Spsc(SpscRing),
    Custom(Box<dyn Backend>),
}

impl AnyBackend {
    #[inline]
    pub(crate) fn put_bulk(&self, objs: &[NonNull<u8>]) {
        match self {
            Self::Lifo(backend) => backend.put_bulk(objs),
            Self::Ring(backend) => backend.put_bulk(objs),
            Self::Spsc(backend) => backend.put_bulk(objs),
            Self::Custom(backend) => backend.put_bulk(objs),
        }
    }

    #[inline]
    pub(crate) fn get_bulk(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), usize> {
        match self {
            Self::Lifo(backend) => backend.get_bulk(out),
            Self::Ring(backend) => backend.get_bulk(out),
            Self::Spsc(backend) => backend.get_bulk(out),
            Self::Custom(backend) => backend.get_bulk(out),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Lifo(backend) => backend.len(),
            Self::Ring(backend) => backend.len(),
            Self::Spsc(backend) => backend.len(),
            Self::Custom(backend) => backend.len(),
        }
    }

    /// Whether only one thread may take from it at a time, so that nobody may look into it.
    pub(crate) fn is_single(&self) -> bool {
        matches!(self, Self::Spsc(_))
    }
}
