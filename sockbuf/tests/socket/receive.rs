//! What a receive takes, when it waits, and what the protocol is told.

use std::io::{IoSliceMut, Read, Write};
use std::thread;

use mbuf::{BufferSet, Packet};
use sockbuf::{ReceiveFlags, Side, SocketError};

use crate::common::{pieces, pools, received};
use crate::sockets::{Told, logged, numbered, socket, unsent, until};

const NOW: ReceiveFlags = ReceiveFlags::DONTWAIT;

#[test]
fn sb_receive_copies_from_any_number_of_mbufs_to_any_room() {
    let set = pools();
    let bytes = numbered(6);
    for size in [1, 2, 3, 4, 6, 7] {
        let (socket, end) = socket(&set, 0, 1000);
        end.with_receive(|sb| {
            sb.append_stream(pieces(&set, &[&bytes[..1], &bytes[1..3], &bytes[3..]]))
        });
        let mut got = Vec::<u8>::new();
        while got.len() < 6 {
            let mut room = vec![0_u8; size];
            let peeked = socket.receive(&mut room, ReceiveFlags::PEEK).expect("data");
            let peeked = room[..peeked].to_vec();
            room.fill(0);
            let n = socket.receive(&mut room, NOW).expect("data");
            assert_eq!(room[..n], peeked);
            got.extend(&room[..n]);
        }
        assert_eq!(got, bytes, "{size} at a time");
        assert!(set.is_full());
    }
}

#[test]
fn sb_receive_scatters_over_slices() {
    let set = pools();
    let (socket, end) = socket(&set, 0, 1000);
    end.append(pieces(&set, &[b"ab", b"cdef", b"ghi"]));
    let (mut a, mut b, mut c) = ([0; 3], [0; 0], [0; 4]);
    let mut slices = [&mut a[..], &mut b[..], &mut c[..]].map(IoSliceMut::new);
    assert_eq!(socket.receive_vectored(&mut slices, NOW), Ok(7));
    assert_eq!((&a, &c), (b"abc", b"defg"));
    assert_eq!(end.with_receive(|sb| sb.len()), 2);
}

/// Until the mark is reached, unless all that was asked for is there, or nobody waits.
#[test]
fn sb_receive_waits_for_the_low_water_mark() {
    let set = pools();
    let (socket, end) = socket(&set, 0, 1000);
    socket.with_receive_side(|side| side.set_lowat(100));
    end.append(received(&set, &[1; 50], 0));
    assert_eq!(socket.receive(&mut [0; 40], ReceiveFlags::empty()), Ok(40));
    assert_eq!(socket.receive(&mut [0; 40], NOW), Ok(10));
    let reader = thread::spawn({
        let socket = socket.clone();
        move || socket.receive(&mut [0; 500], ReceiveFlags::empty())
    });
    until(|| socket.waits().readers == 1);
    end.append(received(&set, &[1; 99], 0));
    assert_eq!(socket.waits().reader_wakes, 0, "too little to be told");
    end.append(received(&set, &[1; 1], 0));
    assert_eq!(reader.join().expect("reader"), Ok(100));
    assert_eq!(socket.waits().reader_wakes, 1);
}

/// Small packets in large clusters close the window before the mark is reached: the reader goes on.
#[test]
fn sb_known2_a_reader_does_not_wait_for_more_than_the_storage_takes() {
    let set = pools();
    let mut side = Side::with_limits(10_000, 10_000);
    side.set_lowat(5000);
    let (socket, end, _) = logged(&set, Side::sending(0), side);
    let reader = thread::spawn({
        let socket = socket.clone();
        move || socket.receive(&mut [0; 10_000], ReceiveFlags::empty())
    });
    until(|| socket.waits().readers == 1);
    let sent = end.with_receive(|sb| {
        while sb.space() > 0 {
            sb.append_stream(received(&set, &[1; 200], 0));
        }
        sb.len()
    });
    assert!(sent < 5000);
    assert_eq!(reader.join().expect("reader"), Ok(sent));
    assert!(end.receive_space() > 0 && set.is_full());
}

/// All that was asked for, by several packets, also if it is more than the buffer holds.
#[test]
fn sb_receive_of_all_waits_until_it_is_there() {
    let set = pools();
    for asked in [3000, 1000, 999] {
        let (socket, end, log) = logged(&set, Side::sending(0), Side::receiving(1000));
        let reader = thread::spawn({
            let socket = socket.clone();
            move || {
                let mut room = vec![0; asked];
                let n = socket.receive(&mut room, ReceiveFlags::WAITALL);
                (n, room)
            }
        });
        let bytes = numbered(asked);
        for part in bytes.chunks(100) {
            until(|| end.receive_space() >= 100);
            end.append(received(&set, part, 0));
        }
        assert_eq!(reader.join().expect("reader"), (Ok(asked), bytes));
        let told = log.take().into_iter().map(|told| match told {
            Told::Received(n) => n,
            other => panic!("{other:?}"),
        });
        assert_eq!(told.sum::<usize>(), asked, "window updates on the way");
        assert!(set.is_full());
    }
}

