//! Clusters: storage of 2 KB to 64 KB that several mbufs may refer to.
//!
//! The count and the pool stand in a line of their own in front of the data, so that sharing one
//! cluster never disturbs the data of its neighbour.

use crate::count::{Count, Released};
use crate::external::RecordPtr;
use crate::wipe;
use mempool::PoolRef;
use std::ptr::NonNull;

/// Bytes in front of the data.
pub(crate) const CLUSTER_HEADER_LEN: usize = 64;

/// A reference to storage outside of the element, held by one mbuf: a cluster or an external record,
/// both of which begin with their count. Copying the pointer does not count.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct StoragePtr(pub NonNull<Count>);

impl StoragePtr {
    /// The count.
    ///
    /// # Safety
    /// The caller holds one of the references for all of `'a`.
    #[inline(always)]
    pub(crate) unsafe fn count<'a>(self) -> &'a Count {
        // SAFETY: alive while a reference is out.
        unsafe { self.0.as_ref() }
    }

    /// What it is when the holder's word says `CLUSTER`.
    #[inline(always)]
    pub(crate) fn cluster(self) -> ClusterPtr {
        ClusterPtr(self.0.cast())
    }

    /// What it is when the holder's word says `EXTERN`.
    #[inline(always)]
    pub(crate) fn record(self) -> RecordPtr {
        RecordPtr(self.0.cast())
    }
}

#[repr(C, align(64))]
pub(crate) struct Cluster {
    pub count: Count,
    /// Bytes of data behind this header.
    pub size: u32,
    pub pool: PoolRef,
}

/// A reference to a cluster, held by one mbuf. Copying the pointer does not count.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct ClusterPtr(pub NonNull<Cluster>);

impl ClusterPtr {
    /// The cluster as what fields keep.
    #[inline(always)]
    pub(crate) fn storage(self) -> StoragePtr {
        StoragePtr(self.0.cast())
    }

    /// The cluster's header, of which only the count changes while the cluster is out.
    ///
    /// # Safety
    /// The caller holds one of the references for all of `'a`.
    #[inline(always)]
    pub(crate) unsafe fn get<'a>(self) -> &'a Cluster {
        // SAFETY: written at the pool's creation, alive while a reference is out.
        unsafe { &*self.0.as_ptr() }
    }

    /// Start of the data.
    #[inline(always)]
    pub(crate) fn data(self) -> NonNull<u8> {
        // SAFETY: the element is `CLUSTER_HEADER_LEN + size` bytes long and this pointer has the
        // provenance of the whole arena.
        unsafe { self.0.cast::<u8>().add(CLUSTER_HEADER_LEN) }
    }

    /// Gives up `references`, at least one; true when the last was among them, and the cluster is
    /// the caller's to put, wiped if anybody asked for it.
    ///
    /// # Safety
    /// The caller owns the references.
    #[inline(always)]
    pub(crate) unsafe fn release(self, references: u32) -> bool {
        // SAFETY: by contract; after the last release nobody else has the cluster.
        match unsafe { self.get() }.count.release(references) {
            Released::Shared => false,
            Released::Last => true,
            Released::LastToWipe => {
                // SAFETY: ours alone, `size` bytes.
                unsafe { wipe::bytes(self.data(), self.get().size as usize) };
                true
            }
        }
    }

    /// The cluster as its pool knows it.
    #[inline(always)]
    pub(crate) fn object(self) -> NonNull<u8> {
        self.0.cast()
    }
}

#[cfg(not(loom))]
const _: () = assert!(std::mem::size_of::<Cluster>() == CLUSTER_HEADER_LEN);
