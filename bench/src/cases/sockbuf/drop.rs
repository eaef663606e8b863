//! Dropping packets from the front, one by one or all at once: cutting them off, and bulk free.

use super::cell::{self, Desk, Fault, Variant, Way, variant};
use super::stock::{HIWAT, Row, holds, packet, set_of};
use super::{BUFFERS, MSS, PACKETS};
use crate::cell::Build;
use mbuf::{BufferSet, Mbuf, Packet};
use sockbuf::SockBuf;
use std::hint::black_box;

/// Packets that a pass drops.
const ALL: usize = BUFFERS * PACKETS;
const PASSES: usize = 16;

/// `N` packets a call.
pub(super) fn build<const N: usize>() -> Build {
    cell::build(Drops::new, variants::<N>, PASSES)
}

fn variants<const N: usize>() -> Vec<Variant<Drops>> {
    vec![
        variant::<Ours<N>>(),
        variant::<Cut<N>>(),
        variant::<Floor>(),
    ]
}

struct Drops {
    set: BufferSet,
    /// Each with one packet more than is dropped.
    buffers: [SockBuf; BUFFERS],
    /// What was cut off.
    cut: Vec<Option<Mbuf>>,
    row: Row,
    gone: Row,
}

impl Drops {
    fn new() -> Result<Self, Fault> {
        Ok(Drops {
            set: set_of(ALL + BUFFERS, 1)?,
            buffers: std::array::from_fn(|_| SockBuf::new(HIWAT)),
            cut: Vec::with_capacity(ALL),
            row: Row::new(ALL),
            gone: Row::new(ALL),
        })
    }

    fn fill(&mut self) -> Result<(), Fault> {
        for sb in &mut self.buffers {
            for number in 0..=PACKETS {
                sb.append_stream(packet(&self.set, MSS, number)?);
            }
        }
        Ok(())
    }

    /// Whether each buffer has its last packet alone; frees that.
    fn only_the_last_is_left(&mut self) -> Result<f64, Fault> {
        for sb in &mut self.buffers {
            holds(sb, MSS, PACKETS..PACKETS + 1)?;
            sb.drop_front(MSS)?;
        }
        Ok(ALL as f64)
    }
}

impl Desk for Drops {
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

/// `drop_front`.
struct Ours<const N: usize>;

impl<const N: usize> Way for Ours<N> {
    type Desk = Drops;
    const NAME: &'static str = "ours";

    fn prepare(desk: &mut Drops) -> Result<(), Fault> {
        desk.fill()
    }

    #[inline(always)]
    fn pass(desk: &mut Drops) -> Result<(), Fault> {
        for sb in &mut desk.buffers {
            for _ in 0..PACKETS / N {
                sb.drop_front(N * MSS)?;
            }
        }
        Ok(())
    }

    fn settle(desk: &mut Drops) -> Result<f64, Fault> {
        desk.only_the_last_is_left()
    }
}

/// `cut`: the part that a lock would be held for. What comes off is freed outside of the timed part.
struct Cut<const N: usize>;

impl<const N: usize> Way for Cut<N> {
    type Desk = Drops;
    const NAME: &'static str = "cut";

    fn prepare(desk: &mut Drops) -> Result<(), Fault> {
        desk.fill()
    }

    #[inline(always)]
    fn pass(desk: &mut Drops) -> Result<(), Fault> {
        for sb in &mut desk.buffers {
            for _ in 0..PACKETS / N {
                desk.cut.push(sb.cut(N * MSS)?);
            }
        }
        Ok(())
    }

    fn settle(desk: &mut Drops) -> Result<f64, Fault> {
        let mbufs: usize = desk.cut.drain(..).flatten().map(|m| m.nsegs()).sum();
        if mbufs != ALL {
            return Err(format!("{mbufs} mbufs cut off instead of {ALL}").into());
        }
        desk.only_the_last_is_left()
    }
}

/// Moves packets' pointers from one row to another, all in one go, counting what goes.
struct Floor;

impl Way for Floor {
    type Desk = Drops;
    const NAME: &'static str = "floor";

    fn prepare(desk: &mut Drops) -> Result<(), Fault> {
        for number in 0..ALL {
            let packet = packet(&desk.set, MSS, number)?;
            desk.row.take_from(&mut [Some(packet)]);
        }
        Ok(())
    }

    #[inline(always)]
    fn pass(desk: &mut Drops) -> Result<(), Fault> {
        desk.row.move_to(0, &mut desk.gone, usize::MAX);
        black_box((&mut desk.row, &mut desk.gone));
        Ok(())
    }

    fn settle(desk: &mut Drops) -> Result<f64, Fault> {
        desk.row.close()?;
        desk.gone.holds(0..ALL)?;
        desk.gone.clear();
        Ok(ALL as f64)
    }
}
