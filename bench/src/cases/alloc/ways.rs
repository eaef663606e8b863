//! The ways to allocate and free a flat burst.

#![allow(unsafe_code)] // calls what believes what it is told about a burst

use super::desk::Desk;
use crate::cases::free_bulk::{Direct, Free, Runs, Staged};
use mbuf::{AllocError, Mbuf};
use std::marker::PhantomData;

/// A way to allocate and free a burst, inlined into each placed copy.
pub(super) trait Way {
    const NAME: &'static str;

    /// Allocates the burst of call number `call`.
    fn get(desk: &mut Desk, call: usize) -> Result<(), AllocError>;

    /// Its packets.
    fn packets(desk: &Desk, call: usize) -> impl Iterator<Item = &Mbuf>;

    /// Frees it.
    fn put(desk: &mut Desk, call: usize);
}

/// Into an array of handles, freed by `F`.
pub(super) struct Bulk<F>(PhantomData<F>);

/// A strategy's name in this group.
pub(super) trait Named: Free {
    const NAME: &'static str;
}

impl Named for Direct {
    const NAME: &'static str = "ours";
}
impl Named for Runs {
    const NAME: &'static str = "runs";
}
impl Named for Staged {
    const NAME: &'static str = "staged";
}

impl<F: Named> Way for Bulk<F> {
    const NAME: &'static str = F::NAME;

    #[inline(always)]
    fn get(desk: &mut Desk, call: usize) -> Result<(), AllocError> {
        desk.fill(call)
    }

    #[inline(always)]
    fn packets(desk: &Desk, call: usize) -> impl Iterator<Item = &Mbuf> {
        desk.packets(call)
    }

    #[inline(always)]
    fn put(desk: &mut Desk, call: usize) {
        // SAFETY: a strategy takes any burst.
        unsafe { F::free(desk.slots(call)) };
    }
}

/// A burst that is plain by type.
pub(super) struct Plain;

impl Way for Plain {
    const NAME: &'static str = "plain";

    #[inline(always)]
    fn get(desk: &mut Desk, call: usize) -> Result<(), AllocError> {
        desk.plain[call].fill(&desk.pool, desk.burst)
    }

    #[inline(always)]
    fn packets(desk: &Desk, call: usize) -> impl Iterator<Item = &Mbuf> {
        desk.plain[call].iter()
    }

    #[inline(always)]
    fn put(desk: &mut Desk, call: usize) {
        desk.plain[call].clear();
    }
}
