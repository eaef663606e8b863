//! Finding the next offset to send, with few and with many mbufs before it.
//!
//! A sender in steady state: what is acknowledged leaves in front, as much is added behind, and that is
//! what is read next. *Again*: each read of new data follows one of lost data from the front.

use super::BUFFERS;
use super::cell::{self, Desk, Fault, Variant, Way, variant};
use super::stock::{HIWAT, WORD, number_of};
use crate::cell::Build;
use mbuf::{BufferSet, Mbuf, Packet};
use sockbuf::SockBuf;
use std::hint::black_box;
use std::marker::PhantomData;

/// Bytes of an mbuf.
const LEN: usize = 128;
/// Mbufs that leave and come back between two passes, and are read then.
const WINDOW: usize = 8;
/// Passes of a round, where nothing is walked.
const PASSES: usize = 128;
/// Mbufs in a buffer from which on a walk has fewer passes.
const SHORT: usize = 100;

pub(super) fn next(mbufs: usize) -> Build {
    cell::build(move || Finds::new(mbufs), variants::<false>, PASSES)
}

pub(super) fn again(mbufs: usize) -> Build {
    cell::build(move || Finds::new(mbufs), variants::<true>, PASSES)
}

fn variants<const AGAIN: bool>() -> Vec<Variant<Finds>> {
    vec![
        variant::<By<Ours, AGAIN>>(),
        variant::<By<Walk, AGAIN>>(),
        variant::<Floor<AGAIN>>(),
    ]
}

struct Finds {
    set: BufferSet,
    buffers: [SockBuf; BUFFERS],
    mbufs: usize,
    /// What the floor reads: as many mbufs as a pass reads, in order.
    row: Vec<Mbuf>,
    /// Sum of the numbers that a pass has read.
    sum: usize,
    /// What it must be.
    want: usize,
}

impl Finds {
    fn new(mbufs: usize) -> Result<Self, Fault> {
        let reads = 2 * BUFFERS * WINDOW;
        let set = BufferSet::bsd_builder(BUFFERS * mbufs + reads + 64, 8)
            .configure(|pool| pool.huge_pages(true))
            .build()?;
        let one = |number: usize| -> Result<Mbuf, Fault> {
            let mut m = set.plain()?;
            m.append(LEN)?[..WORD].copy_from_slice(&number.to_ne_bytes());
            Ok(m)
        };
        let mut buffers = std::array::from_fn(|_| SockBuf::new(HIWAT));
        for number in 0..mbufs {
            for sb in &mut buffers {
                sb.append_stream(one(number)?);
            }
        }
        let row = (0..reads).map(one).collect::<Result<_, _>>()?;
        Ok(Finds {
            set,
            buffers,
            mbufs,
            row,
            sum: 0,
            want: 0,
        })
    }

    /// Offset of the first byte that is new.
    #[inline(always)]
    fn new_at(&self) -> usize {
        (self.mbufs - WINDOW) * LEN
    }

    /// Acknowledges and adds a window. The read before was of what is last until then.
    fn turn(&mut self, again: bool) -> Result<(), Fault> {
        (self.sum, self.want) = (0, 0);
        let last = (self.mbufs - 1) * LEN;
        for sb in &mut self.buffers {
            sb.copy_to(last, &mut [0; WORD])?;
            let window = sb.cut(WINDOW * LEN)?.ok_or("nothing left the buffer")?;
            let new = window.segments().filter_map(number_of);
            let mut want: usize = new.sum();
            if again {
                let lost = sb.segments().chain(window.segments()).take(WINDOW);
                want += lost.filter_map(number_of).sum::<usize>();
            }
            self.want += want;
            sb.append_stream(window);
        }
        Ok(())
    }

    /// Whether a pass read what it should.
    fn all_read(&self, again: bool) -> Result<f64, Fault> {
        if self.sum != self.want {
            return Err(format!("read {} instead of {}", self.sum, self.want).into());
        }
        Ok((BUFFERS * WINDOW * if again { 2 } else { 1 }) as f64)
    }
}

impl Desk for Finds {
    fn set(&self) -> &BufferSet {
        &self.set
    }