#[test]
fn sb_receive_of_all_ends_early_with_the_stream() {
    let set = pools();
    let (socket, end) = socket(&set, 0, 1000);
    let reader = thread::spawn({
        let socket = socket.clone();
        move || socket.receive(&mut [0; 5000], ReceiveFlags::WAITALL)
    });
    end.append(received(&set, &[1; 10], 0));
    until(|| socket.waits().readers == 1 && end.with_receive(|sb| sb.is_empty()));
    end.append(received(&set, &[1; 20], 0));
    end.peer_closed();
    assert_eq!(reader.join().expect("reader"), Ok(30));
    assert_eq!(socket.receive(&mut [0; 1], ReceiveFlags::WAITALL), Ok(0));
}

#[test]
fn sb_receive_tells_the_protocol_what_went_and_peeking_nothing() {
    let set = pools();
    let (socket, end, log) = logged(&set, Side::sending(0), Side::receiving(1000));
    end.append(received(&set, &[1; 300], 0));
    socket
        .receive(&mut [0; 100], ReceiveFlags::PEEK)
        .expect("data");
    assert_eq!(log.take(), []);
    socket.receive(&mut [0; 100], NOW).expect("data");
    let packet = socket.receive_mbufs(usize::MAX, NOW).expect("data");
    assert_eq!(packet.expect("data").pkt_len(), 200);
    assert_eq!(log.take(), [Told::Received(100), Told::Received(200)]);
}

#[test]
fn sb_receive_of_mbufs_takes_whole_ones_or_part_of_the_first() {
    let set = pools();
    let (socket, end) = socket(&set, 0, 65536);
    let append = || {
        end.with_receive(|sb| sb.append_stream(pieces(&set, &[&[1; 1000], &[2; 1000], &[3; 1000]])))
    };
    append();
    let take = |max| {
        let packet = socket.receive_mbufs(max, NOW).expect("data");
        packet.map(|packet| (packet.pkt_len(), packet.nsegs()))
    };
    assert_eq!(take(2999), Some((2000, 2)));
    assert_eq!(take(400), Some((400, 1)), "by reference");
    assert_eq!(end.with_receive(|sb| sb.len()), 600);
    assert_eq!(take(usize::MAX), Some((600, 1)));
    append();
    let peeked = socket
        .receive_mbufs(1500, ReceiveFlags::PEEK)
        .expect("data");
    assert_eq!(
        peeked.expect("data").to_vec(),
        [vec![1; 1000], vec![2; 500]].concat()
    );
    assert_eq!(end.with_receive(|sb| sb.len()), 3000);
    let all = socket
        .receive_mbufs(3000, ReceiveFlags::WAITALL)
        .expect("data");
    assert_eq!(all.expect("data").nsegs(), 3);
    end.peer_closed();
    assert_eq!(take(100), None, "the end");
    assert!(set.is_full());
}

#[test]
fn sb_receive_of_part_of_an_mbuf_without_mbufs_changes_nothing() {
    let set = BufferSet::bsd_builder(1, 1).configure(|pool| pool.cache(0));
    let set = set.build().expect("pools");
    let (socket, end) = socket(&set, 0, 65536);
    end.append(received(&set, &[1; 1000], 0));
    let part = socket.receive_mbufs(999, NOW);
    assert!(matches!(part, Err(SocketError::Alloc(_))));
    assert_eq!(end.with_receive(|sb| sb.len()), 1000);
    assert_eq!(
        socket.receive(&mut [0; 999], NOW),
        Ok(999),
        "copying needs none"
    );
}

#[test]
fn sb_receive_of_nothing_takes_nothing() {
    let set = pools();
    let (socket, end) = socket(&set, 0, 100);
    assert_eq!(socket.receive(&mut [], ReceiveFlags::empty()), Ok(0));
    end.append(received(&set, b"data", 0));
    assert_eq!(socket.receive(&mut [], ReceiveFlags::WAITALL), Ok(0));
    assert!(socket.receive_mbufs(0, NOW).expect("data").is_none());
    assert_eq!(end.with_receive(|sb| sb.len()), 4);
}

/// An empty source that is open is not at its end; after the end all bytes come, then the end, each time.
#[test]
fn fault_n8_no_end_before_the_last_byte() {
    let set = pools();
    let (socket, end) = socket(&set, 0, 100);
    let mut room = [0; 3];
    let empty = socket.receive(&mut room, NOW);
    assert!(matches!(
        empty,
        Err(SocketError::WouldBlock {
            asked: 3,
            available: 0
        })
    ));
    end.append(received(&set, b"data", 0));
    end.peer_closed();
    let reads = [(); 4].map(|()| socket.receive(&mut room, ReceiveFlags::empty()));
    assert_eq!(reads, [Ok(3), Ok(1), Ok(0), Ok(0)]);
}

#[test]
fn sb_sockets_are_readers_and_writers() {
    let set = pools();
    let (mut socket, end) = socket(&set, 1000, 1000);
    write!(&socket, "{}-{}", 1, 2).expect("space");
    socket.write_all(b"!").expect("space");
    socket.flush().expect("nothing to do");
    assert_eq!(unsent(&end), b"1-2!");
    end.append(received(&set, b"line", 0));
    let mut room = [0; 4];
    socket.read_exact(&mut room).expect("data");
    assert_eq!(&room, b"line");
    socket.set_nonblocking(true);
    let error = socket.read(&mut room).expect_err("empty");
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    assert_eq!(error.to_string(), "4 bytes asked for, 0 possible now");
}
