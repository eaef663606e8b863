//! Reading and copying a range of a chain: piece by piece, gathered into a slice, by reference, or
//! into one new storage.

use crate::chain::Chain;
use crate::error::{AllocError, CopyError, NoRoom, OutOfRange, ReadError};
use crate::handle::Mbuf;
use crate::segment::{Segment, Segments};
use crate::set::BufferSet;

/// The pieces of `[offset, offset + len)`, one per segment that it touches.
#[derive(Clone)]
pub(crate) struct Pieces<'a> {
    segments: Segments<'a>,
    skip: usize,
    left: usize,
}

pub(crate) struct Piece<'a> {
    pub(crate) seg: Segment<'a>,
    /// Start within the segment's data.
    pub(crate) at: usize,
    pub(crate) len: usize,
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

/// The range lies within the chain.
pub(crate) fn pieces(segments: Segments<'_>, offset: usize, len: usize) -> Pieces<'_> {
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

/// The bytes of a range of a packet, as slices, first to last; no slice is empty. Made by
/// [`Packet::pieces`](crate::Packet::pieces).
#[derive(Clone)]
pub struct ByteSlices<'a>(pub(crate) Pieces<'a>);

impl<'a> Iterator for ByteSlices<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        Some(self.0.next()?.data())
    }
}

/// The segment that holds byte `offset` of a chain of `have` bytes, and the byte's place in it; at
/// `have` the end of the last segment.
pub(crate) fn locate(
    segments: Segments<'_>,
    have: usize,
    offset: usize,
) -> Result<(Segment<'_>, usize), OutOfRange> {
    OutOfRange::check(offset, 0, have)?;
    let out = OutOfRange {
        offset,
        len: 0,
        have,
    };
    let mut rest = offset;
    let mut end = Err(out);
    for seg in segments {
        if rest < seg.len() {
            return Ok((seg, rest));
        }
        rest -= seg.len();
        end = Ok((seg, seg.len()));
    }
    end
}

/// `len` bytes at `offset`: where they lie when one segment has them all, else gathered in `scratch`.
pub(crate) fn read<'a>(
    segments: Segments<'a>,
    have: usize,
    offset: usize,
    len: usize,
    scratch: &'a mut [u8],
) -> Result<&'a [u8], ReadError> {
    OutOfRange::check(offset, len, have)?;
    let (seg, at) = locate(segments.clone(), have, offset)?;
    if let Some(data) = seg.data()[at..].get(..len) {
        return Ok(data);
    }
    let room = scratch.len();
    let Some(dst) = scratch.get_mut(..len) else {
        return Err(ReadError::Scratch(NoRoom::TooSmall {
            asked: len,
            have: room,
        }));
    };
    gather(segments, have, offset, dst)?;
    Ok(dst)
}

/// Copies `dst.len()` bytes from `offset` of a chain that holds `have` bytes.
pub(crate) fn gather(
    segments: Segments<'_>,
    have: usize,
    offset: usize,
    dst: &mut [u8],
) -> Result<(), OutOfRange> {
    OutOfRange::check(offset, dst.len(), have)?;
    fill(segments, offset, dst);
    Ok(())
}

/// Copies `dst.len()` bytes from `skip` on, which are there. Returns the segment that the last of
/// them is in.
pub(crate) fn fill<'a>(
    segments: Segments<'a>,
    skip: usize,
    mut dst: &mut [u8],
) -> Option<Segment<'a>> {
    let mut last = None;
    for piece in pieces(segments, skip, dst.len()) {
        let (here, rest) = std::mem::take(&mut dst).split_at_mut(piece.len);
        here.copy_from_slice(piece.data());
        dst = rest;
        last = Some(piece.seg);
    }
    last
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
    let (copy, _) = refer(segments, offset, len, headed, set)?;
    Ok(copy)
}

/// As [`reference`], of `len` bytes from `skip` on, which are there; `headed`: into a header mbuf
/// first. Returns also the segment that the last of them is in.
#[inline]
pub(crate) fn refer<'a>(
    segments: Segments<'a>,
    skip: usize,
    len: usize,
    headed: bool,
    set: &BufferSet,
) -> Result<(Mbuf, Option<Segment<'a>>), AllocError> {
    let mut copy = Chain::new();
    let mut last = None;
    for piece in pieces(segments, skip, len) {
        let head = headed && copy.is_empty();
        copy_piece(&piece, head, set, &mut copy)?;
        last = Some(piece.seg);
    }
    match copy.into_packet() {
        Some(packet) => Ok((packet, last)),
        None => Ok((set.header()?, None)),
    }
}

/// Puts a copy of `piece` behind `copy`: by reference, or its bytes when they are inline. The first
/// mbuf is a header mbuf when `head` says so.
pub(crate) fn copy_piece(
    piece: &Piece<'_>,
    head: bool,
    set: &BufferSet,
    copy: &mut Chain,
) -> Result<(), AllocError> {
    if piece.seg.counted().is_none() {
        return copy_inline(piece, head, set, copy);
    }
    let mut m = if head { set.header()? } else { set.plain()? };
    m.refer_to(piece.seg, piece.at, piece.len);
    m.set_hops(piece.seg.hops());
    copy.push_back(m);
    Ok(())
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
        m.set_hops(piece.seg.hops());
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
    let travelled = pieces(segments.clone(), offset, len).map(|piece| piece.seg.hops());
    m.set_hops(travelled.max().unwrap_or(0));
    // Capacity was asked for, so neither can fail.
    if m.set_lead(lead).is_ok()
        && let Ok(dst) = m.append(len)
    {
        gather(segments, have, offset, dst)?;
    }
    Ok(m)
}
