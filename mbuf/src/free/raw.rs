//! The layer below the handles, for who builds a free strategy of their own.
//!
//! A slot of a packet array seen as what it is in memory: null, or the address of an mbuf of
//! which the slot owns one reference.

use crate::header::HeaderPtr;
use crate::packet::Packet;
use crate::word;
use mempool::PoolRef;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A packet array on its way to be freed. Whatever happens, it ends empty: when dropped, every
/// slot is made `None`, so that an unwinding callback leaves nothing to be freed twice.
pub(crate) struct Slots<'a>(&'a mut [Option<HeaderPtr>]);

impl<'a> Slots<'a> {
    #[inline(always)]
    pub(crate) fn new<P: Packet>(slots: &'a mut [Option<P>]) -> Self {
        const { assert!(size_of::<Option<P>>() == size_of::<Option<HeaderPtr>>()) };
        // SAFETY: `Packet` is sealed and its implementors are transparent over `HeaderPtr`, which
        // is transparent over `NonNull`: same layout, `None` is null. No `P` is dropped through
        // this view, and slots are only ever made `None`.
        Self(unsafe { &mut *(std::ptr::from_mut(slots) as *mut [Option<HeaderPtr>]) })
    }

    /// The array as room for fresh objects.
    ///
    /// # Safety
    /// All slots are `None`, and before [`keep`](Self::keep) each is written with an object that
    /// is a complete mbuf and belongs to nobody else.
    #[inline(always)]
    pub(crate) unsafe fn as_uninit(&mut self) -> &mut [MaybeUninit<NonNull<u8>>] {
        // SAFETY: one pointer per slot either way.
        unsafe { &mut *(std::ptr::from_mut(self.0) as *mut [MaybeUninit<NonNull<u8>>]) }
    }

    /// Says that all slots are `None` already.
    #[inline(always)]
    pub(crate) fn emptied(self) {
        debug_assert!(self.0.iter().all(Option::is_none));
        std::mem::forget(self);
    }

    /// Leaves the array as it is.
    #[inline(always)]
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Deref for Slots<'_> {
    type Target = [Option<HeaderPtr>];

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl DerefMut for Slots<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.0
    }
}

impl Drop for Slots<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.fill(None);
    }
}

/// The address of an mbuf, with no reference of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Raw(HeaderPtr);

impl Raw {
    /// The mbuf's free word.
    ///
    /// # Safety
    /// Somebody holds a reference to the mbuf.
    #[inline(always)]
    pub unsafe fn word(self) -> u64 {
        // SAFETY: out of its pool by contract.
        unsafe { self.0.word().load() }
    }

    /// The pool that the mbuf goes back to.
    ///
    /// # Safety
    /// As for [`word`](Self::word).
    #[inline(always)]
    pub unsafe fn pool(self) -> PoolRef {
        // SAFETY: the pool of an mbuf never changes. Read as a place: its holder may write other
        // fields meanwhile, so there must be no reference to all of them.
        unsafe { (*self.0.0.as_ptr()).fields.pool }
    }

    /// The segment behind it.
    ///
    /// # Safety
    /// As for [`word`](Self::word), and the packet is the caller's alone.
    #[inline(always)]
    pub unsafe fn next(self) -> Option<Raw> {
        // SAFETY: by contract.
        unsafe { self.0.fields().next.map(Raw) }
    }

    /// Gives up one reference; true when it was the last, and the packet is the caller's.
    ///
    /// # Safety
    /// The caller owns the reference.
    #[inline(always)]
    pub unsafe fn release(self) -> bool {
        // SAFETY: by contract.
        unsafe { self.0.word().release(self.0.word().load()) }
    }

    /// Brings the free word to rest, so that the mbuf can go to its pool.
    ///
    /// # Safety
    /// The caller owns the mbuf, which uses its own room and need not be wiped, and has taken care of
    /// what is behind it.
    #[inline(always)]
    pub unsafe fn rest(self) {
        // SAFETY: by contract.
        unsafe { self.0.word().set(resting_of(self.0.word().load())) };
    }

    /// The mbuf as its pool knows it.
    #[inline(always)]
    pub fn object(self) -> NonNull<u8> {
        self.0.0.cast()
    }
}

/// The word that `word`'s mbuf has when it may be put back as it stands.
#[inline(always)]
pub fn resting_of(word: u64) -> u64 {
    word::resting_of(word)
}

/// The array as addresses.
///
/// # Safety
/// The caller may only empty slots, and then owns the reference that the slot did.
#[inline(always)]
pub unsafe fn slots_of<P: Packet>(slots: &mut [Option<P>]) -> &mut [Option<Raw>] {
    // SAFETY: layouts as in `Slots::new`; what may be written is the caller's promise.
    unsafe { &mut *(std::ptr::from_mut(slots) as *mut [Option<Raw>]) }
}
