//! Memory that the caller brings: a packet socket's area, shared memory, a static.

use crate::arena::Arena;
use crate::builder::Builder;
use crate::error::CreateError;
use std::any::Any;
use std::ptr::NonNull;

/// A caller's memory, not yet a pool's.
pub(crate) struct Region {
    base: NonNull<u8>,
    len: usize,
    owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: an owner that may be sent, and an address of memory that `Builder::region` demands to be
// usable on any thread.
unsafe impl Send for Region {}
// SAFETY: as for `Send`; a shared region gives no access.
unsafe impl Sync for Region {}

impl Builder {
    /// Takes the pool's objects from `len` bytes at `base` instead of from memory of its own: the
    /// first object lies at `base`, the others one [`stride`](Self::stride) apart.
    ///
    /// The pool keeps `owner` and drops it when it is freed, after its objects: when the last
    /// handle is gone *and* the last object is back. If building fails, `owner` is dropped then.
    ///
    /// The pool writes nothing into the region on its own account: objects hold what was there,
    /// then what `init` writes. Say [`zero_region`](Self::zero_region) to have them zeroed.
    /// [`huge_pages`](Self::huge_pages) has no meaning here; [`prefault`](Self::prefault) touches the
    /// objects' bytes and leaves what they hold. A region that does not hold all objects, each wholly,
    /// or that is less aligned than they, is an error when the pool is built.
    ///
    /// A device that shares the region names places in it by their distance from `base`:
    /// [`RawPool::offset_of`](crate::RawPool::offset_of) and
    /// [`RawPool::object_at`](crate::RawPool::object_at) translate.
    ///
    /// ```
    /// use mempool::RawPool;
    /// use std::ptr::NonNull;
    /// # #[repr(align(4096))]
    /// # struct Area([u8; 8 * 2048]);
    ///
    /// // Stands for the area of a packet socket: chunks of 2048 bytes.
    /// let area: &'static mut Area = Box::leak(Box::new(Area([0; 8 * 2048])));
    /// let base = NonNull::from(area).cast();
    /// let chunks = RawPool::builder(2048).stride(2048).capacity(8);
    /// // SAFETY: readable and writable forever, and nobody else's.
    /// let pool = unsafe { chunks.region(base, 8 * 2048, ()) }.build()?;
    ///
    /// let chunk = pool.get()?;
    /// let address = pool.offset_of(chunk).expect("an object of this pool"); // for the descriptor
    /// assert_eq!(pool.object_at(address + 256), Some(chunk)); // data begins behind a headroom
    /// # unsafe { pool.pool_ref().put(chunk) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Safety
    /// Until `owner` is dropped (it may be moved), from any thread:
    ///
    /// * the `len` bytes at `base` are one allocation, or one mapping, that may be read and written
    ///   through `base`, and are initialised (as mapped memory always is);
    /// * nobody reads or writes the bytes of the pool's objects but who holds the object, or, as a
    ///   device that was told to fill it, acts for who holds it.
    ///
    /// Nothing of that is asked for if `len` is 0.
    #[doc(alias = "rte_mempool_populate_virt")]
    #[doc(alias = "xsk_umem__create")]
    pub unsafe fn region(
        mut self,
        base: NonNull<u8>,
        len: usize,
        owner: impl Any + Send + Sync,
    ) -> Self {
        self.region = Some(Region {
            base,
            len,
            owner: Box::new(owner),
        });
        self
    }

    /// As [`region`](Self::region), with memory that is provably the pool's alone: a leaked box, a
    /// linker section, a mapping that is never unmapped. It is not given back.
    ///
    /// ```
    /// use mempool::{MemoryKind, RawPool};
    ///
    /// let memory = Box::leak(vec![0; 10_000].into_boxed_slice());
    /// let pool = RawPool::builder(100).align(1).capacity(100).static_region(memory).build()?;
    /// assert_eq!(pool.memory_kind(), MemoryKind::Region);
    /// # Ok::<(), mempool::CreateError>(())
    /// ```
    pub fn static_region(self, memory: &'static mut [u8]) -> Self {
        let len = memory.len();
        // SAFETY: exclusively borrowed, and by value, for as long as the program runs.
        unsafe { self.region(NonNull::from(memory).cast(), len, ()) }
    }

    /// Whether the objects in a caller's [`region`](Self::region) are zeroed before they are
    /// initialised; false unless given. Memory of the pool's own always is.
    pub fn zero_region(mut self, zero: bool) -> Self {
        self.zero_region = zero;
        self
    }
}

/// What a pool needs of a region.
pub(crate) struct Needs {
    pub(crate) object_size: usize,
    pub(crate) stride: usize,
    pub(crate) align: usize,
    pub(crate) capacity: usize,
}

impl Region {
    /// Checks that the region holds what is needed, and prepares it.
    pub(crate) fn into_arena(
        self,
        needs: &Needs,
        zero: bool,
        prefault: bool,
    ) -> Result<Arena, CreateError> {
        let address = self.base.addr().get();
        if !address.is_multiple_of(needs.align) {
            return Err(CreateError::RegionMisaligned {
                address,
                align: needs.align,
            });
        }
        let holds = match self.len.checked_sub(needs.object_size) {
            Some(rest) => rest / needs.stride + 1,
            None => 0,
        };
        if holds < needs.capacity {
            return Err(CreateError::RegionTooSmall {
                bytes: self.len,
                object_size: needs.object_size,
                stride: needs.stride,
                asked: needs.capacity,
                holds,
            });
        }
        let used = (needs.capacity - 1) * needs.stride + needs.object_size;
        if zero {
            // SAFETY: `used` is at most the region's length, as just checked; nobody else uses it.
            unsafe { self.base.write_bytes(0, used) };
        } else if prefault {
            self.touch(used);
        }
        Ok(Arena::brought(self.base, self.owner))
    }

    /// Writes to each page of the first `used` bytes what it holds.
    fn touch(&self, used: usize) {
        const SMALL_PAGE: usize = 4096;
        for offset in (0..used).step_by(SMALL_PAGE).chain([used - 1]) {
            // SAFETY: within the region, which is initialised and nobody else's.
            unsafe {
                let byte = self.base.add(offset);
                byte.write_volatile(byte.read_volatile());
            }
        }
    }
}
