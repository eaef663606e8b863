//! `pipeline`: a real capture through everything, by copy policy.
//!
//! The TCP streams of `bench/data/linux-loss-sack-ts-ws.pcap` are cut into receive buffers as a card
//! would lay them, received, spliced, sent and drained: the loop of `send_path.rs`, with one
//! connection for each stream and up to four packets in flight. While time is taken the device
//! reads descriptors; filling the receive rings is outside.
//!
//! Before the first round and after the last one, every policy sends the same through a device that
//! cuts TSO packets and makes checksums, and what is put together from its frames must have the
//! SHA-256 of what went in: see [`replay()`]. A file that was asked for gets the frames of `reference`,
//! as link type "raw".

mod capture;
mod replay;

pub use replay::{Replayed, replay};

use super::send_path::{self, Drain, Metric, POLICIES, Plan, nic_config};
use crate::cell::{CellRun, CellSpec, Env, Group, Params, Sample, Skip};
use capture::Capture;
use driver_sim::ReadMode;
use mbuf::FreeStrategy;
use std::path::PathBuf;
use std::rc::Rc;

/// Timed passes of a round: about a third of a millisecond.
const PASSES: usize = 8;

/// The cells of the group.
pub(crate) fn group() -> Group {
    Group {
        name: "pipeline",
        question: "How fast does a captured transfer go from receive buffers to the wire?",
        cells: Drain::BOTH.map(cell).into(),
        absent: Vec::new(),
    }
}

fn cell(drain: Drain) -> CellSpec {
    CellSpec {
        id: format!("pipeline/linux-loss-sack-ts-ws/drain={}", drain.name()),
        group: "pipeline",
        params: Params::new()
            .with("capture", "linux-loss-sack-ts-ws")
            .with("drain", drain.name()),
        unit: "Gbit/s",
        lower_is_better: false,
        baseline: "reference",
        needs: drain.needs(),
        build: Box::new(move |env| build(drain, env)),
    }
}

fn build(drain: Drain, env: &Env) -> Result<Box<dyn CellRun>, Skip> {
    let plan = Plan {
        metric: Metric::GbitPerSecond,
        passes: PASSES,
        strategy: FreeStrategy::Direct,
    };
    let capture = Rc::new(Capture::read().map_err(Skip::new)?);
    let set = capture
        .set(POLICIES.len())
        .map_err(|e| Skip::new(e.to_string()))?;
    let device = (drain, ReadMode::Descriptors);
    Ok(Box::new(Pipeline {
        timed: send_path::build(plan, capture, set, nic_config(None), device, env)?,
        checked: false,
        pcap: env.pcap.clone(),
    }))
}

/// The timed cell, and the check around it.
struct Pipeline {
    timed: Box<dyn CellRun>,
    checked: bool,
    pcap: Option<PathBuf>,
}

impl Pipeline {
    /// Sends everything by every policy and holds the digests against each other.
    fn check(&self, write: bool) -> Result<(), String> {
        for policy in POLICIES {
            let file = self
                .pcap
                .as_deref()
                .filter(|_| write && policy == "reference");
            for stream in replay(policy, file)? {
                if stream.sent != stream.received {
                    return Err(format!(
                        "{policy}: {} of {} bytes has another SHA-256 behind the wire",
                        stream.key, stream.bytes
                    ));
                }
            }
        }
        Ok(())
    }
}

impl CellRun for Pipeline {
    fn variants(&self) -> Vec<&'static str> {
        self.timed.variants()
    }

    fn placements(&self) -> usize {
        self.timed.placements()
    }

    fn round(&mut self, variant: usize, placement: usize) -> Result<Sample, String> {
        if !self.checked {
            self.check(false)?;
            self.checked = true;
        }
        self.timed.round(variant, placement)
    }

    fn finish(&mut self) -> Result<(), String> {
        self.timed.finish()?;
        self.check(true)
    }
}
