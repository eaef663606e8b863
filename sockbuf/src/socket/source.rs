//! Where the bytes of a send come from: a user's slices, a packet, shared bytes.

use std::io::IoSlice;

use mbuf::{AllocError, BufferSet, Chain, EditError, Mbuf, Packet};

use crate::buf::SockBuf;

/// More than this is copied before the lock is taken again, so that the protocol need not wait for it.
pub(super) const LONG: usize = 8192;

/// Bytes to send, taken from the front.
pub(super) trait Source {
    /// Bytes that are not in the buffer yet.
    fn left(&self) -> usize;

    /// If `n` bytes are so many that they should be copied without the lock: fills the last mbuf's
    /// room with the first of them, and says how many of them are left.
    fn put_tail_of_long(&mut self, sb: &mut SockBuf, n: usize) -> Option<usize> {
        let _ = (sb, n);
        None
    }

    /// Copies the next `n` bytes to mbufs of their own. Fails only if not one could be copied.
    fn copy_ahead(&mut self, n: usize, set: &BufferSet) -> Result<(), AllocError> {
        let _ = (n, set);
        Ok(())
    }

    /// Appends up to `n` bytes; fewer when memory runs out, and fails if that is none.
    fn put(&mut self, sb: &mut SockBuf, n: usize, set: &BufferSet) -> Result<(), AllocError>;
}

/// Slices, copied.
pub(super) struct Slices<'a> {
    slices: &'a [IoSlice<'a>],
    /// Bytes of the first slice that are done with.
    used: usize,
    /// Bytes in the slices.
    left: usize,
    /// Bytes that were copied ahead; they come first.
    ready: Option<Mbuf>,
}

impl<'a> Slices<'a> {
    pub(super) fn new(slices: &'a [IoSlice<'a>]) -> Self {
        Self {
            slices,
            used: 0,
            left: slices.iter().map(|slice| slice.len()).sum(),
            ready: None,
        }
    }

    /// The next bytes that lie in one piece, at most `n`.
    fn piece(&mut self, n: usize) -> &'a [u8] {
        while let Some((first, behind)) = self.slices.split_first() {
            if self.used < first.len() {
                let rest = &first[self.used..];
                return &rest[..n.min(rest.len())];
            }
            (self.slices, self.used) = (behind, 0);
        }
        &[]
    }

    fn advance(&mut self, n: usize) {
        self.used += n;
        self.left -= n;
    }

    fn copy_to(&mut self, mut room: &mut [u8]) {
        while !room.is_empty() {
            let piece = self.piece(room.len());
            let (here, behind) = room.split_at_mut(piece.len());
            here.copy_from_slice(piece);
            self.advance(piece.len());
            room = behind;
        }
    }
}

impl Source for Slices<'_> {
    fn left(&self) -> usize {
        self.left + self.ready.as_ref().map_or(0, Packet::pkt_len)
    }

    fn put_tail_of_long(&mut self, sb: &mut SockBuf, n: usize) -> Option<usize> {
        if n <= LONG || self.ready.is_some() {
            return None;
        }
        let mut left = n;
        while left > 0 {
            let piece = self.piece(left);
            let fits = sb.fill_tail(piece);
            self.advance(fits);
            left -= fits;
            if fits < piece.len() {
                break;
            }
        }
        Some(left)
    }

    fn copy_ahead(&mut self, n: usize, set: &BufferSet) -> Result<(), AllocError> {
        let largest = set.largest_class().unwrap_or(0).max(set.plain_room());
        let (mut copied, mut left) = (Chain::new(), n);
        while left > 0 {
            let mut m = match set.plain_with(left.min(largest)) {
                Ok(m) => m,
                Err(error) if copied.is_empty() => return Err(error),
                Err(_) => break,
            };
            let here = left.min(m.first().tailroom());
            // A new mbuf's tail room was just asked for.
            if let Ok(room) = m.append(here) {
                self.copy_to(room);
            }
            left -= here;
            copied.push_back(m);
        }
        self.ready = copied.into_packet();
        Ok(())
    }

    fn put(&mut self, sb: &mut SockBuf, n: usize, set: &BufferSet) -> Result<(), AllocError> {
        if let Some(ready) = self.ready.take() {
            sb.append_stream(ready);
            return Ok(());
        }
        let mut left = n;
        while left > 0 {
            let piece = self.piece(left);
            match sb.fill(piece, set) {
                Ok(done) => {
                    self.advance(done);
                    left -= done;
                    if done < piece.len() {
                        break;
                    }
                }
                Err(error) if left == n => return Err(error),
                Err(_) => break,
            }
        }
        Ok(())
    }
}

/// A packet, whose mbufs are linked.
pub(super) struct Whole(pub(super) Option<Mbuf>);

impl Source for Whole {
    fn left(&self) -> usize {
        self.0.as_ref().map_or(0, Packet::pkt_len)
    }

    /// Where there is no mbuf to refer to the second part of a cluster, the packet is cut before it.
    fn put(&mut self, sb: &mut SockBuf, n: usize, set: &BufferSet) -> Result<(), AllocError> {
        let Some(mut packet) = self.0.take() else {
            return Ok(());
        };
        if n < packet.pkt_len() {
            match packet.split(n, set) {
                Ok(rest) => self.0 = Some(rest),
                Err(error) => {
                    let mut whole = Chain::new();
                    whole.push_back(packet);
                    let front = whole.take_whole(n);
                    self.0 = whole.into_packet();
                    return match (front, error) {
                        (Some(front), _) => {
                            sb.append_stream(front);
                            Ok(())
                        }
                        (None, EditError::Alloc(error)) => Err(error),
                        (None, EditError::Range(_)) => Ok(()),
                    };
                }
            }
        }
        sb.append_stream(packet);
        Ok(())
    }
}

/// Shared bytes, as external storage: no byte is copied, unless there are few.
#[cfg(feature = "bytes")]
pub(super) struct Shared<'a>(pub(super) &'a mut bytes::Bytes);

#[cfg(feature = "bytes")]
impl Source for Shared<'_> {
    fn left(&self) -> usize {
        self.0.len()
    }

    fn put(&mut self, sb: &mut SockBuf, n: usize, set: &BufferSet) -> Result<(), AllocError> {
        use bytes::Buf;
        if n <= set.plain_room() {
            let done = sb.fill(&self.0[..n], set)?;
            self.0.advance(done);
            return Ok(());
        }
        let n = n.min(LONGEST_EXTERNAL);
        let mut m = set.plain()?;
        let attached = m.attach(mbuf::External::from_owner(self.0.slice(..n)));
        debug_assert!(attached.is_ok(), "empty, inline, and not too long");
        sb.append_stream(m);
        self.0.advance(n);
        Ok(())
    }
}

/// Most bytes of one external storage.
#[cfg(feature = "bytes")]
const LONGEST_EXTERNAL: usize = 1 << 30;
