//! Feeds the driver of `tests/ops` from libFuzzer: every byte string is the life of a connection.

#![no_main]

#[path = "../../tests/ops/driver.rs"]
mod driver;

use driver::Tally;
use libfuzzer_sys::fuzz_target;
use mbuf::BufferSet;
use std::sync::LazyLock;

/// Made once: a run leaves the pools full.
static POOLS: LazyLock<BufferSet> = LazyLock::new(driver::pools);

fuzz_target!(|decisions: &[u8]| driver::run(&POOLS, decisions, &mut Tally::default()));
