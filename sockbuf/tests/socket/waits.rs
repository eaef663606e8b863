//! Who is woken, and how often.

use std::thread;

use sockbuf::{ReceiveFlags, SendFlags, Waits};

use crate::common::{pools, received};
use crate::sockets::{socket, until};

#[test]
fn sb_wakes_cost_nothing_when_nobody_waits() {
    let set = pools();
    let (socket, end) = socket(&set, 1000, 1000);
    for _ in 0..100 {
        end.append(received(&set, &[1; 10], 0));
        socket.send(&[1; 10], SendFlags::empty()).expect("space");
        end.acknowledge(10).expect("sent");
        socket
            .receive(&mut [0; 10], ReceiveFlags::empty())
            .expect("data");
    }
    assert_eq!(socket.waits(), Waits::default());
}

/// Space is told when there is as much as the mark says, and once.
#[test]
fn sb_wakes_a_writer_at_the_low_water_mark_once() {
    let (socket, end) = socket(&pools(), 10_000, 0);
    socket
        .send(&[0; 10_000], SendFlags::empty())
        .expect("space");
    let writer = thread::spawn({
        let socket = socket.clone();
        move || socket.send(&[1; 2048], SendFlags::empty())
    });
    until(|| socket.waits().writers == 1);
    for _ in 0..20 {
        end.acknowledge(100).expect("queued");
    }
    assert_eq!(socket.waits().writer_wakes, 0, "2000 of 2048");
    end.acknowledge(48).expect("queued");
    assert_eq!(socket.waits().writer_wakes, 1);
    assert_eq!(writer.join().expect("writer"), Ok(2048));
    end.acknowledge(100).expect("queued");
    assert_eq!(socket.waits().writer_wakes, 1, "nobody waits any more");
}

/// A reader who needs much is not woken by every little.
#[test]
fn sb_wakes_a_reader_of_all_once() {
    let set = pools();
    let (socket, end) = socket(&set, 0, 65536);
    let reader = thread::spawn({
        let socket = socket.clone();
        move || socket.receive(&mut [0; 10_000], ReceiveFlags::WAITALL)
    });
    until(|| socket.waits().readers == 1);
    for _ in 0..100 {
        assert_eq!(socket.waits().reader_wakes, 0);
        end.append(received(&set, &[1; 100], 0));
    }
    assert_eq!(reader.join().expect("reader"), Ok(10_000));
    assert_eq!(socket.waits().reader_wakes, 1);
}

/// Of several readers each gets his turn, and all come home.
#[test]
fn sb_wakes_all_readers_at_the_end() {
    let (socket, end) = socket(&pools(), 0, 1000);
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let socket = socket.clone();
            thread::spawn(move || socket.receive(&mut [0; 10], ReceiveFlags::empty()))
        })
        .collect();
    until(|| socket.waits().readers == 4);
    end.peer_closed();
    for reader in readers {
        assert_eq!(reader.join().expect("reader"), Ok(0));
    }
    assert_eq!(socket.waits().readers, 0);
}

#[test]
fn sb_wakes_a_reader_when_the_mark_is_lowered_to_what_is_there() {
    let set = pools();
    let (socket, end) = socket(&set, 0, 65536);
    socket.with_receive_side(|side| side.set_lowat(1000));
    let reader = thread::spawn({
        let socket = socket.clone();
        move || socket.receive(&mut [0; 10_000], ReceiveFlags::empty())
    });
    until(|| socket.waits().readers == 1);
    end.append(received(&set, &[1; 10], 0));
    assert_eq!(socket.waits().reader_wakes, 0);
    socket.with_receive_side(|side| side.set_lowat(1));
    assert_eq!(reader.join().expect("reader"), Ok(10));
}
