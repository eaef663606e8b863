//! Faults that others had, by their number.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sockbuf::splice::{End, Ends, Progress, SpliceOptions, Splicer, Then, Verdict, Wait, pass};
use sockbuf::{Protocol, ProtocolEnd, ReceiveFlags, SockBuf, Socket, SocketError};

use crate::common::received;
use crate::wire::{
    Relay, assert_same, finish, limits, pair, pattern, pools, read_all, read_now, write,
};

const ANY: SpliceOptions = SpliceOptions {
    max: None,
    idle: None,
    gather: sockbuf::splice::Gather::Off,
};

#[test]
fn fault_n2_a_ring_of_sockets_ends_after_a_bounded_number_of_rounds() {
    let set = pools();
    // a sends what it receives: to b, which sends it back.
    let (a, b) = pair(&set);
    let splicer = Splicer::by_hand();
    b.splice(&b, ANY, &splicer).unwrap();
    write(&a, b"1");
    a.splice(&a, ANY, &splicer).unwrap();
    let mut passes = 0;
    loop {
        match splicer.turn(Instant::now()) {
            0 => break,
            n => passes += n,
        }
        assert!(passes < 1000, "it runs for ever");
    }
    let ends = [&a, &b].map(|socket| socket.splice_state().end);
    let looped = Some(End::Verdict(Verdict::Loop { hops: 128 }));
    assert!(ends.contains(&looped), "{ends:?}");
    println!("{passes} passes");
    let cut = if ends[0] == looped { &a } else { &b };
    assert_eq!(read_now(cut), b"1", "the byte is still there");
    assert_eq!(cut.take_error(), None, "told to the reader");
}

#[test]
fn fault_n2_a_ring_ends_on_a_thread_too() {
    let set = pools();
    let (a, b) = pair(&set);
    let splicer = Splicer::spawn().unwrap();
    a.splice(&a, ANY, &splicer).unwrap();
    write(&b, b"1");
    b.splice(&b, ANY, &splicer).unwrap();
    let ended = [&a, &b].map(|s| s.wait_spliced(Some(Duration::from_secs(2))));
    assert!(ended.iter().any(|state| !state.active), "{ended:?}");
}

#[test]
fn fault_n4_what_is_queued_already_is_moved_without_an_event() {
    let set = pools();
    let relay = Relay::new(&set);
    let splicer = Splicer::spawn().unwrap();
    let bytes = pattern(10 * 1024);
    write(&relay.client, &bytes);
    relay.source.splice(&relay.drain, ANY, &splicer).unwrap();
    let mut got = vec![0; bytes.len()];
    let n = relay
        .server
        .receive(&mut got, ReceiveFlags::WAITALL)
        .unwrap();
    assert_same(&got[..n], &bytes);
    // And no wake is lost afterwards.
    for chunk in bytes.chunks(100) {
        write(&relay.client, chunk);
        let n = relay
            .server
            .receive(&mut got, ReceiveFlags::empty())
            .unwrap();
        assert_eq!(&got[..n], chunk);
    }
    assert_eq!(relay.source.unsplice(), Ok(2 * 10 * 1024));
}

#[test]
fn fault_n6_the_largest_maximum_is_unlimited() {
    let set = pools();
    for max in [u64::MAX, usize::MAX as u64, u64::MAX - 1] {
        let options = SpliceOptions {
            max: Some(max),
            ..ANY
        };
        let now = Instant::now();
        let mut progress = Progress::new(options, now);
        let mut source = SockBuf::new(65536);
        let mut drain = SockBuf::new(65536);
        for _ in 0..3 {
            source.append_stream(received(&set, &[1; 1000], 0));
            let step = pass(
                &mut source,
                &mut drain,
                Ends::READY,
                &mut progress,
                now,
                &set,
            );
            assert_eq!((step.moved, step.then), (1000, Then::Wait(Wait::Data)));
        }
        progress.moved(usize::MAX, now);
        progress.moved(usize::MAX, now);
        assert_eq!(progress.bytes(), u64::MAX, "and not a small number again");
    }
}

