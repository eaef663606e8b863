//! A transmit queue for plain bursts only: it frees what is done without reading a header.
//!
//! DPDK's drivers have such a queue, and the application promises that all its packets are direct, unshared,
//! unchained and of one pool. Here the type of the burst is the promise, and the pool is compared once
//! for each burst. A packet takes one descriptor; offloads are not for this queue, as in DPDK's simple
//! transmit paths.

use mbuf::{Mbuf, OtherPool, Packet, PlainBurst, PlainRing, TxMbuf, TxOffload};

use crate::backend::Backend;
use crate::config::{ConfigError, TxConfig};
use crate::descriptor::{DescFlags, Descriptor};
use crate::device::{Cursor, Device, pending, wrap};
use crate::stats::{DeviceStats, TxStats};

/// A transmit queue for plain bursts, whose device runs on the caller's thread.
///
/// Of its [`TxConfig`] it uses ring size, longest frame, report interval and free threshold.
///
/// ```
/// use driver_sim::{Null, PlainQueue, TxConfig};
/// use mbuf::{BufferSet, PlainBurst};
///
/// let set = BufferSet::standard(64, 8)?;
/// let mut queue = PlainQueue::new(TxConfig::with_ring(64), Null::default())?;
/// let mut burst = PlainBurst::<32>::new();
/// burst.fill(set.mbuf_pool(), 32)?;
/// for mut packet in burst.iter_mut() {
///     packet.append(60)?.fill(0);
/// }
/// assert_eq!(queue.send(&mut burst)?, 32);
/// queue.run_device(usize::MAX);
/// assert_eq!(queue.drain(), 32);
/// assert!(set.is_full());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE")]
#[derive(Debug)]
pub struct PlainQueue<B> {
    config: TxConfig,
    descriptors: Box<[Descriptor]>,
    /// The packets of the descriptors from `clean` to `tail`, oldest first.
    packets: PlainRing,
    tail: Cursor,
    clean: Cursor,
    head: Cursor,
    /// Where the next report is to come, that of the descriptor before.
    reported: Cursor,
    stats: TxStats,
    device: Device,
    backend: B,
}

