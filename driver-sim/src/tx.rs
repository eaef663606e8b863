//! A transmit queue whose device runs on the caller's thread, when the caller says so.
//!
//! ```text
//!            clean              head              bell        tail
//!   ───────────┬──────────────────┬─────────────────┬───────────┬──────────
//!     free     │ done, handles    │ the device will │ written,  │   free
//!              │ not freed yet    │ read these next │ not told  │
//! ```
//!
//! The handle of a packet lies in the slot of its last descriptor and nowhere else. A drain hands
//! the slots from `clean` up to the last reported descriptor to bulk free as they are: one slice,
//! or two when the range wraps, in which the slots of other descriptors are `None`.

use std::collections::VecDeque;

use mbuf::{BufferSet, FreeStrategy, Packet, TxMbuf, free_bulk_with};

use crate::backend::Backend;
use crate::config::{ConfigError, TxConfig};
use crate::descriptor::{DescFlags, Descriptor};
use crate::device::{Cursor, Device, pending, wrap};
use crate::post::{Outcome, Poster};
use crate::stats::{DeviceStats, TxStats};

/// A transmit queue and its device.
///
/// ```
/// use driver_sim::{Null, TxConfig, TxQueue};
/// use mbuf::BufferSet;
///
/// let set = BufferSet::standard(64, 16)?;
/// let config = TxConfig { rs_interval: 1, ..TxConfig::with_ring(16) };
/// let mut queue = TxQueue::new(config, Null::default())?;
///
/// let mut burst = [None, None];
/// for slot in &mut burst {
///     let mut m = set.header()?;
///     m.append(100)?;
///     *slot = Some(m);
/// }
/// assert_eq!(queue.send(&mut burst, &set), 2);
/// assert_eq!(queue.in_flight(), 2);
/// assert_eq!(queue.run_device(usize::MAX), 2);
/// assert_eq!(queue.drain(), 2);
/// assert!(set.is_full());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TxQueue<B> {
    poster: Poster,
    descriptors: Box<[Descriptor]>,
    slots: Box<[Option<TxMbuf>]>,
    tail: Cursor,
    clean: Cursor,
    /// Where the tail was when the device was last told.
    bell: u64,
    /// Reports asked for and not seen yet, oldest first. Never longer than the ring.
    reports: VecDeque<Report>,
    head: Cursor,
    /// Packets posted before `head`.
    passed: u64,
    device: Device,
    backend: B,
}

/// A descriptor that will be marked as done.
#[derive(Debug, Clone, Copy)]
struct Report {
    index: usize,
    /// All before this position is done with it.
    end: u64,
    /// Packets posted up to and with it.
    packets: u64,
}

impl<B: Backend> TxQueue<B> {
    /// An empty queue before `backend`.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for a configuration that no queue can have.
    pub fn new(config: TxConfig, backend: B) -> Result<Self, ConfigError> {
        config.check()?;
        let size = config.ring_size;
        Ok(TxQueue {
            poster: Poster::new(config),
            descriptors: vec![Descriptor::Empty; size].into_boxed_slice(),
            slots: (0..size).map(|_| None).collect(),
            tail: Cursor::default(),
            clean: Cursor::default(),
            bell: 0,
            reports: VecDeque::with_capacity(size),
            head: Cursor::default(),
            passed: 0,
            device: Device::default(),
            backend,
        })
    }

    /// Sends a burst: takes packets from the front of `burst` while there is room, rings the
    /// doorbell once, and says how many entries it took (`None` entries count, and so do packets
    /// that were dropped). These are `None` now; the rest is as it was.
    ///
    /// Drains first when fewer than [`free_thresh`](TxConfig::free_thresh) descriptors are free.
    /// A packet over the limits is copied into one storage from `set`; one that cannot be copied,
    /// has no bytes, is too long, or asks for what the device does not do is dropped and counted.
    #[doc(alias = "rte_eth_tx_burst")]
    pub fn send<P: Packet + Into<TxMbuf>>(
        &mut self,
        burst: &mut [Option<P>],
        set: &BufferSet,
    ) -> usize {
        if self.room() < self.poster.config().free_thresh {
            self.make_room();
        }
        let mut taken = 0;
        for slot in burst.iter_mut() {
            if slot.is_some() && !self.send_one(slot, set) {
                self.poster.stats.ring_full += 1;
                break;
            }
            taken += 1;
        }
        self.ring_doorbell();
        taken
    }

    /// Sends one packet, `true` when the slot is empty now.
    #[inline]
    fn send_one<P: Packet + Into<TxMbuf>>(
        &mut self,
        slot: &mut Option<P>,
        set: &BufferSet,
    ) -> bool {
        loop {
            let (room, size, tail) = (self.room(), self.slots.len(), self.tail.index);
            let ring = &mut self.descriptors;
            let put = |i: usize, d: Descriptor| ring[wrap(tail + i, size)] = d;
            match self.poster.post(slot, room, set, put) {
                Outcome::Posted {
                    handle,
                    descriptors,
                } => {
                    self.posted(handle, descriptors);
                    return true;
                }
                Outcome::Dropped => return true,
                Outcome::Full if self.make_room() == 0 => return false,
                Outcome::Full => {}
            }
        }
    }

    #[inline]
    fn posted(&mut self, handle: TxMbuf, descriptors: usize) {
        let size = self.slots.len();
        let index = wrap(self.tail.index + descriptors - 1, size);
        self.slots[index] = Some(handle);
        self.tail.advance(descriptors, size);
        if let Descriptor::Data { flags, .. } = self.descriptors[index]
            && flags.contains(DescFlags::REPORT)
        {
            let (end, packets) = (self.tail.total, self.poster.stats.posted);
            self.reports.push_back(Report {
                index,
                end,
                packets,
            });
        }
    }

