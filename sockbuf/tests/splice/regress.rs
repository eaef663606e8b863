//! BSD's regression scenarios for spliced sockets, one each: bytes and digest of what comes out at the
//! other end. The middle is spliced by a thread.

use std::thread;
use std::time::{Duration, Instant};

use sockbuf::splice::{End, SpliceOptions, Splicer, Verdict};
use sockbuf::{ReceiveFlags, SendFlags, Shutdown, Socket, SocketError};

use crate::wire::{Relay, assert_same, finish, pair, pattern, pools, read_all, read_now, write};

const ANY: SpliceOptions = SpliceOptions {
    max: None,
    idle: None,
    gather: sockbuf::splice::Gather::Off,
};

const SOON: Option<Duration> = Some(Duration::from_secs(10));

fn max(max: u64) -> SpliceOptions {
    SpliceOptions {
        max: Some(max),
        ..ANY
    }
}

fn idle(ms: u64) -> SpliceOptions {
    SpliceOptions {
        idle: Some(Duration::from_millis(ms)),
        ..ANY
    }
}

fn spliced(options: SpliceOptions) -> (Relay, Splicer) {
    let relay = Relay::new(&pools());
    let splicer = Splicer::spawn().unwrap();
    relay
        .source
        .splice(&relay.drain, options, &splicer)
        .unwrap();
    (relay, splicer)
}

/// Writes by another thread, then ends the stream.
fn writer(socket: &Socket, bytes: Vec<u8>, chunk: usize) -> thread::JoinHandle<()> {
    let socket = socket.clone();
    thread::spawn(move || {
        bytes.chunks(chunk).for_each(|chunk| write(&socket, chunk));
        finish(&socket);
    })
}

/// The end of the source's stream is passed on as soon as the splice is over.
fn pass_on_end(source: &Socket, drain: &Socket) {
    assert_eq!(source.wait_spliced(SOON).end, Some(End::Finished));
    finish(drain);
}

#[track_caller]
fn read_exactly(socket: &Socket, n: usize) -> Vec<u8> {
    let mut got = vec![0; n];
    assert_eq!(socket.receive(&mut got, ReceiveFlags::WAITALL), Ok(n));
    got
}

/// All of `bytes` from client to server.
fn one_way(relay: &Relay, bytes: &[u8], chunk: usize) {
    let writing = writer(&relay.client, bytes.to_vec(), chunk);
    let reading = thread::spawn({
        let server = relay.server.clone();
        move || read_all(&server)
    });
    writing.join().unwrap();
    pass_on_end(&relay.source, &relay.drain);
    assert_same(&reading.join().unwrap(), bytes);
    assert_eq!(relay.source.splice_state().bytes, bytes.len() as u64);
}

#[test]
fn splice_one_way() {
    let (relay, _splicer) = spliced(ANY);
    one_way(&relay, &pattern(1_000_000), 16384);
}

#[test]
fn splice_two_way() {
    let (relay, splicer) = spliced(ANY);
    relay.drain.splice(&relay.source, ANY, &splicer).unwrap();
    let (request, response) = (pattern(300_000), pattern(700_001));
    let writers = [
        writer(&relay.client, request.clone(), 5000),
        writer(&relay.server, response.clone(), 7000),
    ];
    let readers = [&relay.server, &relay.client].map(|socket| {
        let socket = socket.clone();
        thread::spawn(move || read_all(&socket))
    });
    writers.into_iter().for_each(|w| w.join().unwrap());
    pass_on_end(&relay.source, &relay.drain);
    pass_on_end(&relay.drain, &relay.source);
    let [got_request, got_response] = readers.map(|r| r.join().unwrap());
    assert_same(&got_request, &request);
    assert_same(&got_response, &response);
}

#[test]
fn splice_max_61_of_251_then_copy() {
    let (relay, _splicer) = spliced(max(61));
    let bytes = pattern(251);
    write(&relay.client, &bytes);
    let state = relay.source.wait_spliced(SOON);
    assert_eq!(
        (state.bytes, state.end),
        (61, Some(End::Verdict(Verdict::MaxReached { max: 61 })))
    );
    assert_eq!(
        relay.source.take_error(),
        Some(Verdict::MaxReached { max: 61 }.into())
    );
    let rest = read_exactly(&relay.source, 190);
    write(&relay.drain, &rest);
    finish(&relay.drain);
    assert_same(&read_all(&relay.server), &bytes);
    assert_eq!(
        relay.source.splice_state().bytes,
        61,
        "until the next splice"
    );
}

