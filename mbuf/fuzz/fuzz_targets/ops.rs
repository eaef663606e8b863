//! Feeds the driver of `tests/model` from libFuzzer: every byte string is a run over the whole
//! operation set, compared with the model after each step.

#![no_main]

#[path = "../../tests/model/driver/mod.rs"]
mod driver;

use driver::Tally;
use libfuzzer_sys::fuzz_target;
use mbuf::BufferSet;
use std::sync::LazyLock;

/// Made once: a run leaves the pools full.
static POOLS: LazyLock<BufferSet> = LazyLock::new(driver::pools);

fuzz_target!(|decisions: &[u8]| driver::run(&POOLS, decisions, &mut Tally::new()));
