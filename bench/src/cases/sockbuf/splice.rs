//! Moving 1 MB from one buffer to another, 64 KB a pass: as mbufs, and as bytes read and written.

use super::cell::{self, Desk, Fault, Way, variant};
use super::stock::{HIWAT, Row, holds, packet, set_of};
use super::{MSS, kb};
use crate::cell::Build;
use mbuf::BufferSet;
use sockbuf::SockBuf;
use sockbuf::splice::move_whole;
use std::hint::black_box;

/// Bytes that are moved at once, at most.
pub(super) const PASS: usize = 65536;
/// Packets that are moved in all.
const PACKETS: usize = (1 << 20) / MSS + 1;
/// Bytes that are moved in all.
const ALL: usize = PACKETS * MSS;
/// Back and forth.
const PASSES: usize = 32;

pub(super) fn build() -> Build {
    let variants = || {
        vec![
            variant::<Ours>(),
            variant::<ReadWrite>(),
            variant::<Floor>(),
        ]
    };
    cell::build(Sides::new, variants, PASSES)
}

struct Sides {
    set: BufferSet,
    from: SockBuf,
    to: SockBuf,
    row: Row,
    other: Row,
    /// What is read, before it is written.
    user: Vec<u8>,
}

impl Sides {
    fn new() -> Result<Self, Fault> {
        let mut sides = Sides {
            set: set_of(3 * PACKETS, ALL / PASS + 8)?,
            from: SockBuf::with_limits(HIWAT, 2 * HIWAT),
            to: SockBuf::with_limits(HIWAT, 2 * HIWAT),
            row: Row::new(PACKETS),
            other: Row::new(PACKETS),
            user: vec![0; PASS],
        };
        sides.fill()?;
        for number in 0..PACKETS {
            let packet = packet(&sides.set, MSS, number)?;
            sides.row.take_from(&mut [Some(packet)]);
        }
        Ok(sides)
    }

    fn fill(&mut self) -> Result<(), Fault> {
        for number in 0..PACKETS {
            self.from.append_stream(packet(&self.set, MSS, number)?);
        }
        Ok(())
    }

    /// Whether all bytes are on the other side.
    fn all_moved(&self) -> Result<f64, Fault> {
        if !self.from.is_empty() {
            return Err(format!("{} bytes were not moved", self.from.len()).into());
        }
        holds(&self.to, MSS, 0..PACKETS)?;
        Ok(kb(ALL))
    }
}

impl Desk for Sides {
    fn set(&self) -> &BufferSet {
        &self.set
    }

    fn resting(&self) -> usize {
        2 * (2 * PACKETS)
    }

    fn into_set(self) -> BufferSet {
        self.set
    }
}

/// `move_whole`.
struct Ours;

impl Way for Ours {
    type Desk = Sides;
    const NAME: &'static str = "ours";

    fn prepare(_: &mut Sides) -> Result<(), Fault> {
        Ok(())
    }

    #[inline(always)]
    fn pass(desk: &mut Sides) -> Result<(), Fault> {
        while move_whole(&mut desk.from, &mut desk.to, PASS) > 0 {}
        Ok(())
    }

    fn settle(desk: &mut Sides) -> Result<f64, Fault> {
        let moved = desk.all_moved()?;
        std::mem::swap(&mut desk.from, &mut desk.to);
        Ok(moved)
    }
}

/// Reads and writes, as a program does that cannot splice.
struct ReadWrite;

impl Way for ReadWrite {
    type Desk = Sides;
    const NAME: &'static str = "copy";

    fn passes(_: &Sides, _: usize) -> usize {
        1
    }

    fn prepare(_: &mut Sides) -> Result<(), Fault> {
        Ok(())
    }

    #[inline(always)]
    fn pass(desk: &mut Sides) -> Result<(), Fault> {
        while !desk.from.is_empty() {
            let n = desk.from.len().min(PASS);
            let bytes = &mut desk.user[..n];
            desk.from.copy_to(0, bytes)?;
            let written = desk.to.write(bytes, &desk.set)?;
            desk.from.drop_front(written)?;
        }
        Ok(())
    }

    fn settle(desk: &mut Sides) -> Result<f64, Fault> {
        let moved = desk.all_moved()?;
        desk.to.drop_front(ALL)?;
        desk.fill()?;
        Ok(moved)
    }
}

/// Moves packets' pointers from one row to another, counting what goes.
struct Floor;

impl Way for Floor {
    type Desk = Sides;
    const NAME: &'static str = "floor";

    fn prepare(_: &mut Sides) -> Result<(), Fault> {
        Ok(())
    }

    #[inline(always)]
    fn pass(desk: &mut Sides) -> Result<(), Fault> {
        let mut at = 0;
        while at < PACKETS {
            match desk.row.move_to(at, &mut desk.other, PASS) {
                0 => break,
                moved => at += moved,
            }
        }
        black_box((&mut desk.row, &mut desk.other));
        Ok(())
    }

    fn settle(desk: &mut Sides) -> Result<f64, Fault> {
        desk.row.close()?;
        desk.other.holds(0..PACKETS)?;
        std::mem::swap(&mut desk.row, &mut desk.other);
        Ok(kb(ALL))
    }
}
