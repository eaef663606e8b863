//! The copy policies under measurement, by their fixed names.

use super::{Lane, Nic, Variant};
use tcp_output::Tcb;
use tcp_output::policy::{Copy, Reference, Threshold};

/// The variants, in order; the first is the baseline.
pub(crate) const POLICIES: [&str; 3] = ["reference", "copy", "threshold5"];

/// The rule of the "tcp output copy data" proposal.
const FIVE: Threshold = Threshold { factor: 5 };

/// One lane for each of [`POLICIES`].
pub(crate) fn policies<N: Nic>(tcbs: &[Tcb]) -> [Box<dyn Variant<N>>; POLICIES.len()] {
    [
        Box::new(Lane::new(tcbs, Reference)),
        Box::new(Lane::new(tcbs, Copy)),
        Box::new(Lane::new(tcbs, FIVE)),
    ]
}

/// The lane of one of [`POLICIES`], by its name.
pub(crate) fn lane_of<N: Nic>(policy: &str, tcbs: &[Tcb]) -> Option<Box<dyn Variant<N>>> {
    let at = POLICIES.iter().position(|name| *name == policy)?;
    policies(tcbs).into_iter().nth(at)
}
