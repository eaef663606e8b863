//! The cases: one file per group.

mod alloc;
mod drain;
mod free_bulk;
mod mempool;
pub mod pipeline;
mod send_path;
mod sockbuf;
mod splice;
mod tcp_copy;
mod tcp_output;

use crate::cell::Group;

/// The groups that exist, in the order in which they are shown.
pub(crate) fn groups() -> Vec<Group> {
    vec![
        mempool::group(),
        free_bulk::group(),
        alloc::group(),
        sockbuf::group(),
        tcp_copy::group(),
        splice::group(),
        drain::group(),
        pipeline::group(),
        tcp_output::group(),
    ]
}
