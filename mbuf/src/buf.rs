//! Packets as the crate `bytes` sees them. With the feature `bytes`.

use crate::handle::{Mbuf, SharedMbuf};
use crate::io::PacketReader;
use crate::packet::Packet;
use crate::segment::Segment;
use bytes::buf::UninitSlice;
use bytes::{Buf, BufMut, Bytes};
use std::io::IoSlice;

impl Buf for PacketReader<'_> {
    fn remaining(&self) -> usize {
        self.left()
    }

    fn chunk(&self) -> &[u8] {
        self.peek()
    }

    fn chunks_vectored<'a>(&'a self, out: &mut [IoSlice<'a>]) -> usize {
        crate::io::fill(self.clone(), out).slices
    }

    /// # Panics
    /// When fewer bytes are left, as the trait has it.
    fn advance(&mut self, n: usize) {
        assert!(n <= self.left(), "advanced {n} of {} bytes", self.left());
        self.skip_bytes(n);
    }
}

/// The tailroom of a packet's last segment, to be written through [`BufMut`]. What was advanced over is
/// part of the packet when this is dropped; if it is forgotten, all of the tailroom is, with
/// what lay there from earlier use.
///
/// ```
/// # let set = mbuf::BufferSet::standard(64, 8)?;
/// use bytes::{Buf, BufMut};
/// use mbuf::Packet;
/// let mut m = set.header()?;
/// let mut room = m.tail_buf();
/// room.put_u16(0x0800);
/// room.put_slice(b"ip");
/// drop(room);
/// assert_eq!(m.reader().get_u16(), 0x0800);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TailBuf<'a> {
    packet: &'a mut Mbuf,
    /// Bytes appended that were not advanced over.
    left: usize,
}

impl Mbuf {
    /// The tailroom of the last segment, for writing; none when its storage is read-only.
    pub fn tail_buf(&mut self) -> TailBuf<'_> {
        let room = self.segments().last().map_or(0, Segment::tailroom);
        let left = self.append(room).map_or(0, |room| room.len());
        TailBuf { packet: self, left }
    }
}

impl TailBuf<'_> {
    fn room(&mut self) -> &mut [u8] {
        let data = self.packet.last_raw().into_data().unwrap_or_default();
        let end = data.len();
        &mut data[end - self.left.min(end)..]
    }
}

// SAFETY: `chunk_mut` lends the part that was not advanced over, of `remaining_mut` bytes, all of them
// initialised; `advance_mut` goes on by what the caller has written.
unsafe impl BufMut for TailBuf<'_> {
    fn remaining_mut(&self) -> usize {
        self.left
    }

    fn chunk_mut(&mut self) -> &mut UninitSlice {
        UninitSlice::new(self.room())
    }

    /// # Panics
    /// When there is less room, as the trait has it.
    unsafe fn advance_mut(&mut self, n: usize) {
        assert!(n <= self.left, "advanced {n} of {} bytes", self.left);
        self.left -= n;
    }
}

impl Drop for TailBuf<'_> {
    fn drop(&mut self) {
        // They were appended, so they can be taken back.
        let _ = self.packet.trim_back(self.left);
    }
}

/// A segment of a shared packet, as the owner of a [`Bytes`].
struct Piece {
    packet: SharedMbuf,
    segment: usize,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        let seg = self.packet.segments().nth(self.segment);
        seg.map_or(&[], Segment::data)
    }
}

impl SharedMbuf {
    /// The bytes of each segment, not copied: the packet lives until the last of them is dropped.
    /// Each takes an allocation of its own.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::standard(64, 8)?;
    /// let mut m = set.header()?;
    /// m.append(5)?.copy_from_slice(b"bytes");
    /// let mut pieces = m.into_shared().to_bytes();
    /// let piece = pieces.next().unwrap();
    /// drop(pieces);
    /// assert_eq!((&piece[..], set.in_use()), (&b"bytes"[..], 1));
    /// drop(piece);
    /// assert!(set.is_full());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_bytes(&self) -> impl ExactSizeIterator<Item = Bytes> + use<> {
        let packet = self.clone();
        (0..self.nsegs()).map(move |segment| {
            Bytes::from_owner(Piece {
                packet: packet.clone(),
                segment,
            })
        })
    }
}
