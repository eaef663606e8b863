//! `drain`: what completion costs a packet, by strategy.
//!
//! On the same core, a ring of 512 descriptors is filled with packets and transmitted outside of the
//! timed part; timed is the drain alone, which hands the ring's slots to bulk free as they lie there.
//! `plain` is a queue that takes plain bursts only, and frees them without reading a header.
//! On the other core, timed is everything from allocating flat bursts of 32 on this core to the last
//! of them being freed on the other one: the cores share the pool, and that has a price on both sides.

mod other;
mod same;

use super::send_path::Drain;
use crate::cell::{CellSpec, Group, Params};
use mbuf::FreeStrategy;

/// The variants, in the order of [`FreeStrategy::ALL`].
const VARIANTS: [&str; FreeStrategy::ALL.len()] = {
    let [a, b, c, d] = FreeStrategy::ALL;
    [a.name(), b.name(), c.name(), d.name()]
};

/// What lies in the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    /// One mbuf a packet, with 60 bytes in its own room.
    Flat,
    /// A header mbuf and 45 references to clusters that the send buffer still holds.
    Tso45,
    /// A header mbuf with a full 64 KB cluster of its own.
    Copied,
}

impl Shape {
    fn name(self) -> &'static str {
        match self {
            Shape::Flat => "flat",
            Shape::Tso45 => "tso45",
            Shape::Copied => "copied",
        }
    }
}

/// The cells of the group.
pub(crate) fn group() -> Group {
    Group {
        name: "drain",
        question: "What does completion cost a packet?",
        cells: vec![
            cell(Shape::Flat, Drain::Same),
            cell(Shape::Tso45, Drain::Same),
            cell(Shape::Copied, Drain::Same),
            cell(Shape::Flat, Drain::Other),
        ],
        absent: Vec::new(),
    }
}

fn cell(shape: Shape, drain: Drain) -> CellSpec {
    CellSpec {
        id: format!("drain/{}/drain={}", shape.name(), drain.name()),
        group: "drain",
        params: Params::new()
            .with("shape", shape.name())
            .with("drain", drain.name()),
        unit: "ns/packet",
        lower_is_better: true,
        baseline: "staged",
        needs: drain.needs(),
        build: Box::new(move |env| match drain {
            Drain::Same => same::build(shape, env),
            Drain::Other => other::build(env),
        }),
    }
}

fn strategy(variant: usize) -> FreeStrategy {
    FreeStrategy::ALL[variant]
}
