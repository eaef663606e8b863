//! The cases: one file per group.

mod free_bulk;

use crate::cell::Group;

/// The groups that exist, in the order in which they are shown.
pub(crate) fn groups() -> Vec<Group> {
    vec![free_bulk::group()]
}
