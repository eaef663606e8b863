//! `splice`: bytes from a receive ring through two socket buffers to the wire, by copy policy, for
//! each way to free.
//!
//! Frames of 1448 bytes lie in receive buffers of 2 KB each. A step takes 45 of them from the ring,
//! leaves freshly allocated ones there (in the timed part), appends them to the receive buffer, moves
//! them to the send buffer as whole mbufs and sends: see [`super::send_path`]. Filling the ring is the
//! card's work and outside of the timed part. The free strategy serves both completion and the
//! acknowledgment's free of the send buffer.

use super::send_path::{
    self, Buffers, Drain, Input, MSS, Metric, Plan, Step, WINDOW, fill, limit_name, nic_config, tcb,
};
use crate::cell::{CellSpec, Group, Params, Skip};
use driver_sim::ReadMode;
use mbuf::{AllocError, BufferSet, CreateError, FreeStrategy};
use std::rc::Rc;
use tcp_output::{Seq, Tcb};

/// Frames of a step: a full TSO packet.
const FRAMES: usize = 45;
/// Connections, each with a step in a pass.
const SENDS: usize = 12;
/// Timed passes of a round: about a third of a millisecond.
const PASSES: usize = 8;

/// The cells of the group.
pub(crate) fn group() -> Group {
    let mut cells = Vec::new();
    for strategy in FreeStrategy::ALL {
        for limit in [None, Some(32)] {
            cells.extend(Drain::BOTH.map(|drain| cell(strategy, limit, drain)));
        }
    }
    Group {
        name: "splice",
        question: "How fast do spliced bytes go from receive buffers to the wire?",
        cells,
        absent: Vec::new(),
    }
}

fn cell(strategy: FreeStrategy, limit: Option<usize>, drain: Drain) -> CellSpec {
    CellSpec {
        id: format!(
            "splice/free={strategy}/limit={}/drain={}",
            limit_name(limit),
            drain.name()
        ),
        group: "splice",
        params: Params::new()
            .with("free", strategy.name())
            .with("limit", limit_name(limit))
            .with("drain", drain.name()),
        unit: "Gbit/s",
        lower_is_better: false,
        baseline: "reference",
        needs: drain.needs(),
        build: Box::new(move |env| {
            let plan = Plan {
                metric: Metric::GbitPerSecond,
                passes: PASSES,
                strategy,
            };
            let set = set().map_err(|e| Skip::new(e.to_string()))?;
            let device = (drain, ReadMode::Descriptors);
            let input = Rc::new(Frames([0x5a; MSS]));
            send_path::build(plan, input, set, nic_config(limit), device, env)
        }),
    }
}

/// Pools for the rings of all three policies and what is in flight, twice over: a quarter of them
/// may lie in the cache of either core. On huge pages where there are some.
fn set() -> Result<BufferSet, CreateError> {
    let rings = 3 * SENDS * FRAMES;
    let flying = (WINDOW + 1) * (FRAMES + 2);
    BufferSet::bsd_builder(2 * (rings + 2 * flying), 8)
        .class(2048, 2 * (rings + flying))
        .class(65536, 4 * (WINDOW + 1))
        .configure(|pool| pool.huge_pages(true))
        .build()
}

/// The input of a pass: frames with these bytes in every ring.
struct Frames([u8; MSS]);

impl Input for Frames {
    fn steps(&self) -> Vec<Step> {
        let frames = FRAMES;
        (0..SENDS).map(|conn| Step { conn, frames }).collect()
    }

    fn connections(&self) -> Vec<Tcb> {
        (0..SENDS).filter_map(|i| tcb(i, Seq(1)).ok()).collect()
    }

    fn ring(&self, _: usize) -> usize {
        FRAMES
    }

    fn bytes(&self) -> usize {
        SENDS * FRAMES * MSS
    }

    fn prepare(
        &self,
        _: usize,
        buffers: Buffers<'_>,
        _: &BufferSet,
        lead: usize,
    ) -> Result<(), AllocError> {
        for m in buffers.ring.iter_mut().flatten() {
            fill(m, lead, &self.0);
        }
        Ok(())
    }
}
