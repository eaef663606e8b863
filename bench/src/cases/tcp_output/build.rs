//! `build` alone: segments by how they hold their payload, TSO frames by policy. The floor stores
//! the headers where they are to stand, and copies the payload where ours does.

use super::shape::Shape;
use super::{NOW, tcb};
use crate::cell::{CellRun, Counts, Env, Sample, Skip};
use crate::clock::{self, Clock};
use crate::placement::{self, Body, Entry, PLACEMENTS};
use mbuf::{BufferSet, Mbuf, Packet};
use sockbuf::SockBuf;
use std::hint::black_box;
use std::marker::PhantomData;
use tcp_output::build::build as build_packet;
use tcp_output::policy::{Copy, Reference, Threshold};
use tcp_output::{ChecksumMode, CopyPolicy, MAX_LINK_HEADER, Segment, SendView, Tcb, decide};

/// Packets that are built between one pair of stamps, and then freed.
const BURST: usize = 16;
/// Bursts of a round.
const BURSTS: usize = 24;
/// IPv4 and TCP header with timestamps.
const HEADERS: usize = 52;

/// What is built from, and where to.
struct Desk {
    set: BufferSet,
    tcb: Tcb,
    segment: Segment,
    sb: SockBuf,
    bytes: Vec<u8>,
    built: [Option<Mbuf>; BURST],
    /// What the floor writes to, over and over.
    floor: Vec<u8>,
    headers: [u8; HEADERS],
    /// Bytes that the floor copies.
    copies: usize,
}

struct Ours<P>(PhantomData<P>);

impl<P: CopyPolicy + 'static> Body for Ours<P> {
    type Args<'a> = (&'a mut Desk, &'a P);
    type Out = Result<u64, String>;

    #[inline(always)]
    fn run((desk, policy): (&mut Desk, &P)) -> Self::Out {
        let mut ticks = 0;
        for _ in 0..BURSTS {
            let start = clock::start();
            for slot in &mut desk.built {
                let built = build_packet(
                    black_box(&desk.tcb),
                    black_box(&mut desk.segment),
                    &desk.sb,
                    policy,
                    &desk.set,
                    ChecksumMode::default(),
                );
                *slot = Some(built.map_err(|e| e.to_string())?.packet);
            }
            ticks += clock::stop() - start;
            mbuf::free_bulk(&mut desk.built[1..]);
        }
        Ok(ticks)
    }
}

struct Floor;

impl Body for Floor {
    type Args<'a> = &'a mut Desk;
    type Out = u64;

    #[inline(always)]
    fn run(desk: &mut Desk) -> u64 {
        let mut ticks = 0;
        for _ in 0..BURSTS {
            let start = clock::start();
            for _ in 0..BURST {
                let out = black_box(&mut desk.floor[MAX_LINK_HEADER..]);
                out[..HEADERS].copy_from_slice(black_box(&desk.headers));
                let copies = black_box(desk.copies);
                out[HEADERS..HEADERS + copies].copy_from_slice(&desk.bytes[..copies]);
            }
            ticks += clock::stop() - start;
        }
        ticks
    }
}

type Copies = Box<dyn Fn(&mut Desk, usize) -> Result<u64, String>>;

fn ours<P: CopyPolicy + 'static>(policy: P) -> Copies {
    let table = placement::table::<Ours<P>>().map(|entry: Entry<Ours<P>>| entry);
    Box::new(move |desk, placement| table[placement]((desk, &policy)))
}

fn floor() -> Copies {
    let table = placement::table::<Floor>().map(|entry: Entry<Floor>| entry);
    Box::new(move |desk, placement| Ok(table[placement](desk)))
}

