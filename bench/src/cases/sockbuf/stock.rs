//! Packets for the cells, each with its number at the front, and the row of packets that floors use.

use super::cell::Fault;
use mbuf::{BufferSet, Mbuf, Packet, Segment};
use sockbuf::SockBuf;

/// Size of a packet's cluster.
const CLUSTER: usize = 2048;
/// Bytes of the number at a packet's front.
pub(super) const WORD: usize = 8;
/// Limit of buffers where it must not be what stops anything.
pub(super) const HIWAT: usize = 8 << 20;

/// Pools with `packets` packets of one cluster each, as many mbufs again, and `large` clusters of each
/// other class.
pub(super) fn set_of(packets: usize, large: usize) -> Result<BufferSet, Fault> {
    let set = BufferSet::bsd_builder(2 * packets + 64, large)
        .class(CLUSTER, packets + 64)
        .configure(|pool| pool.huge_pages(true))
        .build()?;
    Ok(set)
}

/// A packet of one cluster with these bytes.
pub(super) fn full(set: &BufferSet, bytes: &[u8]) -> Result<Mbuf, Fault> {
    let mut m = set.header_with(CLUSTER)?;
    m.append(bytes.len())?.copy_from_slice(bytes);
    Ok(m)
}

/// A packet of one cluster with `len` bytes, of which the first say `number`; the others are what they were.
pub(super) fn packet(set: &BufferSet, len: usize, number: usize) -> Result<Mbuf, Fault> {
    let mut m = set.header_with(CLUSTER)?;
    m.append(len)?[..WORD].copy_from_slice(&number.to_ne_bytes());
    Ok(m)
}

/// The number at the front of a segment.
#[inline(always)]
pub(super) fn number_of(seg: Segment<'_>) -> Option<usize> {
    let word = seg.data().first_chunk::<WORD>()?;
    Some(usize::from_ne_bytes(*word))
}

/// Whether `sb` holds packets of `len` bytes with these numbers, and nothing else.
pub(super) fn holds(
    sb: &SockBuf,
    len: usize,
    numbers: impl ExactSizeIterator<Item = usize>,
) -> Result<(), Fault> {
    if sb.len() != numbers.len() * len {
        return Err(format!("{} packets, but {} bytes", numbers.len(), sb.len()).into());
    }
    for (at, number) in numbers.enumerate() {
        let mut word = [0; WORD];
        sb.copy_to(at * len, &mut word)?;
        if usize::from_ne_bytes(word) != number {
            return Err(format!("packet {at} is not number {number}").into());
        }
    }
    Ok(())
}

/// Packets side by side, as many as it was made for: what a buffer would be if order and counters were all.
#[derive(Default)]
pub(super) struct Row {
    slots: Vec<Option<Mbuf>>,
    /// The first `len` slots hold a packet.
    len: usize,
    bytes: usize,
    charge: usize,
}

impl Row {
    pub(super) fn new(packets: usize) -> Self {
        Row {
            slots: (0..packets).map(|_| None).collect(),
            ..Row::default()
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Moves packets in, counting what they hold. Those that find no slot stay.
    #[inline(always)]
    pub(super) fn take_from(&mut self, slots: &mut [Option<Mbuf>]) {
        let moved = moved(slots, &mut self.slots[self.len..], usize::MAX);
        self.len += moved.packets;
        self.bytes += moved.bytes;
        self.charge += moved.charge;
    }

    /// Moves the packets from `from` on into `to`, as many as hold at most `max` bytes, and says how many
    /// those are. They leave holes.
    #[inline(always)]
    pub(super) fn move_to(&mut self, from: usize, to: &mut Row, max: usize) -> usize {
        let moved = moved(
            &mut self.slots[from..self.len],
            &mut to.slots[to.len..],
            max,
        );
        self.bytes -= moved.bytes;
        self.charge -= moved.charge;
        to.len += moved.packets;
        to.bytes += moved.bytes;
        to.charge += moved.charge;
        moved.packets
    }

    /// Forgets the holes, of which a row is made that was moved from to its end.
    pub(super) fn close(&mut self) -> Result<(), Fault> {
        let holes = self.slots[..self.len].iter().all(Option::is_none);
        if !holes || (self.bytes, self.charge) != (0, 0) {
            return Err(format!("{} bytes were not moved", self.bytes).into());
        }
        self.len = 0;
        Ok(())
    }

    /// Whether its packets have these numbers.
    pub(super) fn holds(
        &self,
        mut numbers: impl ExactSizeIterator<Item = usize>,
    ) -> Result<(), Fault> {
        if self.len != numbers.len() {
            return Err(format!("{} packets instead of {}", self.len, numbers.len()).into());
        }
        let mut packets = self.slots[..self.len].iter();
        let same = packets.all(|m| m.as_ref().and_then(|m| number_of(m.first())) == numbers.next());
        if !same {
            return Err("packets of another order".into());
        }
        Ok(())
    }

    /// Frees all packets.
    pub(super) fn clear(&mut self) {
        self.slots.fill_with(|| None);
        (self.len, self.bytes, self.charge) = (0, 0, 0);
    }
}

/// What changed its place.
#[derive(Default)]
struct Moved {
    packets: usize,
    bytes: usize,
    charge: usize,
}

/// Moves packets to the holes at `to`, as many as hold at most `max` bytes.
#[inline(always)]
fn moved(from: &mut [Option<Mbuf>], to: &mut [Option<Mbuf>], max: usize) -> Moved {
    let mut moved = Moved::default();
    for (from, to) in from.iter_mut().zip(to) {
        let Some(m) = from else { break };
        let bytes = moved.bytes + m.pkt_len();
        if bytes > max {
            break;
        }
        moved.bytes = bytes;
        moved.charge += m.first().charge();
        moved.packets += 1;
        // Rather than an assignment, which would look for a packet to free.
        std::mem::swap(from, to);
    }
    moved
}
