//! Copying a range of a chain: gathered into a slice, by reference, or into one new storage.

use crate::chain::Chain;
use crate::error::{AllocError, CopyError, OutOfRange};
use crate::handle::Mbuf;
use crate::segment::{Segment, Segments};
use crate::set::BufferSet;

/// The pieces of `[offset, offset + len)`, one per segment that it touches.
struct Pieces<'a> {
    segments: Segments<'a>,
    skip: usize,
    left: usize,
}

struct Piece<'a> {
    seg: Segment<'a>,
    /// Start within the segment's data.
    at: usize,
    len: usize,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    #[inline]
    fn next(&mut self) -> Option<Piece<'a>> {
        while self.left > 0 {
            let seg = self.segments.next()?;
            if self.skip >= seg.len() {
                self.skip -= seg.len();
                continue;
            }
            let at = std::mem::take(&mut self.skip);
            let len = (seg.len() - at).min(self.left);
            self.left -= len;
            return Some(Piece { seg, at, len });
        }
        None
    }
}

fn pieces(segments: Segments<'_>, offset: usize, len: usize) -> Pieces<'_> {
    Pieces {
        segments,
        skip: offset,
        left: len,
    }
}

impl<'a> Piece<'a> {
    #[inline]
    fn data(&self) -> &'a [u8] {
        &self.seg.data()[self.at..self.at + self.len]
    }
}

/// Copies `dst.len()` bytes from `offset` of a chain that holds `have` bytes.
pub(crate) fn gather(
    segments: Segments<'_>,
    have: usize,
    offset: usize,
    mut dst: &mut [u8],
) -> Result<(), OutOfRange> {
    OutOfRange::check(offset, dst.len(), have)?;
    for piece in pieces(segments, offset, dst.len()) {
        let (here, rest) = std::mem::take(&mut dst).split_at_mut(piece.len);
        here.copy_from_slice(piece.data());
        dst = rest;
    }
    Ok(())
}

/// A chain with the same bytes: clusters and external storage by reference, inline room by bytes.
pub(crate) fn reference(
    segments: Segments<'_>,
    have: usize,
    offset: usize,
    len: usize,
    set: &BufferSet,
) -> Result<Mbuf, CopyError> {
    OutOfRange::check(offset, len, have)?;
    let headed = offset == 0 && segments.0.is_some_and(|s| s.is_header());
    let mut copy = Chain::new();
    for piece in pieces(segments, offset, len) {
        let head = copy.is_empty() && (headed || copy.segs() > 0);
        if piece.seg.counted().is_some() {
            let mut m = if head { set.header()? } else { set.plain()? };
            m.refer_to(piece.seg, piece.at, piece.len);
            copy.push_back(m);
        } else {
            copy_inline(&piece, head, set, &mut copy)?;
        }
    }
    match copy.into_packet() {
        Some(packet) => Ok(packet),
        None => Ok(set.header()?),
    }
}

/// Copies a piece of inline room, at the place in the new room where it stood in the old one if
/// it fits there. Rooms differ in size: the piece may take two mbufs.
fn copy_inline(
    piece: &Piece<'_>,
    head: bool,
    set: &BufferSet,
    copy: &mut Chain,
) -> Result<(), AllocError> {
    let mut data = piece.data();
    let mut lead = piece.seg.lead() + piece.at;
    let mut head = head;
    while !data.is_empty() {
        let mut m = if head { set.header()? } else { set.plain()? };
        let room = m.capacity();
        let n = data.len().min(room);
        if m.set_lead(lead.min(room - n)).is_ok()
            && let Ok(dst) = m.append(n)
        {
            dst.copy_from_slice(&data[..n]);
        }
        data = &data[n..];
        lead = 0;
        head = false;
        copy.push_back(m);
    }
    Ok(())
}

/// The bytes in one new storage with `lead` bytes of headroom.
pub(crate) fn bytes(
    segments: Segments<'_>,
    have: usize,
    offset: usize,
    len: usize,
    lead: usize,
    set: &BufferSet,
) -> Result<Mbuf, CopyError> {
    OutOfRange::check(offset, len, have)?;
    let mut m = set.header_with(lead.saturating_add(len))?;
    // Capacity was asked for, so neither can fail.
    if m.set_lead(lead).is_ok()
        && let Ok(dst) = m.append(len)
    {
        gather(segments, have, offset, dst)?;
    }
    Ok(m)
}