impl<B: Backend> PlainQueue<B> {
    /// An empty queue before `backend`.
    ///
    /// # Errors
    /// [`ConfigError`] for a configuration that no queue can have.
    pub fn new(config: TxConfig, backend: B) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(PlainQueue {
            descriptors: vec![Descriptor::Empty; config.ring_size].into_boxed_slice(),
            packets: PlainRing::new(config.ring_size),
            config,
            tail: Cursor::default(),
            clean: Cursor::default(),
            head: Cursor::default(),
            reported: Cursor::default(),
            stats: TxStats::default(),
            device: Device::default(),
            backend,
        })
    }

    /// Takes packets from the front of the burst while there is room, rings the doorbell once, and says
    /// how many it took. What was not taken is in the burst still.
    ///
    /// Drains first when fewer than [`free_thresh`](TxConfig::free_thresh) descriptors are free. Packets
    /// that have no bytes, are too long, or ask for an offload are dropped and counted, and count as
    /// taken.
    ///
    /// # Errors
    /// [`OtherPool`] when packets of another pool are in flight; nothing was taken then. It goes when they
    /// are done.
    #[doc(alias = "rte_eth_tx_burst")]
    pub fn send<const N: usize>(&mut self, burst: &mut PlainBurst<N>) -> Result<usize, OtherPool> {
        if self.room() < self.config.free_thresh.max(burst.len()) {
            self.make_room();
        }
        if self.packets.accepts(burst).is_err() {
            self.drain_all();
            self.packets.accepts(burst)?;
        }
        let before = burst.len();
        let (mut described, room) = (0, self.room());
        while let Some(packet) = burst.get(described) {
            if described == room {
                self.stats.ring_full += 1;
                break;
            }
            match self.unfit(packet) {
                None => {
                    self.describe(described, packet);
                    described += 1;
                }
                Some(counter) => {
                    *counter(&mut self.stats) += 1;
                    drop(burst.remove(described));
                }
            }
        }
        let dropped = before - burst.len();
        self.post(burst, described)?;
        self.stats.given += (described + dropped) as u64;
        Ok(described + dropped)
    }

    /// The counter of what the device cannot do with this packet.
    #[inline]
    fn unfit(&self, packet: &Mbuf) -> Option<fn(&mut TxStats) -> &mut u64> {
        let len = packet.pkt_len();
        if len == 0 {
            return Some(|stats| &mut stats.dropped_empty);
        }
        if self.config.max_frame.is_some_and(|max| len > max) {
            return Some(|stats| &mut stats.dropped_oversize);
        }
        if packet.offload() != TxOffload::default() {
            return Some(|stats| &mut stats.dropped_unsupported);
        }
        None
    }

    /// Writes the descriptor of the packet that comes in place `index` behind the tail.
    #[inline]
    fn describe(&mut self, index: usize, packet: &Mbuf) {
        let at = wrap(self.tail.index + index, self.descriptors.len());
        let nth = self.tail.total + index as u64 + 1;
        let mut flags = DescFlags::END;
        flags.set(
            DescFlags::REPORT,
            nth.is_multiple_of(self.config.rs_interval as u64),
        );
        let data = packet.first().data();
        self.stats.bytes += data.len() as u64;
        self.stats.reports += u64::from(flags.contains(DescFlags::REPORT));
        self.descriptors[at] = Descriptor::Data {
            addr: data.as_ptr().addr(),
            len: data.len() as u32,
            flags,
        };
    }

    /// Hands the first `described` packets over.
    #[inline]
    fn post<const N: usize>(
        &mut self,
        burst: &mut PlainBurst<N>,
        described: usize,
    ) -> Result<(), OtherPool> {
        if described == 0 {
            return Ok(());
        }
        let taken = self.packets.push_burst(burst)?;
        debug_assert_eq!(taken, described);
        self.tail.advance(described, self.descriptors.len());
        self.stats.posted += described as u64;
        self.stats.descriptors += described as u64;
        self.stats.doorbells += 1;
        Ok(())
    }

    /// Lets the device transmit at most `budget` packets; says how many it did. They are not freed before
    /// a drain.
    pub fn run_device(&mut self, budget: usize) -> usize {
        let size = self.descriptors.len();
        let mut count = 0;
        while count < budget && self.head.total != self.tail.total {
            let (first, rest) = pending(
                &self.descriptors,
                self.head,
                self.tail.total - self.head.total,
            );
            let place = (self.head.total - self.clean.total) as usize;
            let packet = |_| self.packets.get(place).map(AsRef::<TxMbuf>::as_ref);
            if self
                .device
                .read(first, rest, packet, &mut self.backend)
                .is_none()
            {
                break;
            }
            if let Descriptor::Data { flags, .. } = &mut self.descriptors[self.head.index]
                && flags.contains(DescFlags::REPORT)
            {
                *flags |= DescFlags::DONE;
            }
            self.head.advance(1, size);
            count += 1;
        }
        count
    }

    /// Frees every packet that the device has reported as done; says how many.
    ///
    /// Packets behind the last report stay: see [`drain_all`](Self::drain_all).
    #[doc(alias = "rte_eth_tx_done_cleanup")]
    pub fn drain(&mut self) -> usize {
        let (size, interval) = (self.descriptors.len(), self.config.rs_interval);
        while self.reported.total + interval as u64 <= self.tail.total {
            let at = wrap(self.reported.index + interval - 1, size);
            let done = matches!(self.descriptors[at],
                Descriptor::Data { flags, .. } if flags.contains(DescFlags::DONE));
            if !done {
                break;
            }
            self.reported.advance(interval, size);
        }
        self.free_until(self.reported.total)
    }

    /// Frees every packet that the device is done with, reported or not, by reading its head register.
    pub fn drain_all(&mut self) -> usize {
        let drained = self.drain();
        if self.clean.total == self.head.total {
            return drained;
        }
        self.stats.head_reads += 1;
        drained + self.free_until(self.head.total)
    }

    /// Room for a send: what is reported, or, when no report is to come, what the head register says.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) -> usize {
        match self.drain() {
            0 if self.reported.total + self.config.rs_interval as u64 > self.tail.total => {
                self.drain_all()
            }
            freed => freed,
        }
    }

    fn free_until(&mut self, end: u64) -> usize {
        let count = end.saturating_sub(self.clean.total) as usize;
        if count > 0 {
            let (size, interval) = (self.descriptors.len(), self.config.rs_interval);
            self.clean.advance(count, size);
            while self.reported.total + interval as u64 <= self.clean.total {
                self.reported.advance(interval, size);
            }
            self.stats.completed += count as u64;
            self.stats.drains += 1;
            self.packets.free_front(count);
        }
        count
    }

    /// Stops the queue and frees every packet in it, done or not, once; the queue is as new afterwards, but
    /// for its counters. Says how many the device had not been through with.
    pub fn reset(&mut self) -> usize {
        self.drain_all();
        let left = self.in_flight();
        self.stats.reset += left as u64;
        self.tail = Cursor::default();
        (self.clean, self.head, self.reported) = (self.tail, self.tail, self.tail);
        self.descriptors.fill(Descriptor::Empty);
        self.device.reset();
        self.packets.free_front(left);
        left
    }

    /// Packets posted and not freed yet.
    pub fn in_flight(&self) -> usize {
        self.packets.len()
    }

    /// Free descriptors.
    #[inline]
    pub fn room(&self) -> usize {
        self.packets.room()
    }

    /// What the driver side did so far.
    pub fn stats(&self) -> &TxStats {
        &self.stats
    }

    /// What the device side did so far.
    pub fn device_stats(&self) -> &DeviceStats {
        &self.device.stats
    }

    /// The device's inside.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Frees what is in flight and gives the backend back.
    pub fn into_backend(self) -> B {
        self.backend
    }
}
