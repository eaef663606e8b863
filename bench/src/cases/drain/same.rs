//! A full ring, drained on the core that filled it.

use super::{Shape, VARIANTS, strategy};
use crate::cases::send_path::MSS;
use crate::cell::{CellRun, Counts, Env, Sample, Skip};
use crate::clock::{self, Clock};
use crate::placement::{self, Body, Entry, PLACEMENTS};
use driver_sim::{Null, PlainQueue, TxConfig, TxQueue};
use mbuf::{AllocError, BufferSet, FreeStrategy, Mbuf, Packet, PlainBurst};

/// Descriptors of the ring.
const RING: usize = 512;
/// Packets of a burst that is plain by type.
const BURST: usize = 32;
/// Bytes of a packet that is one mbuf.
const LEN: usize = 60;
/// Mbufs behind the header of a `tso45` packet.
const REFERENCES: usize = 45;

struct Same {
    shape: Shape,
    set: BufferSet,
    /// What `tso45` packets refer to, for as long as the cell lives.
    source: Option<Mbuf>,
    queue: TxQueue<Null>,
    /// Where packets are flat: the queue that takes plain bursts only, and its drain.
    plain: Option<(PlainQueue<Null>, PlainCopies)>,
    packets: usize,
    passes: usize,
    resting: usize,
    copies: [Copies; VARIANTS.len()],
    clock: Clock,
}

/// A drain by the strategy number `S`.
struct DrainAll<const S: usize>;

impl<const S: usize> Body for DrainAll<S> {
    type Args<'a> = &'a mut TxQueue<Null>;
    type Out = (u64, usize);

    #[inline(always)]
    fn run(queue: &mut TxQueue<Null>) -> (u64, usize) {
        queue.set_strategy(FreeStrategy::ALL[S]);
        let start = clock::start();
        let freed = queue.drain_all();
        (clock::stop() - start, freed)
    }
}

/// A drain of packets that are plain by type.
struct DrainPlain;

impl Body for DrainPlain {
    type Args<'a> = &'a mut PlainQueue<Null>;
    type Out = (u64, usize);

    #[inline(always)]
    fn run(queue: &mut PlainQueue<Null>) -> (u64, usize) {
        let start = clock::start();
        let freed = queue.drain_all();
        (clock::stop() - start, freed)
    }
}

type PlainCopies = [for<'a> fn(&'a mut PlainQueue<Null>) -> (u64, usize); PLACEMENTS];

fn plain_copies() -> PlainCopies {
    placement::table::<DrainPlain>().map(|entry: Entry<DrainPlain>| entry)
}

type Copies = [for<'a> fn(&'a mut TxQueue<Null>) -> (u64, usize); PLACEMENTS];

fn copies<const S: usize>() -> Copies {
    placement::table::<DrainAll<S>>().map(|entry: Entry<DrainAll<S>>| entry)
}

pub(super) fn build(shape: Shape, env: &Env) -> Result<Box<dyn CellRun>, Skip> {
    let failed = |e: &dyn std::fmt::Display| Skip::new(e.to_string());
    let set = set(shape).map_err(|e| failed(&e))?;
    let source = source(shape, &set).map_err(|e| failed(&e))?;
    let queue = TxQueue::new(TxConfig::with_ring(RING), Null::default());
    let plain = (shape == Shape::Flat)
        .then(|| PlainQueue::new(TxConfig::with_ring(RING), Null::default()))
        .transpose()
        .map_err(|e| failed(&e))?;
    Ok(Box::new(Same {
        shape,
        packets: match shape {
            Shape::Tso45 => RING / (REFERENCES + 1),
            Shape::Flat | Shape::Copied => RING,
        },
        passes: match shape {
            Shape::Flat => 16,
            Shape::Tso45 | Shape::Copied => 8,
        },
        resting: set.in_use(),
        set,
        source,
        queue: queue.map_err(|e| failed(&e))?,
        plain: plain.map(|queue| (queue, plain_copies())),
        copies: [copies::<0>(), copies::<1>(), copies::<2>(), copies::<3>()],
        clock: env.clock,
    }))
}

fn set(shape: Shape) -> Result<BufferSet, mbuf::CreateError> {
    let builder = BufferSet::standard_builder(4 * RING, 4).configure(|pool| pool.huge_pages(true));
    match shape {
        Shape::Flat => builder,
        Shape::Tso45 => builder.class(2048, 2 * REFERENCES),
        Shape::Copied => builder.class(65536, RING + RING / 2),
    }
    .build()
}

/// The send buffer that `tso45` packets refer to.
fn source(shape: Shape, set: &BufferSet) -> Result<Option<Mbuf>, AllocError> {
    if shape != Shape::Tso45 {
        return Ok(None);
    }
    driver_sim::rx::cut(&vec![1; REFERENCES * MSS], MSS, set).map(Some)
}