struct Cell {
    shape: Shape,
    desk: Desk,
    clock: Clock,
    variants: Vec<(&'static str, Copies)>,
}

pub(super) fn build(shape: Shape, env: &Env) -> Result<Box<dyn CellRun>, Skip> {
    let variants: Vec<(&'static str, Copies)> = match shape {
        Shape::Spliced | Shape::Written => vec![
            ("reference", ours(Reference)),
            ("copy", ours(Copy)),
            ("threshold5", ours(Threshold { factor: 5 })),
            ("floor", floor()),
        ],
        Shape::Copied => vec![("ours", ours(Copy)), ("floor", floor())],
        _ => vec![("ours", ours(Reference)), ("floor", floor())],
    };
    Ok(Box::new(Cell {
        shape,
        desk: Desk::new(shape).map_err(Skip::new)?,
        clock: env.clock,
        variants,
    }))
}

impl Desk {
    fn new(shape: Shape) -> Result<Desk, String> {
        let set = BufferSet::bsd_builder(4096, 64)
            .class(2048, 512)
            .build()
            .map_err(|e| e.to_string())?;
        let bytes: Vec<u8> = (0..shape.len()).map(|i| (i % 251) as u8).collect();
        let sb = shape.fill(&bytes, &set).map_err(|e| e.to_string())?;
        let mut tcb = tcb()?;
        if shape == Shape::Ack {
            tcb.flags |= tcp_output::TcbFlags::ACK_NOW;
        }
        let view = SendView {
            queued: sb.len(),
            hiwat: 1 << 20,
            more_coming: false,
            force: false,
            tso: shape.is_frame(),
        };
        let decision = decide(&tcb, &view, NOW, None);
        let segment = decision.segment.ok_or("nothing was decided on")?;
        if segment.len != shape.len() || segment.tso_mss.is_some() != shape.is_frame() {
            return Err(format!("a segment of {} bytes", segment.len));
        }
        let copies = match shape {
            Shape::Referenced => 0,
            _ => shape.len(),
        };
        let room = MAX_LINK_HEADER + HEADERS + copies;
        Ok(Desk {
            set,
            tcb,
            segment,
            sb,
            bytes,
            built: [const { None }; BURST],
            floor: vec![0; room],
            headers: std::array::from_fn(|i| i as u8),
            copies,
        })
    }

    /// The packet that was left: its payload as it must be, held as the shape says.
    fn check(&mut self, shape: Shape, name: &str) -> Result<Counts, String> {
        let Some(packet) = self.built[0].take() else {
            return self.check_floor();
        };
        let bytes = packet.to_vec();
        if bytes.len() != HEADERS + shape.len() || bytes[HEADERS..] != self.bytes {
            return Err(format!("{name}: a packet of {} bytes", bytes.len()));
        }
        let small = shape.len() == 0 || !shape.is_frame() && shape != Shape::Referenced;
        if small != (packet.nsegs() == 1) && name == "ours" {
            return Err(format!("{:?} in {} mbufs", shape.payload(), packet.nsegs()));
        }
        let copied = match packet.nsegs() {
            1 => shape.len(),
            _ => 0,
        };
        Ok(Counts::new()
            .with("mbufs", packet.nsegs() as f64)
            .with("copied_bytes", copied as f64))
    }

    fn check_floor(&mut self) -> Result<Counts, String> {
        let out = &mut self.floor[MAX_LINK_HEADER..];
        let copied = &out[HEADERS..HEADERS + self.copies];
        if out[..HEADERS] != self.headers || *copied != self.bytes[..self.copies] {
            return Err("the floor wrote something else".into());
        }
        out.fill(0);
        Ok(Counts::new().with("copied_bytes", self.copies as f64))
    }
}

impl CellRun for Cell {
    fn variants(&self) -> Vec<&'static str> {
        self.variants.iter().map(|(name, _)| *name).collect()
    }

    fn placements(&self) -> usize {
        PLACEMENTS
    }

    fn round(&mut self, variant: usize, placement: usize) -> Result<Sample, String> {
        let (name, run) = &self.variants[variant];
        let ticks = run(&mut self.desk, placement)?;
        let counts = self.desk.check(self.shape, name)?;
        let ns = self.clock.ns(ticks, BURSTS as u64).max(1e-3);
        Ok(Sample::new(ns / (BURSTS * BURST) as f64).with_counts(counts))
    }

    fn finish(&mut self) -> Result<(), String> {
        self.desk.sb = SockBuf::new(0);
        match self.desk.set.in_use() {
            0 => Ok(()),
            left => Err(format!("{left} mbufs and clusters are not back")),
        }
    }
}
