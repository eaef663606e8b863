//! The NIC with its device on this core or on another, behind one interface.

use super::HEADERS;
use crate::affinity;
use crate::cell::Env;
use crate::clock;
use driver_sim::{Backend, DeviceStats, RemoteQueue, TxConfig, TxQueue, TxStats};
use mbuf::{BufferSet, FreeStrategy, Mbuf};

/// A transmit queue to which a packet can always be handed, waiting for room.
pub(crate) trait Nic: 'static {
    /// Hands a packet over.
    fn put(&mut self, packet: Mbuf, set: &BufferSet);

    /// Returns when fewer than `limit` packets are in flight.
    fn settle(&mut self, limit: usize);

    /// Packets that are not freed yet.
    fn in_flight(&self) -> usize;

    /// What the driver side counted.
    fn stats(&self) -> TxStats;

    /// Ticks from handing over a packet alone to its being freed, at best, when the device is on
    /// another core.
    ///
    /// # Errors
    /// For want of buffers.
    fn ping(&mut self, set: &BufferSet) -> Result<Option<u64>, String> {
        let _ = set;
        Ok(None)
    }

    /// How completed packets are freed from now on; called when nothing is in flight.
    fn set_strategy(&mut self, strategy: FreeStrategy);

    /// Ends the queue and holds the device's counters against the driver's.
    ///
    /// # Errors
    /// Where they differ.
    fn close(&mut self) -> Result<(), String>;
}

/// The device runs here, when it is waited for.
pub(crate) struct Local<B>(TxQueue<B>);

impl<B: Backend + 'static> Local<B> {
    pub(crate) fn new(config: TxConfig, backend: B) -> Result<Self, String> {
        let queue = TxQueue::new(config, backend).map_err(|e| e.to_string())?;
        Ok(Local(queue))
    }

    /// The device's inside, for what it holds in the end.
    pub(crate) fn into_backend(self) -> B {
        self.0.into_backend()
    }

    #[inline]
    fn work(&mut self) {
        self.0.run_device(usize::MAX);
        self.0.drain();
    }
}

impl<B: Backend + 'static> Nic for Local<B> {
    #[inline(always)]
    fn put(&mut self, packet: Mbuf, set: &BufferSet) {
        let mut slot = [Some(packet)];
        while self.0.send(&mut slot, set) == 0 {
            self.work();
        }
    }

    #[inline(always)]
    fn settle(&mut self, limit: usize) {
        if self.0.in_flight() >= limit {
            self.work();
        }
    }

    #[inline(always)]
    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }

    fn stats(&self) -> TxStats {
        *self.0.stats()
    }

    fn set_strategy(&mut self, strategy: FreeStrategy) {
        self.0.set_strategy(strategy);
    }

    fn close(&mut self) -> Result<(), String> {
        agree(self.0.stats(), self.0.device_stats())
    }
}

/// The device runs on the other CPU, in one thread as long as the queue lives.
pub(crate) struct Remote<B>(Option<RemoteQueue<B>>);

/// Packets sent alone, of which the fastest counts.
const PINGS: usize = 16;

impl<B: Backend + Send + 'static> Remote<B> {
    pub(crate) fn new(config: TxConfig, backend: B, env: &Env) -> Result<Self, String> {
        let cpu = env.cpus.map(|(_, other)| other);
        let pin = move || {
            // Not pinned is slower or noisier, and seen as such; the work is the same.
            let _ = cpu.map(affinity::pin_to);
        };
        let queue = RemoteQueue::spawn(config, backend, pin).map_err(|e| e.to_string())?;
        Ok(Remote(Some(queue)))
    }

    /// Hands a burst over, waiting for room.
    #[inline(always)]
    pub(crate) fn put_all(&mut self, burst: &mut [Option<Mbuf>], set: &BufferSet) {
        let Some(queue) = &mut self.0 else { return };
        let mut done = 0;
        while done < burst.len() {
            done += queue.send(&mut burst[done..], set);
        }
    }
}

impl<B: Backend + Send + 'static> Nic for Remote<B> {
    #[inline(always)]
    fn put(&mut self, packet: Mbuf, set: &BufferSet) {
        let Some(queue) = &mut self.0 else { return };
        let mut slot = [Some(packet)];
        while queue.send(&mut slot, set) == 0 {
            std::hint::spin_loop();
        }
    }

    #[inline(always)]
    fn settle(&mut self, limit: usize) {
        let Some(queue) = &self.0 else { return };
        while queue.in_flight() >= limit && queue.is_alive() {
            std::hint::spin_loop();
        }
    }

    #[inline(always)]
    fn in_flight(&self) -> usize {
        self.0.as_ref().map_or(0, RemoteQueue::in_flight)
    }

    fn stats(&self) -> TxStats {
        self.0.as_ref().map(RemoteQueue::stats).unwrap_or_default()
    }

    fn ping(&mut self, set: &BufferSet) -> Result<Option<u64>, String> {
        let mut best = u64::MAX;
        for _ in 0..PINGS {
            let mut m = set.header().map_err(|e| e.to_string())?;
            m.append(HEADERS).map_err(|e| e.to_string())?;
            let start = clock::start();
            self.put(m, set);
            self.settle(1);
            best = best.min(clock::stop() - start);
        }
        Ok(Some(best))
    }

    fn set_strategy(&mut self, strategy: FreeStrategy) {
        if let Some(queue) = &mut self.0 {
            queue.set_strategy(strategy);
        }
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(queue) = self.0.take() else {
            return Ok(());
        };
        queue.wait_idle();
        let driver = queue.stats();
        let (_, device) = queue.stop().map_err(|e| e.to_string())?;
        agree(&driver, &device)
    }
}

fn agree(driver: &TxStats, device: &DeviceStats) -> Result<(), String> {
    // A device that cuts packets repeats their headers.
    let repeated = device.frames.saturating_sub(device.packets) * HEADERS as u64;
    let bytes = driver.bytes + repeated;
    let want = (driver.posted, bytes, driver.posted, 0, 0);
    let have = (
        device.packets,
        device.bytes,
        driver.completed,
        driver.dropped(),
        device.bad,
    );
    if want == have {
        return Ok(());
    }
    Err(format!(
        "device and driver differ: packets, bytes, completed, dropped, bad are {have:?} instead of {want:?}"
    ))
}
