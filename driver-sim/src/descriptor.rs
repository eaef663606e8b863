//! Descriptors: what the driver writes and the device reads.
//!
//! The rules, which [`Gather::check`] holds a packet against: a packet is one data descriptor for
//! each piece of memory, in order, none of them empty; [`DescFlags::END`] stands on the last and
//! nowhere else; [`DescFlags::REPORT`] and [`DescFlags::DONE`] may stand there only;
//! [`DescFlags::OFFLOAD`] stands on all of a packet's descriptors or on none.

use bitflags::bitflags;
use mbuf::{Packet, Segment, Segments, TxMbuf, TxOffload};

bitflags! {
    /// Flags of a data descriptor.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct DescFlags: u16 {
        /// Last descriptor of its packet.
        #[doc(alias = "EOP")]
        const END = 1;
        /// The driver wants to be told when the device is through with it.
        #[doc(alias = "RS")]
        const REPORT = 1 << 1;
        /// The packet uses the offload settings of the last context descriptor.
        const OFFLOAD = 1 << 2;
        /// Written back by the device: all up to here is done.
        #[doc(alias = "DD")]
        const DONE = 1 << 3;
    }
}

/// One slot of a descriptor ring, 16 bytes as in most hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Descriptor {
    /// Never written.
    #[default]
    Empty,
    /// Offload settings for the packets behind it.
    Context(TxOffload),
    /// A piece of a packet.
    Data {
        /// Where the piece lies.
        addr: usize,
        /// Its length in bytes.
        len: u32,
        /// What it is in its packet.
        flags: DescFlags,
    },
}

/// A descriptor that breaks the rules above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("descriptor {index} of a packet: {fault}")]
pub struct DescriptorFault {
    /// Which of the packet's data descriptors, the first being 0.
    pub index: usize,
    /// What is wrong with it.
    pub fault: Fault,
}

/// How a descriptor breaks the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It is no data descriptor.
    #[error("carries no data")]
    NotData,
    /// It does not point to the packet's next piece, or has another length.
    #[error("does not point to the packet's next piece")]
    Piece,
    /// The packet's end is marked too early or not at all.
    #[error("end mark at the wrong place")]
    End,
    /// A report is asked for, or done, before the packet's end.
    #[error("report or done mark before the packet's end")]
    Report,
    /// Its offload mark differs from the first descriptor's.
    #[error("offload mark differs within the packet")]
    Offload,
    /// The descriptors end before the packet does.
    #[error("the packet has bytes that no descriptor covers")]
    Missing,
}

/// One posted packet as the device sees it: its data descriptors, which may wrap in the ring, and
/// the memory they point to.
#[derive(Clone, Copy)]
pub struct Gather<'a> {
    first: &'a [Descriptor],
    rest: &'a [Descriptor],
    packet: &'a TxMbuf,
    offload: TxOffload,
}

impl<'a> Gather<'a> {
    /// A packet whose descriptors are `first` and then `rest`, with the offload settings that are
    /// in force for it.
    pub fn new(
        first: &'a [Descriptor],
        rest: &'a [Descriptor],
        packet: &'a TxMbuf,
        offload: TxOffload,
    ) -> Self {
        Gather {
            first,
            rest,
            packet,
            offload,
        }
    }

    /// What the hardware has to do to the packet; the default value if nothing.
    pub fn offload(&self) -> &TxOffload {
        &self.offload
    }

    /// The packet's descriptors.
    pub fn descriptors(&self) -> impl Iterator<Item = &'a Descriptor> + use<'a> {
        self.first.iter().chain(self.rest)
    }

    /// How many bytes the descriptors announce.
    pub fn len(&self) -> usize {
        self.descriptors().map(|d| length(d) as usize).sum()
    }

    /// Whether no descriptor announces a byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory that the descriptors point to, piece by piece.
    pub fn pieces(&self) -> Pieces<'a> {
        Pieces {
            first: self.first.iter(),
            rest: self.rest.iter(),
            segments: self.packet.segments(),
            left: &[],
        }
    }

    /// Holds the descriptors against the packet and the rules.
    ///
    /// # Errors
    ///
    /// The first fault found.
    pub fn check(&self) -> Result<(), DescriptorFault> {
        let count = self.first.len() + self.rest.len();
        let mut pieces = self.pieces();
        let mut offload = None;
        for (index, descriptor) in self.descriptors().enumerate() {
            let fail = |fault| Err(DescriptorFault { index, fault });
            let Descriptor::Data { addr, len, flags } = *descriptor else {
                return fail(Fault::NotData);
            };
            let fits = |p: &[u8]| p.len() == len as usize && p.as_ptr().addr() == addr;
            if !pieces.next().is_some_and(fits) {
                return fail(Fault::Piece);
            }
            let last = index + 1 == count;
            if flags.contains(DescFlags::END) != last {
                return fail(Fault::End);
            }
            if !last && flags.intersects(DescFlags::REPORT | DescFlags::DONE) {
                return fail(Fault::Report);
            }
            let marked = flags.contains(DescFlags::OFFLOAD);
            if *offload.get_or_insert(marked) != marked {
                return fail(Fault::Offload);
            }
        }
        match pieces.next_segment() {
            Some(_) => Err(DescriptorFault {
                index: count,
                fault: Fault::Missing,
            }),
            None => Ok(()),
        }
    }
}

/// Iterator over the memory of a [`Gather`].
pub struct Pieces<'a> {
    first: std::slice::Iter<'a, Descriptor>,
    rest: std::slice::Iter<'a, Descriptor>,
    segments: Segments<'a>,
    /// What of the current segment no descriptor has taken yet.
    left: &'a [u8],
}

impl<'a> Pieces<'a> {
    /// Goes on to the next segment with data when the current one is used up.
    fn next_segment(&mut self) -> Option<&'a [u8]> {
        while self.left.is_empty() {
            self.left = self.segments.next().map(|s: Segment<'a>| s.data())?;
        }
        Some(self.left)
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let descriptor = self.first.next().or_else(|| self.rest.next())?;
        let segment = self.next_segment()?;
        let (piece, left) = segment.split_at(segment.len().min(length(descriptor) as usize));
        self.left = left;
        Some(piece)
    }
}

fn length(descriptor: &Descriptor) -> u32 {
    match descriptor {
        Descriptor::Data { len, .. } => *len,
        _ => 0,
    }
}

/// The `count` entries of a ring from index `at`, in two parts when they wrap.
pub(crate) fn window<T>(ring: &[T], at: usize, count: usize) -> (&[T], &[T]) {
    let straight = count.min(ring.len() - at);
    (&ring[at..at + straight], &ring[..count - straight])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_takes_16_bytes() {
        assert_eq!(size_of::<Descriptor>(), 16);
    }
}
