//! A Linux TAP device: what is sent arrives in the kernel as if from a wire, and the other way round.
//!
//! ```text
//!   burst ──► Tap::send ──► [virtio-net header] writev ──► kernel
//!   burst ◄── Tap::receive ◄── readv into spare buffers ◄── kernel
//! ```
//!
//! *With offloads* each frame carries a virtio-net header: TSO packets of up to 64 KB go to the
//! kernel uncut, checksums are left to it, and its own uncut frames come in, in several segments.
//! *Plain*, frames are what would be on a wire; packets that ask for work are dropped and counted,
//! so whoever wants that done puts a [`Hardware`](crate::Hardware) in front: a [`Tap`] is a
//! [`FrameSink`].
//!
//! The device is made by the crate `tun-rs`; making one takes root (`CAP_NET_ADMIN`).

mod receive;
mod send;
mod virtio;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use tun_rs::{DeviceBuilder, Layer};

use crate::wire::FrameSink;

use receive::Spare;

/// What a TAP device is like. The default names itself, has offloads, and takes all that fits an
/// Ethernet frame around an IP packet.
#[derive(Debug, Clone)]
pub struct TapConfig {
    /// Name of the interface, at most 15 bytes; empty: the kernel chooses.
    pub name: String,
    /// Virtio-net headers, TSO and checksums in both directions.
    pub offload: bool,
    /// Bytes of the longest frame that is sent, link header included; longer ones are dropped.
    pub max_frame: usize,
    /// Sizes of the buffers that a received frame is scattered into, in this order; a frame leaves
    /// those that it does not reach for the next one. What lies beyond their sum is cut off.
    pub pieces: Vec<usize>,
}

impl Default for TapConfig {
    fn default() -> Self {
        TapConfig {
            name: String::new(),
            offload: true,
            max_frame: 14 + 65_535,
            // Each as large as all before it: a frame takes at most twice the room that it needs.
            pieces: vec![2048, 2048, 4096, 8192, 16_384, 32_768, 2048],
        }
    }
}

/// What a device did. At any time [`given`](Self::given) = [`sent`](Self::sent) +
/// [`dropped`](Self::dropped).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TapStats {
    /// Packets taken from callers.
    pub given: u64,
    /// Frames that the kernel took.
    pub sent: u64,
    /// Bytes in them.
    pub sent_bytes: u64,
    /// Packets longer than the longest frame, dropped.
    pub dropped_oversize: u64,
    /// Packets that ask for what the device does not do, or ask wrongly, dropped.
    pub dropped_unsupported: u64,
    /// Frames of which the kernel took a part only.
    pub dropped_short: u64,
    /// Frames that the kernel refused, the interface being down for instance.
    pub dropped_refused: u64,
    /// Packets given to an interface that is gone, or frames that a [`FrameSink`] could not keep.
    pub dropped_gone: u64,
    /// Sends that left packets with the caller, as the kernel wanted no more at the moment.
    pub busy: u64,
    /// Frames received.
    pub received: u64,
    /// Bytes in them.
    pub received_bytes: u64,
    /// Reads that failed or brought less than a virtio-net header.
    pub bad_reads: u64,
    /// The system's number of the last error counted above.
    pub last_error: Option<i32>,
}

impl TapStats {
    /// All packets that were taken and did not leave.
    pub fn dropped(&self) -> u64 {
        self.dropped_oversize
            + self.dropped_unsupported
            + self.dropped_short
            + self.dropped_refused
            + self.dropped_gone
    }
}

/// A device could not be made.
#[derive(Debug, thiserror::Error)]
#[error("no TAP device '{name}': {source}")]
pub struct OpenError {
    /// The name asked for.
    pub name: String,
    /// What the system says.
    pub source: io::Error,
}

/// A TAP device. The interface lives as long as this does.
///
/// ```no_run
/// use driver_sim::tap::{Tap, TapConfig};
/// use mbuf::{BufferSet, Mbuf};
/// use std::time::Duration;
///
/// let set = BufferSet::standard(256, 64)?;
/// let mut tap = Tap::open(&TapConfig { name: "tap0".into(), ..TapConfig::default() })?;
/// let mut burst: [Option<Mbuf>; 32] = [const { None }; 32];
/// tap.wait(Some(Duration::from_millis(10)))?;
/// let n = tap.receive(&mut burst, &set)?;
/// tap.send(&mut burst[..n]);          // everything back where it came from
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
    offload: bool,
    max_frame: usize,
    gone: bool,
    spare: Spare,
    /// For what cannot be sent as it lies.
    scratch: Vec<u8>,
    stats: TapStats,
}

impl Tap {
    /// Makes a device, or attaches to a persistent one of that name. The interface comes up by this;
    /// addresses are the administrator's business.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: no right to, no `/dev/net/tun`, or the name is taken.
    pub fn open(config: &TapConfig) -> Result<Self, OpenError> {
        let open = || {
            let mut builder = DeviceBuilder::new().layer(Layer::L2).with(|linux| {
                linux.offload(config.offload);
            });
            if !config.name.is_empty() {
                builder = builder.name(&config.name);
            }
            // The device stays for as long as one of its descriptors does.
            let device = builder.build_sync()?;
            Self::from_fd(device.as_fd().try_clone_to_owned()?, config)
        };
        open().map_err(|source| OpenError {
            name: config.name.clone(),
            source,
        })
    }

    /// Takes over an open device, which was given offloads, or not, as `config` says. A datagram
    /// socket does as well: one frame a datagram.
    ///
    /// # Errors
    ///
    /// The system's, when the descriptor cannot be made non-blocking.
    pub fn from_fd(fd: OwnedFd, config: &TapConfig) -> io::Result<Self> {
        fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::NONBLOCK)?;
        Ok(Tap {
            fd,
            offload: config.offload,
            max_frame: config.max_frame,
            gone: false,
            spare: Spare::new(&config.pieces),
            scratch: Vec::new(),
            stats: TapStats::default(),
        })
    }

    /// Waits until a frame can be received, at most for `timeout`, and says whether one can. An
    /// interface that is gone is ready: the next call finds out.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        let timeout = timeout.map(|time| Timespec::try_from(time).unwrap_or(Timespec::default()));
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Err(Errno::INTR) => Ok(false),
            ready => Ok(ready? > 0),
        }
    }

    /// Whether the interface was taken away under us; nothing is sent or received any more.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// What it did so far.
    pub fn stats(&self) -> &TapStats {
        &self.stats
    }

    /// Keeps an error's number, and whether it is the end.
    #[cold]
    fn note(&mut self, error: Errno) {
        self.stats.last_error = Some(error.raw_os_error());
        // A device that was removed; a socket whose other end is closed.
        self.gone |= matches!(
            error,
            Errno::BADFD | Errno::NODEV | Errno::PIPE | Errno::CONNREFUSED | Errno::CONNRESET
        );
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A wire: a frame that the kernel does not want at the moment is lost, and counted as
/// [`dropped_refused`](TapStats::dropped_refused).
impl FrameSink for Tap {
    fn frame(&mut self, frame: &[u8]) {
        self.send_bytes(frame);
    }
}
