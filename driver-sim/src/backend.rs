//! What the device does with a packet that it was handed.

use std::hint::black_box;

use crate::checksum::Checksum;
use crate::descriptor::{DescFlags, Descriptor, DescriptorFault, Gather};
use crate::segment::{SegmentError, Segmenter};
use crate::wire::FrameSink;

/// What became of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delivered {
    /// Frames that left, more than one under TSO.
    pub frames: u64,
    /// Bytes in them, headers included.
    pub bytes: u64,
}

/// Why the device threw a packet away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPacket {
    /// The driver wrote wrong descriptors.
    #[error(transparent)]
    Descriptor(#[from] DescriptorFault),
    /// What the packet asks of the hardware cannot be done.
    #[error(transparent)]
    Segment(#[from] SegmentError),
}

/// The inside of a device, behind its descriptor ring.
pub trait Backend {
    /// Transmits one packet.
    ///
    /// # Errors
    ///
    /// [`BadPacket`]: nothing of it was sent. The queue counts it; the driver gets its memory back
    /// as for any other.
    fn packet(&mut self, packet: &Gather<'_>) -> Result<Delivered, BadPacket>;
}

impl<B: Backend + ?Sized> Backend for &mut B {
    fn packet(&mut self, packet: &Gather<'_>) -> Result<Delivered, BadPacket> {
        (**self).packet(packet)
    }
}

impl<B: Backend + ?Sized> Backend for Box<B> {
    fn packet(&mut self, packet: &Gather<'_>) -> Result<Delivered, BadPacket> {
        (**self).packet(packet)
    }
}

/// How much of a packet [`Null`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadMode {
    /// Every descriptor, no packet memory: hardware reads that without the processor.
    #[default]
    Descriptors,
    /// Every descriptor and every byte, as a checksum in software would.
    Checksum,
}

/// Swallows packets; what a measurement sends to.
///
/// It counts a packet as one frame, TSO or not.
#[derive(Debug, Default, Clone)]
pub struct Null {
    mode: ReadMode,
    digest: u64,
}

impl Null {
    /// With the given reading mode.
    pub fn new(mode: ReadMode) -> Self {
        Null { mode, digest: 0 }
    }

    /// A number made from all that was read, which keeps the compiler from leaving the reading
    /// out.
    pub fn digest(&self) -> u64 {
        self.digest
    }
}

impl Backend for Null {
    #[inline]
    fn packet(&mut self, packet: &Gather<'_>) -> Result<Delivered, BadPacket> {
        let mut bytes = 0;
        let mut digest = self.digest;
        packet.descriptors().for_each(|descriptor| {
            if let Descriptor::Data { addr, len, flags } = descriptor {
                bytes += u64::from(*len);
                digest = digest.wrapping_add((addr ^ usize::from(flags.bits())) as u64);
            }
        });
        if self.mode == ReadMode::Checksum {
            let mut sum = Checksum::default();
            packet.pieces().for_each(|piece| sum.add(piece));
            digest = digest.wrapping_add(u64::from(sum.partial()));
        }
        self.digest = black_box(digest);
        Ok(Delivered { frames: 1, bytes })
    }
}

/// A device that does what is asked of it (TSO, checksums) and sends the frames to `S`.
///
/// It also holds every packet's descriptors against the rules of [`Gather::check`].
///
/// ```
/// use driver_sim::{Collect, Hardware, TxConfig, TxQueue};
/// use mbuf::BufferSet;
///
/// let set = BufferSet::standard(64, 16)?;
/// let mut queue = TxQueue::new(TxConfig::default(), Hardware::new(Collect::default()))?;
/// let mut m = set.header()?;
/// m.append(60)?.fill(7);
/// assert_eq!(queue.send(&mut [Some(m)], &set), 1);
/// queue.run_device(usize::MAX);
/// assert_eq!(queue.backend().sink().frames, [vec![7; 60]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Hardware<S> {
    segmenter: Segmenter,
    sink: S,
}

impl<S: FrameSink> Hardware<S> {
    /// In front of `sink`.
    pub fn new(sink: S) -> Self {
        Hardware {
            segmenter: Segmenter::default(),
            sink,
        }
    }

    /// Where the frames go.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// Where the frames go, to be changed.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Takes the device apart.
    pub fn into_sink(self) -> S {
        self.sink
    }
}

impl<S: FrameSink> Backend for Hardware<S> {
    fn packet(&mut self, packet: &Gather<'_>) -> Result<Delivered, BadPacket> {
        packet.check()?;
        let (frames, bytes) =
            self.segmenter
                .emit(packet.pieces(), packet.offload(), &mut self.sink)?;
        Ok(Delivered { frames, bytes })
    }
}

/// Whether a descriptor is the last of its packet.
#[inline]
pub(crate) fn ends_packet(descriptor: &Descriptor) -> bool {
    matches!(descriptor, Descriptor::Data { flags, .. } if flags.contains(DescFlags::END))
}
