//! Sockets between threads: a writer, a reader, and a protocol that carries from one buffer to the other.

#[path = "common/mod.rs"]
mod common;
#[path = "common/socket.rs"]
mod sockets;

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fastrand::Rng;
use mbuf::{BufferSet, Packet};
use sockbuf::{
    Protocol, ProtocolEnd, ReceiveFlags, SendFlags, Shutdown, Side, Socket, SocketError,
};

use common::{Seed, received};
use sockets::{numbered, socket};

/// Rung by the user, heard by the protocol's thread.
#[derive(Clone, Default)]
struct Bell(Arc<(Mutex<u64>, Condvar)>);

impl Bell {
    fn ring(&self) {
        *self.0.0.lock().expect("bell") += 1;
        self.0.1.notify_one();
    }

    /// Waits until it was rung since `heard`.
    fn wait(&self, heard: &mut u64) {
        let rung = self.0.0.lock().expect("bell");
        let rung = self.0.1.wait_while(rung, |rung| *rung == *heard);
        *heard = *rung.expect("bell");
    }
}

impl Protocol for Bell {
    fn send(&self, _: &ProtocolEnd) {
        self.ring();
    }
    fn received(&self, _: &ProtocolEnd, _: usize) {
        self.ring();
    }
    fn shut_down(&self, _: &ProtocolEnd) {
        self.ring();
    }
}

/// A socket that is connected to itself, and the thread that carries its bytes: by reference, some at a
/// time, as there is space; and the end of the stream behind the last.
fn loopback(set: &BufferSet, size: usize, seed: u64) -> (Socket, JoinHandle<()>) {
    let bell = Bell::default();
    let sides = (Side::sending(size), Side::receiving(size));
    let socket = Socket::new(set, sides, bell.clone());
    let end = socket.protocol_end();
    end.connected();
    let set = set.clone();
    let carrier = thread::spawn(move || {
        let mut rng = Rng::with_seed(seed);
        let mut heard = 0;
        loop {
            let space = usize::try_from(end.receive_space()).unwrap_or(0);
            let most = space.min(rng.usize(1..=3000));
            let carried = end.with_send(|sb| {
                let n = most.min(sb.len());
                let packet = (n > 0).then(|| sb.ref_copy(0, n, &set).expect("mbufs"));
                (packet, sb.len() == n && sb.side().is_shut())
            });
            match carried {
                (Some(packet), _) => {
                    let n = packet.pkt_len();
                    end.append(packet);
                    end.acknowledge(n).expect("was there");
                }
                (None, true) => return end.peer_closed(),
                (None, false) => bell.wait(&mut heard),
            }
        }
    });
    (socket, carrier)
}

fn pools() -> BufferSet {
    BufferSet::bsd(8192, 512).expect("pools")
}

/// Writers and readers of all kinds; every byte arrives once, in order, and the pools are full again.
#[test]
fn a_stream_goes_through_whole() {
    let set = pools();
    for (seed, size, total) in [
        (1, 1, 3000),
        (2, 100, 100_000),
        (3, 2048, 500_000),
        (4, 65_536, 2_000_000),
    ] {
        let _seed = Seed(seed);
        let (socket, carrier) = loopback(&set, size, seed);
        let writer = thread::spawn({
            let (socket, set) = (socket.clone(), set.clone());
            move || {
                let mut rng = Rng::with_seed(seed);
                let bytes = numbered(251 * 200);
                let mut at = 0;
                while at < total {
                    let len = rng.usize(1..=40_000).min(total - at);
                    let part = &bytes[at % 251..][..len];
                    let sent = if rng.u8(..) < 64 {
                        let packet = received(&set, &part[..len.min(9000)], 0);
                        socket.send_mbuf(packet, SendFlags::empty()).expect("open")
                    } else {
                        socket.send(part, SendFlags::empty()).expect("open")
                    };
                    at += sent;
                }
                socket.shutdown(Shutdown::Write).expect("connected");
            }
        });
        let reader = thread::spawn({
            let socket = socket.clone();
            move || {
                let mut rng = Rng::with_seed(!seed);
                let (mut room, mut at) = (vec![0; 30_000], 0);
                let bytes = numbered(251 * 1200);
                loop {
                    let len = rng.usize(1..=room.len());
                    let n = match rng.u8(..4) {
                        0 => {
                            let packet = socket.receive_mbufs(len, ReceiveFlags::empty());
                            let packet = packet.expect("mbufs").map_or(Vec::new(), |m| m.to_vec());
                            room[..packet.len()].copy_from_slice(&packet);
                            packet.len()
                        }
                        1 => socket
                            .receive(&mut room[..len], ReceiveFlags::WAITALL)
                            .expect("open"),
                        2 => {
                            let peek = ReceiveFlags::PEEK;
                            let n = socket.receive(&mut room[..len], peek).expect("open");
                            assert!(room[..n] == bytes[at % 251..][..n]);
                            continue;
                        }
                        _ => socket
                            .receive(&mut room[..len], ReceiveFlags::empty())
                            .expect("open"),
                    };
                    if n == 0 {
                        return at;
                    }
                    assert!(room[..n] == bytes[at % 251..][..n]);
                    at += n;
                }
            }
        });
        writer.join().expect("writer");
        assert_eq!(reader.join().expect("reader"), total);
        carrier.join().expect("carrier");
        let waits = socket.waits();
        println!("size {size}: {waits:?}");
        drop(socket);
    }
    assert!(set.is_full());
}

