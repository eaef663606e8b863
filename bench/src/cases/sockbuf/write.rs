//! Writing a buffer of 64 KB full by writes of one size, and emptying it again.

use super::cell::{self, Desk, Fault, Way, variant};
use super::kb;
use crate::cell::{Build, Counts};
use mbuf::BufferSet;
use sockbuf::{SockBuf, WriteError};
use std::hint::black_box;

/// Limit of the buffer, bytes.
const HIWAT: usize = 65536;
/// Calls that a round makes, about.
const CALLS: usize = 8192;
/// Passes of a round at most.
const PASSES: usize = 16;

/// By writes of `size` bytes.
pub(super) fn build(size: usize) -> Build {
    let variants = || vec![variant::<Ours>(), variant::<Floor>()];
    let passes = (CALLS * size / HIWAT).clamp(1, PASSES);
    cell::build(move || Writes::new(size), variants, passes)
}

struct Writes {
    set: BufferSet,
    sb: SockBuf,
    size: usize,
    /// What is written: the buffer's limit and one write more.
    data: Vec<u8>,
    /// Where the floor writes it.
    flat: Vec<u8>,
    /// Bytes that the pass wrote.
    taken: usize,
}

impl Writes {
    fn new(size: usize) -> Result<Self, Fault> {
        let set = BufferSet::bsd_builder(4096, 16)
            .class(2048, 512)
            .configure(|pool| pool.huge_pages(true))
            .build()?;
        Ok(Writes {
            set,
            sb: SockBuf::new(HIWAT),
            size,
            data: (0..HIWAT + size).map(|i| (i % 251) as u8 + 1).collect(),
            flat: vec![0; HIWAT],
            taken: 0,
        })
    }

    /// Writes until the buffer is full.
    #[inline(always)]
    fn fill(&mut self) -> Result<(), Fault> {
        let mut at = 0;
        loop {
            match self.sb.write(&self.data[at..at + self.size], &self.set) {
                Ok(n) => at += n,
                Err(WriteError::Full { .. }) => break,
                Err(short) => return Err(short.into()),
            }
        }
        self.taken = self.sb.len();
        Ok(())
    }
}

impl Desk for Writes {
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

/// `write`, then `drop_front` of all.
struct Ours;

impl Way for Ours {
    type Desk = Writes;
    const NAME: &'static str = "ours";

    fn prepare(desk: &mut Writes) -> Result<(), Fault> {
        desk.taken = 0;
        Ok(())
    }

    #[inline(always)]
    fn pass(desk: &mut Writes) -> Result<(), Fault> {
        desk.fill()?;
        Ok(desk.sb.drop_front(desk.taken)?)
    }

    fn settle(desk: &mut Writes) -> Result<f64, Fault> {
        if !desk.sb.is_empty() {
            return Err(format!("{} bytes are left", desk.sb.len()).into());
        }
        Ok(kb(desk.taken))
    }

    /// Fills the buffer once more and looks at what it holds.
    fn counts(desk: &mut Writes) -> Result<Counts, Fault> {
        let timed = desk.taken;
        desk.fill()?;
        let held = desk.sb.storage_use();
        let bytes = &mut desk.flat[..held.bytes];
        desk.sb.copy_to(0, bytes)?;
        if held.bytes != timed || *bytes != desk.data[..timed] {
            return Err(format!("{} bytes, other ones than were written", held.bytes).into());
        }
        desk.sb.drop_front(held.bytes)?;
        Ok(Counts::new()
            .with_median("bytes", held.bytes as f64)
            .with_median("charge_per_byte", held.charge_per_byte()))
    }
}

/// `memcpy` into one piece, in as many calls.
struct Floor;

impl Way for Floor {
    type Desk = Writes;
    const NAME: &'static str = "floor";

    fn prepare(desk: &mut Writes) -> Result<(), Fault> {
        desk.flat.fill(0);
        Ok(())
    }

    #[inline(always)]
    fn pass(desk: &mut Writes) -> Result<(), Fault> {
        let Writes { data, flat, .. } = desk;
        for (dst, src) in flat.chunks_mut(desk.size).zip(data.chunks(desk.size)) {
            dst.copy_from_slice(&src[..dst.len()]);
            black_box(dst);
        }
        Ok(())
    }

    fn settle(desk: &mut Writes) -> Result<f64, Fault> {
        if desk.flat != desk.data[..HIWAT] {
            return Err("bytes were not written".into());
        }
        Ok(kb(HIWAT))
    }
}
