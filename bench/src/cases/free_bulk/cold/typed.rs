//! The variant `plain`, cold: bursts that are plain by type, of a pool of their own.

use super::{MBUFS, PER_ROUND, SPARE, shuffle};
use crate::cases::free_bulk::shape::ROOM;
use crate::clock;
use crate::placement::{self, Body, Entry, PLACEMENTS};
use mbuf::{MbufPool, PlainBurst};
use mempool::Builder;

/// Packets of a burst at most.
const MOST: usize = 256;

/// Frees bursts; answers with the ticks.
struct Clear;

impl Body for Clear {
    type Args<'a> = &'a mut [PlainBurst<MOST>];
    type Out = u64;

    #[inline(always)]
    fn run(bursts: &mut [PlainBurst<MOST>]) -> u64 {
        let mut ticks = 0;
        for burst in bursts {
            let start = clock::start();
            burst.clear();
            ticks += clock::stop() - start;
        }
        ticks
    }
}

/// All bursts are out, and a round frees one stretch of them and fills it anew.
pub(super) struct Typed {
    pool: MbufPool,
    bursts: Vec<PlainBurst<MOST>>,
    burst: usize,
    next: usize,
    copies: [for<'a> fn(&'a mut [PlainBurst<MOST>]) -> u64; PLACEMENTS],
}

impl Typed {
    pub(super) fn new(
        burst: usize,
        seed: u64,
        configure: impl Fn(Builder) -> Builder,
    ) -> Result<Self, String> {
        let pool = MbufPool::new(ROOM, |b| configure(b.capacity(MBUFS + SPARE)))
            .map_err(|e| e.to_string())?;
        shuffle(&pool, &mut fastrand::Rng::with_seed(seed)).map_err(|e| e.to_string())?;
        let mut bursts: Vec<PlainBurst<MOST>> =
            (0..MBUFS / burst).map(|_| PlainBurst::new()).collect();
        for plain in &mut bursts {
            plain.fill(&pool, burst).map_err(|e| e.to_string())?;
        }
        Ok(Typed {
            pool,
            bursts,
            burst,
            next: 0,
            copies: placement::table::<Clear>().map(|entry: Entry<Clear>| entry),
        })
    }

    /// Ticks, bursts, and calls of the backend that gave to it.
    pub(super) fn round(&mut self, placement: usize) -> Result<(u64, usize, u64), String> {
        let n = PER_ROUND / self.burst;
        let bursts = &mut self.bursts[self.next..self.next + n];
        self.next = (self.next + n) % (MBUFS / self.burst);
        let puts = || self.pool.raw().stats().backend_puts;
        let (before, out) = (puts(), self.pool.raw().in_use());
        let ticks = self.copies[placement](bursts);
        let puts = puts() - before;
        let back = out - self.pool.raw().in_use();
        if back != n * self.burst || bursts.iter().any(|burst| !burst.is_empty()) {
            return Err(format!("of {} mbufs {back} went back", n * self.burst));
        }
        for plain in bursts {
            plain
                .fill(&self.pool, self.burst)
                .map_err(|e| e.to_string())?;
        }
        Ok((ticks, n, puts))
    }

    /// Mbufs that are not back when all bursts are gone.
    pub(super) fn left(&mut self) -> usize {
        self.bursts.clear();
        self.pool.raw().in_use()
    }
}
