//! Where the bytes of a receive go to: a user's slices, or a packet of the very mbufs.

use std::io::IoSliceMut;

use mbuf::{AllocError, BufferSet, CopyError, Mbuf, Packet, free_bulk};

use crate::buf::SockBuf;

/// Room for received bytes, filled from the front.
pub(super) trait Sink {
    /// Bytes that it still takes.
    fn left(&self) -> usize;

    /// Copies or refers to the first `n` bytes and leaves them where they are.
    fn peek(&mut self, sb: &SockBuf, n: usize, set: &BufferSet) -> Result<(), AllocError>;

    /// Takes the first `n` bytes out, or fewer. Fails only if that is none; nothing has changed then.
    fn take(&mut self, sb: &mut SockBuf, n: usize, set: &BufferSet) -> Result<(), AllocError>;

    /// What is to be done with what was taken, and needs no lock.
    fn settle(&mut self) {}
}

/// Slices, filled by copying: whole mbufs are taken out under the lock, and copied without it.
pub(super) struct Slices<'a, 'b> {
    slices: &'a mut [IoSliceMut<'b>],
    /// Bytes of all slices.
    room: usize,
    /// Bytes filled, or about to be.
    filled: usize,
    /// What was taken out and not copied yet, and where it goes.
    taken: Option<(Mbuf, usize)>,
}

impl<'a, 'b> Slices<'a, 'b> {
    pub(super) fn new(slices: &'a mut [IoSliceMut<'b>]) -> Self {
        Self {
            room: slices.iter().map(|slice| slice.len()).sum(),
            slices,
            filled: 0,
            taken: None,
        }
    }

    /// Copies bytes to where `at` of the room is.
    fn scatter(&mut self, mut at: usize, mut bytes: &[u8]) {
        for slice in self.slices.iter_mut() {
            if at >= slice.len() {
                at -= slice.len();
                continue;
            }
            let here = bytes.len().min(slice.len() - at);
            slice[at..at + here].copy_from_slice(&bytes[..here]);
            bytes = &bytes[here..];
            at = 0;
            if bytes.is_empty() {
                break;
            }
        }
    }
}

impl Sink for Slices<'_, '_> {
    fn left(&self) -> usize {
        self.room - self.filled
    }

    fn peek(&mut self, sb: &SockBuf, n: usize, _: &BufferSet) -> Result<(), AllocError> {
        let mut left = n;
        for seg in sb.segments() {
            let here = left.min(seg.len());
            self.scatter(self.filled, &seg.data()[..here]);
            self.filled += here;
            left -= here;
            if left == 0 {
                break;
            }
        }
        Ok(())
    }

    fn take(&mut self, sb: &mut SockBuf, n: usize, _: &BufferSet) -> Result<(), AllocError> {
        debug_assert!(self.taken.is_none(), "settled before");
        let whole = sb.take_whole(n);
        let len = whole.as_ref().map_or(0, Packet::pkt_len);
        self.taken = whole.map(|whole| (whole, self.filled));
        let rest = n - len;
        if rest > 0
            && let Some(first) = sb.first()
        {
            self.scatter(self.filled + len, &first.data()[..rest]);
            let cut = sb.cut(rest);
            debug_assert!(matches!(cut, Ok(None)), "less than the first mbuf");
        }
        self.filled += n;
        Ok(())
    }

    fn settle(&mut self) {
        let Some((taken, mut at)) = self.taken.take() else {
            return;
        };
        for seg in taken.segments() {
            self.scatter(at, seg.data());
            at += seg.len();
        }
        free_bulk(&mut [Some(taken)]);
    }
}

/// A packet: the mbufs themselves, as many whole ones as fit, or else part of the first by reference.
pub(super) struct Mbufs {
    /// Bytes that it still takes.
    pub(super) left: usize,
    pub(super) packet: Option<Mbuf>,
}

impl Mbufs {
    fn add(&mut self, more: Mbuf) {
        self.left -= more.pkt_len();
        match &mut self.packet {
            Some(packet) => packet.cat(more),
            None => self.packet = Some(more),
        }
    }
}

impl Sink for Mbufs {
    fn left(&self) -> usize {
        self.left
    }

    fn peek(&mut self, sb: &SockBuf, n: usize, set: &BufferSet) -> Result<(), AllocError> {
        match sb.ref_copy(0, n, set) {
            Ok(copy) => self.add(copy),
            Err(CopyError::Alloc(error)) => return Err(error),
            Err(CopyError::Range(_)) => debug_assert!(false, "{n} bytes of {}", sb.len()),
        }
        Ok(())
    }

    fn take(&mut self, sb: &mut SockBuf, n: usize, set: &BufferSet) -> Result<(), AllocError> {
        if let Some(whole) = sb.take_whole(n) {
            self.add(whole);
            return Ok(());
        }
        self.peek(sb, n, set)?;
        let cut = sb.cut(n);
        debug_assert!(matches!(cut, Ok(None)), "less than the first mbuf");
        Ok(())
    }
}
