//! The three handles, and how they turn into each other.

use crate::free;
use crate::header::HeaderPtr;
use crate::packet::{Packet, RawPacket, Sealed};
use std::fmt;
use std::mem::ManuallyDrop;

macro_rules! handle {
    ($name:ident) => {
        impl Sealed for $name {
            #[inline(always)]
            fn raw(&self) -> RawPacket {
                RawPacket(self.0)
            }
        }

        impl Packet for $name {}

        impl Drop for $name {
            #[doc(alias = "m_freem")]
            #[doc(alias = "rte_pktmbuf_free")]
            #[inline]
            fn drop(&mut self) {
                // SAFETY: the handle owns one reference, and this is its end.
                unsafe { free::free_packet(self.0) }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(
                    f,
                    concat!(stringify!($name), " pkt_len {} nsegs {} "),
                    self.pkt_len(),
                    self.nsegs()
                )?;
                f.debug_list().entries(self.segments()).finish()
            }
        }

        // SAFETY: elements belong to no thread; counts are atomic, and all else is written only
        // through an exclusive handle.
        unsafe impl Send for $name {}
        // SAFETY: `&self` reads fields that nobody writes meanwhile, and touches atomic counts.
        unsafe impl Sync for $name {}

        #[cfg(not(loom))]
        const _: () = assert!(size_of::<Option<$name>>() == size_of::<usize>());
    };
}

/// Exclusive owner of a packet. One pointer wide, `Option<Mbuf>` too; dropping it frees the
/// packet.
///
/// It is not `Clone`: a second owner is a [`SharedMbuf`].
///
/// ```compile_fail,E0599
/// # let set = mbuf::BufferSet::standard(64, 8).unwrap();
/// let m = set.header().unwrap();
/// let second = m.clone();
/// ```
///
/// A packet that nobody takes is freed at once, and the compiler says so:
///
/// ```compile_fail
/// # #![deny(unused_must_use)]
/// # let set = mbuf::BufferSet::standard(64, 8).unwrap();
/// set.header().unwrap();
/// ```
#[doc(alias = "struct mbuf")]
#[doc(alias = "rte_mbuf")]
#[repr(transparent)]
#[must_use = "dropping an mbuf frees it"]
pub struct Mbuf(HeaderPtr);

/// One of several owners of a packet, all read-only.
///
/// ```
/// # let set = mbuf::BufferSet::standard(64, 8).unwrap();
/// let a = set.header().unwrap().into_shared();
/// let b = a.clone();
/// let a = a.try_into_unique().unwrap_err(); // still two
/// drop(b);
/// let exclusive = a.try_into_unique().unwrap();
/// ```
#[doc(alias = "rte_mbuf_refcnt_update")]
#[repr(transparent)]
#[must_use = "dropping it gives up one reference"]
pub struct SharedMbuf(HeaderPtr);

/// What a transmit ring holds: read-only, made from an [`Mbuf`] or a [`SharedMbuf`].
#[repr(transparent)]
#[must_use = "dropping it gives up one reference"]
pub struct TxMbuf(HeaderPtr);

handle!(Mbuf);
handle!(SharedMbuf);
handle!(TxMbuf);

impl Mbuf {
    /// # Safety
    /// The caller hands over the only reference to the packet that starts at `ptr`.
    #[inline(always)]
    pub(crate) unsafe fn from_raw(ptr: HeaderPtr) -> Self {
        Self(ptr)
    }

    /// The reference, which is the caller's now.
    #[inline(always)]
    pub(crate) fn into_raw(self) -> HeaderPtr {
        ManuallyDrop::new(self).0
    }

    /// The first segment's address, for the modules that edit chains.
    #[inline(always)]
    pub(crate) fn ptr(&self) -> HeaderPtr {
        self.0
    }

    /// Gives up exclusive ownership, so that the packet can have several owners.
    #[inline]
    pub fn into_shared(self) -> SharedMbuf {
        SharedMbuf(self.into_raw())
    }
}

impl SharedMbuf {
    /// The reference, which is the caller's now.
    #[inline(always)]
    pub(crate) fn into_raw(self) -> HeaderPtr {
        ManuallyDrop::new(self).0
    }

    /// The packet as an [`Mbuf`] when this is its only owner, else the handle back.
    ///
    /// # Errors
    /// The handle itself, while others own the packet too.
    pub fn try_into_unique(self) -> Result<Mbuf, SharedMbuf> {
        // SAFETY: the handle holds a reference.
        let word = unsafe { self.0.word() }.load();
        if crate::word::count(word) == 1 {
            Ok(Mbuf(self.into_raw()))
        } else {
            Err(self)
        }
    }

    /// How many owners the packet has.
    pub fn owners(&self) -> usize {
        // SAFETY: the handle holds a reference.
        crate::word::count(unsafe { self.0.word() }.load()) as usize
    }
}

impl Clone for SharedMbuf {
    /// One more owner of the same packet; no buffer is taken.
    #[doc(alias = "rte_pktmbuf_clone")]
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: the handle holds a reference.
        unsafe { self.0.word() }.retain();
        Self(self.0)
    }
}

impl From<Mbuf> for TxMbuf {
    #[inline(always)]
    fn from(m: Mbuf) -> Self {
        Self(m.into_raw())
    }
}

impl AsRef<TxMbuf> for Mbuf {
    /// The packet as transmit rings see it.
    #[inline(always)]
    fn as_ref(&self) -> &TxMbuf {
        // SAFETY: both are transparent over the same pointer, and through `&TxMbuf` nothing can be done
        // that `&Mbuf` does not allow.
        unsafe { &*std::ptr::from_ref(self).cast::<TxMbuf>() }
    }
}

impl From<SharedMbuf> for TxMbuf {
    #[inline(always)]
    fn from(m: SharedMbuf) -> Self {
        Self(m.into_raw())
    }
}

impl From<Mbuf> for SharedMbuf {
    #[inline(always)]
    fn from(m: Mbuf) -> Self {
        m.into_shared()
    }
}
