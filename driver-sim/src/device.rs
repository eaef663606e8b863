//! The device side of a ring: reads descriptors, hands packets to the backend, keeps count.

use mbuf::{TxMbuf, TxOffload};

use crate::backend::{Backend, ends_packet};
use crate::descriptor::{DescFlags, Descriptor, Gather, window};
use crate::stats::DeviceStats;

/// The device's own state.
#[derive(Debug, Default)]
pub(crate) struct Device {
    /// Settings of the last context descriptor.
    context: TxOffload,
    pub(crate) stats: DeviceStats,
}

impl Device {
    /// Forgets the offload settings, as at a reset.
    pub(crate) fn reset(&mut self) {
        self.context = TxOffload::default();
    }

    /// Reads the packet that starts at the front of `first` and goes on in `rest`; `packet` gives
    /// the handle when told where the last descriptor lies. Says how many descriptors it was, or
    /// `None` when no whole packet is there.
    #[inline]
    pub(crate) fn read<'a>(
        &mut self,
        first: &'a [Descriptor],
        rest: &'a [Descriptor],
        packet: impl FnOnce(usize) -> Option<&'a TxMbuf>,
        backend: &mut impl Backend,
    ) -> Option<usize> {
        let context = &mut self.context;
        let all = first.iter().chain(rest);
        let is_context = |descriptor: &&Descriptor| match descriptor {
            Descriptor::Context(offload) => {
                *context = *offload;
                true
            }
            _ => false,
        };
        let start = all.clone().take_while(is_context).count();
        let last = start + all.skip(start).position(ends_packet)?;
        let packet = packet(last)?;
        let (first, rest) = split(first, rest, start, last + 1);
        let offload = match first.first().or(rest.first()) {
            Some(Descriptor::Data { flags, .. }) if flags.contains(DescFlags::OFFLOAD) => {
                self.context
            }
            _ => TxOffload::default(),
        };
        self.stats.packets += 1;
        self.stats.descriptors += last as u64 + 1;
        match backend.packet(&Gather::new(first, rest, packet, offload)) {
            Ok(sent) => {
                self.stats.frames += sent.frames;
                self.stats.bytes += sent.bytes;
            }
            Err(why) => {
                self.stats.bad += 1;
                self.stats.last_bad = Some(why);
            }
        }
        Some(last + 1)
    }
}

/// `[from, to)` of the sequence that is `first` and then `rest`.
#[inline]
fn split<'a, T>(first: &'a [T], rest: &'a [T], from: usize, to: usize) -> (&'a [T], &'a [T]) {
    match first.len() {
        n if to <= n => (&first[from..to], &[]),
        n if from >= n => (&rest[from - n..to - n], &[]),
        n => (&first[from..], &rest[..to - n]),
    }
}

/// A position in a ring: the slot, and how many slots were passed since the start.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cursor {
    pub(crate) total: u64,
    pub(crate) index: usize,
}

impl Cursor {
    /// Goes on by `n` slots of a ring of `size`; `n` is at most `size`.
    #[inline]
    pub(crate) fn advance(&mut self, n: usize, size: usize) {
        self.total += n as u64;
        self.index = wrap(self.index + n, size);
    }
}

/// `at` in a ring of `size` slots; `at` is less than twice the size. No mask: sizes need not be
/// powers of two.
#[inline]
pub(crate) fn wrap(at: usize, size: usize) -> usize {
    if at < size { at } else { at - size }
}

/// The device's view of the ring from `head` on, `count` slots.
#[inline]
pub(crate) fn pending(
    ring: &[Descriptor],
    head: Cursor,
    count: u64,
) -> (&[Descriptor], &[Descriptor]) {
    window(ring, head.index, count as usize)
}
