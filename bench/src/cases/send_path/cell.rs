//! One cell: the three policies on one input before one NIC.

use super::conn::{Input, Step};
use super::lane::{On, Pass, Variant};
use super::nic::Nic;
use super::probe::Probe;
use super::{HEADERS, POLICIES, policies};
use crate::cell::{CellRun, Counts, Env, Sample};
use crate::clock::Clock;
use crate::placement::PLACEMENTS;
use driver_sim::TxStats;
use mbuf::{BufferSet, FreeStrategy};
use std::rc::Rc;

/// Bytes by which each placement shifts the payload in its storage.
const LEADS: [usize; PLACEMENTS] = [0, 66, 138, 24, 250, 320];

/// What is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Metric {
    /// Microseconds per step.
    MicrosPerSend,
    /// Payload bits per nanosecond.
    GbitPerSecond,
}

/// How a cell is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) metric: Metric,
    /// Timed passes of a round. One more is made in which the sender's own time is taken.
    pub(crate) passes: usize,
    /// How completed packets and acknowledged buffers are freed.
    pub(crate) strategy: FreeStrategy,
}

/// The state of a cell.
pub(crate) struct PathCell<N> {
    plan: Plan,
    input: Rc<dyn Input>,
    steps: Vec<Step>,
    set: BufferSet,
    nic: N,
    lanes: [Box<dyn Variant<N>>; POLICIES.len()],
    /// By policy; empty before the first round.
    probes: Vec<Probe>,
    /// Objects that the receive rings of all lanes hold.
    resting: usize,
    clock: Clock,
}

impl<N: Nic> PathCell<N> {
    /// Builds the connections.
    pub(crate) fn new(
        plan: Plan,
        input: Rc<dyn Input>,
        set: BufferSet,
        mut nic: N,
        env: &Env,
    ) -> Self {
        nic.set_strategy(plan.strategy);
        PathCell {
            plan,
            steps: input.steps(),
            lanes: policies(&input.connections()),
            input,
            set,
            nic,
            probes: Vec::new(),
            resting: 0,
            clock: env.clock,
        }
    }

    /// Sends everything once by each policy, looking at the packets: what is wrong with one is a
    /// round's error, since a cell that cannot be built counts as skipped.
    fn look(&mut self) -> Result<(), String> {
        for lane in &mut self.lanes {
            lane.prepare(self.input.as_ref(), &self.set, 0)?;
            let on = On {
                steps: &self.steps,
                nic: &mut self.nic,
                set: &self.set,
                strategy: self.plan.strategy,
                stamp: false,
            };
            self.probes.push(lane.probe(on)?);
        }
        self.resting = self.set.in_use();
        Ok(())
    }

    fn pass(&mut self, variant: usize, placement: usize, stamp: bool) -> Result<Pass, String> {
        let lane = &mut self.lanes[variant];
        lane.prepare(self.input.as_ref(), &self.set, LEADS[placement])?;
        let on = On {
            steps: &self.steps,
            nic: &mut self.nic,
            set: &self.set,
            strategy: self.plan.strategy,
            stamp,
        };
        let pass = lane.pass(placement, on)?;
        match self.input.bytes() {
            want if want == pass.bytes => Ok(pass),
            want => Err(format!("{} payload bytes sent of {want}", pass.bytes)),
        }
    }

    /// All that was sent was posted, nothing else, and the buffers are back.
    fn check(&self, before: &TxStats, after: &TxStats, bytes: usize) -> Result<(), String> {
        let packets = after.posted - before.posted;
        let want = bytes as u64 + packets * HEADERS as u64;
        let posted = after.bytes - before.bytes;
        if posted != want || after.dropped() != 0 {
            return Err(format!(
                "{posted} bytes posted instead of {want}, {} packets dropped",
                after.dropped()
            ));
        }
        match self.set.in_use() {
            out if out == self.resting => Ok(()),
            out => Err(format!("{out} objects are out instead of {}", self.resting)),
        }
    }

    fn counts(&self, variant: usize, before: &TxStats, after: &TxStats, sends: f64) -> Counts {
        let probe = &self.probes[variant];
        let per_send = |n: u64| n as f64 / sends;
        Counts::new()
            .with(
                "descriptors",
                per_send(after.descriptors - before.descriptors),
            )
            .with("defrags", per_send(after.defrags - before.defrags))
            .with("mbufs", probe.mbufs as f64)
            .with("references", probe.references as f64)
            .with("copied_bytes", probe.copied as f64)
            .with_median("peak_bytes", probe.peak as f64)
    }
}

impl<N: Nic> CellRun for PathCell<N> {
    fn variants(&self) -> Vec<&'static str> {
        POLICIES.to_vec()
    }

    fn placements(&self) -> usize {
        PLACEMENTS
    }

    fn round(&mut self, variant: usize, placement: usize) -> Result<Sample, String> {
        if self.probes.is_empty() {
            self.look()?;
        }
        let ping = self.nic.ping(&self.set)?;
        let before = self.nic.stats();
        let mut wall = 0;
        for _ in 0..self.plan.passes {
            wall += self.pass(variant, placement, false)?.wall;
        }
        let stamped = self.pass(variant, placement, true)?;
        let after = self.nic.stats();
        let passes = self.plan.passes;
        self.check(&before, &after, (passes + 1) * self.input.bytes())?;

        let sends = (passes * self.steps.len()) as f64;
        let ns = self.clock.ns(wall, passes as u64).max(1.0);
        let steps = self.steps.len() as u64;
        let sender = self.clock.ns(stamped.sender, steps) / steps as f64 / 1e3;
        let mut counts = self
            .counts(variant, &before, &after, sends + steps as f64)
            .with_median("sender_us", sender);
        if let Some(ticks) = ping {
            counts = counts.with_median("ping_ns", self.clock.ns(ticks, 1));
        }
        let value = match self.plan.metric {
            Metric::MicrosPerSend => ns / sends / 1e3,
            Metric::GbitPerSecond => (passes * self.input.bytes() * 8) as f64 / ns,
        };
        Ok(Sample::new(value).with_counts(counts))
    }

    fn finish(&mut self) -> Result<(), String> {
        self.nic.close()?;
        self.lanes.iter_mut().for_each(|lane| lane.close());
        match self.set.in_use() {
            0 => Ok(()),
            out => Err(format!("{out} objects are not back in their pools")),
        }
    }
}
