//! Appending packets of one cluster each, alone and with dropping them again.
//!
//! What is linked costs as much whatever it holds; what is packed is copied, and its mbuf freed at once.

use super::cell::{self, Desk, Fault, Variant, Way, variant};
use super::stock::{HIWAT, Row, holds, packet, set_of};
use super::{BUFFERS, PACKETS};
use crate::cell::{Build, Counts};
use mbuf::{BufferSet, Mbuf};
use sockbuf::SockBuf;
use std::hint::black_box;
use std::marker::PhantomData;

/// Packets of a pass.
const ALL: usize = BUFFERS * PACKETS;
const PASSES: usize = 16;

pub(super) fn alone(len: usize) -> Build {
    cell::build(move || Appends::new(len), variants::<false>, PASSES)
}

pub(super) fn pair(len: usize) -> Build {
    cell::build(move || Appends::new(len), variants::<true>, PASSES)
}

fn variants<const PAIR: bool>() -> Vec<Variant<Appends>> {
    vec![
        variant::<By<Stream, PAIR>>(),
        variant::<By<Packed, PAIR>>(),
        variant::<Floor<PAIR>>(),
    ]
}

struct Appends {
    set: BufferSet,
    /// The packets that are appended.
    slots: Vec<Option<Mbuf>>,
    buffers: [SockBuf; BUFFERS],
    row: Row,
    /// Where the floor's packets are dropped to.
    gone: Row,
    /// Bytes of a packet.
    len: usize,
    /// Counted while the pass ran.
    held: Held,
}

/// What the buffers held when all was appended.
#[derive(Default)]
struct Held {
    bytes: usize,
    charge: usize,
}

impl Appends {
    fn new(len: usize) -> Result<Self, Fault> {
        Ok(Appends {
            set: set_of(ALL, 1)?,
            slots: (0..ALL).map(|_| None).collect(),
            buffers: std::array::from_fn(|_| SockBuf::new(HIWAT)),
            row: Row::new(ALL),
            gone: Row::new(ALL),
            len,
            held: Held::default(),
        })
    }

    fn fill(&mut self) -> Result<(), Fault> {
        self.held = Held::default();
        for (number, slot) in self.slots.iter_mut().enumerate() {
            *slot = Some(packet(&self.set, self.len, number)?);
        }
        Ok(())
    }

    /// Whether the pass took all packets and counted all bytes.
    fn all_taken(&self) -> Result<f64, Fault> {
        if self.slots.iter().any(Option::is_some) {
            return Err("packets were not appended".into());
        }
        if self.held.bytes != ALL * self.len {
            return Err(format!("{} bytes of {}", self.held.bytes, ALL * self.len).into());
        }
        Ok(ALL as f64)
    }
}

impl Desk for Appends {
    fn set(&self) -> &BufferSet {
        &self.set
    }

    fn resting(&self) -> usize {
        0
    }

    fn into_set(self) -> BufferSet {
        self.set
    }
}

/// A call that appends.
trait Append: 'static {
    const NAME: &'static str;
    fn append(sb: &mut SockBuf, packet: Mbuf);
}

struct Stream;

impl Append for Stream {
    const NAME: &'static str = "stream";
    #[inline(always)]
    fn append(sb: &mut SockBuf, packet: Mbuf) {
        sb.append_stream(packet);
    }
}

struct Packed;

impl Append for Packed {
    const NAME: &'static str = "packed";
    #[inline(always)]
    fn append(sb: &mut SockBuf, packet: Mbuf) {
        sb.append_packed(packet);
    }
}

/// Appends by `A`; if `PAIR`, drops all again.
struct By<A, const PAIR: bool>(PhantomData<A>);

impl<A: Append, const PAIR: bool> Way for By<A, PAIR> {
    type Desk = Appends;
    const NAME: &'static str = A::NAME;

    fn prepare(desk: &mut Appends) -> Result<(), Fault> {
        desk.fill()
    }

    #[inline(always)]
    fn pass(desk: &mut Appends) -> Result<(), Fault> {
        for (sb, slots) in desk.buffers.iter_mut().zip(desk.slots.chunks_mut(PACKETS)) {
            for packet in slots.iter_mut().filter_map(Option::take) {
                A::append(sb, packet);
            }
            desk.held.bytes += sb.len();
            desk.held.charge += sb.charge();
            if PAIR {
                sb.drop_front(sb.len())?;
            }
        }
        Ok(())
    }

    fn settle(desk: &mut Appends) -> Result<f64, Fault> {
        for (at, sb) in desk.buffers.iter_mut().enumerate() {
            let first = at * PACKETS;
            let numbers = if PAIR { 0..0 } else { first..first + PACKETS };
            holds(sb, desk.len, numbers)?;
            sb.drop_front(sb.len())?;
        }
        desk.all_taken()
    }

    fn counts(desk: &mut Appends) -> Result<Counts, Fault> {
        let Held { bytes, charge } = desk.held;
        Ok(Counts::new().with_median("charge_per_byte", charge as f64 / bytes as f64))
    }
}

/// Moves the packets' pointers into a row and counts; if `PAIR`, moves them on again.
struct Floor<const PAIR: bool>;

impl<const PAIR: bool> Way for Floor<PAIR> {
    type Desk = Appends;
    const NAME: &'static str = "floor";

    fn prepare(desk: &mut Appends) -> Result<(), Fault> {
        desk.fill()
    }

    #[inline(always)]
    fn pass(desk: &mut Appends) -> Result<(), Fault> {
        desk.row.take_from(&mut desk.slots);
        desk.held.bytes += desk.row.bytes();
        black_box(&mut desk.row);
        if PAIR {
            desk.row.move_to(0, &mut desk.gone, usize::MAX);
            black_box(&mut desk.gone);
        }
        Ok(())
    }

    fn settle(desk: &mut Appends) -> Result<f64, Fault> {
        let Appends { row, gone, .. } = desk;
        if PAIR {
            row.close()?;
            std::mem::swap(row, gone);
        }
        row.holds(0..ALL)?;
        row.clear();
        desk.all_taken()
    }
}
