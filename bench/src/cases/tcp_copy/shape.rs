//! What the send buffers look like.

use crate::cases::send_path::{Buffers, Input, MSS, Step, WINDOW, fill, tcb};
use mbuf::{AllocError, BufferSet, CreateError};
use tcp_output::{Seq, Tcb};

/// Send buffers that are filled for a pass: with what else is touched they fit into a second level
/// cache of 2 MB. Filling and emptying the pipe adds one send's time on the side that waits.
const SENDS: usize = 12;

/// A send buffer of one packet's payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// 45 clusters of 2 KB with 1448 bytes each: what a splice leaves.
    Many45,
    /// A header mbuf with 100 bytes before a 64 KB cluster. The cluster is full but for what would
    /// go beyond 45 segments, so that the send is one packet.
    Hdr100,
    /// A 64 KB cluster with 10 bytes before 40 clusters of 2 KB with 1448 bytes each, but for the
    /// last, which has the 10 bytes less that make it 40 segments.
    Big10,
    /// 100 bytes in a plain mbuf, already sent, before a 16 KB cluster with 14480.
    Off100,
    /// A full cluster of 16 KB, already sent, before 181 plain mbufs of 8 bytes each.
    Sent16k,
}

/// One mbuf of a send buffer.
#[derive(Clone, Copy)]
struct Piece {
    /// Its cluster's class; 0 for none.
    class: usize,
    header: bool,
    len: usize,
}

const fn piece(class: usize, len: usize) -> Piece {
    Piece {
        class,
        header: false,
        len,
    }
}

impl Shape {
    pub(super) const ALL: [Shape; 5] = [
        Shape::Many45,
        Shape::Hdr100,
        Shape::Big10,
        Shape::Off100,
        Shape::Sent16k,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Shape::Many45 => "many45",
            Shape::Hdr100 => "hdr100-64k",
            Shape::Big10 => "64k10-2k40",
            Shape::Off100 => "off100-16k",
            Shape::Sent16k => "sent16k-8x181",
        }
    }

    /// Timed passes of a round: a fifth of a millisecond or more.
    pub(super) fn passes(self) -> usize {
        match self {
            Shape::Many45 | Shape::Big10 => 8,
            Shape::Hdr100 => 12,
            Shape::Off100 => 30,
            Shape::Sent16k => 4,
        }
    }

    fn pieces(self) -> Vec<Piece> {
        match self {
            Shape::Many45 => vec![piece(2048, MSS); 45],
            Shape::Hdr100 => vec![
                Piece {
                    header: true,
                    ..piece(0, 100)
                },
                piece(65536, 45 * MSS - 100),
            ],
            Shape::Big10 => {
                let mut pieces = vec![piece(65536, 10)];
                pieces.extend([piece(2048, MSS); 39]);
                pieces.push(piece(2048, MSS - 10));
                pieces
            }
            Shape::Off100 => vec![piece(0, 100), piece(16384, 10 * MSS)],
            Shape::Sent16k => {
                let mut pieces = vec![piece(16384, 16384)];
                pieces.extend([piece(0, 8); 181]);
                pieces
            }
        }
    }

    /// Bytes at the front that are sent already.
    fn sent(self) -> usize {
        match self {
            Shape::Off100 => 100,
            Shape::Sent16k => 16384,
            _ => 0,
        }
    }

    /// Pools with twice as many objects as are out at most: a quarter of them may lie in the cache
    /// of either core. On huge pages where there are some, as who sends at such rates has them.
    pub(super) fn set(self) -> Result<BufferSet, CreateError> {
        let pieces = self.pieces();
        let of = |class| pieces.iter().filter(|p| p.class == class).count();
        let flying = (WINDOW + 1) * (pieces.len() + 2);
        let mbufs = 2 * (SENDS * pieces.len() + flying);
        // A packet, or its copy by the driver, may be in any class.
        let clusters = |class| 2 * (SENDS * of(class) + 2 * (WINDOW + 1));
        [2048, 4096, 16384, 65536]
            .into_iter()
            .fold(BufferSet::bsd_builder(mbufs, 8), |b, class| {
                b.class(class, clusters(class))
            })
            .configure(|pool| pool.huge_pages(true))
            .build()
    }
}

/// The input of a pass: [`SENDS`] send buffers of one shape.
pub(super) struct Sends {
    shape: Shape,
    pieces: Vec<Piece>,
    data: Vec<u8>,
}

impl Sends {
    pub(super) fn new(shape: Shape) -> Self {
        let pieces = shape.pieces();
        let len: usize = pieces.iter().map(|p| p.len).sum();
        let data = (0..len).map(|i| (i % 251) as u8).collect();
        Sends {
            shape,
            pieces,
            data,
        }
    }
}

impl Input for Sends {
    fn steps(&self) -> Vec<Step> {
        (0..SENDS).map(|conn| Step { conn, frames: 0 }).collect()
    }

    fn connections(&self) -> Vec<Tcb> {
        (0..SENDS).filter_map(|i| tcb(i, Seq(1)).ok()).collect()
    }

    fn ring(&self, _: usize) -> usize {
        0
    }

    fn bytes(&self) -> usize {
        SENDS * (self.data.len() - self.shape.sent())
    }

    fn prepare(
        &self,
        _: usize,
        buffers: Buffers<'_>,
        set: &BufferSet,
        lead: usize,
    ) -> Result<(), AllocError> {
        let mut at = 0;
        for piece in &self.pieces {
            let mut m = if piece.header {
                set.header()?
            } else {
                set.plain()?
            };
            if piece.class > 0 {
                set.attach_cluster(&mut m, piece.class)?;
            }
            fill(&mut m, lead, &self.data[at..at + piece.len]);
            at += piece.len;
            buffers.queued.append_stream(m);
        }
        let sent = buffers.tcb.una + self.shape.sent() as u32;
        buffers.tcb.send.nxt = sent;
        buffers.tcb.send.max = sent;
        Ok(())
    }
}
