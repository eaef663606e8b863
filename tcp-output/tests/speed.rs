//! How long one decision takes, in nanoseconds. Not judged here: run it in release on a quiet machine,
//! `cargo test -p tcp-output --release --test speed -- --ignored --nocapture`.

mod common;

use std::hint::black_box;
use std::time::Instant;

use common::{NOW, pattern, set, tcb, v4};
use sockbuf::SockBuf;
use tcp_output::build::build;
use tcp_output::policy::Reference;
use tcp_output::*;

/// The best of many batches: what the work costs when nothing disturbs it.
fn best_ns(mut work: impl FnMut()) -> f64 {
    const BATCH: u32 = 10_000;
    let mut best = f64::MAX;
    for _ in 0..200 {
        let start = Instant::now();
        for _ in 0..BATCH {
            work();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(BATCH));
    }
    best
}

fn view(queued: usize) -> SendView {
    SendView {
        queued,
        hiwat: 1 << 20,
        more_coming: false,
        force: false,
        tso: true,
    }
}

#[test]
#[ignore = "a measurement"]
fn decide_and_build() {
    let tcb = tcb(v4(), 1460);
    for (name, queued) in [
        ("silent", 0),
        ("one segment", 1448),
        ("TSO frame", 60 * 1448),
    ] {
        let view = view(queued);
        assert_eq!(decide(&tcb, &view, NOW, None).segment.is_some(), queued > 0);
        let ns = best_ns(|| {
            black_box(decide(black_box(&tcb), black_box(&view), NOW, None));
        });
        println!("decide, {name}: {ns:.1} ns");
    }
    let set = set();
    let mut sb = SockBuf::new(1 << 20);
    sb.write(&pattern(0, 20), &set).expect("space");
    let mode = ChecksumMode::default();
    let mut owing = tcb.clone();
    owing.flags |= TcbFlags::ACK_NOW;
    for (name, tcb, queued) in [("pure ACK", &owing, 0), ("20 bytes", &tcb, 20)] {
        let mut segment = decide(tcb, &view(queued), NOW, None).segment.expect("due");
        let ns = best_ns(|| {
            black_box(build(
                tcb,
                black_box(&mut segment),
                &sb,
                &Reference,
                &set,
                mode,
            ))
            .expect("memory");
        });
        println!("build, {name}: {ns:.1} ns");
    }
}
