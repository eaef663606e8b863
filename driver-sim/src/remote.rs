//! A transmit queue whose device runs on a thread of its own: another core frees what this one
//! allocated.
//!
//! The device never reads the driver's memory of slots. Descriptors travel through one
//! single-producer ring, handles through a second, a packet's descriptors before its handle; so a
//! handle that the device sees has its descriptors in place. The device reads handles as slices of
//! the ring, transmits, frees them there in bulk, and only then lets the driver have the room back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use mbuf::{BufferSet, FreeStrategy, Packet, TxMbuf, free_bulk_with};
use rtrb::{Consumer, Producer, RingBuffer};

use crate::backend::Backend;
use crate::config::{ConfigError, TxConfig};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::post::{Outcome, Poster};
use crate::stats::{DeviceStats, TxStats};

/// The device's thread could not be had, or is gone.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// Configuration that no queue can have.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system gave no thread.
    #[error("no thread for the device: {0}")]
    Spawn(#[source] std::io::Error),
    /// The backend panicked; packets that were in the ring are freed.
    #[error("the device's backend panicked")]
    Panicked,
}

/// A transmit queue to a device on a second thread.
///
/// [`free_thresh`](TxConfig::free_thresh) is the most packets that the device frees at once;
/// [`rs_interval`](TxConfig::rs_interval) has no meaning here, the rings say what is done.
///
/// ```
/// use driver_sim::{Null, RemoteQueue, TxConfig};
/// use mbuf::BufferSet;
///
/// let set = BufferSet::standard(64, 16)?;
/// let mut queue = RemoteQueue::spawn(TxConfig::default(), Null::default(), || ())?;
/// let mut m = set.header()?;
/// m.append(100)?;
/// assert_eq!(queue.send(&mut [Some(m)], &set), 1);
/// let (_null, device) = queue.stop()?;
/// assert_eq!((device.packets, device.bytes), (1, 100));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RemoteQueue<B> {
    poster: Poster,
    /// One burst's descriptors, `described` many, before they go into the ring together: the device
    /// polls the ring's end, and each change of it there costs both cores a cache line.
    scratch: Box<[Descriptor]>,
    described: usize,
    /// The burst's handles.
    staged: Vec<Option<TxMbuf>>,
    descriptors: Producer<Descriptor>,
    handles: Producer<Option<TxMbuf>>,
    orders: Arc<Orders>,
    thread: Option<JoinHandle<(B, DeviceStats)>>,
}

impl<B: Backend + Send + 'static> RemoteQueue<B> {
    /// Starts a device thread. `on_start` runs on it first: the place to pin it to a core.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Config`] or [`RemoteError::Spawn`].
    pub fn spawn(
        config: TxConfig,
        backend: B,
        on_start: impl FnOnce() + Send + 'static,
    ) -> Result<Self, RemoteError> {
        config.check()?;
        let (descriptors, device_descriptors) = RingBuffer::new(config.ring_size);
        let (handles, device_handles) = RingBuffer::new(config.ring_size);
        let orders = Arc::new(Orders {
            stop: AtomicBool::new(false),
            strategy: AtomicUsize::new(0),
        });
        orders.set_strategy(config.strategy);
        let worker = Worker {
            device: Device::default(),
            descriptors: device_descriptors,
            handles: device_handles,
            batch: config.free_thresh,
            orders: Arc::clone(&orders),
            backend,
        };
        let run = move || {
            on_start();
            worker.run()
        };
        let thread = thread::Builder::new()
            .name("nic".into())
            .spawn(run)
            .map_err(RemoteError::Spawn)?;
        Ok(RemoteQueue {
            poster: Poster::new(config),
            scratch: vec![Descriptor::Empty; config.ring_size].into_boxed_slice(),
            described: 0,
            staged: Vec::with_capacity(config.ring_size),
            descriptors,
            handles,
            orders,
            thread: Some(thread),
        })
    }

    /// Sends a burst, as [`TxQueue::send`](crate::TxQueue::send): takes packets from the front
    /// while there is room and says how many entries it took.
    ///
    /// Packets for a device whose thread is gone are dropped and counted.
    pub fn send<P: Packet + Into<TxMbuf>>(
        &mut self,
        burst: &mut [Option<P>],
        set: &BufferSet,
    ) -> usize {
        let room = self.descriptors.slots().min(self.scratch.len());
        let handles = self.handles.slots();
        let mut taken = 0;
        for slot in burst.iter_mut() {
            if slot.is_some() && !self.stage(slot, room, handles, set) {
                self.poster.stats.ring_full += 1;
                break;
            }
            taken += 1;
        }
        self.publish();
        taken
    }

    /// Describes one packet in what is left of `room` descriptors and `handles` handles; `true` when
    /// the slot is empty now.
    #[inline]
    fn stage<P: Packet + Into<TxMbuf>>(
        &mut self,
        slot: &mut Option<P>,
        room: usize,
        handles: usize,
        set: &BufferSet,
    ) -> bool {
        if self.handles.is_abandoned() {
            *slot = None;
            self.poster.stats.given += 1;
            self.poster.stats.dropped_dead += 1;
            return true;
        }
        if self.staged.len() >= handles {
            return false;
        }
        let (at, scratch) = (self.described, &mut self.scratch);
        match self
            .poster
            .post(slot, room - at, set, |i, d| scratch[at + i] = d)
        {
            Outcome::Posted {
                handle,
                descriptors,
            } => {
                self.described += descriptors;
                self.staged.push(Some(handle));
                true
            }
            Outcome::Dropped => true,
            Outcome::Full => false,
        }
    }

    /// Lets the device see the burst, descriptors before handles.
    #[inline]
    fn publish(&mut self) {
        if self.staged.is_empty() {
            return;
        }
        // Both have room: looked at before, and only this thread fills them.
        let _ = self
            .descriptors
            .push_entire_slice(&self.scratch[..self.described]);
        self.described = 0;
        if let Ok(chunk) = self.handles.write_chunk_uninit(self.staged.len()) {
            chunk.fill_from_iter(self.staged.drain(..));
        }
        self.poster.stats.doorbells += 1;
    }

    /// Packets that the device has not freed yet.
    pub fn in_flight(&self) -> usize {
        self.handles.buffer().capacity() - self.handles.slots()
    }

    /// Waits until the device has freed every packet, or is gone.
    pub fn wait_idle(&self) {
        let mut waits = Waits::default();
        while self.in_flight() > 0 && !self.handles.is_abandoned() {
            waits.wait();
        }
    }

    /// Whether the device's thread runs.
    pub fn is_alive(&self) -> bool {
        !self.handles.is_abandoned()
    }

    /// What the driver side did so far. Completions are those seen when it is called.
    pub fn stats(&self) -> TxStats {
        let mut stats = self.poster.stats;
        stats.completed = stats.posted - self.in_flight() as u64;
        stats
    }

    /// Changes how completed packets are freed, from some batch on; of packets that are sent when
    /// the queue is idle, none is freed as before.
    pub fn set_strategy(&mut self, strategy: FreeStrategy) {
        self.poster.config_mut().strategy = strategy;
        self.orders.set_strategy(strategy);
    }

    /// Lets the device transmit and free what is in the ring, ends its thread, and gives back its
    /// backend and what it counted. When this returns the thread is gone, so what it had cached
    /// is back in the pools.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Panicked`] when the backend did.
    pub fn stop(mut self) -> Result<(B, DeviceStats), RemoteError> {
        self.join().unwrap_or(Err(RemoteError::Panicked))
    }
}