impl Same {
    fn packet(&self) -> Result<Mbuf, String> {
        let set = &self.set;
        let text = |e: &dyn std::error::Error| e.to_string();
        let mut m = match self.shape {
            Shape::Copied => set.header_with(65536).map_err(|e| text(&e))?,
            Shape::Flat | Shape::Tso45 => set.header().map_err(|e| text(&e))?,
        };
        let len = match self.shape {
            Shape::Copied => 65536,
            Shape::Flat | Shape::Tso45 => LEN,
        };
        m.append(len).map_err(|e| text(&e))?;
        if let Some(source) = &self.source {
            let references = source.ref_copy(0, REFERENCES * MSS, set);
            m.cat(references.map_err(|e| text(&e))?);
        }
        Ok(m)
    }

    /// Fills the ring and lets the device run. Out of line: what is placed and timed is the drain.
    #[inline(never)]
    fn fill(&mut self) -> Result<(), String> {
        for _ in 0..self.packets {
            let mut slot = [Some(self.packet()?)];
            if self.queue.send(&mut slot, &self.set) != 1 {
                return Err("the ring is full too early".into());
            }
        }
        match self.queue.run_device(usize::MAX) {
            n if n == self.packets && self.queue.in_flight() == n => Ok(()),
            n => Err(format!("{n} packets transmitted of {}", self.packets)),
        }
    }
}

/// Fills the plain queue and lets its device run.
#[inline(never)]
fn fill_plain(queue: &mut PlainQueue<Null>, set: &BufferSet) -> Result<(), String> {
    let mut burst = PlainBurst::<BURST>::new();
    for _ in 0..RING / BURST {
        let filled = burst.fill(set.mbuf_pool(), BURST);
        filled.map_err(|e| e.to_string())?;
        for mut packet in burst.iter_mut() {
            packet.append(LEN).map_err(|e| e.to_string())?;
        }
        match queue.send(&mut burst) {
            Ok(BURST) => {}
            other => return Err(format!("a burst of {BURST}: {other:?}")),
        }
    }
    match queue.run_device(usize::MAX) {
        RING => Ok(()),
        n => Err(format!("{n} packets transmitted of {RING}")),
    }
}

impl Same {
    /// Ticks that as many drains took as a round has, and the descriptors of what was drained.
    fn drains(&mut self, variant: usize, placement: usize) -> Result<(u64, u64), String> {
        let mut ticks = 0;
        if variant == VARIANTS.len()
            && let Some((queue, copies)) = &mut self.plain
        {
            let before = queue.stats().descriptors;
            for _ in 0..self.passes {
                fill_plain(queue, &self.set)?;
                ticks += whole(copies[placement](queue), self.packets)?;
            }
            return Ok((ticks, queue.stats().descriptors - before));
        }
        // What filling frees, when the ring is short of room, is this strategy's too.
        self.queue.set_strategy(strategy(variant));
        let before = self.queue.stats().descriptors;
        for _ in 0..self.passes {
            self.fill()?;
            ticks += whole(
                self.copies[variant][placement](&mut self.queue),
                self.packets,
            )?;
        }
        Ok((ticks, self.queue.stats().descriptors - before))
    }
}

/// The ticks of a drain, if it freed all packets.
fn whole((ticks, freed): (u64, usize), packets: usize) -> Result<u64, String> {
    if freed == packets {
        return Ok(ticks);
    }
    Err(format!("{freed} packets drained of {packets}"))
}

impl CellRun for Same {
    fn variants(&self) -> Vec<&'static str> {
        let plain = self.plain.as_ref().map(|_| "plain");
        VARIANTS.into_iter().chain(plain).collect()
    }

    fn placements(&self) -> usize {
        PLACEMENTS
    }

    fn round(&mut self, variant: usize, placement: usize) -> Result<Sample, String> {
        let (ticks, descriptors) = self.drains(variant, placement)?;
        match self.set.in_use() {
            out if out == self.resting => {}
            out => return Err(format!("{out} objects are out instead of {}", self.resting)),
        }
        let packets = (self.passes * self.packets) as f64;
        let counts = Counts::new().with("descriptors", descriptors as f64 / packets);
        let ns = self.clock.ns(ticks, self.passes as u64).max(1e-3);
        Ok(Sample::new(ns / packets).with_counts(counts))
    }

    fn finish(&mut self) -> Result<(), String> {
        self.source = None;
        match self.set.in_use() {
            0 => Ok(()),
            out => Err(format!("{out} objects are not back in their pools")),
        }
    }
}
