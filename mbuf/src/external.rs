//! External storage: memory that belongs to somebody else, shared by count like a cluster.

use crate::cluster::StoragePtr;
use crate::count::{Count, Released};
use crate::free::Later;
use crate::stats;
use crate::wipe;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// What stands for one piece of external memory: a heap block, which begins with the count, and
/// behind which its owner lies.
#[repr(C, align(64))]
pub(crate) struct Record {
    count: Count,
    /// Nobody but the record's only holder has access to the bytes.
    writable: bool,
    data: NonNull<u8>,
    len: usize,
    /// The next one of those to be destroyed; only the last holder uses it.
    next: Option<RecordPtr>,
    /// Lets the owner go and frees the block; by whoever let the last reference go.
    destroy: unsafe fn(RecordPtr, &mut Later),
}

/// The block: the record first, so that its address is the block's.
#[repr(C)]
pub(crate) struct Owned<O> {
    record: Record,
    pub owner: O,
}

/// A reference to a record. Copying the pointer does not count.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct RecordPtr(pub NonNull<Record>);

impl RecordPtr {
    /// # Safety
    /// The caller holds one of the references for all of `'a`.
    #[inline(always)]
    unsafe fn count<'a>(self) -> &'a Count {
        // SAFETY: alive while a reference is out.
        unsafe { &(*self.0.as_ptr()).count }
    }

    /// Start of the bytes.
    ///
    /// # Safety
    /// The caller holds a reference.
    #[inline(always)]
    pub(crate) unsafe fn data(self) -> NonNull<u8> {
        // SAFETY: written before there was a second reference.
        unsafe { (*self.0.as_ptr()).data }
    }

    /// How many bytes, and whether the only holder may write them.
    ///
    /// # Safety
    /// The caller holds a reference.
    unsafe fn extent(self) -> (usize, bool) {
        // SAFETY: as in `data`.
        unsafe { ((*self.0.as_ptr()).len, (*self.0.as_ptr()).writable) }
    }

    /// One more reference.
    ///
    /// # Safety
    /// The caller holds one.
    pub(crate) unsafe fn share(self) -> External {
        // SAFETY: by contract.
        unsafe { self.count() }.retain();
        External(self)
    }

    /// Gives up `references`, at least one; true when the last was among them, and the record is the
    /// caller's to destroy. Its bytes are wiped then, if anybody asked for it and they are writable.
    ///
    /// # Safety
    /// The caller owns the references.
    #[inline]
    pub(crate) unsafe fn release(self, references: u32) -> bool {
        // SAFETY: by contract; after the last release nobody else has the record.
        unsafe {
            let released = self.count().release(references);
            if released == Released::LastToWipe && self.extent().1 {
                wipe::bytes(self.data(), self.extent().0);
            }
            released != Released::Shared
        }
    }

    /// The link to the next one of those to be destroyed.
    ///
    /// # Safety
    /// The caller's is the record alone, its last reference having been given up.
    pub(crate) unsafe fn next<'a>(self) -> &'a mut Option<RecordPtr> {
        // SAFETY: by contract.
        unsafe { &mut (*self.0.as_ptr()).next }
    }

    /// Lets the owner go. What comes free by that is destroyed here or left to `later`.
    ///
    /// # Safety
    /// As for [`next`](Self::next); the record is no more.
    pub(crate) unsafe fn destroy(self, later: &mut Later) {
        stats::external_gone(self.0.addr());
        // SAFETY: by contract.
        unsafe { ((*self.0.as_ptr()).destroy)(self, later) };
    }
}

/// Memory of the caller's own that mbufs can have as their storage: one reference to it. Cloning it
/// makes another.
///
/// The owner is dropped, or the callback called, exactly once: when the last reference goes, be it an
/// mbuf's or a handle's, on whatever thread that is.
///
/// Bytes can only be written where nobody but the mbuf can see them: those of a `Vec` or a box, while
/// there is one reference. Those of an `Arc`, of other owners and of statics are read-only for good.
///
/// Making one takes one heap allocation; cloning and attaching take none.
///
/// ```
/// use mbuf::{BufferSet, Packet};
/// use std::sync::Arc;
///
/// let set = BufferSet::standard(64, 8)?;
/// let file: Arc<[u8]> = Arc::from(&b"GET / HTTP/1.1"[..]);
/// let mut m = set.header()?;
/// m.attach(file.clone())?;
/// m.trim_front(4)?;
/// assert_eq!((m.pkt_len(), m.first().data()), (10, &file[4..]));
/// assert!(m.data_mut().is_none());
/// drop(m);
/// assert_eq!(Arc::strong_count(&file), 1);
///
/// let mut m = set.header()?;
/// m.attach_empty(vec![0; 9000])?;
/// m.append(5)?.copy_from_slice(b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "rte_mbuf_ext_shared_info")]
#[doc(alias = "m_extadd")]
#[doc(alias = "MEXTADD")]
pub struct External(RecordPtr);

// SAFETY: the owner is `Send` and only touched when the last reference goes; the bytes are shared
// for reading only, and a slice of bytes may be read from any thread; the count is atomic.
unsafe impl Send for External {}
// SAFETY: as above.
unsafe impl Sync for External {}

