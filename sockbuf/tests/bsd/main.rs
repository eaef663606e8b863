//! BSD's socket buffer functions, edge by edge.

#[path = "../common/mod.rs"]
mod common;

mod compress;
mod drop;
mod faults;
mod records;
mod sizes;
