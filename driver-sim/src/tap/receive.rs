//! Receiving: one `readv` a frame, into buffers that stand ready; what a frame does not reach stays
//! for the next.

use std::io::IoSliceMut;

use mbuf::{AllocError, BufferSet, Mbuf};
use rustix::io::{Errno, readv};

use super::Tap;
use super::virtio;

/// Free bytes in front of a frame, so that the IP header behind the Ethernet header is aligned.
const LEAD: usize = 2;

/// Header mbufs taken at a time.
const REFILL: usize = 32;

/// Most pieces that a frame is scattered into.
const MAX_PIECES: usize = 16;

/// Buffers that stand ready for the next frame.
#[derive(Debug)]
pub(super) struct Spare {
    /// Sizes of the first piece and of those behind it.
    sizes: Vec<usize>,
    heads: Vec<Option<Mbuf>>,
    /// As many as there are sizes but the first, once filled; stretched to their whole room.
    rest: Vec<Option<Mbuf>>,
}

impl Spare {
    pub(super) fn new(sizes: &[usize]) -> Self {
        let sizes = match sizes {
            [] => vec![2048],
            some => some[..some.len().min(MAX_PIECES)].to_vec(),
        };
        Spare {
            rest: sizes[1..].iter().map(|_| None).collect(),
            sizes,
            heads: Vec::with_capacity(REFILL),
        }
    }

    /// Makes sure that a whole frame can be taken.
    fn fill(&mut self, set: &BufferSet) -> Result<(), AllocError> {
        if let Err(error) = self.fill_rest(set) {
            if self.heads.len() < 2 {
                return Err(error);
            }
            // What stands ready for later frames may be all that there is.
            self.heads.truncate(1);
            self.fill_rest(set)?;
        }
        match self.heads.is_empty() {
            true => self.fill_heads(set),
            false => Ok(()),
        }
    }

    fn fill_rest(&mut self, set: &BufferSet) -> Result<(), AllocError> {
        for (slot, size) in self.rest.iter_mut().zip(&self.sizes[1..]) {
            if slot.is_none() {
                *slot = Some(stretched(set.plain_with(*size)?, 0));
            }
        }
        Ok(())
    }

    /// A burst of header mbufs, or one where no more are to be had.
    fn fill_heads(&mut self, set: &BufferSet) -> Result<(), AllocError> {
        let mut burst = [const { None }; REFILL];
        if set.header_bulk(&mut burst).is_err() {
            burst[0] = Some(set.header()?);
        }
        for mut m in burst.into_iter().flatten() {
            match set.attach_cluster(&mut m, self.sizes[0]) {
                Ok(()) => self.heads.push(Some(stretched(m, LEAD))),
                Err(error) if self.heads.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// A frame of `n` bytes out of the buffers that it reached.
    fn take(&mut self, n: usize) -> Option<Mbuf> {
        let mut head = self.heads.pop().flatten()?;
        let mut left = n.saturating_sub(shorten(&mut head, n));
        for slot in &mut self.rest {
            if left == 0 {
                break;
            }
            let mut piece = slot.take()?;
            left -= shorten(&mut piece, left);
            head.cat(piece);
        }
        Some(head)
    }
}

/// A buffer of one segment whose data are all of its room behind `lead`.
fn stretched(mut m: Mbuf, lead: usize) -> Mbuf {
    let there = m.set_lead(lead).is_ok();
    let room = mbuf::Packet::first(&m).tailroom();
    let there = there && m.append(room).is_ok();
    debug_assert!(there, "its own room");
    m
}

/// Cuts a stretched buffer down to `n` bytes, or to what it has; says how many it has then.
fn shorten(m: &mut Mbuf, n: usize) -> usize {
    let have = mbuf::Packet::pkt_len(m);
    let keep = n.min(have);
    let cut = m.trim_back(have - keep);
    debug_assert!(cut.is_ok(), "not more than it has");
    keep
}

impl Tap {
    /// Receives frames into the empty slots at the front of `burst` until there are no more of
    /// either; says how many. Frames begin with their Ethernet header.
    ///
    /// What the kernel says of checksums is [said](mbuf::Packet::received) of the packet.
    ///
    /// # Errors
    ///
    /// [`AllocError`] when there is no buffer for a first frame; it stays with the kernel.
    #[doc(alias = "rte_eth_rx_burst")]
    pub fn receive(
        &mut self,
        burst: &mut [Option<Mbuf>],
        set: &BufferSet,
    ) -> Result<usize, AllocError> {
        let mut taken = 0;
        for slot in burst.iter_mut().take_while(|slot| slot.is_none()) {
            if let Err(error) = self.spare.fill(set) {
                return if taken > 0 { Ok(taken) } else { Err(error) };
            }
            match self.read_one() {
                Some(frame) => *slot = Some(frame),
                None => break,
            }
            taken += 1;
        }
        Ok(taken)
    }

    fn read_one(&mut self) -> Option<Mbuf> {
        let mut header = [0; virtio::LEN];
        let skip = if self.offload { virtio::LEN } else { 0 };
        let n = self.read_into(&mut header[..skip])?;
        let Some(len) = n.checked_sub(skip).filter(|&len| len > 0) else {
            self.stats.bad_reads += 1;
            return None;
        };
        let mut frame = self.spare.take(len)?;
        self.stats.received += 1;
        self.stats.received_bytes += len as u64;
        if self.offload {
            frame.set_received(virtio::received(&header));
        }
        Some(frame)
    }

    /// One frame into `header` and the spare buffers.
    fn read_into(&mut self, header: &mut [u8]) -> Option<usize> {
        if self.gone {
            return None;
        }
        let mut pieces = [const { None }; MAX_PIECES + 1];
        pieces[0] = Some(IoSliceMut::new(header));
        let buffers = self.spare.heads.last_mut().into_iter();
        let buffers = buffers.chain(&mut self.spare.rest).flatten();
        for (piece, m) in pieces[1..].iter_mut().zip(buffers) {
            *piece = m.data_mut().map(IoSliceMut::new);
        }
        let mut pieces = pieces.map(|piece| piece.unwrap_or_else(|| IoSliceMut::new(&mut [])));
        let read = loop {
            match readv(&self.fd, &mut pieces) {
                Err(Errno::INTR) => {}
                read => break read,
            }
        };
        match read {
            Ok(n) => Some(n),
            Err(Errno::AGAIN) => None,
            Err(error) => {
                self.stats.bad_reads += 1;
                self.note(error);
                None
            }
        }
    }
}
