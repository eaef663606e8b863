//! `sockbuf`: what socket buffers cost: appending, dropping, finding an offset, copying out, moving
//! from one to another, and writing.
//!
//! What a question works on is a [`Desk`](cell::Desk); a variant is a [`Way`](cell::Way) to do its
//! work. Storage has BSD's sizes.

mod append;
mod cell;
mod copy_out;
mod drop;
mod find;
mod splice;
mod stock;
mod write;

use crate::cell::{Build, CellSpec, Group, Needs, Params};

/// Payload bytes of a full packet.
const MSS: usize = 1448;
/// Full packets that a buffer of 64 KB holds.
const PACKETS: usize = 45;
/// Buffers that are worked on between one pair of stamps, where one takes too little time.
const BUFFERS: usize = 4;
/// Bytes of a KB.
const KB: usize = 1024;

fn kb(bytes: usize) -> f64 {
    bytes as f64 / KB as f64
}

const DEPTHS: [usize; 4] = [10, 100, 1000, 10_000];
const WRITES: [usize; 11] = [1, 16, 100, 145, 200, 512, 1448, 2048, 9000, 16384, 65536];

/// The cells of the group. All are in a quick run: together they take a second.
pub(crate) fn group() -> Group {
    let mut cells = Vec::new();
    for len in [MSS, 100] {
        cells.push(append("append/alone", len, append::alone(len)));
        cells.push(append("append/pair", len, append::pair(len)));
    }
    cells.push(dropping(1, drop::build::<1>()));
    cells.push(dropping(PACKETS, drop::build::<PACKETS>()));
    cells.extend(DEPTHS.map(|mbufs| find("find/next", mbufs, find::next(mbufs))));
    cells.extend(DEPTHS.map(|mbufs| find("find/again", mbufs, find::again(mbufs))));
    cells.extend([KB, PACKETS * MSS].map(copy_out));
    cells.push(splicing());
    cells.extend(WRITES.map(write));
    Group {
        name: "sockbuf",
        question: "What do socket buffers cost, and what storage do they hold down?",
        cells,
        absent: Vec::new(),
    }
}

fn cell(
    question: &str,
    (key, value): (&str, usize),
    (unit, baseline): (&'static str, &'static str),
    build: Build,
) -> CellSpec {
    CellSpec {
        id: format!("sockbuf/{question}/{key}={value}"),
        group: "sockbuf",
        params: Params::new().with("question", question).with(key, value),
        unit,
        lower_is_better: true,
        baseline,
        needs: Needs::ONE_CPU,
        build,
    }
}

fn append(question: &str, len: usize, build: Build) -> CellSpec {
    cell(question, ("len", len), ("ns/mbuf", "floor"), build)
}

fn dropping(mbufs: usize, build: Build) -> CellSpec {
    cell("drop", ("mbufs", mbufs), ("ns/mbuf", "floor"), build)
}

fn find(question: &str, mbufs: usize, build: Build) -> CellSpec {
    cell(question, ("mbufs", mbufs), ("ns/find", "walk"), build)
}

fn copy_out(read: usize) -> CellSpec {
    let build = copy_out::build(read);
    cell("copy-out", ("read", read), ("ns/KB", "floor"), build)
}

fn splicing() -> CellSpec {
    let at = ("pass", splice::PASS);
    cell("splice", at, ("ns/KB", "floor"), splice::build())
}

fn write(size: usize) -> CellSpec {
    let build = write::build(size);
    cell("write", ("size", size), ("ns/KB", "floor"), build)
}
