//! Many splices on one thread, under writers and readers on others.

use std::thread;
use std::time::Duration;

use fastrand::Rng;
use mbuf::BufferSet;
use sockbuf::splice::{End, Gather, SpliceOptions, Splicer};
use sockbuf::{ReceiveFlags, SendFlags};

use crate::wire::{Relay, assert_same, finish, pattern, read_all, write};

#[test]
fn splice_stress_of_many_relays_both_ways_leaves_the_pools_full() {
    let set = BufferSet::bsd_builder(16384, 4096)
        .configure(|pool| pool.cache(0))
        .build()
        .unwrap();
    let splicer = Splicer::spawn().unwrap();
    let options = SpliceOptions {
        gather: Gather::WhenBackedUp,
        idle: Some(Duration::from_secs(60)),
        ..SpliceOptions::default()
    };
    let relays: Vec<Relay> = (0..6).map(|i| Relay::of(&set, 4096 << (i % 4))).collect();
    let mut threads = Vec::new();
    for (i, relay) in relays.iter().enumerate() {
        relay
            .source
            .splice(&relay.drain, options, &splicer)
            .unwrap();
        relay
            .drain
            .splice(&relay.source, options, &splicer)
            .unwrap();
        for (n, (from, to)) in [
            (&relay.client, &relay.server),
            (&relay.server, &relay.client),
        ]
        .into_iter()
        .enumerate()
        {
            let bytes = pattern(100_000 + 10_000 * i + n);
            let (writer, reader) = (from.clone(), to.clone());
            let (seed, expected) = ((i * 2 + n) as u64, bytes.clone());
            threads.push(thread::spawn(move || {
                let mut rng = Rng::with_seed(seed);
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    let n = rng.usize(1..6000).min(rest.len());
                    write(&writer, &rest[..n]);
                    rest = &rest[n..];
                }
                finish(&writer);
            }));
            threads.push(thread::spawn(move || {
                assert_same(&read_all(&reader), &expected)
            }));
        }
        for (from, to) in [(&relay.source, &relay.drain), (&relay.drain, &relay.source)] {
            let (from, to) = (from.clone(), to.clone());
            threads.push(thread::spawn(move || {
                let state = from.wait_spliced(Some(Duration::from_secs(60)));
                assert_eq!(state.end, Some(End::Finished));
                finish(&to);
            }));
        }
    }
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert_eq!(splicer.active(), 0);
    drop((relays, splicer));
    assert!(set.is_full());
}

/// The user takes them apart and puts them together all the time, and moves bytes himself in between.
#[test]
fn splice_stress_of_unsplicing_loses_no_byte() {
    let set = BufferSet::bsd_builder(4096, 1024)
        .configure(|pool| pool.cache(0))
        .build()
        .unwrap();
    let relay = Relay::of(&set, 16384);
    let splicer = Splicer::spawn().unwrap();
    let bytes = pattern(400_000);
    let (client, server) = (relay.client.clone(), relay.server.clone());
    let sent = bytes.clone();
    let writing = thread::spawn(move || {
        sent.chunks(700).for_each(|chunk| write(&client, chunk));
        finish(&client);
    });
    let reading = thread::spawn(move || read_all(&server));
    let mut rng = Rng::with_seed(1);
    let (mut by_splice, mut by_hand, mut room) = (0, 0, [0; 3000]);
    loop {
        let options = SpliceOptions {
            max: Some(rng.u64(1..20_000)),
            ..SpliceOptions::default()
        };
        relay
            .source
            .splice(&relay.drain, options, &splicer)
            .unwrap();
        if rng.bool() {
            thread::yield_now();
            let _ = relay.source.unsplice();
        }
        let state = relay.source.wait_spliced(Some(Duration::from_secs(10)));
        by_splice += state.bytes;
        let _ = relay.source.take_error();
        if state.end == Some(End::Finished) {
            break;
        }
        if let Ok(n) = relay.source.receive(&mut room, ReceiveFlags::DONTWAIT) {
            assert_eq!(relay.drain.send(&room[..n], SendFlags::empty()), Ok(n));
            by_hand += n as u64;
        }
    }
    finish(&relay.drain);
    writing.join().unwrap();
    assert_same(&reading.join().unwrap(), &bytes);
    assert_eq!(by_splice + by_hand, bytes.len() as u64);
    println!("{by_splice} bytes by splice, {by_hand} by hand");
    drop((relay, splicer));
    assert!(set.is_full());
}
