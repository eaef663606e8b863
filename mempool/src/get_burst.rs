//! Taking what there is: a get that is content with fewer.

use crate::cache::{Slot, Taken, copy_out};
use crate::pool::RawPool;
use crate::pool_ref::PoolRef;
use crate::stats::{Counters, Writers};
use crate::worker;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

impl RawPool {
    /// Fills `out` with objects, as far as this thread's cache and the backend have
    /// any: says how many, the first so many of `out` being written.
    ///
    /// What the cache lacks comes from the backend as with [`get_bulk`](Self::get_bulk). It counts
    /// as failed only when it took none at all. When other threads take at the same time it may
    /// miss objects that are put back meanwhile, but always ends: each further attempt asks for fewer.
    ///
    /// ```
    /// use mempool::RawPool;
    /// use std::mem::MaybeUninit;
    ///
    /// let pool = RawPool::builder(64).capacity(20).build()?;
    /// let mut out = [MaybeUninit::uninit(); 32];
    /// assert_eq!(pool.get_burst(&mut out), 20);
    /// assert_eq!(pool.get_burst(&mut out), 0);
    /// # Ok::<(), mempool::CreateError>(())
    /// ```
    #[doc(alias = "rte_ring_dequeue_burst")]
    #[inline(always)]
    pub fn get_burst(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> usize {
        // SAFETY: a handle keeps the pool alive.
        unsafe { self.pool_ref().get_burst(out) }
    }
}

impl PoolRef {
    /// As [`RawPool::get_burst`].
    ///
    /// # Safety
    /// The pool lives during the call.
    #[inline(always)]
    pub unsafe fn get_burst(self, out: &mut [MaybeUninit<NonNull<u8>>]) -> usize {
        // SAFETY: the pool lives; the slot is ours.
        unsafe {
            let got = match self.own_slot() {
                Some(slot) if slot.pop_bulk(out) => out.len(),
                _ => self.get_burst_slow(out),
            };
            self.on_got(&out[..got]);
            got
        }
    }

    /// A burst, when the cache has not as many.
    ///
    /// # Safety
    /// The pool lives during the call.
    #[cold]
    #[inline(never)]
    unsafe fn get_burst_slow(self, out: &mut [MaybeUninit<NonNull<u8>>]) -> usize {
        if out.is_empty() {
            return 0;
        }
        worker::current_or_register();
        // SAFETY: the pool lives; the slot is ours, and was just taken.
        unsafe {
            if self.inner().gate.is_suspended() {
                self.give_back_cache();
            }
            if let Some(slot) = self.own_slot()
                && let Some(taken) = slot.take()
            {
                return self.burst_with_cache(slot, taken, out);
            }
            let (counters, writers) = self.own_counters();
            let got = self.backend_get_some(out, counters, writers);
            self.got_some(&out[..got], 0, (counters, writers));
            got
        }
    }

    /// What follows from how a burst went: it failed if it got nothing.
    ///
    /// # Safety
    /// The pool lives, and all of `out` is written; `own` objects are cached by the caller.
    unsafe fn got_some(
        self,
        out: &[MaybeUninit<NonNull<u8>>],
        own: usize,
        counters: (&Counters, Writers),
    ) {
        // SAFETY: as the caller promises.
        unsafe {
            let result = match out {
                [] => Err(self.exhausted(1, 0, own)),
                _ => Ok(()),
            };
            // Whoever asks for a burst is told by its length.
            let _ = self.got(out, result, counters);
        }
    }

    /// Fills `out` as far as possible, and gives the cache back.
    ///
    /// # Safety
    /// The pool lives, and `taken` is what was taken from `slot` by its owner, who calls.
    pub(crate) unsafe fn burst_with_cache(
        self,
        slot: &Slot,
        taken: Taken,
        out: &mut [MaybeUninit<NonNull<u8>>],
    ) -> usize {
        let Taken { base, len, limit } = taken;
        let asked = out.len();
        let hot = asked.min(len);
        let (near, far) = out.split_at_mut(hot);
        // SAFETY: entries below `len` are written; the array is ours while the slot is taken. With
        // `far` in need nothing is left in it; what is restored then, `refill` wrote.
        unsafe {
            copy_out(base.add(len - hot), near);
            if !far.is_empty() {
                slot.counters.missed(Writers::Owner);
            }
            let (got, left) = if far.is_empty() {
                (asked, len - hot)
            } else if let Ok(left) = self.refill(slot, &taken, far) {
                (asked, left)
            } else {
                let got = self.backend_get_some(far, &slot.counters, Writers::Owner);
                (hot + got, 0)
            };
            slot.restore(left, limit);
            if asked > 0 {
                self.got_some(&out[..got], left, (&slot.counters, Writers::Owner));
            }
            got
        }
    }

    /// Takes up to `out.len()` from the backend. Each attempt asks for fewer than the one before.
    ///
    /// # Safety
    /// The pool lives; `counters` may be written as `writers` says.
    unsafe fn backend_get_some(
        self,
        out: &mut [MaybeUninit<NonNull<u8>>],
        counters: &Counters,
        writers: Writers,
    ) -> usize {
        let mut want = out.len();
        while want > 0 {
            // SAFETY: the pool lives.
            match unsafe { self.backend_get(&mut out[..want], counters, writers) } {
                Ok(()) => return want,
                Err(available) => want = available.min(want - 1),
            }
        }
        0
    }
}
