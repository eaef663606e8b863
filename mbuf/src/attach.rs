//! Giving an mbuf storage other than its own room, and taking it away.

use crate::cluster::StoragePtr;
use crate::error::AttachError;
use crate::external::{External, Owned, RecordPtr};
use crate::free::{self, Later};
use crate::handle::{Mbuf, SharedMbuf};
use crate::header::{HeaderPtr, SegFlags};
use crate::packet::Packet;
use crate::segment::Segment;
use crate::word::{CLUSTER, EXTERN, WIPE};

/// Most bytes of external memory, and of everything that lengths and offsets count.
pub(crate) const MAX_STORAGE: usize = 1 << 30;

/// Storage that an mbuf is given, with one reference to it.
struct Given {
    storage: StoragePtr,
    /// `CLUSTER` or `EXTERN`.
    kind: u64,
    flags: SegFlags,
    capacity: u32,
}

impl Mbuf {
    /// Bytes of storage of the first segment.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.first().capacity()
    }

    /// Gives an empty inline mbuf external storage; its data are all of the bytes. See [`External`].
    ///
    /// What a `Vec` has of spare capacity is not initialised, and therefore neither data nor tailroom.
    /// For tailroom, resize it first and [`attach_empty`](Self::attach_empty), or
    /// [`trim_back`](Self::trim_back) what is not data yet.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::standard(64, 8)?;
    /// use mbuf::Packet;
    /// let mut bytes = Vec::with_capacity(2048);
    /// bytes.extend_from_slice(b"data");
    /// let mut m = set.header()?;
    /// m.attach(bytes)?;
    /// assert_eq!((m.first().len(), m.first().tailroom()), (4, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AttachError`] when the first segment holds data or has other storage, or when there are more
    /// than 1 GiB of bytes: the mbuf is unchanged then, and this reference to the storage is given up.
    #[doc(alias = "rte_pktmbuf_attach_extbuf")]
    #[doc(alias = "MEXTADD")]
    #[doc(alias = "m_extadd")]
    pub fn attach(&mut self, storage: impl Into<External>) -> Result<(), AttachError> {
        let storage = storage.into();
        let len = storage.len();
        self.attach_window(storage, 0, len)
    }

    /// As [`attach`](Self::attach), but the mbuf stays empty: if the storage is writable, all of it is
    /// tailroom.
    ///
    /// # Errors
    /// As for [`attach`](Self::attach).
    pub fn attach_empty(&mut self, storage: impl Into<External>) -> Result<(), AttachError> {
        self.attach_window(storage.into(), 0, 0)
    }

    /// Gives an empty inline mbuf the storage of segment `index` of another packet, with the same
    /// place and length of data. No byte is copied; the bytes are read-only.
    ///
    /// If the bytes are in the other mbuf's own room, that packet is held as one more owner would,
    /// until the last reference to this storage goes. A cluster or external storage is shared by
    /// itself, and the packet is not held.
    ///
    /// ```
    /// use mbuf::{BufferSet, Packet};
    /// let set = BufferSet::standard(64, 8)?;
    /// let mut direct = set.header()?;
    /// direct.append(5)?.copy_from_slice(b"bytes");
    /// let direct = direct.into_shared();
    /// let mut indirect = set.header()?;
    /// indirect.attach_shared(&direct, 0)?;
    /// assert_eq!(indirect.first().data().as_ptr(), direct.first().data().as_ptr());
    /// assert_eq!(direct.owners(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AttachError`] as for [`attach`](Self::attach), or when there is no such segment; the mbuf
    /// is unchanged then.
    #[doc(alias = "rte_pktmbuf_attach")]
    pub fn attach_shared(&mut self, other: &SharedMbuf, index: usize) -> Result<(), AttachError> {
        let Some(seg) = other.segments().nth(index) else {
            return Err(AttachError::NoSegment {
                asked: index,
                have: other.nsegs(),
            });
        };
        self.check_vacant()?;
        if seg.counted().is_some() {
            self.refer_to(seg, 0, seg.len());
            return Ok(());
        }
        let head = other.clone().into_raw();
        // SAFETY: the reference to the packet, which keeps the room alive and everybody from
        // writing it, is the owner, and an address may go to another thread, as the packet may.
        let external =
            unsafe { External::place_with(seg.base(), seg.capacity(), false, head, free_held).0 };
        self.attach_window(external, seg.lead(), seg.len())
    }

    /// Takes the first segment's cluster or external storage away, and its data with it: it is
    /// inline and empty then. False if it has none.
    ///
    /// If that was the last reference, external memory goes back to its owner before this returns.
    #[doc(alias = "rte_pktmbuf_detach")]
    #[doc(alias = "rte_pktmbuf_detach_extbuf")]
    pub fn detach(&mut self) -> bool {
        let ptr = self.ptr();
        let mut later = Later::new();
        // SAFETY: exclusive handle, mutably borrowed. The reference to the storage is taken out of the
        // mbuf before it is given up.
        unsafe {
            let word = ptr.word().load();
            let fields = ptr.fields_mut();
            let Some(storage) = fields.storage.take() else {
                return false;
            };
            ptr.word().set(word & !(CLUSTER | EXTERN));
            let home = ptr.home();
            let headed = fields.flags.contains(SegFlags::HEADER);
            fields.charge -= fields.capacity;
            fields.capacity = if headed { home.header } else { home.plain };
            fields.pkt_len -= fields.len as usize;
            (fields.off, fields.len) = (0, 0);
            fields.flags -= SegFlags::EXTERNAL | SegFlags::READ_ONLY;
            free::release_storage(storage, word, &mut later);
        }
        true
    }

    /// Attaches external storage, of which `[off, off + len)` are the data.
    fn attach_window(
        &mut self,
        storage: External,
        off: usize,
        len: usize,
    ) -> Result<(), AttachError> {
        self.check_vacant()?;
        let capacity = storage.len();
        if capacity > MAX_STORAGE {
            return Err(AttachError::TooLong {
                len: capacity,
                max: MAX_STORAGE,
            });
        }
        let access = if storage.is_writable() {
            SegFlags::empty()
        } else {
            SegFlags::READ_ONLY
        };
        let given = Given {
            storage: storage.into_raw(),
            kind: EXTERN,
            flags: SegFlags::EXTERNAL | access,
            capacity: capacity as u32,
        };
        // SAFETY: `into_raw` has handed the reference over; the window is in the storage.
        unsafe { self.give(given, off as u32, len as u32) };
        Ok(())
    }

    /// Says whether the first segment can be given storage.
    #[inline]
    pub(crate) fn check_vacant(&self) -> Result<(), AttachError> {
        let seg = self.first();
        if seg.is_empty() && seg.counted().is_none() {
            return Ok(());
        }
        Err(AttachError::Occupied {
            len: seg.len(),
            capacity: seg.capacity(),
        })
    }

    /// Makes an empty inline mbuf refer to `len` bytes at `at` of `source`'s data, which lie in a
    /// cluster or in external memory; otherwise does nothing.
    #[inline]
    pub(crate) fn refer_to(&mut self, source: Segment<'_>, at: usize, len: usize) {
        let Some(storage) = source.counted() else {
            return;
        };
        debug_assert!(at + len <= source.len() && self.first().counted().is_none());
        let flags = source.fields().flags & (SegFlags::EXTERNAL | SegFlags::READ_ONLY);
        // SAFETY: the source holds a reference while it is borrowed.
        unsafe { storage.count().retain() };
        let given = Given {
            storage,
            kind: if flags.contains(SegFlags::EXTERNAL) {
                EXTERN
            } else {
                CLUSTER
            },
            flags,
            capacity: source.fields().capacity,
        };
        // SAFETY: just counted; the range is in the source's, whose storage it is.
        unsafe { self.give(given, (source.lead() + at) as u32, len as u32) };
    }

    /// Hands this mbuf, which is empty and inline, a fresh cluster of `capacity` bytes.
    ///
    /// # Safety
    /// The reference to the cluster is the caller's, and handed over; it has so many bytes.
    #[inline(always)]
    pub(crate) unsafe fn give_cluster(&mut self, storage: StoragePtr, capacity: u32) {
        let given = Given {
            storage,
            kind: CLUSTER,
            flags: SegFlags::empty(),
            capacity,
        };
        // SAFETY: by contract.
        unsafe { self.give(given, 0, 0) };
    }

    /// Hands one reference of storage to this mbuf, which has none.
    ///
    /// # Safety
    /// The reference is the caller's; `[off, off + len)` is in the storage.
    #[inline(always)]
    unsafe fn give(&mut self, given: Given, off: u32, len: u32) {
        let ptr = self.ptr();
        // SAFETY: exclusive handle, mutably borrowed; the reference is there.
        unsafe {
            let word = ptr.word().load();
            ptr.word().set(word | given.kind);
            if word & WIPE != 0 {
                given.storage.count().ask_wipe();
            }
            let fields = ptr.fields_mut();
            fields.storage = Some(given.storage);
            fields.flags |= given.flags;
            fields.capacity = given.capacity;
            fields.charge += given.capacity;
            fields.off = off;
            fields.pkt_len = fields.pkt_len - fields.len as usize + len as usize;
            fields.len = len;
        }
    }
}

/// Lets go of a packet whose room was lent.
///
/// # Safety
/// The record begins an `Owned<HeaderPtr>`, and is the caller's alone.
unsafe fn free_held(record: RecordPtr, later: &mut Later) {
    // SAFETY: made as a box of that type; its owner is a reference to the packet. What that was the
    // last holder of is left to `later`, so that no chain of holders makes this recurse.
    unsafe {
        let block = Box::from_raw(record.0.cast::<Owned<HeaderPtr>>().as_ptr());
        free::free_packet_with(block.owner, later);
    }
}
