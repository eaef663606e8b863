//! Splicing: pure passes, sockets over wires in memory, faults that others had.

mod allocation;
mod faults;
mod gather;
mod model;
mod pass;
mod regress;
mod setup;
mod threads;
mod wire;

#[path = "../common/mod.rs"]
mod common;