#[test]
fn splice_max_exactly_reached() {
    let (relay, _splicer) = spliced(max(251));
    write(&relay.client, &pattern(251));
    finish(&relay.client);
    let end = relay.source.wait_spliced(SOON).end;
    assert_eq!(end, Some(End::Verdict(Verdict::MaxReached { max: 251 })));
    assert_same(&read_exactly(&relay.server, 251), &pattern(251));
    assert_eq!(
        relay.source.take_error(),
        Some(Verdict::MaxReached { max: 251 }.into())
    );
    assert_eq!(
        read_all(&relay.source),
        [],
        "nothing is left before the end"
    );
}

#[test]
fn splice_idle_timeout() {
    let (relay, _splicer) = spliced(idle(30));
    let begun = Instant::now();
    let state = relay.source.wait_spliced(SOON);
    let verdict = Verdict::Idle {
        idle: Duration::from_millis(30),
    };
    assert_eq!(state.end, Some(End::Verdict(verdict)));
    assert!(begun.elapsed() >= Duration::from_millis(25));
    assert_eq!(relay.source.take_error(), Some(verdict.into()));
    write(&relay.client, b"late");
    assert_eq!(read_exactly(&relay.source, 4), b"late");
}

/// By hand, so that time is ours.
#[test]
fn splice_idle_timeout_begins_anew_with_every_progress() {
    let relay = Relay::new(&pools());
    let splicer = Splicer::by_hand();
    let begun = Instant::now();
    relay
        .source
        .splice(&relay.drain, idle(1000), &splicer)
        .unwrap();
    let at = |ms| begun + Duration::from_millis(ms);
    let turns = |now| while splicer.turn(now) > 0 {};
    turns(at(0));
    assert!(splicer.next_due().unwrap() >= at(1000));
    for ms in [900, 1800, 2700] {
        write(&relay.client, b"x");
        turns(at(ms));
        assert!(relay.source.splice_state().active, "at {ms}");
    }
    turns(at(3600));
    assert!(relay.source.splice_state().active);
    turns(at(3700));
    let end = relay.source.splice_state().end;
    assert!(
        matches!(end, Some(End::Verdict(Verdict::Idle { .. }))),
        "{end:?}"
    );
}

#[test]
fn splice_delayed_start() {
    let relay = Relay::new(&pools());
    let bytes = pattern(40_000);
    write(&relay.client, &bytes);
    finish(&relay.client);
    thread::sleep(Duration::from_millis(20));
    let splicer = Splicer::spawn().unwrap();
    relay.source.splice(&relay.drain, ANY, &splicer).unwrap();
    pass_on_end(&relay.source, &relay.drain);
    assert_same(&read_all(&relay.server), &bytes);
}

#[test]
fn splice_before_data() {
    let (relay, _splicer) = spliced(ANY);
    thread::sleep(Duration::from_millis(10));
    one_way(&relay, &pattern(100_000), 1000);
}

#[test]
fn splice_before_the_drain_is_connected() {
    let set = pools();
    let (client, source) = pair(&set);
    let limits = crate::wire::limits(65536);
    let drain = Socket::new(&set, limits, ());
    let end = drain.protocol_end();
    end.connecting();
    let splicer = Splicer::by_hand();
    source.splice(&drain, ANY, &splicer).unwrap();
    write(&client, b"early");
    let turns = || while splicer.turn(Instant::now()) > 0 {};
    turns();
    assert_eq!(end.with_send(|sb| sb.len()), 0);
    end.connected();
    turns();
    assert_eq!(
        end.with_send(|sb| sb.len()),
        5,
        "the connection is an event"
    );
}

