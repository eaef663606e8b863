//! Where reads of a chain ended, so that the next one need not walk from the front.
//!
//! Two places: that of the read which got furthest, where new data is sent next; and that of the last
//! read which did not, where lost data is sent again. So neither costs the other its place.
//!
//! Readers have the chain by shared reference, also on several threads at a time: the places are
//! atomics. Relaxed is enough. What a mark refers to was written through `&mut Chain`, before any of
//! these readers had it; and which of two readers is remembered does not matter.

use crate::header::{Header, HeaderPtr};
use crate::segment::Segment;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// Two segments of a chain, or none.
#[derive(Default)]
pub(super) struct Marks {
    /// Where the read that got furthest ended.
    furthest: AtomicPtr<Header>,
    /// Where the last read ended that did not get as far.
    again: AtomicPtr<Header>,
}

impl Marks {
    pub(super) const fn new() -> Self {
        Self {
            furthest: AtomicPtr::new(ptr::null_mut()),
            again: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The marked segment nearest in front of `position`.
    ///
    /// # Safety
    /// What is marked belongs to the chain that these marks are of, which is borrowed as they are.
    #[inline]
    pub(super) unsafe fn nearest(&self, position: usize) -> Option<Segment<'_>> {
        // SAFETY: by contract.
        unsafe {
            at(&self.furthest)
                .filter(|seg| seg.position() <= position)
                .or_else(|| at(&self.again).filter(|seg| seg.position() <= position))
        }
    }

    /// A read has ended in `seg`.
    ///
    /// # Safety
    /// As for [`nearest`](Self::nearest), and `seg` belongs to the same chain.
    #[inline]
    pub(super) unsafe fn remember(&self, seg: Segment<'_>) {
        // SAFETY: by contract.
        let further = unsafe { at(&self.furthest) }.is_none_or(|f| f.position() <= seg.position());
        let mark = if further { &self.furthest } else { &self.again };
        mark.store(seg.ptr().0.as_ptr(), Relaxed);
    }

    /// All in front of `first` is about to leave the chain.
    ///
    /// # Safety
    /// What is marked, and `first`, belong to the chain.
    #[inline]
    pub(super) unsafe fn forget_before(&mut self, first: HeaderPtr) {
        // SAFETY: by contract.
        let start = unsafe { Segment::new(first) }.position();
        for mark in [&mut self.furthest, &mut self.again] {
            // SAFETY: by contract. Segments without bytes may stand at the same position.
            let stays =
                unsafe { at(mark) }.is_none_or(|seg| seg.position() > start || seg.ptr() == first);
            if !stays {
                *mark.get_mut() = ptr::null_mut();
            }
        }
    }

    /// All is about to leave the chain.
    #[inline]
    pub(super) fn forget_all(&mut self) {
        *self = Self::new();
    }
}

/// # Safety
/// As for [`Marks::nearest`].
#[inline(always)]
unsafe fn at(mark: &AtomicPtr<Header>) -> Option<Segment<'_>> {
    let ptr = NonNull::new(mark.load(Relaxed))?;
    // SAFETY: by contract.
    Some(unsafe { Segment::new(HeaderPtr(ptr)) })
}
