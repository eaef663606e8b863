//! What a send puts into the buffer, when it waits, and what the protocol is told.

use std::io::IoSlice;
use std::thread;

use mbuf::{BufferSet, Mbuf, Packet};
use sockbuf::{SendFlags, Side, SocketError};

use crate::common::{pieces, pools};
use crate::sockets::{Told, logged, numbered, socket, unsent, until};

const NOW: SendFlags = SendFlags::DONTWAIT;

#[test]
fn sb_send_takes_what_there_is_space_for() {
    let set = pools();
    for (len, sent) in [(0, 0), (1, 1), (999, 999), (1000, 1000), (1001, 1000)] {
        let (socket, end) = socket(&set, 1000, 1000);
        assert_eq!(socket.send(&numbered(len), NOW), Ok(sent));
        assert_eq!(unsent(&end), numbered(sent));
    }
    assert!(set.is_full());
}

#[test]
fn sb_send_into_a_full_buffer_says_both_numbers() {
    let (socket, end) = socket(&pools(), 1000, 1000);
    socket.send(&[0; 1000], NOW).expect("space");
    let refused = |asked, available| Err(SocketError::WouldBlock { asked, available });
    assert_eq!(socket.send(&[1; 70], NOW), refused(70, 0));
    end.with_send(|sb| sb.side_mut().set_limits(900, 9000));
    assert_eq!(socket.send(&[1; 70], NOW), refused(70, -100));
}

/// Space below the low-water mark is used only for what fits whole.
#[test]
fn sb_send_waits_for_the_low_water_mark_unless_all_fits() {
    let (socket, end) = socket(&pools(), 3000, 1000);
    socket.send(&[0; 2000], NOW).expect("space");
    let refused = SocketError::WouldBlock {
        asked: 1001,
        available: 1000,
    };
    assert_eq!(socket.send(&[1; 1001], NOW), Err(refused), "lowat 2048");
    assert_eq!(socket.send(&[1; 1000], NOW), Ok(1000));
    end.acknowledge(2048).expect("sent");
    assert_eq!(
        socket.send(&[1; 3000], NOW),
        Ok(2048),
        "as much as the mark"
    );
}

/// A mark that the storage limit never lets anybody reach does not stop the first write.
#[test]
fn sb_send_into_an_empty_buffer_never_waits_for_the_mark() {
    let mut side = Side::with_limits(4000, 1000);
    side.set_lowat(4000);
    let (socket, _, _) = logged(&pools(), side, Side::receiving(0));
    assert_eq!(socket.send(&[1; 2000], NOW), Ok(1000));
}

#[test]
fn sb_send_of_nothing_asks_and_tells_nothing() {
    let (socket, end, log) = logged(&pools(), Side::sending(10), Side::receiving(10));
    assert_eq!(socket.send(&[], SendFlags::empty()), Ok(0));
    assert_eq!(log.take(), []);
    end.cannot_send();
    let shut = socket.send(&[], SendFlags::empty());
    assert_eq!(shut, Err(SocketError::Shut { asked: 0 }));
}

/// A small write goes to the protocol once, whole: not mbuf by mbuf.
#[test]
fn sb_known21_a_write_reaches_the_protocol_in_one_piece() {
    let (socket, _, log) = logged(&pools(), Side::sending(65536), Side::receiving(10));
    let mut queued = 0;
    for len in [100, 101, 208, 300, 1448, 20_000] {
        socket
            .send(&numbered(len), SendFlags::empty())
            .expect("space");
        queued += len;
        assert_eq!(log.take(), [Told::Send(queued, false)], "{len}");
    }
}

/// The protocol knows of each part but the last that more follows; afterwards nobody claims so.
#[test]
fn sb_send_says_that_more_follows_while_it_does() {
    let (socket, end, log) = logged(&pools(), Side::sending(1000), Side::receiving(10));
    let writer = thread::spawn({
        let socket = socket.clone();
        move || socket.send(&numbered(2500), SendFlags::empty())
    });
    let mut got = Vec::new();
    for _ in 0..2 {
        until(|| socket.waits().writers == 1);
        assert!(!end.with_send(|sb| sb.side().more_to_come()));
        got.extend(unsent(&end));
        end.acknowledge(1000).expect("full");
    }
    assert_eq!(writer.join().expect("writer"), Ok(2500));
    got.extend(unsent(&end));
    assert_eq!(got, numbered(2500));
    let told = [(1000, true), (1000, true), (500, false)];
    assert_eq!(log.take(), told.map(|(len, more)| Told::Send(len, more)));
    assert!(!end.with_send(|sb| sb.side().more_to_come()));
}