impl<B> RemoteQueue<B> {
    fn join(&mut self) -> Option<Result<(B, DeviceStats), RemoteError>> {
        self.orders.stop.store(true, Ordering::Release);
        let thread = self.thread.take()?;
        Some(thread.join().map_err(|_| RemoteError::Panicked))
    }
}

/// As [`RemoteQueue::stop`], but for what it gives back.
impl<B> Drop for RemoteQueue<B> {
    fn drop(&mut self) {
        // A panic of the backend was the device's; it must not become one here.
        let _ = self.join();
    }
}

/// What the driver tells the device's thread.
#[derive(Debug)]
struct Orders {
    stop: AtomicBool,
    /// Index in [`FreeStrategy::ALL`].
    strategy: AtomicUsize,
}

impl Orders {
    fn set_strategy(&self, strategy: FreeStrategy) {
        let index = FreeStrategy::ALL.iter().position(|s| *s == strategy);
        // Ordered before the handles that are sent later, by the ring's own release.
        self.strategy.store(index.unwrap_or(0), Ordering::Relaxed);
    }

    fn strategy(&self) -> FreeStrategy {
        FreeStrategy::ALL[self.strategy.load(Ordering::Relaxed)]
    }
}

/// The device thread.
struct Worker<B> {
    device: Device,
    descriptors: Consumer<Descriptor>,
    handles: Consumer<Option<TxMbuf>>,
    batch: usize,
    orders: Arc<Orders>,
    backend: B,
}

impl<B: Backend> Worker<B> {
    fn run(mut self) -> (B, DeviceStats) {
        let mut waits = Waits::default();
        loop {
            // Read before the ring is: what was sent before the stop is then seen.
            let stop = self.orders.stop.load(Ordering::Acquire);
            if self.batch() > 0 {
                waits = Waits::default();
            } else if stop {
                return (self.backend, self.device.stats);
            } else {
                waits.wait();
            }
        }
    }

    /// Transmits and frees up to one batch of packets; says how many.
    fn batch(&mut self) -> usize {
        let count = self.handles.slots().min(self.batch);
        let Ok(mut handles) = self.handles.read_chunk(count) else {
            return 0;
        };
        if handles.is_empty() {
            return 0;
        }
        let read = {
            let (front, back) = handles.as_slices();
            // Later than the handles: a packet's descriptors went in before its handle.
            let available = self.descriptors.slots();
            let Ok(descriptors) = self.descriptors.read_chunk(available) else {
                return 0;
            };
            let (mut first, mut rest) = descriptors.as_slices();
            let mut read = 0;
            for handle in front.iter().chain(back) {
                let packet = |_| handle.as_ref();
                let Some(n) = self.device.read(first, rest, packet, &mut self.backend) else {
                    break;
                };
                read += n;
                let straight = n.min(first.len());
                (first, rest) = (&first[straight..], &rest[n - straight..]);
            }
            descriptors.commit(read);
            read
        };
        debug_assert!(read >= count, "a packet has at least one descriptor");
        let (front, back) = handles.as_mut_slices();
        let strategy = self.orders.strategy();
        free_bulk_with(strategy, front);
        free_bulk_with(strategy, back);
        handles.commit_all();
        count
    }
}

/// Waiting for the other thread: first on the core, then letting others have it.
#[derive(Default)]
struct Waits(u32);

impl Waits {
    const SPINS: u32 = 4096;

    fn wait(&mut self) {
        if self.0 < Self::SPINS {
            self.0 += 1;
            std::hint::spin_loop();
        } else {
            thread::yield_now();
        }
    }
}
