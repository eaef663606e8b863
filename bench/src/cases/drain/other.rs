//! Flat bursts, allocated on this core and freed on the other.

use super::{VARIANTS, strategy};
use crate::cases::send_path::{Nic, Remote};
use crate::cell::{CellRun, Counts, Env, Sample, Skip};
use crate::clock::{self, Clock};
use crate::placement::{self, Body, Entry, PLACEMENTS};
use driver_sim::{Null, TxConfig};
use mbuf::{BufferSet, Mbuf};

/// Packets of a burst.
const BURST: usize = 32;
/// Bursts of a round.
const BURSTS: usize = 256;
/// Descriptors of the ring: eight bursts may be in flight.
const RING: usize = 8 * BURST;
/// Bytes of a packet.
const LEN: usize = 60;

struct Other {
    set: BufferSet,
    queue: Remote<Null>,
    copies: Copies,
    clock: Clock,
}

struct Work<'a> {
    set: &'a BufferSet,
    queue: &'a mut Remote<Null>,
}

struct Bursts;

impl Body for Bursts {
    type Args<'a> = Work<'a>;
    type Out = Result<u64, String>;

    #[inline(always)]
    fn run(work: Work<'_>) -> Self::Out {
        let mut burst: [Option<Mbuf>; BURST] = [const { None }; BURST];
        let start = clock::start();
        for _ in 0..BURSTS {
            work.set
                .header_bulk(&mut burst)
                .map_err(|e| e.to_string())?;
            for m in burst.iter_mut().flatten() {
                m.append(LEN).map_err(|e| e.to_string())?;
            }
            work.queue.put_all(&mut burst, work.set);
        }
        work.queue.settle(1);
        Ok(clock::stop() - start)
    }
}

type Copies = [for<'a> fn(Work<'a>) -> Result<u64, String>; PLACEMENTS];

pub(super) fn build(env: &Env) -> Result<Box<dyn CellRun>, Skip> {
    // Twice what is in flight and in the burst: a quarter may lie in the cache of either core.
    let set = BufferSet::standard_builder(4 * (RING + BURST), 4)
        .configure(|pool| pool.huge_pages(true))
        .build();
    let config = TxConfig::with_ring(RING);
    Ok(Box::new(Other {
        set: set.map_err(|e| Skip::new(e.to_string()))?,
        queue: Remote::new(config, Null::default(), env).map_err(Skip::new)?,
        copies: placement::table::<Bursts>().map(|entry: Entry<Bursts>| entry),
        clock: env.clock,
    }))
}

impl CellRun for Other {
    fn variants(&self) -> Vec<&'static str> {
        VARIANTS.to_vec()
    }

    fn placements(&self) -> usize {
        PLACEMENTS
    }

    fn round(&mut self, variant: usize, placement: usize) -> Result<Sample, String> {
        self.queue.set_strategy(strategy(variant));
        let ping = self.queue.ping(&self.set)?;
        let before = self.queue.stats();
        let ticks = self.copies[placement](Work {
            set: &self.set,
            queue: &mut self.queue,
        })?;
        let after = self.queue.stats();
        let packets = (BURST * BURSTS) as u64;
        let posted = after.posted - before.posted;
        let freed = after.completed - before.completed;
        if (posted, freed) != (packets, packets) {
            return Err(format!(
                "{posted} posted and {freed} freed of {packets} packets"
            ));
        }
        match self.set.in_use() {
            0 => {}
            out => return Err(format!("{out} mbufs are not back in their pool")),
        }
        let ns = self.clock.ns(ticks, 1).max(1.0);
        let ping = self.clock.ns(ping.unwrap_or(0), 1);
        let counts = Counts::new().with_median("ping_ns", ping);
        Ok(Sample::new(ns / packets as f64).with_counts(counts))
    }

    fn finish(&mut self) -> Result<(), String> {
        self.queue.close()
    }
}