#[test]
fn splice_after_data() {
    let relay = Relay::new(&pools());
    let bytes = pattern(50_000);
    write(&relay.client, &bytes[..20_000]);
    let first = read_exactly(&relay.source, 5_000);
    write(&relay.drain, &first);
    let splicer = Splicer::spawn().unwrap();
    relay.source.splice(&relay.drain, ANY, &splicer).unwrap();
    write(&relay.client, &bytes[20_000..]);
    finish(&relay.client);
    pass_on_end(&relay.source, &relay.drain);
    assert_same(&read_all(&relay.server), &bytes);
}

#[test]
fn splice_half_close_of_the_client_leaves_the_other_way_open() {
    let (relay, splicer) = spliced(ANY);
    relay.drain.splice(&relay.source, ANY, &splicer).unwrap();
    write(&relay.client, b"request");
    finish(&relay.client);
    pass_on_end(&relay.source, &relay.drain);
    assert_eq!(read_all(&relay.server), b"request");
    let response = pattern(30_000);
    write(&relay.server, &response);
    assert_same(&read_exactly(&relay.client, 30_000), &response);
    assert!(relay.drain.splice_state().active);
}

#[test]
fn splice_half_close_of_the_drain_ends_it() {
    let (relay, _splicer) = spliced(ANY);
    finish(&relay.drain);
    let end = relay.source.wait_spliced(SOON).end;
    assert!(matches!(end, Some(End::DrainShut { .. })), "{end:?}");
    assert!(matches!(
        relay.source.take_error(),
        Some(SocketError::Shut { .. })
    ));
    write(&relay.client, b"still mine");
    assert_eq!(read_exactly(&relay.source, 10), b"still mine");
}

#[test]
fn splice_reset_of_the_source() {
    let (relay, _splicer) = spliced(ANY);
    let end = relay.source.protocol_end();
    end.report(SocketError::Reset);
    end.disconnected();
    let state = relay.source.wait_spliced(SOON);
    assert_eq!(state.end, Some(End::SourceFailed(SocketError::Reset)));
    assert_eq!(relay.source.take_error(), Some(SocketError::Reset));
    assert_eq!(relay.drain.take_error(), None, "that is not its");
}

#[test]
fn splice_error_on_the_drain() {
    let (relay, _splicer) = spliced(ANY);
    relay.drain.protocol_end().report(SocketError::Unreachable);
    let state = relay.source.wait_spliced(SOON);
    assert_eq!(state.end, Some(End::DrainFailed(SocketError::Unreachable)));
    assert_eq!(relay.source.take_error(), Some(SocketError::Unreachable));
    assert_eq!(
        relay.drain.take_error(),
        Some(SocketError::Unreachable),
        "and its own user's"
    );
}

#[test]
fn splice_error_on_the_source_wakes_its_reader() {
    let (relay, _splicer) = spliced(ANY);
    let reader = thread::spawn({
        let source = relay.source.clone();
        move || source.receive(&mut [0; 10], ReceiveFlags::empty())
    });
    thread::sleep(Duration::from_millis(10));
    relay.source.protocol_end().report(SocketError::NoAnswer);
    assert_eq!(reader.join().unwrap(), Err(SocketError::NoAnswer));
}

#[test]
fn splice_urgent_byte_in_the_middle() {
    let relay = Relay::new(&pools());
    let splicer = Splicer::by_hand();
    write(&relay.client, b"before");
    assert_eq!(relay.client.send(b"!", SendFlags::OOB), Ok(1));
    write(&relay.client, b"after");
    relay.source.splice(&relay.drain, ANY, &splicer).unwrap();
    while splicer.turn(Instant::now()) > 0 {}
    let mut room = [0; 100];
    let n = relay
        .server
        .receive(&mut room, ReceiveFlags::empty())
        .unwrap();
    assert_eq!((&room[..n], relay.server.at_mark()), (&b"before"[..], true));
    assert_eq!(read_now(&relay.server), b"!after");
}

#[test]
fn splice_loop_of_three_sockets() {
    let set = pools();
    let (a, b) = pair(&set);
    let (c, d) = pair(&set);
    let splicer = Splicer::by_hand();
    // What b receives d receives, and so on round.
    for (from, to) in [(&b, &c), (&d, &d), (&c, &b), (&a, &a)] {
        write(from, b"");
        from.splice(to, ANY, &splicer).unwrap();
    }
    a.protocol_end().append(set.copy_in(b"round", 0).unwrap());
    let mut turns = 0;
    while splicer.turn(Instant::now()) > 0 {
        turns += 1;
        assert!(turns < 2000);
    }
    let looped = [&a, &b, &c, &d].into_iter().filter(|socket| {
        matches!(
            socket.splice_state().end,
            Some(End::Verdict(Verdict::Loop { .. }))
        )
    });
    assert_eq!(looped.count(), 1);
}

