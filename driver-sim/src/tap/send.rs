//! Sending: a packet's segments as they lie, behind a virtio-net header, in one `writev`.

use std::io::IoSlice;

use mbuf::{Packet, Segments, free_bulk};
use rustix::io::{Errno, writev};

use super::virtio::{self, Front};
use super::{Tap, TapStats};

/// Pieces of one write; a packet of more is copied together first. Linux takes 1024.
const MAX_PIECES: usize = 128;

/// What became of one frame.
enum Wrote {
    Sent,
    Dropped,
    /// Not now.
    Busy,
}

impl Tap {
    /// Sends a burst: takes packets from the front until the kernel wants no more, and says how many
    /// entries it took (`None` entries count, and so do packets that were dropped). These are `None`
    /// now and their packets freed; the rest is as it was. An interface that is gone takes and drops
    /// all.
    #[doc(alias = "rte_eth_tx_burst")]
    pub fn send<P: Packet>(&mut self, burst: &mut [Option<P>]) -> usize {
        let mut taken = 0;
        for slot in &*burst {
            if let Some(packet) = slot {
                if let Wrote::Busy = self.send_one(packet) {
                    self.stats.busy += 1;
                    break;
                }
                self.stats.given += 1;
            }
            taken += 1;
        }
        free_bulk(&mut burst[..taken]);
        taken
    }

    fn send_one<P: Packet>(&mut self, packet: &P) -> Wrote {
        if packet.pkt_len() > self.max_frame {
            return self.drop_one(|stats| &mut stats.dropped_oversize);
        }
        let ask = packet.offload();
        let asks = ask.flags.intersects(virtio::WORK);
        if !self.offload {
            return match asks {
                true => self.drop_one(|stats| &mut stats.dropped_unsupported),
                false => self.write(&[], packet.segments(), packet.nsegs(), 0),
            };
        }
        let front = match asks {
            false => Ok(Front::plain()),
            true => Front::of(&ask, packet.pkt_len(), |headers| {
                copy_front(packet.segments(), headers);
            }),
        };
        match front {
            Ok(front) => self.write(
                front.bytes(),
                packet.segments(),
                packet.nsegs(),
                front.taken,
            ),
            Err(_) => self.drop_one(|stats| &mut stats.dropped_unsupported),
        }
    }

    /// One frame that lies in one piece and asks for nothing; lost when the kernel does not want it.
    pub(super) fn send_bytes(&mut self, frame: &[u8]) {
        self.stats.given += 1;
        if frame.len() > self.max_frame {
            self.stats.dropped_oversize += 1;
            return;
        }
        let header = [0; virtio::LEN];
        let header = &header[..if self.offload { virtio::LEN } else { 0 }];
        let pieces = [IoSlice::new(header), IoSlice::new(frame)];
        if let Wrote::Busy = self.write_pieces(&pieces, header.len() + frame.len()) {
            self.stats.dropped_refused += 1;
        }
    }

    /// `front`, and the segments but for their first `skip` bytes, which stand in `front`.
    fn write(&mut self, front: &[u8], segments: Segments<'_>, nsegs: usize, skip: usize) -> Wrote {
        if nsegs >= MAX_PIECES {
            return self.write_copied(front, segments, skip);
        }
        let mut pieces = [IoSlice::new(&[]); MAX_PIECES];
        let mut len = front.len();
        pieces[0] = IoSlice::new(front);
        let mut n = 1;
        for piece in behind(segments, skip) {
            pieces[n] = IoSlice::new(piece);
            len += piece.len();
            n += 1;
        }
        self.write_pieces(&pieces[..n], len)
    }

    #[cold]
    fn write_copied(&mut self, front: &[u8], segments: Segments<'_>, skip: usize) -> Wrote {
        let mut frame = std::mem::take(&mut self.scratch);
        frame.clear();
        frame.extend_from_slice(front);
        behind(segments, skip).for_each(|piece| frame.extend_from_slice(piece));
        let wrote = self.write_pieces(&[IoSlice::new(&frame)], frame.len());
        self.scratch = frame;
        wrote
    }

    fn write_pieces(&mut self, pieces: &[IoSlice<'_>], len: usize) -> Wrote {
        if self.gone {
            return self.drop_one(|stats| &mut stats.dropped_gone);
        }
        loop {
            return match writev(&self.fd, pieces) {
                Ok(n) if n == len => {
                    self.stats.sent += 1;
                    let header = if self.offload { virtio::LEN } else { 0 };
                    self.stats.sent_bytes += (len - header) as u64;
                    Wrote::Sent
                }
                Ok(_) => self.drop_one(|stats| &mut stats.dropped_short),
                Err(Errno::INTR) => continue,
                // A socket's queue says `NOBUFS` for the same.
                Err(Errno::AGAIN | Errno::NOBUFS) => Wrote::Busy,
                Err(Errno::MSGSIZE) => self.drop_one(|stats| &mut stats.dropped_oversize),
                Err(error) => {
                    self.note(error);
                    match self.gone {
                        true => self.drop_one(|stats| &mut stats.dropped_gone),
                        false => self.drop_one(|stats| &mut stats.dropped_refused),
                    }
                }
            };
        }
    }

    #[cold]
    fn drop_one(&mut self, counter: impl FnOnce(&mut TapStats) -> &mut u64) -> Wrote {
        *counter(&mut self.stats) += 1;
        Wrote::Dropped
    }
}

/// The bytes of `segments` behind the first `skip`, without empty pieces.
fn behind<'a>(segments: Segments<'a>, skip: usize) -> impl Iterator<Item = &'a [u8]> {
    let mut skip = skip;
    segments
        .map(move |segment| {
            let data = segment.data();
            let n = skip.min(data.len());
            skip -= n;
            &data[n..]
        })
        .filter(|piece| !piece.is_empty())
}

/// The first bytes of `segments`; there are as many as `front` has room for.
fn copy_front(segments: Segments<'_>, front: &mut [u8]) {
    let mut rest = front;
    for segment in segments {
        let n = rest.len().min(segment.len());
        let (now, later) = rest.split_at_mut(n);
        now.copy_from_slice(&segment.data()[..n]);
        rest = later;
        if rest.is_empty() {
            return;
        }
    }
}
