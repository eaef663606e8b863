//! Every measured case, written once, and the paired runner that measures it.
//!
//! A [`Group`] has cells; a [`CellSpec`] is one question at one parameter point. The
//! runner measures all variants of a cell interleaved in one process, in shuffled order,
//! over several placements of the code.

#![deny(unsafe_code)]

pub mod affinity;
pub mod cases;
pub mod cell;
pub mod clock;
pub mod machine;
pub mod placement;
pub mod published;
mod quiet;
pub mod report;
pub mod runner;
pub mod stats;
mod summary;
pub mod verdict;

pub use cell::{
    Build, CellRun, CellSpec, Counts, Env, Group, Needs, Params, Profile, Reduce, Sample, Skip,
};
pub use clock::Clock;

/// All groups with their cells, in the order in which they are shown.
pub fn groups() -> Vec<Group> {
    cases::groups()
}
