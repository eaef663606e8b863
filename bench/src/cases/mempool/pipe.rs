//! Bursts on their way from one thread to another: at most eight, filled and emptied where they lie.

#![allow(unsafe_code)] // slots that change hands

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::mem::MaybeUninit;

/// Bursts under way at most.
const IN_FLIGHT: usize = 8;

/// Where bursts lie while they are under way.
pub(super) struct Slots<T> {
    items: Box<[UnsafeCell<MaybeUninit<T>>]>,
    most: usize,
}

// SAFETY: a burst's slots belong to the sender until it has said so through the queue of lengths, and
// to the receiver until it takes the length from there; the queue orders both. That the items may
// change threads is what `Slots::new` asks for.
unsafe impl<T> Sync for Slots<T> {}

/// The side that fills.
pub(super) struct Sender<'a, T> {
    slots: &'a Slots<T>,
    lengths: rtrb::Producer<usize>,
    at: usize,
}

/// The side that empties.
pub(super) struct Receiver<'a, T> {
    slots: &'a Slots<T>,
    lengths: rtrb::Consumer<usize>,
    at: usize,
}

// SAFETY: as for `Slots`.
unsafe impl<T> Send for Receiver<'_, T> {}

impl<T> Slots<T> {
    /// For bursts of up to `most`.
    ///
    /// # Safety
    /// Items may be used and dropped by any one thread.
    pub(super) unsafe fn new(most: usize) -> Self {
        let item = || UnsafeCell::new(MaybeUninit::uninit());
        Slots {
            items: (0..IN_FLIGHT * most).map(|_| item()).collect(),
            most,
        }
    }

    /// Both sides of the way. Mutable, so that there are no others.
    pub(super) fn ends(&mut self) -> (Sender<'_, T>, Receiver<'_, T>) {
        let (producer, consumer) = rtrb::RingBuffer::new(IN_FLIGHT);
        let slots = &*self;
        let sender = Sender {
            slots,
            lengths: producer,
            at: 0,
        };
        let receiver = Receiver {
            slots,
            lengths: consumer,
            at: 0,
        };
        (sender, receiver)
    }

    /// The slots of burst number `at`.
    #[inline(always)]
    fn of(&self, at: usize, n: usize) -> *mut [MaybeUninit<T>] {
        assert!(n <= self.most);
        let first = at % IN_FLIGHT * self.most;
        let items = &self.items[first..first + n];
        std::ptr::slice_from_raw_parts_mut(UnsafeCell::raw_get(items.as_ptr()), n)
    }
}

impl<T> Sender<'_, T> {
    /// Has `fill` write all of a burst of `n`, when there is room for one more.
    ///
    /// # Panics
    /// When the other side is gone.
    #[inline(always)]
    pub(super) fn send(&mut self, n: usize, fill: impl FnOnce(&mut [MaybeUninit<T>])) {
        while self.lengths.is_full() {
            assert!(!self.lengths.is_abandoned(), "the receiver is gone");
            spin_loop();
        }
        // SAFETY: of the bursts before, less than eight are under way, so that this one's slots are
        // ours; see `Slots`.
        fill(unsafe { &mut *self.slots.of(self.at, n) });
        self.at += 1;
        // There is room: only this side fills.
        let _ = self.lengths.push(n);
    }
}

impl<T> Receiver<'_, T> {
    /// Has `empty` move all items of the next burst out, when there is one.
    ///
    /// # Panics
    /// When the other side is gone.
    #[inline(always)]
    pub(super) fn receive<R>(&mut self, empty: impl FnOnce(&mut [MaybeUninit<T>]) -> R) -> R {
        let n = loop {
            if let Ok(&n) = self.lengths.peek() {
                break n;
            }
            // Asked first, since what was sent before stays.
            let gone = self.lengths.is_abandoned();
            assert!(!gone || self.lengths.peek().is_ok(), "the sender is gone");
            spin_loop();
        };
        // SAFETY: the sender has filled this burst and keeps off until its length is taken.
        let answer = empty(unsafe { &mut *self.slots.of(self.at, n) });
        self.at += 1;
        let _ = self.lengths.pop();
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_of_any_size_come_out_as_they_went_in() {
        // SAFETY: numbers.
        let mut slots = unsafe { Slots::new(64) };
        let (mut sender, mut receiver) = slots.ends();
        let sizes = || (0..2000).map(|i| 1 + i * 7 % 64);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for (at, n) in sizes().enumerate() {
                    let all = receiver.receive(|burst| {
                        // SAFETY: the sender wrote all of them.
                        burst
                            .iter()
                            .map(|item| unsafe { item.assume_init() })
                            .collect::<Vec<usize>>()
                    });
                    assert_eq!(all, vec![at; n]);
                }
            });
            for (at, n) in sizes().enumerate() {
                sender.send(n, |burst| {
                    burst.fill(MaybeUninit::new(at));
                });
            }
        });
    }
}