    fn ring_doorbell(&mut self) {
        if self.bell != self.tail.total {
            self.bell = self.tail.total;
            self.poster.stats.doorbells += 1;
        }
    }

    /// Lets the device transmit at most `budget` packets; says how many it did. They are not
    /// freed before a drain.
    pub fn run_device(&mut self, budget: usize) -> usize {
        let size = self.slots.len();
        let mut packets = 0;
        while packets < budget && self.head.total != self.bell {
            let (head, count) = (self.head, self.bell - self.head.total);
            let (first, rest) = pending(&self.descriptors, head, count);
            let slots = &self.slots;
            let handle = |last: usize| slots[wrap(head.index + last, size)].as_ref();
            let Some(n) = self.device.read(first, rest, handle, &mut self.backend) else {
                break;
            };
            self.write_back(wrap(head.index + n - 1, size));
            self.head.advance(n, size);
            packets += 1;
        }
        self.passed += packets as u64;
        packets
    }

    /// The device's answer to a request for a report.
    #[inline]
    fn write_back(&mut self, index: usize) {
        if let Descriptor::Data { flags, .. } = &mut self.descriptors[index]
            && flags.contains(DescFlags::REPORT)
        {
            *flags |= DescFlags::DONE;
        }
    }

    /// Frees every packet that the device has reported as done; says how many.
    ///
    /// Packets behind the last report stay: see [`drain_all`](Self::drain_all).
    #[doc(alias = "rte_eth_tx_done_cleanup")]
    pub fn drain(&mut self) -> usize {
        let mut upto = None;
        while let Some(report) = self.reports.front() {
            let done = matches!(self.descriptors[report.index],
                Descriptor::Data { flags, .. } if flags.contains(DescFlags::DONE));
            if !done {
                break;
            }
            upto = self.reports.pop_front();
        }
        match upto {
            Some(report) => self.free_until(report.end, report.packets),
            None => 0,
        }
    }

    /// Frees every packet that the device is done with, reported or not, by reading its head
    /// register. Slower than a report on real hardware; for the end of a run.
    pub fn drain_all(&mut self) -> usize {
        let drained = self.drain();
        if self.clean.total == self.head.total {
            return drained;
        }
        self.poster.stats.head_reads += 1;
        let head = self.head.total;
        while self
            .reports
            .front()
            .is_some_and(|report| report.end <= head)
        {
            self.reports.pop_front();
        }
        drained + self.free_until(head, self.passed)
    }

    /// Room for a send: what is reported; or, when no report is to come, what the head register
    /// says, since the queue could stand still for ever otherwise.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) -> usize {
        match self.drain() {
            0 if self.reports.is_empty() => self.drain_all(),
            freed => freed,
        }
    }

    /// Hands the slots up to `end`, a packet's end, to bulk free; `packets` were posted before it.
    fn free_until(&mut self, end: u64, packets: u64) -> usize {
        let count = (end - self.clean.total) as usize;
        let (from, size) = (self.clean.index, self.slots.len());
        self.clean.advance(count, size);
        let done = &mut self.poster.stats;
        let freed = packets - done.completed - done.reset;
        done.completed += freed;
        done.drains += 1;
        free_slots(self.poster.config().strategy, &mut self.slots, from, count);
        freed as usize
    }

    /// Stops the queue and frees every packet in it, done or not, once; the queue is as new
    /// afterwards, but for its counters. Says how many the device had not been through with.
    pub fn reset(&mut self) -> usize {
        self.drain_all();
        let left = self.in_flight();
        self.poster.stats.reset += left as u64;
        let count = (self.tail.total - self.clean.total) as usize;
        let from = self.clean.index;
        self.passed = self.poster.stats.posted;
        self.device.reset();
        self.poster.reset();
        self.reports.clear();
        self.tail = Cursor::default();
        (self.clean, self.head, self.bell) = (self.tail, self.tail, 0);
        free_slots(self.poster.config().strategy, &mut self.slots, from, count);
        self.descriptors.fill(Descriptor::Empty);
        left
    }

    /// Packets posted and not freed yet.
    pub fn in_flight(&self) -> usize {
        let stats = &self.poster.stats;
        (stats.posted - stats.completed - stats.reset) as usize
    }

    /// Free descriptors.
    #[inline]
    pub fn room(&self) -> usize {
        self.slots.len() - (self.tail.total - self.clean.total) as usize
    }

    /// What the driver side did so far.
    pub fn stats(&self) -> &TxStats {
        &self.poster.stats
    }

    /// What the device side did so far.
    pub fn device_stats(&self) -> &DeviceStats {
        &self.device.stats
    }

    /// The configuration.
    pub fn config(&self) -> &TxConfig {
        self.poster.config()
    }

    /// Changes how completed packets are freed from now on.
    pub fn set_strategy(&mut self, strategy: FreeStrategy) {
        self.poster.config_mut().strategy = strategy;
    }

    /// The device's inside.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// The device's inside, to be changed.
    pub fn backend_mut(&mut self) -> &mut B {
        &mut self.backend
    }

    /// Frees what is in flight and gives the backend back.
    pub fn into_backend(self) -> B {
        self.backend
    }

    /// The handles as they lie in the ring, one entry per descriptor.
    pub fn slots(&self) -> &[Option<TxMbuf>] {
        &self.slots
    }
}

/// Bulk-frees `count` slots from index `from` on, in place.
#[inline]
fn free_slots(how: FreeStrategy, slots: &mut [Option<TxMbuf>], from: usize, count: usize) {
    let straight = count.min(slots.len() - from);
    free_bulk_with(how, &mut slots[from..from + straight]);
    if straight < count {
        free_bulk_with(how, &mut slots[..count - straight]);
    }
}
