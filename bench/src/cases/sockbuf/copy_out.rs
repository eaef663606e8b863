//! Copying a buffer's bytes out, at once or read by read.

use super::cell::{self, Desk, Fault, Way, variant};
use super::stock::{HIWAT, full, set_of};
use super::{MSS, PACKETS, kb};
use crate::cell::Build;
use mbuf::BufferSet;
use sockbuf::SockBuf;
use std::hint::black_box;
use std::marker::PhantomData;

/// Bytes that a pass copies.
const ALL: usize = PACKETS * MSS;
const PASSES: usize = 16;

/// By reads of `read` bytes.
pub(super) fn build(read: usize) -> Build {
    let variants = || vec![variant::<By<Ours>>(), variant::<By<Floor>>()];
    cell::build(move || Copies::new(read), variants, PASSES)
}

struct Copies {
    set: BufferSet,
    sb: SockBuf,
    /// The same bytes in one piece.
    flat: Vec<u8>,
    dst: Vec<u8>,
    read: usize,
}

impl Copies {
    fn new(read: usize) -> Result<Self, Fault> {
        let set = set_of(PACKETS, 1)?;
        let flat: Vec<u8> = (0..ALL).map(|i| (i % 251) as u8 + 1).collect();
        let mut sb = SockBuf::new(HIWAT);
        for bytes in flat.chunks(MSS) {
            sb.append_stream(full(&set, bytes)?);
        }
        Ok(Copies {
            set,
            sb,
            flat,
            dst: vec![0; ALL],
            read,
        })
    }
}

impl Desk for Copies {
    fn set(&self) -> &BufferSet {
        &self.set
    }

    fn resting(&self) -> usize {
        2 * PACKETS
    }

    fn into_set(self) -> BufferSet {
        self.set
    }
}

/// A way to read at an offset.
trait Read: 'static {
    const NAME: &'static str;
    fn read(sb: &SockBuf, flat: &[u8], off: usize, dst: &mut [u8]) -> Result<(), Fault>;
}

/// `copy_to`.
struct Ours;

impl Read for Ours {
    const NAME: &'static str = "ours";

    #[inline(always)]
    fn read(sb: &SockBuf, _: &[u8], off: usize, dst: &mut [u8]) -> Result<(), Fault> {
        Ok(sb.copy_to(off, dst)?)
    }
}

/// `memcpy` of as many bytes out of one piece.
struct Floor;

impl Read for Floor {
    const NAME: &'static str = "floor";

    #[inline(always)]
    fn read(_: &SockBuf, flat: &[u8], off: usize, dst: &mut [u8]) -> Result<(), Fault> {
        dst.copy_from_slice(&flat[off..off + dst.len()]);
        Ok(())
    }
}

/// Reads by `R`, from the front to the end.
struct By<R>(PhantomData<R>);

impl<R: Read> Way for By<R> {
    type Desk = Copies;
    const NAME: &'static str = R::NAME;

    fn prepare(desk: &mut Copies) -> Result<(), Fault> {
        desk.dst.fill(0);
        Ok(())
    }

    #[inline(always)]
    fn pass(desk: &mut Copies) -> Result<(), Fault> {
        let Copies { sb, flat, dst, .. } = desk;
        for (at, dst) in dst.chunks_mut(desk.read).enumerate() {
            R::read(sb, flat, at * desk.read, dst)?;
            black_box(dst);
        }
        Ok(())
    }

    fn settle(desk: &mut Copies) -> Result<f64, Fault> {
        if desk.dst != desk.flat {
            return Err("bytes were not copied".into());
        }
        Ok(kb(ALL))
    }
}
