//! What a packet is built from when memory is short: every rung of the ladder, down to the timer.

mod common;

use common::{NOW, failing_set, pattern, see, spliced, storage, tcb, v4};
use mbuf::{BufferSet, Mbuf};
use sockbuf::SockBuf;
use tcp_output::policy::{Copy, Reference};
use tcp_output::*;

/// Ten segments in ten clusters of a class of their own, and `classes` with one cluster each for
/// packets. Besides, `mbufs` are free.
fn short_of_memory(classes: &[usize], mbufs: usize) -> (BufferSet, SockBuf, Vec<Mbuf>) {
    let all = [2048usize, 4096, 12288, 16384, 65536];
    let mut builder = BufferSet::builder(64).class(1500, 10);
    for class in all {
        builder = builder.class(class, 1);
    }
    let set = builder
        .configure(|pool| pool.cache(0))
        .build()
        .expect("pools");
    let mut sb = SockBuf::new(1 << 20);
    for i in 0..10 {
        let mut m = set.plain_with(1500).expect("cluster");
        m.append(1448)
            .expect("room")
            .copy_from_slice(&pattern(i * 1448, 1448));
        sb.append_stream(m);
    }
    let taken = all.iter().filter(|class| !classes.contains(class));
    let mut held: Vec<Mbuf> = taken
        .map(|&class| set.header_with(class).expect("first of its class"))
        .collect();
    while set.mbuf_pool().raw().in_use() < 64 - mbufs {
        held.push(set.plain().expect("free"));
    }
    (set, sb, held)
}

/// Storage, payload, and whether it is for the NIC to cut.
type Shape = (&'static str, usize, bool);

/// Sends with these classes and mbufs, and says whether output stopped for want of memory.
fn expect(
    policy: impl CopyPolicy,
    classes: &[usize],
    mbufs: usize,
    shapes: &[Shape],
    stopped: bool,
) {
    let (set, sb, held) = short_of_memory(classes, mbufs);
    let mut sender = Sender::new(tcb(v4(), 1460), policy);
    let mut packets = Vec::new();
    let mut out = |packet: Mbuf| {
        packets.push(packet);
        Ok(())
    };
    let result = sender.output(&sb, &set, NOW, &mut out);
    assert_eq!(result.is_err(), stopped, "{result:?}");
    let tcb = sender.tcb();
    let mut stream = Vec::new();
    for (packet, &(place, len, tso)) in packets.iter().zip(shapes) {
        let seen = see(packet);
        assert_eq!(storage(packet), place);
        assert_eq!((seen.payload.len(), seen.offload.tso_mss > 0), (len, tso));
        assert_eq!(Seq(seen.seq) - tcb.una, stream.len() as u32);
        stream.extend_from_slice(&seen.payload);
        let ends = stream.len() == sb.len();
        assert_eq!(seen.flags.contains(&"PSH"), ends);
    }
    assert_eq!(packets.len(), shapes.len());
    assert!(stream == pattern(0, stream.len()));
    assert_eq!(tcb.send.nxt - tcb.una, stream.len() as u32);
    assert!(tcb.send.rexmt.is_some(), "something will try again");
    assert_eq!(tcb.stats.no_buffers, u64::from(stopped));
    assert_eq!(tcb.stats.fallbacks, shapes.len() as u64);
    drop((packets, sb, held));
    assert!(set.is_full(), "leak");
}

#[test]
fn a_copy_takes_the_next_class() {
    let whole = ("1 mbuf (cl 65536), lead 64", 14480, true);
    expect(Copy, &[2048, 65536], 50, &[whole], false);
}

#[test]
fn a_copy_without_clusters_refers() {
    let whole = (
        "11 mbufs (hdr + 10 by ref/small copy), lead 64",
        14480,
        true,
    );
    expect(Copy, &[2048, 12288], 40, &[whole], false);
}

#[test]
fn a_copy_without_mbufs_for_references_takes_fewer_segments() {
    let eight = ("1 mbuf (cl 12288), lead 64", 8 * 1448, true);
    let one = ("1 mbuf (cl 2048), lead 64", 1448, false);
    expect(Copy, &[2048, 12288], 2, &[eight, one], true);
}

#[test]
fn references_that_cannot_be_had_are_copied() {
    let whole = ("1 mbuf (cl 16384), lead 64", 14480, true);
    expect(Reference, &[16384, 65536], 1, &[whole], false);
    let two = ("1 mbuf (cl 4096), lead 64", 2 * 1448, true);
    expect(Reference, &[4096], 1, &[two], true);
    let one = ("1 mbuf (cl 2048), lead 64", 1448, false);
    expect(Reference, &[2048], 1, &[one], true);
}

#[test]
fn below_the_last_rung_a_timer_waits() {
    expect(Copy, &[], 1, &[], true);
    expect(Copy, &[65536], 0, &[], true);
    expect(Reference, &[], 5, &[], true);
}

#[test]
fn a_header_too_long_for_an_mbuf_falls_back_inside_its_cluster() {
    // IPv6 with three SACK blocks: 100 bytes of headers, which take a cluster by themselves.
    let (set, sb, _held) = short_of_memory(&[4096], 1);
    let mut tcb = tcb(common::v6(), 1460);
    tcb.rcv.sacks = 3;
    let mut sender = Sender::new(tcb, Reference);
    let mut packets = Vec::new();
    let mut out = |packet: Mbuf| {
        packets.push((storage(&packet), see(&packet).payload.len()));
        Ok(())
    };
    // Each packet is gone before the next is built. The 280 bytes that stay behind fit two smaller
    // classes, which are both empty.
    let error = sender
        .output(&sb, &set, NOW, &mut out)
        .expect_err("two classes are tried, not all");
    assert_eq!((error.packets, error.bytes), (10, 14200));
    let full = ("1 mbuf (cl 4096), lead 64".to_string(), 1420);
    assert_eq!(packets, vec![full; 10]);
}

#[test]
fn the_kth_allocation_fails_for_every_k() {
    for (name, policy) in [
        ("copy", &Copy as &dyn CopyPolicy),
        ("reference", &Reference as &dyn CopyPolicy),
    ] {
        let (set, switches) = failing_set(128, 32);
        let sb = spliced(&set, 20, 1448);
        for (pool, switch) in switches.iter().enumerate() {
            for k in 1.. {
                let before = switch.gets();
                switch.fail_at(k);
                let mut sender = Sender::new(tcb(v4(), 1460), policy);
                let mut stream = Vec::new();
                let mut out = |packet: Mbuf| {
                    stream.extend(see(&packet).payload);
                    Ok(())
                };
                let result = sender.output(&sb, &set, NOW, &mut out);
                let failed = switch.gets() - before >= k;
                println!("{name}, pool {pool}, allocation {k}: failed {failed}, {result:?}");
                let stats = sender.tcb().stats;
                assert_eq!(stats.no_buffers + stats.fallbacks, u64::from(failed));
                assert_eq!(result.is_err(), stats.no_buffers > 0);
                assert_eq!(result.is_ok(), stream.len() == sb.len());
                assert!(stream == pattern(0, stream.len()));
                assert!(sender.tcb().send.rexmt.is_some());
                if !failed {
                    break;
                }
            }
            switch.fail_at(0);
        }
    }
}