#[test]
fn splice_writer_that_does_not_wait() {
    let (relay, _splicer) = spliced(ANY);
    let bytes = pattern(500_000);
    let reading = thread::spawn({
        let server = relay.server.clone();
        move || read_all(&server)
    });
    let mut at = 0;
    while at < bytes.len() {
        match relay.client.send(&bytes[at..], SendFlags::DONTWAIT) {
            Ok(n) => at += n,
            Err(SocketError::WouldBlock { .. }) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
    finish(&relay.client);
    pass_on_end(&relay.source, &relay.drain);
    assert_same(&reading.join().unwrap(), &bytes);
}

#[test]
fn splice_slow_reader() {
    let set = pools();
    let relay = Relay::of(&set, 8192);
    let splicer = Splicer::spawn().unwrap();
    relay.source.splice(&relay.drain, ANY, &splicer).unwrap();
    let bytes = pattern(100_000);
    let writing = writer(&relay.client, bytes.clone(), 10_000);
    let mut got = Vec::new();
    while got.len() < bytes.len() {
        let n = (bytes.len() - got.len()).min(2000);
        got.extend(read_exactly(&relay.server, n));
        thread::sleep(Duration::from_micros(200));
    }
    writing.join().unwrap();
    pass_on_end(&relay.source, &relay.drain);
    assert_same(&got, &bytes);
}

#[test]
fn splice_again_after_unsplice() {
    let (relay, splicer) = spliced(ANY);
    let bytes = pattern(3000);
    write(&relay.client, &bytes[..1000]);
    let mut got = read_exactly(&relay.server, 1000);
    assert_eq!(relay.source.unsplice(), Ok(1000));
    write(&relay.client, &bytes[1000..2000]);
    write(&relay.drain, &read_exactly(&relay.source, 1000));
    relay.source.splice(&relay.drain, ANY, &splicer).unwrap();
    assert_eq!(relay.source.splice_state().bytes, 0, "counted anew");
    write(&relay.client, &bytes[2000..]);
    got.extend(read_exactly(&relay.server, 2000));
    assert_same(&got, &bytes);
    assert_eq!(relay.source.unsplice(), Ok(1000));
}

#[test]
fn splice_writes_of_one_byte() {
    let (relay, _splicer) = spliced(ANY);
    one_way(&relay, &pattern(3000), 1);
}

#[test]
fn splice_a_spliced_source_looks_empty() {
    let relay = Relay::new(&pools());
    let splicer = Splicer::by_hand();
    relay.source.splice(&relay.drain, ANY, &splicer).unwrap();
    write(&relay.client, b"not for you");
    let refused = relay.source.receive(&mut [0; 10], ReceiveFlags::DONTWAIT);
    assert!(
        matches!(refused, Err(SocketError::WouldBlock { available: 0, .. })),
        "{refused:?}"
    );
    let reader = thread::spawn({
        let source = relay.source.clone();
        move || {
            let mut room = [0; 11];
            source
                .receive(&mut room, ReceiveFlags::WAITALL)
                .map(|n| room[..n].to_vec())
        }
    });
    thread::sleep(Duration::from_millis(10));
    assert!(!reader.is_finished(), "and its reader sleeps");
    relay.source.unsplice().unwrap();
    assert_eq!(reader.join().unwrap().unwrap(), b"not for you");
}

#[test]
fn splice_ends_when_its_source_is_closed_by_its_user() {
    let (relay, splicer) = spliced(ANY);
    relay.source.shutdown(Shutdown::Read).unwrap();
    assert_eq!(relay.source.wait_spliced(SOON).end, Some(End::Finished));
    let Relay { source, drain, .. } = relay;
    drain.splice(&source, ANY, &splicer).unwrap();
    drop(drain);
    while splicer.active() > 0 {
        thread::yield_now();
    }
}
