//! Packets as `std::io` sees them: readers, writers, and slices for one vectored write.

use crate::chain::Chain;
use crate::handle::Mbuf;
use crate::packet::Packet;
use crate::segment::{Segment, Segments};
use crate::set::BufferSet;
use std::io::{self, BufRead, ErrorKind, IoSlice, Read, Write};

/// Slices that one vectored write is given.
const SLICES: usize = 16;

/// Reads a packet's bytes, first to last. Made by [`Packet::reader`].
#[derive(Clone)]
pub struct PacketReader<'a> {
    segments: Segments<'a>,
    /// Bytes of the first segment that were read.
    at: usize,
    left: usize,
}

impl<'a> PacketReader<'a> {
    pub(crate) fn new<P: Packet + ?Sized>(packet: &'a P) -> Self {
        Self {
            segments: packet.segments(),
            at: 0,
            left: packet.pkt_len(),
        }
    }

    /// Bytes that were not read yet.
    pub fn left(&self) -> usize {
        self.left
    }

    /// What of the next segment was not read yet; empty at the end only.
    pub fn peek(&self) -> &'a [u8] {
        let mut at = self.at;
        for seg in self.segments.clone() {
            match seg.data().get(at..) {
                Some(rest) if !rest.is_empty() => return rest,
                _ => at = 0,
            }
        }
        &[]
    }

    /// Goes on `n` bytes, or to the end.
    pub fn skip_bytes(&mut self, n: usize) {
        self.left = self.left.saturating_sub(n);
        self.at = self.at.saturating_add(n);
        while let Some(seg) = self.segments.0.filter(|seg| self.at >= seg.len()) {
            self.at -= seg.len();
            self.segments.next();
        }
    }
}

impl Read for PacketReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let data = self.peek();
        let n = data.len().min(out.len());
        out[..n].copy_from_slice(&data[..n]);
        self.skip_bytes(n);
        Ok(n)
    }
}

impl BufRead for PacketReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.peek())
    }

    fn consume(&mut self, n: usize) {
        self.skip_bytes(n);
    }
}

/// The bytes of a packet as slices for vectored writes, without empty ones. Made by
/// [`Packet::io_slices`].
#[derive(Clone)]
pub struct IoSlices<'a>(pub(crate) PacketReader<'a>);

impl<'a> Iterator for IoSlices<'a> {
    type Item = IoSlice<'a>;

    fn next(&mut self) -> Option<IoSlice<'a>> {
        let data = self.0.peek();
        self.0.skip_bytes(data.len());
        (!data.is_empty()).then(|| IoSlice::new(data))
    }
}

/// How much of a packet an array of slices covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Covered {
    /// Slices that were filled.
    pub slices: usize,
    /// Bytes in them.
    pub bytes: usize,
}

/// [`Packet::fill_io_slices`].
pub(crate) fn fill<'a>(from: PacketReader<'a>, out: &mut [IoSlice<'a>]) -> Covered {
    let mut covered = Covered {
        slices: 0,
        bytes: 0,
    };
    for (slot, slice) in out.iter_mut().zip(IoSlices(from)) {
        covered.slices += 1;
        covered.bytes += slice.len();
        *slot = slice;
    }
    covered
}

/// [`Packet::write_to`].
pub(crate) fn write_to(mut from: PacketReader<'_>, to: &mut impl Write) -> io::Result<()> {
    loop {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let covered = fill(from.clone(), &mut slices);
        if covered.bytes == 0 {
            return Ok(());
        }
        match to.write_vectored(&slices[..covered.slices]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => from.skip_bytes(n),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Writes behind a packet's bytes: into the tailroom of its last segment, and from there on, when it
/// was given a set, into segments of that.
///
/// A single `write` either takes some bytes or leaves the packet as it is. New segments become part of
/// the packet with [`flush`](Write::flush) or when the writer is dropped; a forgotten one leaks
/// them.
///
/// ```
/// # let set = mbuf::BufferSet::standard(64, 8)?;
/// use mbuf::Packet;
/// use std::io::Write;
/// let mut m = set.header()?;
/// write!(m.writer(Some(&set)), "{:>300}", "right")?;
/// assert_eq!((m.pkt_len(), m.nsegs()), (300, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PacketWriter<'a> {
    packet: &'a mut Mbuf,
    /// What goes behind the packet.
    more: Chain,
    set: Option<&'a BufferSet>,
}

impl Mbuf {
    /// A writer that appends; without a set it ends where the storage does.
    pub fn writer<'a>(&'a mut self, set: Option<&'a BufferSet>) -> PacketWriter<'a> {
        PacketWriter {
            packet: self,
            more: Chain::new(),
            set,
        }
    }
}

impl PacketWriter<'_> {
    /// Appends as much as the last segment takes.
    fn fill_tail(&mut self, bytes: &[u8]) -> usize {
        if !self.more.is_empty() {
            return self.more.append_bytes(bytes);
        }
        let room = self.packet.segments().last().map_or(0, Segment::tailroom);
        let n = bytes.len().min(room);
        match self.packet.append(n) {
            Ok(dst) => dst.copy_from_slice(&bytes[..n]),
            Err(_) => return 0,
        }
        n
    }

    fn new_segment(&mut self, bytes: &[u8], set: &BufferSet) -> io::Result<usize> {
        let largest = set.largest_class().unwrap_or(0).max(set.plain_room());
        let mut want = bytes.len().min(largest);
        let mut m = loop {
            match set.plain_with(want) {
                Ok(m) => break m,
                Err(e) if want <= set.plain_room() => return Err(io::Error::other(e)),
                // Rather smaller segments than none.
                Err(_) => want /= 2,
            }
        };
        let n = bytes.len().min(m.capacity());
        if let Ok(dst) = m.append(n) {
            dst.copy_from_slice(&bytes[..n]);
        }
        self.more.push_back(m);
        Ok(n)
    }

    fn settle(&mut self) {
        if let Some(more) = std::mem::take(&mut self.more).into_packet() {
            self.packet.cat(more);
        }
    }
}

impl Write for PacketWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match (self.fill_tail(bytes), self.set) {
            (0, Some(set)) if !bytes.is_empty() => self.new_segment(bytes, set),
            (n, _) => Ok(n),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.settle();
        Ok(())
    }
}

impl Drop for PacketWriter<'_> {
    fn drop(&mut self) {
        self.settle();
    }
}
