//! Bytes through a connection and over the wire, by copy policy.

use super::pair::{Carry, Pair, Plan, Seen};
use crate::cell::{CellRun, Counts, Env, Sample, Skip};
use crate::clock::{self, Clock};
use tcp_output::CopyPolicy;
use tcp_output::policy::{Copy, Reference, Threshold};

/// Bytes of a transfer. Both ends of it and all buffers fit into a second level cache of 1 MB.
const BYTES: usize = 256 << 10;
/// Transfers of a round.
const TRANSFERS: usize = 4;
/// Transfers before the first round, so that windows are open.
const OPENING: usize = 16;
/// Placement `p` shifts what is sent and what is received by `p` times this: all over a page, since a
/// copy whose source is a few bytes ahead of its destination within their pages takes twice as long, and
/// clusters start near a page's start.
const SHIFT: usize = 648;

/// Who can move bytes from here to there.
pub(super) trait Mover {
    /// Moves `from` to `to`, which is as long.
    ///
    /// # Errors
    /// When it stops.
    fn transfer(&mut self, from: &[u8], to: &mut [u8]) -> Result<(), String>;

    /// What went over the wire so far, where that is known.
    fn seen(&self) -> Option<Seen>;

    /// Ends it: everything must be back.
    ///
    /// # Errors
    /// When something is not.
    fn end(&mut self) -> Result<(), String>;
}

impl<P: CopyPolicy + Clone> Mover for Pair<P> {
    fn transfer(&mut self, from: &[u8], to: &mut [u8]) -> Result<(), String> {
        Pair::transfer(self, from, to)
    }

    fn seen(&self) -> Option<Seen> {
        Some(Pair::seen(self))
    }

    fn end(&mut self) -> Result<(), String> {
        match self.left() {
            0 => Ok(()),
            left => Err(format!("{left} mbufs and clusters are not back")),
        }
    }
}

/// A variant.
pub(super) type Named = (&'static str, Box<dyn Mover>);

/// A pair as a variant.
pub(super) fn pair<P: CopyPolicy + Clone + 'static>(
    name: &'static str,
    plan: Plan,
    policy: P,
    env: &Env,
) -> Result<Named, Skip> {
    let pair = Pair::new(plan, policy, env.seed).map_err(Skip::new)?;
    Ok((name, Box::new(pair)))
}

/// The cell for one rate of loss, in thousandths.
pub(super) fn build(loss: u32, env: &Env) -> Result<Box<dyn CellRun>, Skip> {
    let plan = Plan {
        mtu: 1500,
        sums: true,
        tso: false,
        carry: Carry::Whole,
        loss,
        each: true,
    };
    let five = Threshold { factor: 5 };
    Transfers::of(
        vec![
            pair("reference", plan, Reference, env)?,
            pair("copy", plan, Copy, env)?,
            pair("threshold5", plan, five, env)?,
        ],
        env,
    )
}

/// Transfers by several movers, each byte looked at.
pub(super) struct Transfers {
    from: Vec<u8>,
    to: Vec<u8>,
    clock: Clock,
    variants: Vec<Named>,
}

impl Transfers {
    /// The cell with these variants, their windows open.
    pub(super) fn of(mut variants: Vec<Named>, env: &Env) -> Result<Box<dyn CellRun>, Skip> {
        let mut rng = fastrand::Rng::with_seed(env.seed);
        let room = BYTES + 8 * SHIFT;
        let from: Vec<u8> = (0..room).map(|_| rng.u8(..)).collect();
        let mut to = vec![0; room];
        for (name, mover) in &mut variants {
            for _ in 0..OPENING {
                mover
                    .transfer(&from[..BYTES], &mut to[..BYTES])
                    .map_err(|e| Skip::new(format!("{name}: {e}")))?;
            }
        }
        Ok(Box::new(Transfers {
            from,
            to,
            clock: env.clock,
            variants,
        }))
    }
}

impl CellRun for Transfers {
    fn variants(&self) -> Vec<&'static str> {
        self.variants.iter().map(|(name, _)| *name).collect()
    }

    fn placements(&self) -> usize {
        crate::placement::PLACEMENTS
    }

    fn round(&mut self, variant: usize, placement: usize) -> Result<Sample, String> {
        let (name, mover) = &mut self.variants[variant];
        let at = placement * SHIFT;
        let from = &self.from[at..at + BYTES];
        let to = &mut self.to[at..at + BYTES];
        let before = mover.seen();
        let mut ticks = 0;
        for _ in 0..TRANSFERS {
            to.fill(0);
            let start = clock::start();
            mover.transfer(from, to)?;
            ticks += clock::stop() - start;
            if from != to {
                return Err(format!("{name}: other bytes arrived"));
            }
        }
        let ns = self.clock.ns(ticks, TRANSFERS as u64).max(1.0);
        let bits = (TRANSFERS * BYTES * 8) as f64;
        let counts = before.zip(mover.seen()).map(|(a, b)| counts(&a, &b));
        Ok(Sample::new(bits / ns).with_counts(counts.unwrap_or_default()))
    }

    fn finish(&mut self) -> Result<(), String> {
        self.variants.iter_mut().try_for_each(|(_, m)| m.end())
    }
}

/// What went over the wire between two looks, per MB that was delivered.
fn counts(a: &Seen, b: &Seen) -> Counts {
    let mb = (TRANSFERS * BYTES) as f64 / 1e6;
    let per_mb = |before: u64, after: u64| (after - before) as f64 / mb;
    Counts::new()
        .with("packets", per_mb(a.packets, b.packets))
        .with("acks", per_mb(a.acks, b.acks))
        .with("lost", per_mb(a.lost, b.lost))
        .with(
            "resent",
            per_mb(a.stats.rexmit_packets, b.stats.rexmit_packets),
        )
        .with(
            "copied_bytes",
            per_mb(a.stats.copied_bytes, b.stats.copied_bytes),
        )
        .with("model_ms", per_mb(a.now, b.now))
}
