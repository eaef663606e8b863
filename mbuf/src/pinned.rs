//! Pools whose mbufs have their rooms in memory of the caller's own, each in a slice of it for good.

use crate::error::CreateError;
use crate::header::RoomStart;
use crate::owner::RawVec;
use crate::pool::{MbufPool, Room};
use crate::private::PrivateArea;
use mempool::Builder;
use std::any::Any;
use std::ptr::NonNull;

/// Memory for the rooms of a pinned pool, and its owner, which is dropped when the pool's last
/// object and handle are gone.
#[doc(alias = "rte_pktmbuf_extmem")]
pub struct PinnedArea {
    base: NonNull<u8>,
    len: usize,
    owner: Box<dyn Any + Send>,
}

// SAFETY: an address and an owner that may go to another thread; the bytes may be accessed from any.
unsafe impl Send for PinnedArea {}

impl PinnedArea {
    /// `len` bytes at `base`.
    ///
    /// # Safety
    /// The bytes are initialised, and until `owner` is dropped they stay where they are and nobody else
    /// reads or writes them.
    pub unsafe fn from_raw_parts(
        base: NonNull<u8>,
        len: usize,
        owner: impl Send + 'static,
    ) -> Self {
        Self {
            base,
            len,
            owner: Box::new(owner),
        }
    }

    /// Bytes of the area.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Slices of `bytes` bytes that lie wholly in the area.
    fn slices(&self, bytes: usize) -> impl Iterator<Item = NonNull<u8>> {
        let base = self.base;
        (0..self.len / bytes).map(move |at| {
            // SAFETY: the slice is in the area.
            unsafe { base.add(at * bytes) }
        })
    }
}

impl From<Vec<u8>> for PinnedArea {
    /// The vector's bytes, not its spare capacity.
    fn from(bytes: Vec<u8>) -> Self {
        let (owner, bytes) = RawVec::new(bytes);
        // SAFETY: the vector's own bytes, which nobody else has.
        unsafe { Self::from_raw_parts(bytes.cast(), bytes.len(), owner) }
    }
}

impl From<Box<[u8]>> for PinnedArea {
    fn from(bytes: Box<[u8]>) -> Self {
        Vec::from(bytes).into()
    }
}

impl std::fmt::Debug for PinnedArea {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PinnedArea {:p} len {}", self.base, self.len)
    }
}

/// Keeps the owners with the pool, out of everybody's reach: nobody can name the type.
struct Owners {
    _owners: Vec<Box<dyn Any + Send>>,
}

// SAFETY: a shared reference to it can do nothing.
unsafe impl Sync for Owners {}

impl MbufPool {
    /// Makes a pool whose mbufs have their rooms in `areas`: the first one's in its first `slice`
    /// bytes, and so on, area after area. What is left at the end of an area is not used.
    ///
    /// `configure` is as for [`new`](Self::new), except that the pool's private value is taken for the
    /// areas' owners.
    ///
    /// ```
    /// use mbuf::{MbufPool, Packet, Room};
    /// let room = Room { header: 2048, plain: 2048, charge: 2176 };
    /// let areas = [vec![0; 10 * 2048], vec![0; 6 * 2048]];
    /// let place = areas[0].as_ptr();
    /// let pool = MbufPool::pinned(room, 2048, areas, |b| b.capacity(16))?;
    /// let mut m = pool.header()?;
    /// m.append(5)?.copy_from_slice(b"hello");
    /// assert_eq!(m.first().data().as_ptr(), place);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CreateError`]: as for [`new`](Self::new), and when a slice is smaller than a room or the areas
    /// hold fewer slices than the pool has mbufs. The areas are given up then.
    #[doc(alias = "rte_pktmbuf_pool_create_extbuf")]
    pub fn pinned<A: Into<PinnedArea>>(
        room: Room,
        slice: usize,
        areas: impl IntoIterator<Item = A>,
        configure: impl FnOnce(Builder) -> Builder,
    ) -> Result<Self, CreateError> {
        room.check()?;
        let largest = room.header.max(room.plain);
        if slice < largest {
            return Err(CreateError::SliceTooSmall {
                slice,
                room: largest,
            });
        }
        let areas: Vec<PinnedArea> = areas.into_iter().map(Into::into).collect();
        let slices: Vec<_> = areas.iter().flat_map(|area| area.slices(slice)).collect();
        let owners = Owners {
            _owners: areas.into_iter().map(|area| area.owner).collect(),
        };
        let configure = |builder| configure(builder).private(owners);
        // A pool with too few is not handed out.
        let slice_of = |_, index| slices.get(index).copied().unwrap_or(NonNull::dangling());
        let start = RoomStart::PINNED;
        let pool = Self::build(room, PrivateArea::default(), 0, start, configure, slice_of)?;
        let needed = pool.raw().capacity();
        if needed > slices.len() {
            return Err(CreateError::TooFewSlices {
                needed,
                have: slices.len(),
                slice,
            });
        }
        Ok(pool)
    }
}
