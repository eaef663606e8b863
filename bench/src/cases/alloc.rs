//! `alloc`: what it costs to allocate a burst, and to allocate one, write to it and free it.
//!
//! *Alone* the allocation is timed. *Pair*: packets are allocated, the first word of each one's room
//! is written, and they are freed, over and over, since what one side saves the other may pay.
//! *Odd* pairs end up shared, chained, or from two pools before they are freed.

mod desk;
mod flat;
mod floor;
mod odd;
#[cfg(feature = "dpdk")]
mod peer;
mod ways;

use crate::cell::{CellSpec, Group, Needs, Params};
use crate::report::Unmeasured;
use odd::Odd;

const BURSTS: [usize; 6] = [1, 8, 32, 64, 128, 256];
const ODD_BURSTS: [usize; 4] = [8, 32, 128, 256];

/// Mbufs of a pool.
const CAPACITY: usize = 4096;
/// Objects that a thread's cache holds.
const CACHE: usize = 512;
/// Mbufs that a round allocates, about.
const PER_ROUND: usize = 8192;
/// Pools at different addresses: placement `p` works on arena `p % ARENAS`.
const ARENAS: usize = 3;

/// The cells of the group.
pub(crate) fn group() -> Group {
    let mut cells = Vec::new();
    for pair in [false, true] {
        cells.extend(BURSTS.map(|burst| flat(pair, burst)));
    }
    for shape in Odd::ALL {
        cells.extend(ODD_BURSTS.map(|burst| odd(shape, burst)));
    }
    let absent = beside_dpdk("alloc", &mut cells);
    Group {
        name: "alloc",
        question: "What does it cost to allocate a burst, and to allocate and free one?",
        cells,
        absent,
    }
}

/// Adds the cells of `group` that have DPDK beside ours, or says how to get them.
#[cfg(feature = "dpdk")]
pub(super) fn beside_dpdk(group: &'static str, cells: &mut Vec<CellSpec>) -> Vec<Unmeasured> {
    cells.extend(peer::cells(group));
    Vec::new()
}

/// See above.
#[cfg(not(feature = "dpdk"))]
pub(super) fn beside_dpdk(group: &'static str, _: &mut Vec<CellSpec>) -> Vec<Unmeasured> {
    vec![Unmeasured {
        id: format!("{group}: DPDK beside ours"),
        reason: "not in this build: install libdpdk-dev, then cargo xtask-dpdk bench".to_owned(),
    }]
}

/// A quick run has the smallest and the largest burst that a promise is about.
fn needs(quick: bool) -> Needs {
    if quick {
        Needs::ONE_CPU
    } else {
        Needs::ONE_CPU.full_only()
    }
}

fn flat(pair: bool, burst: usize) -> CellSpec {
    let question = if pair { "pair" } else { "alone" };
    CellSpec {
        id: format!("alloc/flat/{question}/burst={burst}"),
        group: "alloc",
        params: Params::new()
            .with("shape", "flat")
            .with("question", question)
            .with("burst", burst),
        unit: "ns/mbuf",
        lower_is_better: true,
        baseline: "floor",
        needs: needs(burst == 32 || pair && burst == 256),
        build: Box::new(move |env| flat::build(pair, burst, env)),
    }
}

fn odd(shape: Odd, burst: usize) -> CellSpec {
    CellSpec {
        id: format!("alloc/{}/pair/burst={burst}", shape.name()),
        group: "alloc",
        params: Params::new()
            .with("shape", shape.name())
            .with("question", "pair")
            .with("burst", burst),
        unit: "ns/mbuf",
        lower_is_better: true,
        baseline: "staged",
        needs: needs(burst == 32),
        build: Box::new(move |env| odd::build(shape, burst, env)),
    }
}
