//! Where the objects are: indices, addresses, and distances from the first.

use crate::inner::Inner;
use crate::pool::RawPool;
use std::iter::FusedIterator;
use std::ops::Range;
use std::ptr::NonNull;

impl Inner {
    /// The object at `offset` bytes from the first, by index.
    fn index_at(&self, offset: usize) -> Option<usize> {
        let index = offset / self.stride;
        (index < self.capacity && offset % self.stride < self.object_size).then_some(index)
    }

    /// The object that `address` lies in, by index, and the distance from the first.
    pub(crate) fn locate(&self, address: NonNull<u8>) -> Option<(usize, usize)> {
        let offset = address.addr().get().checked_sub(self.base.addr().get())?;
        Some((self.index_at(offset)?, offset))
    }

    /// The object that starts at `address`.
    pub(crate) fn index_of(&self, address: NonNull<u8>) -> Option<usize> {
        let (index, offset) = self.locate(address)?;
        (offset == index * self.stride).then_some(index)
    }

    /// The address of an object.
    fn object(&self, index: usize) -> NonNull<u8> {
        debug_assert!(index < self.capacity);
        // SAFETY: within the arena.
        unsafe { self.base.add(index * self.stride) }
    }
}

impl RawPool {
    /// The index of the object that `address` lies in, if it lies in one.
    pub fn contains(&self, address: NonNull<u8>) -> Option<usize> {
        Some(self.inner().locate(address)?.0)
    }

    /// The address of object `index`, whoever has it: `None` beyond the capacity.
    pub fn object(&self, index: usize) -> Option<NonNull<u8>> {
        let inner = self.inner();
        (index < inner.capacity).then(|| inner.object(index))
    }

    /// Bytes from the first object, where a [`region`](crate::Builder::region) begins, to `address`,
    /// if it lies in an object: what a device that shares the memory calls that place.
    pub fn offset_of(&self, address: NonNull<u8>) -> Option<usize> {
        Some(self.inner().locate(address)?.1)
    }

    /// The object in which the byte lies that is `offset` bytes from the first object: the other way
    /// round. The byte itself lies `offset % stride` behind what is returned.
    pub fn object_at(&self, offset: usize) -> Option<NonNull<u8>> {
        let inner = self.inner();
        inner.index_at(offset).map(|index| inner.object(index))
    }

    /// The addresses of all objects, in order, whoever has them. Addresses only: what lies there is
    /// its holder's.
    ///
    /// ```
    /// let pool = mempool::RawPool::builder(64).capacity(100).build()?;
    /// assert_eq!(pool.objects().len(), 100);
    /// assert!(pool.objects().is_sorted());
    /// assert_eq!(pool.objects().next_back(), pool.object(99));
    /// # Ok::<(), mempool::CreateError>(())
    /// ```
    #[doc(alias = "rte_mempool_obj_iter")]
    pub fn objects(&self) -> Objects<'_> {
        Objects {
            pool: self.inner(),
            left: 0..self.capacity(),
        }
    }

    /// From the first byte of the first object to the last one of the last object: an address and a
    /// length, say to register the memory with a device.
    #[doc(alias = "rte_mempool_get_mem_range")]
    #[doc(alias = "rte_mempool_mem_iter")]
    pub fn range(&self) -> NonNull<[u8]> {
        let inner = self.inner();
        let bytes = (inner.capacity - 1) * inner.stride + inner.object_size;
        NonNull::slice_from_raw_parts(inner.base, bytes)
    }

    /// Bytes to whose multiples objects are aligned: as asked for, or more if the layer above needs it.
    #[doc(alias = "rte_mempool_get_obj_align")]
    pub fn align(&self) -> usize {
        self.inner().align
    }
}

/// The addresses of a pool's objects: see [`RawPool::objects`].
#[derive(Clone)]
#[must_use = "iterators do nothing unless asked"]
pub struct Objects<'a> {
    pool: &'a Inner,
    left: Range<usize>,
}

// SAFETY: addresses, which anybody may have; the pool's shared part is built for any number of threads.
unsafe impl Send for Objects<'_> {}
// SAFETY: as for `Send`.
unsafe impl Sync for Objects<'_> {}

impl Iterator for Objects<'_> {
    type Item = NonNull<u8>;

    fn next(&mut self) -> Option<NonNull<u8>> {
        self.left.next().map(|index| self.pool.object(index))
    }

    fn nth(&mut self, n: usize) -> Option<NonNull<u8>> {
        self.left.nth(n).map(|index| self.pool.object(index))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl DoubleEndedIterator for Objects<'_> {
    fn next_back(&mut self) -> Option<NonNull<u8>> {
        self.left.next_back().map(|index| self.pool.object(index))
    }

    fn nth_back(&mut self, n: usize) -> Option<NonNull<u8>> {
        self.left.nth_back(n).map(|index| self.pool.object(index))
    }
}

impl ExactSizeIterator for Objects<'_> {}
impl FusedIterator for Objects<'_> {}

impl std::fmt::Debug for Objects<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Objects")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}
