//! Small clusters merged while the drain is backed up.

use std::time::Instant;

use mbuf::{BufferSet, free_bulk};
use sockbuf::splice::{Ends, Gather, Progress, SpliceOptions, pass};
use sockbuf::{Side, SockBuf};

use crate::common::{content, received};
use crate::wire::{pattern, pools};

fn gathering() -> SpliceOptions {
    SpliceOptions {
        gather: Gather::WhenBackedUp,
        ..SpliceOptions::default()
    }
}

fn filled(set: &BufferSet, n: usize, each: usize) -> SockBuf {
    let mut source = SockBuf::new(1 << 20);
    let bytes = pattern(n * each);
    for chunk in bytes.chunks(each) {
        source.append_stream(received(set, chunk, 0));
    }
    source
}

#[test]
fn splice_gather_merges_runs_only_behind_a_drain_that_is_backed_up() {
    let set = pools();
    let now = Instant::now();
    for (queued, backed_up) in [(0, false), (32_000, false), (60_000, true)] {
        let mut source = filled(&set, 45, 1448);
        let mut drain = SockBuf::with_side(Side::sending(110_000));
        if queued > 0 {
            drain.append_stream(received(&set, &vec![0; queued], 0));
        }
        let queued_segs = drain.segs();
        let mut progress = Progress::new(gathering(), now);
        let step = pass(
            &mut source,
            &mut drain,
            Ends::READY,
            &mut progress,
            now,
            &set,
        );
        let segs = if backed_up { 1 } else { step.moved / 1448 };
        assert_eq!(
            drain.segs() - queued_segs,
            segs,
            "{queued} in a drain of 110000"
        );
        assert_eq!(content(&drain)[queued..], pattern(45 * 1448)[..step.moved]);
        let mut moved = drain.segments().skip(queued_segs);
        assert!(moved.all(|seg| seg.hops() == 1), "merged ones too");
    }
}

#[test]
fn splice_gather_leaves_what_is_large_or_lonely() {
    let set = pools();
    let now = Instant::now();
    for (n, each) in [(3, 1448), (4, 2049), (20, 9000)] {
        let mut source = filled(&set, n, each);
        let mut drain = SockBuf::with_side(Side::sending(300_000));
        for _ in 0..3 {
            drain.append_stream(received(&set, &[0; 60_000], 0));
        }
        let mut progress = Progress::new(gathering(), now);
        let step = pass(
            &mut source,
            &mut drain,
            Ends::READY,
            &mut progress,
            now,
            &set,
        );
        assert_eq!(drain.segs() - 3, step.moved / each);
    }
}

/// Figures, not a test: what a pass and the freeing of what it moved cost per megabyte, of both
/// ways in one run.
#[test]
#[ignore = "measures; by hand, in release"]
fn splice_gather_figures() {
    let set = pools();
    let mut cost = [Vec::new(), Vec::new()];
    for round in 0..400 {
        let way = round % 2;
        let options = [SpliceOptions::default(), gathering()][way];
        let mut source = filled(&set, 45, 1448);
        let mut drain = SockBuf::with_side(Side::sending(1 << 17));
        for _ in 0..33 {
            drain.append_stream(received(&set, &[0; 2000], 0));
        }
        let mut progress = Progress::new(options, Instant::now());
        let begun = Instant::now();
        let step = pass(
            &mut source,
            &mut drain,
            Ends::READY,
            &mut progress,
            begun,
            &set,
        );
        let passed = begun.elapsed();
        let moved = step.moved as f64 / 1e6;
        let mut all = [drain.take_all()];
        let begun = Instant::now();
        free_bulk(&mut all);
        let freed = begun.elapsed();
        cost[way].push((passed.as_secs_f64() / moved, freed.as_secs_f64() / moved));
    }
    let median = |of: fn(&(f64, f64)) -> f64, way: usize| {
        let mut all: Vec<f64> = cost[way].iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2] * 1e6
    };
    for (name, of) in [
        ("pass", (|c| c.0) as fn(&(f64, f64)) -> f64),
        ("free", |c| c.1),
    ] {
        let (off, on) = (median(of, 0), median(of, 1));
        println!(
            "{name}: {off:.1} us/MB off, {on:.1} us/MB gathering, ratio {:.2}",
            on / off
        );
    }
}
