//! Counters of both sides of a queue.

use crate::backend::BadPacket;

/// What the driver side did.
///
/// At any time [`given`](Self::given) = [`posted`](Self::posted) + [`dropped`](Self::dropped), and
/// `posted` = [`completed`](Self::completed) + [`reset`](Self::reset) + packets in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TxStats {
    /// Packets taken from callers.
    pub given: u64,
    /// Packets handed to the device.
    pub posted: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Descriptors written for them, contexts included.
    pub descriptors: u64,
    /// Context descriptors among these.
    pub contexts: u64,
    /// Packets copied into one storage because they did not fit the device's limits.
    pub defrags: u64,
    /// Bytes copied in doing so.
    pub defrag_bytes: u64,
    /// Packets without a byte, dropped.
    pub dropped_empty: u64,
    /// Packets over the limits that could not be copied, dropped.
    pub dropped_defrag: u64,
    /// Packets longer than the longest frame, dropped.
    pub dropped_oversize: u64,
    /// Packets that ask for what the device does not do, dropped.
    pub dropped_unsupported: u64,
    /// Packets given to a device that is gone, dropped.
    pub dropped_dead: u64,
    /// Packets that came back as done and were freed.
    pub completed: u64,
    /// Packets freed by a reset with the device not done with them.
    pub reset: u64,
    /// Reports asked for.
    pub reports: u64,
    /// Drains that freed something.
    pub drains: u64,
    /// Times that the head register was read since no report was to come.
    pub head_reads: u64,
    /// Sends that left packets with the caller.
    pub ring_full: u64,
    /// Times that the device was told of new descriptors.
    pub doorbells: u64,
}

impl TxStats {
    /// All packets dropped by the driver.
    pub fn dropped(&self) -> u64 {
        self.dropped_empty
            + self.dropped_defrag
            + self.dropped_oversize
            + self.dropped_unsupported
            + self.dropped_dead
    }
}

/// What the device side did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceStats {
    /// Packets read from the ring.
    pub packets: u64,
    /// Descriptors read, contexts included.
    pub descriptors: u64,
    /// Frames sent.
    pub frames: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Packets thrown away by the backend.
    pub bad: u64,
    /// Why the last of them was.
    pub last_bad: Option<BadPacket>,
}