    fn resting(&self) -> usize {
        BUFFERS * self.mbufs + self.row.len()
    }

    fn into_set(self) -> BufferSet {
        self.set
    }
}

/// A way to find the bytes at an offset and copy them out.
trait Find: 'static {
    const NAME: &'static str;
    /// Passes of a round.
    fn passes(mbufs: usize, usual: usize) -> usize;
    /// Fills `dst`, which lies in one mbuf.
    fn read(sb: &SockBuf, off: usize, dst: &mut [u8]) -> Result<(), Fault>;
}

/// The buffer finds it.
struct Ours;

impl Find for Ours {
    const NAME: &'static str = "ours";

    fn passes(_: usize, usual: usize) -> usize {
        usual
    }

    #[inline(always)]
    fn read(sb: &SockBuf, off: usize, dst: &mut [u8]) -> Result<(), Fault> {
        Ok(sb.copy_to(off, dst)?)
    }
}

/// From the first mbuf on.
struct Walk;

impl Find for Walk {
    const NAME: &'static str = "walk";

    fn passes(mbufs: usize, usual: usize) -> usize {
        (usual * SHORT / mbufs).clamp(1, usual)
    }

    #[inline(always)]
    fn read(sb: &SockBuf, off: usize, dst: &mut [u8]) -> Result<(), Fault> {
        let mut rest = off;
        for seg in sb.segments() {
            if rest < seg.len() {
                dst.copy_from_slice(&seg.data()[rest..][..dst.len()]);
                return Ok(());
            }
            rest -= seg.len();
        }
        Err("past the end".into())
    }
}

/// Reads a word by `F`, which does not know that it is one: the copy costs the same for all.
#[inline(always)]
fn word<F: Find>(sb: &SockBuf, off: usize) -> Result<usize, Fault> {
    let mut word = [0; WORD];
    F::read(sb, off, black_box(&mut word[..]))?;
    Ok(usize::from_ne_bytes(word))
}

/// Finds by `F`; if `AGAIN`, reads lost data before each.
struct By<F, const AGAIN: bool>(PhantomData<F>);

impl<F: Find, const AGAIN: bool> Way for By<F, AGAIN> {
    type Desk = Finds;
    const NAME: &'static str = F::NAME;

    fn passes(desk: &Finds, usual: usize) -> usize {
        F::passes(desk.mbufs, usual)
    }

    fn prepare(desk: &mut Finds) -> Result<(), Fault> {
        desk.turn(AGAIN)
    }

    #[inline(always)]
    fn pass(desk: &mut Finds) -> Result<(), Fault> {
        let new = desk.new_at();
        for sb in &desk.buffers {
            for at in 0..WINDOW {
                if AGAIN {
                    desk.sum += word::<F>(sb, at * LEN)?;
                }
                desk.sum += word::<F>(sb, new + at * LEN)?;
            }
        }
        Ok(())
    }

    fn settle(desk: &mut Finds) -> Result<f64, Fault> {
        desk.all_read(AGAIN)
    }
}

/// Reads mbufs that need not be found: they lie in an array.
struct Floor<const AGAIN: bool>;

impl<const AGAIN: bool> Floor<AGAIN> {
    #[inline(always)]
    fn row(desk: &Finds) -> &[Mbuf] {
        let reads = BUFFERS * WINDOW * if AGAIN { 2 } else { 1 };
        &desk.row[..reads]
    }
}

impl<const AGAIN: bool> Way for Floor<AGAIN> {
    type Desk = Finds;
    const NAME: &'static str = "floor";

    fn prepare(desk: &mut Finds) -> Result<(), Fault> {
        desk.turn(AGAIN)?;
        desk.want = (0..Self::row(desk).len()).sum();
        Ok(())
    }

    #[inline(always)]
    fn pass(desk: &mut Finds) -> Result<(), Fault> {
        let mut sum = 0;
        for m in Self::row(desk) {
            sum += number_of(m.first()).ok_or("an mbuf without a number")?;
            // One after the other, as whoever finds them does.
            black_box(());
        }
        desk.sum = sum;
        Ok(())
    }

    fn settle(desk: &mut Finds) -> Result<f64, Fault> {
        desk.all_read(AGAIN)
    }
}
