//! The k-th allocation fails, for every k and in every pool.

use std::cell::RefCell;
use std::rc::Rc;

use mbuf::BufferSet;
use mempool::backend::{FailAt, FailSwitch, Lifo};
use sockbuf::{SockBuf, WriteError};

/// A set without caches, and a switch for each of its pools.
fn failing_set() -> (BufferSet, Vec<FailSwitch>) {
    let switches = Rc::new(RefCell::new(Vec::new()));
    let collect = Rc::clone(&switches);
    let set = BufferSet::bsd_builder(64, 8)
        .configure(move |builder| {
            let (backend, switch) = FailAt::new(Lifo::new(64));
            collect.borrow_mut().push(switch);
            builder.cache(0).custom_backend(Box::new(backend))
        })
        .build()
        .expect("pools");
    let switches = switches.borrow().clone();
    (set, switches)
}

#[test]
fn write_fails_whole_or_says_how_far_it_came() {
    let (set, switches) = failing_set();
    let data: Vec<u8> = (0..150_000u32).map(|i| (i % 251) as u8).collect();
    let mut failures = 0;
    for switch in &switches {
        for k in 1.. {
            switch.fail_at(k);
            let before = switch.gets();
            let mut sb = SockBuf::new(1 << 20);
            let mut done = 0;
            while done < data.len() {
                let state = (sb.len(), sb.charge());
                match sb.write(&data[done..], &set) {
                    Ok(n) => done += n,
                    Err(WriteError::Alloc(_)) => {
                        assert_eq!((sb.len(), sb.charge()), state, "unchanged")
                    }
                    Err(full) => panic!("{full}"),
                }
            }
            let failed = switch.gets() - before >= k;
            let mut got = vec![0; sb.len()];
            sb.copy_to(0, &mut got).expect("all of it");
            assert_eq!(got, data, "k {k}");
            drop(sb);
            assert!(set.is_full(), "k {k} leaks");
            if !failed {
                break;
            }
            failures += 1;
        }
        switch.fail_at(0);
    }
    assert!(failures >= 4, "{failures} allocations failed");
}
