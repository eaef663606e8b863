//! The k-th allocation fails, for every k: an error, nothing leaked, the source unchanged.

use mbuf::{BufferSet, Mbuf, Packet};
use mempool::backend::FailSwitch;

/// Inline, two clusters, inline: a reference copy takes four mbufs, a byte copy two objects.
fn source(set: &BufferSet) -> Mbuf {
    let mut m = set.header().unwrap();
    m.append(100).unwrap().fill(1);
    for (capacity, byte) in [(2048, 2), (4096, 3), (100, 4)] {
        let mut next = set.plain_with(capacity).unwrap();
        next.append(90).unwrap().fill(byte);
        m.cat(next);
    }
    m
}

#[test]
fn every_copy_survives_the_failure_of_any_allocation() {
    type Operation = fn(&Mbuf, &BufferSet) -> Result<Mbuf, mbuf::CopyError>;
    let operations: [(&str, Operation, u64); 2] = [
        ("ref_copy", |m, set| m.ref_copy(0, 370, set), 4),
        ("byte_copy", |m, set| m.byte_copy(0, 370, 64, set), 2),
    ];
    for (name, operation, needed) in operations {
        for k in 1..=needed + 1 {
            let switch = FailSwitch::new();
            let set = BufferSet::bsd_builder(64, 8)
                .fail_switch(&switch)
                .build()
                .unwrap();
            let m = source(&set);
            let before = m.to_vec();
            let in_use = set.in_use();
            switch.fail_at(k);
            let result = operation(&m, &set);
            switch.fail_at(0);
            assert_eq!(result.is_err(), k <= needed, "{name}, allocation {k}");
            drop(result);
            assert_eq!(set.in_use(), in_use, "{name}, allocation {k} leaks");
            assert!(m.to_vec() == before && m.check().is_ok());
            drop(m);
            assert!(set.is_full());
        }
    }
}