/// Random sends, receives and one shutdown, from two threads, against a queue of what was to be sent.
#[test]
fn a_stream_is_a_queue() {
    let set = pools();
    for seed in 0..20 {
        let _seed = Seed(seed);
        let (socket, carrier) = loopback(&set, 1 << (seed % 17), seed);
        let queue = Arc::new(Mutex::new(VecDeque::new()));
        let writer = thread::spawn({
            let (socket, queue) = (socket.clone(), Arc::clone(&queue));
            move || {
                let mut rng = Rng::with_seed(seed);
                let mut sent = 0;
                for _ in 0..rng.usize(1..150) {
                    let bytes: Vec<u8> = (0..rng.usize(0..3000)).map(|_| rng.u8(..)).collect();
                    let mut rest = &bytes[..];
                    queue.lock().expect("queue").extend(&bytes);
                    while !rest.is_empty() {
                        let flags = match rng.bool() {
                            true => SendFlags::DONTWAIT,
                            false => SendFlags::empty(),
                        };
                        match socket.send(rest, flags) {
                            Ok(n) => rest = &rest[n..],
                            Err(SocketError::WouldBlock { .. }) => thread::yield_now(),
                            Err(other) => panic!("{other}"),
                        }
                    }
                    sent += bytes.len();
                }
                socket.shutdown(Shutdown::Write).expect("connected");
                let late = socket.send(b"late", SendFlags::empty());
                assert_eq!(late, Err(SocketError::Shut { asked: 4 }));
                sent
            }
        });
        let reader = thread::spawn({
            let (socket, queue) = (socket.clone(), Arc::clone(&queue));
            move || {
                let mut rng = Rng::with_seed(!seed);
                let (mut room, mut received) = ([0; 5000], 0);
                loop {
                    let room = &mut room[..rng.usize(1..5000)];
                    let flags = match rng.u8(..3) {
                        0 => ReceiveFlags::DONTWAIT,
                        1 => ReceiveFlags::WAITALL,
                        _ => ReceiveFlags::empty(),
                    };
                    match socket.receive(room, flags) {
                        Ok(0) => return received,
                        Ok(n) => {
                            received += n;
                            let expected =
                                queue.lock().expect("queue").drain(..n).collect::<Vec<u8>>();
                            assert!(expected == room[..n]);
                        }
                        Err(SocketError::WouldBlock { .. }) => thread::yield_now(),
                        Err(other) => panic!("{other}"),
                    }
                }
            }
        });
        let sent = writer.join().expect("writer");
        assert_eq!(reader.join().expect("reader"), sent);
        assert!(queue.lock().expect("queue").is_empty());
        carrier.join().expect("carrier");
    }
    assert!(set.is_full());
}

/// One byte to and fro through buffers of one byte: every step is a wake, and none is lost.
#[test]
fn no_wake_is_lost() {
    let set = pools();
    let pairs = [(); 2].map(|()| loopback(&set, 1, 7));
    let [(there, _), (back, _)] = &pairs;
    for socket in [there, back] {
        socket.set_receive_timeout(Some(Duration::from_secs(60)));
    }
    let echo = thread::spawn({
        let (there, back) = (there.clone(), back.clone());
        move || {
            let mut room = [0];
            while there
                .receive(&mut room, ReceiveFlags::empty())
                .expect("in time")
                > 0
            {
                back.send(&room, SendFlags::empty()).expect("open");
            }
            back.shutdown(Shutdown::Write).expect("connected");
        }
    });
    let mut room = [0];
    for n in 0..3000_u32 {
        let byte = [n as u8];
        there.send(&byte, SendFlags::empty()).expect("open");
        assert_eq!(back.receive(&mut room, ReceiveFlags::empty()), Ok(1));
        assert_eq!(room, byte);
    }
    there.shutdown(Shutdown::Write).expect("connected");
    assert_eq!(back.receive(&mut room, ReceiveFlags::empty()), Ok(0));
    echo.join().expect("echo");
    for (_, carrier) in pairs {
        carrier.join().expect("carrier");
    }
}

/// Whatever ends a connection while users sleep, begin to, or are served: all of them come home.
#[test]
fn an_end_reaches_everybody() {
    let set = pools();
    for round in 0..150 {
        let (socket, end) = socket(&set, 100, 100);
        let users: Vec<_> = (0..4)
            .map(|user| {
                let socket = socket.clone();
                thread::spawn(move || {
                    if user % 2 == 0 {
                        while socket.send(&[1; 70], SendFlags::empty()).is_ok() {}
                    } else {
                        let mut room = [0; 30];
                        let flags = ReceiveFlags::empty();
                        while !matches!(socket.receive(&mut room, flags), Ok(0) | Err(_)) {}
                    }
                })
            })
            .collect();
        end.append(received(&set, &[2; 90], 0));
        for _ in 0..round % 10 {
            thread::yield_now();
        }
        match round % 3 {
            0 => socket.shutdown(Shutdown::Both).expect("connected"),
            1 => end.disconnected(),
            _ => {
                end.report(SocketError::Reset);
                end.cannot_send();
                end.peer_closed();
            }
        }
        for user in users {
            user.join().expect("user");
        }
        let waits = socket.waits();
        assert_eq!((waits.writers, waits.readers), (0, 0));
    }
    assert!(set.is_full());
}