#[test]
fn fault_n6_idle_for_longer_than_the_clock_counts_is_for_ever() {
    let now = Instant::now();
    let options = SpliceOptions {
        idle: Some(Duration::MAX),
        ..ANY
    };
    let progress = Progress::new(options, now);
    assert_eq!((progress.deadline(), progress.idle_at(now)), (None, None));
}

#[test]
fn fault_n8_empty_is_not_the_end_and_the_end_comes_after_the_last_byte() {
    let set = pools();
    let relay = Relay::of(&set, 4096);
    let splicer = Splicer::by_hand();
    relay.source.splice(&relay.drain, ANY, &splicer).unwrap();
    let turn = || while splicer.turn(Instant::now()) > 0 {};
    turn();
    assert!(relay.source.splice_state().active, "empty, and open");
    let bytes = pattern(4096 * 4);
    let mut at = 0;
    while at < bytes.len() {
        // Until all buffers on the way are full.
        match relay
            .client
            .send(&bytes[at..], sockbuf::SendFlags::DONTWAIT)
        {
            Ok(n) => at += n,
            Err(SocketError::WouldBlock { .. }) => break,
            Err(error) => panic!("{error}"),
        }
        turn();
    }
    finish(&relay.client);
    turn();
    assert!(relay.source.splice_state().active, "bytes are on their way");
    let mut got = read_now(&relay.server);
    while relay.source.splice_state().active {
        turn();
        got.extend(read_now(&relay.server));
    }
    assert_eq!(relay.source.splice_state().end, Some(End::Finished));
    finish(&relay.drain);
    got.extend(read_all(&relay.server));
    assert_same(&got, &bytes[..at]);
}

#[test]
fn fault_a3_counters_equal_a_recount_after_each_pass() {
    let set = pools();
    let now = Instant::now();
    let mut progress = Progress::new(ANY, now);
    let mut source = SockBuf::new(1 << 20);
    let mut drain = SockBuf::new(5000);
    for len in [100, 2000, 30_000, 1, 1448] {
        source.append_stream(received(&set, &vec![1; len], 3));
    }
    loop {
        let step = pass(
            &mut source,
            &mut drain,
            Ends::READY,
            &mut progress,
            now,
            &set,
        );
        for sb in [&source, &drain] {
            let recount = |of: fn(mbuf::Segment<'_>) -> usize| sb.segments().map(of).sum::<usize>();
            assert_eq!(sb.len(), recount(|s| s.len()));
            assert_eq!(sb.charge(), recount(|s| s.charge()));
            assert_eq!(sb.segs(), recount(|_| 1));
        }
        match step.then {
            Then::Wait(Wait::Data) => break,
            _ => drain.drop_front(drain.len().min(1500)).unwrap(),
        }
    }
    assert_eq!(progress.bytes(), 33_549);
}

/// Unwinds, once.
struct Faulty(AtomicBool);

impl Protocol for Faulty {
    fn received(&self, _: &ProtocolEnd, _: usize) {
        assert!(self.0.swap(true, Ordering::Relaxed), "a fault of its own");
    }
}

#[test]
fn splice_whose_protocol_unwinds_goes_on_or_ends_and_leaves_the_sockets_to_their_users() {
    let set = pools();
    for max in [None, Some(100)] {
        let source = Socket::new(&set, limits(65536), Faulty(AtomicBool::new(false)));
        let drain = Socket::new(&set, limits(65536), ());
        source.protocol_end().connected();
        drain.protocol_end().connected();
        let splicer = Splicer::by_hand();
        let options = SpliceOptions { max, ..ANY };
        source.splice(&drain, options, &splicer).unwrap();
        source
            .protocol_end()
            .append(set.copy_in(&[7; 100], 0).unwrap());
        let turn = || splicer.turn(Instant::now());
        std::panic::catch_unwind(AssertUnwindSafe(turn)).unwrap_err();
        assert_eq!(source.splice_state().bytes, 100);
        assert_eq!(source.splice_state().active, max.is_none());
        if max.is_none() {
            source
                .protocol_end()
                .append(set.copy_in(&[7; 50], 0).unwrap());
            splicer.turn(Instant::now());
            assert_eq!(source.unsplice().unwrap(), 150);
        }
        source.splice(&drain, ANY, &splicer).unwrap();
    }
    assert!(set.is_full());
}
