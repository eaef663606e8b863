//! The k-th allocation fails, for every k and in every pool.

use std::cell::RefCell;
use std::rc::Rc;

use mbuf::{BufferSet, Mbuf, Packet};
use mempool::backend::{FailAt, FailSwitch, Lifo};
use sockbuf::{
    Message, RecordBuf, RecordSocket, SendFlags, Side, SockBuf, Socket, SocketError, WriteError,
};

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
    println!("write: {failures} allocations, each failed once");
    assert!(failures >= 4);
}

/// Runs `call` with the k-th allocation of each pool failing, for every k until none fails. It gets
/// its input beforehand, and says whether it succeeded.
fn each_failure<T>(
    name: &str,
    prepare: impl Fn(&BufferSet) -> T,
    call: impl Fn(T, &BufferSet) -> bool,
) {
    let (set, switches) = failing_set();
    for (pool, switch) in switches.iter().enumerate() {
        for k in 1.. {
            let input = prepare(&set);
            switch.fail_at(k);
            let before = switch.gets();
            let done = call(input, &set);
            let failed = switch.gets() - before >= k;
            switch.fail_at(0);
            assert!(set.is_full(), "{name}: pool {pool}, k {k} leaks");
            if !failed {
                assert!(done, "{name}: nothing failed");
                println!("{name}: pool {pool}, {} allocations", k - 1);
                break;
            }
        }
    }
}

fn packet(set: &BufferSet) -> Mbuf {
    let mut m = set.copy_in(&[1; 1448], 0).expect("mbuf");
    m.cat(set.copy_in(&[2; 100], 0).expect("mbuf"));
    m
}

#[test]
fn append_address_appends_all_or_nothing() {
    each_failure("append_address", packet, |data, set| {
        let mut rb = RecordBuf::new(65536);
        let control = Message {
            level: 0,
            kind: 0,
            data: &[0; 500],
        };
        let done = match control.to_mbuf(set) {
            Ok(control) => rb
                .append_address(b"from", Some(data), Some(control), set)
                .is_ok(),
            Err(_) => false,
        };
        let bytes = if done { 4 + 520 + 1548 } else { 0 };
        assert_eq!((rb.len(), rb.nrecords()), (bytes, usize::from(done)));
        done
    });
}

#[test]
fn append_some_takes_no_byte_twice_and_loses_none() {
    for space in [1, 1447, 1448, 1449, 1500] {
        each_failure("append_some", packet, |data, set| {
            let mut sb = SockBuf::new(space);
            let rest = sb.append_some(data, set);
            let mut got = vec![0; sb.len()];
            sb.copy_to(0, &mut got).expect("all of it");
            got.extend(rest.map_or(Vec::new(), |rest| rest.to_vec()));
            assert!(got == [vec![1; 1448], vec![2; 100]].concat());
            sb.len() == space
        });
    }
}

/// A send whose memory runs out says how far it came; the next one goes on from there.
#[test]
fn send_loses_no_byte_when_memory_runs_out() {
    let sizes: [&[usize]; 3] = [&[60_000], &[100; 60], &[9000, 30_000]];
    for sizes in sizes {
        let all = sizes.iter().sum::<usize>();
        let data: Vec<u8> = (0..all).map(|i| (i % 251) as u8).collect();
        each_failure(
            "send",
            |_| (),
            |(), set| {
                let socket = Socket::new(set, (Side::sending(1 << 20), Side::receiving(0)), ());
                let end = socket.protocol_end();
                end.connected();
                let (mut done, mut failed) = (0, 0);
                let mut ends = sizes.iter().scan(0, |at, size| {
                    *at += size;
                    Some(*at)
                });
                let mut until = ends.next().expect("one at least");
                while done < data.len() {
                    let before = end.with_send(|sb| (sb.len(), sb.charge()));
                    match socket.send(&data[done..until], SendFlags::empty()) {
                        Ok(n) => done += n,
                        Err(SocketError::Alloc(_)) => {
                            failed += 1;
                            assert!(failed <= 1, "one is to fail");
                            let after = end.with_send(|sb| (sb.len(), sb.charge()));
                            assert_eq!(after, before, "unchanged");
                        }
                        Err(other) => panic!("{other}"),
                    }
                    if done == until {
                        until = ends.next().unwrap_or(data.len());
                    }
                }
                let mut got = vec![0; data.len()];
                end.with_send(|sb| sb.copy_to(0, &mut got))
                    .expect("all of it");
                assert!(got == data);
                failed == 0
            },
        );
    }
}

#[test]
fn send_of_a_packet_keeps_the_rest_when_memory_runs_out() {
    each_failure("send_mbuf", packet, |data, set| {
        let socket = Socket::new(set, (Side::sending(1500), Side::receiving(0)), ());
        let end = socket.protocol_end();
        end.connected();
        let (mut got, mut rest, mut whole) = (Vec::new(), Some(data), true);
        while let Some(packet) = rest.take() {
            let result = socket.send_mbuf(packet, SendFlags::DONTWAIT);
            end.with_send(|sb| {
                let at = got.len();
                got.resize(at + sb.len(), 0);
                sb.copy_to(0, &mut got[at..]).expect("all of it");
                sb.drop_front(sb.len()).expect("all of it");
            });
            if let Err(unsent) = result {
                whole &= !matches!(unsent.error, SocketError::Alloc(_)) && unsent.sent == 1500;
                rest = Some(unsent.rest);
            }
        }
        assert!(got == [vec![1; 1448], vec![2; 100]].concat());
        whole
    });
}

#[test]
fn send_of_a_record_is_whole_or_not_at_all() {
    each_failure(
        "send record",
        |_| (),
        |(), set| {
            let socket = RecordSocket::new(set, (Side::sending(65536), Side::receiving(0)), ());
            let end = socket.protocol_end();
            end.connected();
            let sent = socket.send(&[7; 3000], SendFlags::empty());
            assert_eq!(end.with_send(|rb| rb.len()), sent.unwrap_or(0));
            sent.is_ok()
        },
    );
}