#[test]
fn fault_k11_a_write_of_three_buffers_is_taken_piecewise() {
    let set = BufferSet::bsd(1024, 64).expect("pools");
    let (socket, end) = socket(&set, 65536, 1000);
    let writer = thread::spawn({
        let socket = socket.clone();
        move || socket.send(&numbered(3 * 65536), SendFlags::empty())
    });
    let mut got = Vec::new();
    while got.len() < 3 * 65536 {
        let bytes = unsent(&end);
        end.acknowledge(bytes.len()).expect("all of it");
        got.extend(bytes);
    }
    assert_eq!(writer.join().expect("writer"), Ok(3 * 65536));
    assert_eq!(got, numbered(3 * 65536));
    assert!(set.is_full());
}

/// Short and long, within one mbuf and beyond, with empty slices in between.
#[test]
fn sb_send_gathers_slices_in_order() {
    let set = pools();
    let lens = [0, 1, 0, 143, 145, 9000, 0, 40_000, 7, 20_000, 0];
    let all = numbered(lens.iter().sum());
    let mut slices = Vec::new();
    let mut rest = &all[..];
    for len in lens {
        let (slice, behind) = rest.split_at(len);
        slices.push(IoSlice::new(slice));
        rest = behind;
    }
    for space in [100, 8192, 8193, 8300, 30_000, 1 << 20] {
        let (socket, end) = socket(&set, space, 0);
        socket.send(b"xyz", NOW).expect("space");
        end.with_send(|sb| sb.side_mut().set_limits(space + 3, 1 << 22));
        let sent = all.len().min(space);
        assert_eq!(socket.send_vectored(&slices, NOW), Ok(sent));
        assert_eq!(unsent(&end), [b"xyz", &all[..sent]].concat());
    }
    assert!(set.is_full());
}

/// What is long is copied without the lock, and lies as tightly as what is short.
#[test]
fn sb_send_of_much_takes_no_more_storage() {
    let set = BufferSet::bsd(4096, 64).expect("pools");
    for len in [1448, 8192, 8193, 9000, 16_385, 20_000, 65_536] {
        let (socket, end) = socket(&set, 65536, 0);
        socket.with_send_side(|side| side.set_lowat(1));
        while socket.send(&vec![1; len], NOW).is_ok() {}
        let held = end.with_send(|sb| sb.storage_use());
        println!("{len}: {held:?}, {:.2} per byte", held.charge_per_byte());
        assert_eq!(held.bytes, 65536, "{len}");
        assert!(held.charge_per_byte() < 1.3, "{len}: {held:?}");
    }
}

/// Each of two writers has his turn, whole, however often he has to wait.
#[test]
fn sb_send_of_two_threads_does_not_mix() {
    let (socket, end) = socket(&pools(), 1000, 0);
    let writers = [1, 2].map(|mark| {
        let socket = socket.clone();
        thread::spawn(move || {
            for _ in 0..10 {
                assert_eq!(socket.send(&[mark; 2500], SendFlags::empty()), Ok(2500));
            }
        })
    });
    let mut got = Vec::new();
    while got.len() < 50_000 {
        let bytes = unsent(&end);
        end.acknowledge(bytes.len()).expect("all of it");
        got.extend(bytes);
    }
    for writer in writers {
        writer.join().expect("writer");
    }
    let whole = got
        .chunks(2500)
        .all(|part| part.iter().all(|&byte| byte == part[0]));
    assert!(whole, "a write was torn");
}

#[test]
fn sb_send_without_waiting_does_not_wait_for_its_turn() {
    let (socket, end) = socket(&pools(), 1000, 0);
    let writer = thread::spawn({
        let socket = socket.clone();
        move || socket.send(&[1; 1500], SendFlags::empty())
    });
    until(|| socket.waits().writers == 1);
    end.with_send(|sb| sb.len());
    let refused = socket.send(&[2], NOW);
    assert!(matches!(
        refused,
        Err(SocketError::WouldBlock { asked: 1, .. })
    ));
    end.acknowledge(1000).expect("full");
    assert_eq!(writer.join().expect("writer"), Ok(1500));
    assert_eq!(socket.send(&[2], NOW), Ok(1));
}

