//! The k-th allocation fails: a pass then moves less, and loses nothing.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use mbuf::BufferSet;
use mempool::backend::{FailAt, FailSwitch, Lifo};
use sockbuf::splice::{Ends, Gather, Progress, SpliceOptions, Then, Wait, pass};
use sockbuf::{Side, SockBuf};

use crate::common::{content, received};
use crate::wire::pattern;

fn failing_set() -> (BufferSet, Vec<FailSwitch>) {
    let switches = Rc::new(RefCell::new(Vec::new()));
    let collect = Rc::clone(&switches);
    let set = BufferSet::bsd_builder(256, 64)
        .configure(move |builder| {
            let (backend, switch) = FailAt::new(Lifo::new(256));
            collect.borrow_mut().push(switch);
            builder.cache(0).custom_backend(Box::new(backend))
        })
        .build()
        .unwrap();
    let switches = switches.borrow().clone();
    (set, switches)
}

/// All bytes of a source of `clusters` through a small drain; how often there was no mbuf.
fn through(clusters: &[usize], options: SpliceOptions, set: &BufferSet, fail: impl Fn()) -> usize {
    let bytes = pattern(clusters.iter().sum());
    let now = Instant::now();
    let mut progress = Progress::new(options, now);
    let mut source = SockBuf::new(1 << 20);
    let mut drain = SockBuf::with_side(Side::sending(12_000));
    let mut at = 0;
    for &len in clusters {
        source.append_stream(received(set, &bytes[at..at + len], 0));
        at += len;
    }
    source.set_urgent(bytes.len() / 2);
    fail();
    let (mut got, mut lacking) = (Vec::new(), 0);
    while got.len() < bytes.len() {
        let before = (source.len(), drain.len());
        let step = pass(
            &mut source,
            &mut drain,
            Ends::READY,
            &mut progress,
            now,
            set,
        );
        assert_eq!(source.len() + drain.len(), before.0 + before.1);
        match step.then {
            Then::Wait(Wait::Memory) => {
                assert_eq!((source.len(), drain.len()), before, "unchanged");
                lacking += 1;
            }
            Then::Wait(Wait::Space { .. }) => {
                let half = drain.len().div_ceil(2);
                got.extend(&content(&drain)[..half]);
                drain.drop_front(half).unwrap();
            }
            Then::Again => {}
            _ => {
                got.extend(content(&drain));
                drain.drop_front(drain.len()).unwrap();
            }
        }
    }
    assert!(got == bytes);
    lacking
}

#[test]
fn splice_without_an_mbuf_for_a_part_waits_and_loses_nothing() {
    let clusters = [1448, 60_000, 1448, 9000, 100, 2000, 2000, 2000, 2000, 2000];
    for gather in [Gather::Off, Gather::WhenBackedUp] {
        let options = SpliceOptions {
            gather,
            ..SpliceOptions::default()
        };
        let (set, switches) = failing_set();
        let (mut failures, mut lacked) = (0, 0);
        for switch in &switches {
            for k in 1.. {
                let before = Cell::new(0);
                let lacking = through(&clusters, options, &set, || {
                    switch.fail_at(k);
                    before.set(switch.gets());
                });
                let failed = switch.gets() - before.get() >= k;
                switch.fail_at(0);
                assert!(set.is_full(), "k {k} leaks");
                lacked += lacking;
                if !failed {
                    break;
                }
                failures += 1;
            }
        }
        println!("{gather:?}: {failures} allocations, each failed once; {lacked} waits");
        assert!(failures >= 4 && lacked >= 1);
    }
}
