//! What can go wrong, with the numbers.

use crate::segment::Segment;
use std::fmt;
use thiserror::Error;

/// A pool of buffers could not be made.
#[derive(Debug, Error)]
pub enum CreateError {
    /// The pool below refused.
    #[error(transparent)]
    Pool(#[from] mempool::CreateError),
    /// Rooms, charges and clusters are limited to 1 GiB, and hold at least one byte.
    #[error("{asked} bytes of room asked for, possible are 1 to {max}")]
    Room {
        /// Bytes asked for.
        asked: usize,
        /// The limit.
        max: usize,
    },
    /// Slices of a pinned pool's memory must be as long as the largest room.
    #[error("slices of {slice} bytes cannot be rooms of {room}")]
    SliceTooSmall {
        /// Bytes of a slice.
        slice: usize,
        /// Bytes of the largest room.
        room: usize,
    },
    /// The memory for a pinned pool holds fewer slices than the pool has mbufs.
    #[error("memory for {have} slices of {slice} bytes, {needed} mbufs asked for")]
    TooFewSlices {
        /// Mbufs asked for.
        needed: usize,
        /// Slices that lie wholly in the memory.
        have: usize,
        /// Bytes of a slice.
        slice: usize,
    },
    /// Pool ids are never used twice, and all have been used.
    #[error("no more than {limit} pools of mbufs can be made in the life of a process")]
    TooManyPools {
        /// How many there are.
        limit: u64,
    },
    /// Room for fields and for tags is a multiple of 8 bytes, and limited.
    #[error("{asked} bytes of a private area asked for, possible are multiples of 8 up to {max}")]
    Private {
        /// Bytes asked for.
        asked: usize,
        /// The limit.
        max: usize,
    },
}

/// Which buffers a pool holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Buffers {
    /// Mbufs.
    Mbufs,
    /// Clusters.
    Clusters {
        /// Bytes that one holds.
        class: usize,
    },
}

impl fmt::Display for Buffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mbufs => f.write_str("mbufs"),
            Self::Clusters { class } => write!(f, "clusters of {class} bytes"),
        }
    }
}

/// No buffer could be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AllocError {
    /// The pool ran short; nothing was taken.
    #[error("{of}: {short}")]
    Exhausted {
        /// Of what.
        of: Buffers,
        /// What the pool says: how many there were, here and in other threads' caches, and whether a
        /// budget is used up.
        short: mempool::Exhausted,
    },
    /// No cluster class is large enough.
    #[error("no cluster class holds {asked} bytes, the largest holds {largest}")]
    NoClass {
        /// Bytes asked for.
        asked: usize,
        /// Bytes of the largest class, 0 when the set has none.
        largest: usize,
    },
    /// The burst has not room for as many; nothing was taken.
    #[error("{asked} packets asked for in a burst of {room}")]
    BurstTooLong {
        /// Packets asked for.
        asked: usize,
        /// Packets that fit.
        room: usize,
    },
    /// The mbuf cannot take a cluster: it holds data, or has one already.
    #[error("mbuf with {len} bytes in {capacity} bytes of storage cannot take a cluster")]
    Occupied {
        /// Bytes in its first segment.
        len: usize,
        /// Capacity of its storage.
        capacity: usize,
    },
}

/// Storage could not be attached; the mbuf is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The mbuf holds data, or has a cluster or external storage already.
    #[error("mbuf with {len} bytes in {capacity} bytes of storage cannot take other storage")]
    Occupied {
        /// Bytes in its first segment.
        len: usize,
        /// Capacity of its storage.
        capacity: usize,
    },
    /// Lengths are limited.
    #[error("{len} bytes of external storage, possible are {max}")]
    TooLong {
        /// Bytes there are.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// The other packet has no such segment.
    #[error("segment {asked} of a packet of {have}")]
    NoSegment {
        /// Which was asked for, from 0.
        asked: usize,
        /// How many there are.
        have: usize,
    },
}

/// A range reaches past the data, or a place lies behind its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{}", match .len {
    0 => format!("byte {offset} is behind the end of {have} bytes"),
    len => format!("range of {len} bytes at {offset} is outside of {have} bytes"),
})]
pub struct OutOfRange {
    /// Where the range begins.
    pub offset: usize,
    /// Bytes in it; 0 for a place.
    pub len: usize,
    /// Bytes there are.
    pub have: usize,
}

impl OutOfRange {
    /// Checks that `[offset, offset + len)` lies within `have` bytes.
    #[inline]
    pub(crate) fn check(offset: usize, len: usize, have: usize) -> Result<(), Self> {
        match offset.checked_add(len) {
            Some(end) if end <= have => Ok(()),
            _ => Err(Self { offset, len, have }),
        }
    }
}

/// There is no room where it was asked for, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NoRoom {
    /// There are fewer bytes.
    #[error("asked for {asked} bytes of room, there are {have}")]
    TooSmall {
        /// Bytes asked for.
        asked: usize,
        /// Bytes there are.
        have: usize,
    },
    /// The storage is read-only: shared as long as there are several references to it; with only one it
    /// is memory that nobody may write.
    #[error("asked for {asked} bytes of room in read-only storage with {refs} references")]
    ReadOnly {
        /// Bytes asked for.
        asked: usize,
        /// References to the storage.
        refs: usize,
    },
    /// Data can be placed in an empty segment only.
    #[error("asked for {asked} bytes of room in front, but the segment holds {len} bytes already")]
    NotEmpty {
        /// Bytes asked for.
        asked: usize,
        /// Bytes in the segment.
        len: usize,
    },
}

impl NoRoom {
    /// Why `seg` was seen to have `have` bytes of room only.
    #[cold]
    pub(crate) fn in_segment(seg: Segment<'_>, asked: usize, have: usize) -> Self {
        if seg.is_writable() {
            return Self::TooSmall { asked, have };
        }
        let refs = seg.storage_refs();
        Self::ReadOnly { asked, refs }
    }
}

/// A copy could not be made; the source is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CopyError {
    /// The range is not in the packet.
    #[error(transparent)]
    Range(#[from] OutOfRange),
    /// No buffers for the copy.
    #[error(transparent)]
    Alloc(#[from] AllocError),
}

/// A packet could not be edited as asked. A call by `&mut` left it unchanged; one by value has freed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EditError {
    /// The range is not in the packet.
    #[error(transparent)]
    Range(#[from] OutOfRange),
    /// No buffers for the edit.
    #[error(transparent)]
    Alloc(#[from] AllocError),
}

/// Bytes could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The range is not in the packet.
    #[error(transparent)]
    Range(#[from] OutOfRange),
    /// The bytes are not contiguous, and the caller's buffer does not hold them.
    #[error("buffer for bytes that are not contiguous: {0}")]
    Scratch(NoRoom),
}