fn long_packet(set: &BufferSet, bytes: &[u8]) -> Mbuf {
    let parts: Vec<&[u8]> = bytes.chunks(1448).collect();
    pieces(set, &parts)
}

/// 100 KB into 30 KB: what went in, and the rest from that byte on.
#[test]
fn fault_l14_a_packet_is_taken_in_part_and_the_rest_returned() {
    let set = BufferSet::bsd(1024, 256).expect("pools");
    let bytes = numbered(100_000);
    let (socket, end) = socket(&set, 30_000, 0);
    let (mut packet, mut got) = (long_packet(&set, &bytes), Vec::new());
    let mut rounds = 0;
    loop {
        rounds += 1;
        let result = socket.send_mbuf(packet, NOW);
        let sent = unsent(&end);
        end.acknowledge(sent.len()).expect("all of it");
        got.extend(&sent);
        match result {
            Ok(last) => break assert_eq!(last, 10_000),
            Err(unsent) => {
                assert_eq!((unsent.sent, sent.len()), (30_000, 30_000));
                assert!(matches!(unsent.error, SocketError::WouldBlock { .. }));
                packet = unsent.rest;
            }
        }
    }
    assert_eq!((got, rounds), (bytes, 4));
    assert!(set.is_full());
}

#[test]
fn sb_known9_nothing_of_a_packet_is_lost_when_nothing_fits() {
    let set = pools();
    let (socket, end) = socket(&set, 100, 0);
    socket.send(&[0; 100], NOW).expect("space");
    let unsent = socket
        .send_mbuf(pieces(&set, &[b"ab", b"cd"]), NOW)
        .expect_err("full");
    assert_eq!((unsent.sent, unsent.rest.to_vec()), (0, b"abcd".to_vec()));
    end.cannot_send();
    let unsent = socket.send_mbuf(unsent.rest, NOW).expect_err("shut");
    assert_eq!(unsent.error, SocketError::Shut { asked: 4 });
    assert_eq!(unsent.rest.to_vec(), b"abcd");
}

#[test]
fn sb_send_of_a_packet_links_its_mbufs() {
    let set = pools();
    let (socket, end) = socket(&set, 65536, 0);
    let packet = long_packet(&set, &numbered(14_480));
    let place = packet.first().data().as_ptr().addr();
    assert_eq!(socket.send_mbuf(packet, NOW).expect("space"), 14_480);
    end.with_send(|sb| {
        let first = sb.first().expect("data");
        assert_eq!((first.data().as_ptr().addr(), sb.segs()), (place, 10));
    });
}

#[test]
fn sb_send_of_a_packet_waits_for_space() {
    let set = BufferSet::bsd(1024, 256).expect("pools");
    let (socket, end) = socket(&set, 30_000, 0);
    let packet = long_packet(&set, &numbered(100_000));
    let writer = thread::spawn({
        let socket = socket.clone();
        move || {
            socket
                .send_mbuf(packet, SendFlags::empty())
                .map_err(|unsent| unsent.error)
        }
    });
    let mut got = Vec::new();
    while got.len() < 100_000 {
        let bytes = unsent(&end);
        end.acknowledge(bytes.len()).expect("all of it");
        got.extend(bytes);
    }
    assert_eq!(writer.join().expect("writer"), Ok(100_000));
    assert_eq!(got, numbered(100_000));
    assert!(set.is_full());
}

#[cfg(feature = "bytes")]
#[test]
fn sb_send_of_shared_bytes_refers_to_many_and_copies_few() {
    use bytes::Bytes;
    let set = pools();
    let (socket, end) = socket(&set, 30_000, 0);
    let whole = Bytes::from(numbered(50_000));
    let mut left = whole.clone();
    assert_eq!(socket.send_bytes(&mut left, NOW), Ok(30_000));
    assert_eq!((left.len(), unsent(&end)), (20_000, numbered(30_000)));
    end.with_send(|sb| {
        let first = sb.first().expect("data").data().as_ptr();
        assert_eq!((first, sb.segs()), (whole.as_ptr(), 1));
    });
    end.acknowledge(30_000).expect("all of it");
    assert_eq!(socket.send_bytes(&mut left, NOW), Ok(20_000));
    end.acknowledge(20_000).expect("all of it");
    drop(left);
    assert!(whole.is_unique(), "given back");
    let mut few = Bytes::from(vec![9; 40]);
    assert_eq!(socket.send_bytes(&mut few, NOW), Ok(40));
    end.with_send(|sb| assert_eq!(sb.charge(), 256));
}
