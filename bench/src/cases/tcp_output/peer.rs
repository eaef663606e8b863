//! Another stack beside ours: the same bytes, buffers of the same size, written in chunks of the same
//! size, in one thread.

mod smoltcp;

use self::smoltcp::{Recycled, Stack, Stock};
use super::pair::{Carry, Plan};
use super::wire::{Transfers, pair};
use crate::cell::{CellRun, CellSpec, Env, Needs, Params, Skip};
use tcp_output::policy::{Copy, Reference};

/// The cells that have peers in them.
pub(super) fn cells() -> Vec<CellSpec> {
    let points = [(1500, true), (65_535, true), (1500, false), (65_535, false)];
    points.map(|(mtu, sums)| cell(mtu, sums)).into()
}

fn cell(mtu: usize, sums: bool) -> CellSpec {
    let who = if sums { "software" } else { "none" };
    CellSpec {
        id: format!("tcp-output/peer/mtu={mtu}/sums={who}"),
        group: "tcp-output",
        params: Params::new().with("mtu", mtu).with("sums", who),
        unit: "Gbit/s",
        lower_is_better: false,
        baseline: "ours",
        needs: Needs::ONE_CPU,
        build: Box::new(move |env| build(mtu, sums, env)),
    }
}

fn build(mtu: usize, sums: bool, env: &Env) -> Result<Box<dyn CellRun>, Skip> {
    let plan = Plan {
        mtu,
        sums,
        tso: false,
        carry: Carry::Whole,
        loss: 0,
        each: false,
    };
    let received = Plan {
        carry: Carry::Copied,
        ..plan
    };
    let mut variants = vec![
        pair("ours", plan, Reference, env)?,
        pair("ours-copy", plan, Copy, env)?,
        pair("ours-received", received, Reference, env)?,
    ];
    if !sums {
        let tso = Plan { tso: true, ..plan };
        variants.push(pair("ours-tso", tso, Reference, env)?);
    }
    variants.push(("smoltcp", Box::new(Stack::new(Recycled::new(mtu, sums))?)));
    variants.push((
        "smoltcp-loopback",
        Box::new(Stack::new(Stock::new(mtu, sums))?),
    ));
    Transfers::of(variants, env)
}