impl External {
    /// The bytes that `owner` refers to. It is asked once, where it stays from then on, so that they
    /// may lie in the owner itself.
    ///
    /// ```
    /// let inside = mbuf::External::from_owner([1, 2, 3]);
    /// assert_eq!(inside.data(), [1, 2, 3]);
    /// ```
    ///
    /// # Panics
    /// If `as_ref` does; the owner is dropped then.
    #[doc(alias = "rte_pktmbuf_attach_extbuf")]
    pub fn from_owner<O: AsRef<[u8]> + Send + 'static>(owner: O) -> Self {
        // SAFETY: no bytes.
        let (external, block) = unsafe { Self::place(NonNull::dangling(), 0, false, owner) };
        // SAFETY: the block lives as long as `external`. The owner is borrowed from here on until
        // it is dropped, is neither moved nor touched in between, and no other reference overlaps
        // it: so what `as_ref` returns stays valid.
        let bytes = NonNull::from(unsafe { &(*block.as_ptr()).owner }.as_ref());
        // SAFETY: nobody else knows the record yet.
        unsafe {
            let record = &raw mut (*block.as_ptr()).record;
            (*record).data = bytes.cast();
            (*record).len = bytes.len();
        }
        external
    }

    /// Puts a record and its owner on the heap.
    ///
    /// # Safety
    /// The bytes are valid until the owner is dropped, also on another thread; if they are writable,
    /// nobody else has access to them.
    pub(crate) unsafe fn place<O: Send>(
        data: NonNull<u8>,
        len: usize,
        writable: bool,
        owner: O,
    ) -> (Self, NonNull<Owned<O>>) {
        // SAFETY: `drop_owner` is right for an `Owned<O>`.
        unsafe { Self::place_with(data, len, writable, owner, drop_owner::<O>) }
    }

    /// # Safety
    /// As for [`place`](Self::place); `destroy` frees an `Owned<O>`, and `O` may go to another thread.
    pub(crate) unsafe fn place_with<O>(
        data: NonNull<u8>,
        len: usize,
        writable: bool,
        owner: O,
        destroy: unsafe fn(RecordPtr, &mut Later),
    ) -> (Self, NonNull<Owned<O>>) {
        let record = Record {
            count: Count::new(),
            writable,
            data,
            len,
            next: None,
            destroy,
        };
        // From here on the block is known by this pointer, so that no `Box` claims the owner's bytes.
        let block = NonNull::from(Box::leak(Box::new(Owned { record, owner })));
        stats::external_made(block.addr());
        (Self(RecordPtr(block.cast())), block)
    }

    /// Bytes of the memory.
    pub fn len(&self) -> usize {
        // SAFETY: the handle is a reference.
        unsafe { self.0.extent() }.0
    }

    /// True when it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether an mbuf that is the only one to refer to it may write it.
    pub fn is_writable(&self) -> bool {
        // SAFETY: the handle is a reference.
        unsafe { self.0.extent() }.1
    }

    /// References there are, this one and mbufs' included.
    #[doc(alias = "rte_mbuf_ext_refcnt_read")]
    pub fn refs(&self) -> usize {
        // SAFETY: the handle is a reference.
        unsafe { self.0.count() }.get() as usize
    }

    /// All bytes.
    pub fn data(&self) -> &[u8] {
        // SAFETY: valid while there is a reference. An mbuf writes them only when its own is the
        // only one, which this one prevents while it is borrowed.
        unsafe { std::slice::from_raw_parts(self.0.data().as_ptr(), self.len()) }
    }

    /// The reference, which is the caller's now.
    #[inline]
    pub(crate) fn into_raw(self) -> StoragePtr {
        StoragePtr(ManuallyDrop::new(self).0.0.cast())
    }
}

impl Clone for External {
    fn clone(&self) -> Self {
        // SAFETY: the handle is a reference.
        unsafe { self.0.share() }
    }
}

impl Drop for External {
    fn drop(&mut self) {
        let mut later = Later::new();
        // SAFETY: the handle's reference, which ends here.
        unsafe {
            if self.0.release(1) {
                later.push(self.0);
            }
        }
    }
}

impl fmt::Debug for External {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("External")
            .field("len", &self.len())
            .field("writable", &self.is_writable())
            .field("refs", &self.refs())
            .finish()
    }
}

/// # Safety
/// The record begins an `Owned<O>`, and is the caller's alone.
unsafe fn drop_owner<O>(record: RecordPtr, _: &mut Later) {
    // SAFETY: made as a box of that type, and not referred to any more.
    drop(unsafe { Box::from_raw(record.0.cast::<Owned<O>>().as_ptr()) });
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU32, Ordering};

    /// Reads what all holders wrote, when it goes.
    struct Owner(Arc<[AtomicU32; 3]>, Arc<loom::cell::UnsafeCell<u32>>);

    // SAFETY: the cell is touched when the owner is dropped, which the model watches.
    unsafe impl Send for Owner {}

    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            &[]
        }
    }

    impl Drop for Owner {
        fn drop(&mut self) {
            assert!(self.0.iter().all(|seen| seen.load(Ordering::Relaxed) == 1));
            self.1.with_mut(|p| unsafe { *p += 1 });
        }
    }

    /// Three holders on three threads: the owner goes once, after all that they did.
    #[test]
    fn loom_the_owner_goes_once_and_sees_what_all_holders_did() {
        loom::model(|| {
            let seen = Arc::new([0, 0, 0].map(AtomicU32::new));
            let gone = Arc::new(loom::cell::UnsafeCell::new(0));
            let first = External::from_owner(Owner(seen.clone(), gone.clone()));
            let hold = |external: External, seen: Arc<[AtomicU32; 3]>, at: usize| {
                seen[at].store(1, Ordering::Relaxed);
                drop(external);
            };
            let threads: Vec<_> = (1..3)
                .map(|at| {
                    let (external, seen) = (first.clone(), seen.clone());
                    loom::thread::spawn(move || hold(external, seen, at))
                })
                .collect();
            hold(first, seen, 0);
            for t in threads {
                t.join().unwrap();
            }
            assert_eq!(gone.with(|p| unsafe { *p }), 1);
        });
    }
}
