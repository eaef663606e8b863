//! Errors: which comes first, how often it is told, whom it wakes.

use std::io::ErrorKind;
use std::thread;
use std::time::Duration;

use sockbuf::{ReceiveFlags, SendFlags, Shutdown, Side, Socket, SocketError};

use crate::common::{pools, received};
use crate::sockets::{Told, logged, socket, until};

const NOW: SendFlags = SendFlags::DONTWAIT;

#[test]
fn sb_send_tells_errors_in_their_order_and_a_pending_one_once() {
    let set = pools();
    let sides = (Side::sending(10), Side::receiving(10));
    let socket = Socket::new(&set, sides, ());
    let end = socket.protocol_end();
    let eor = socket.send(b"a", SendFlags::EOR);
    assert_eq!(eor, Err(SocketError::NoRecords));
    end.report(SocketError::Refused);
    assert_eq!(socket.send(b"a", NOW), Err(SocketError::Refused));
    assert_eq!(socket.send(b"a", NOW), Err(SocketError::NotConnected));
    end.connecting();
    assert_eq!(socket.send(b"a", NOW), Err(SocketError::NotConnected));
    end.connected();
    assert_eq!(socket.send(b"a", NOW), Ok(1));
    end.report(SocketError::Reset);
    end.cannot_send();
    let shut = Err(SocketError::Shut { asked: 1 });
    assert_eq!(socket.send(b"a", NOW), shut, "before the pending one");
    assert_eq!(
        socket.take_error(),
        Some(SocketError::Reset),
        "which is kept"
    );
    assert_eq!(socket.take_error(), None);
}

#[test]
fn sb_receive_tells_errors_after_the_data_and_once() {
    let set = pools();
    let (socket, end) = socket(&set, 10, 1000);
    end.append(received(&set, b"last words", 0));
    end.report(SocketError::Reset);
    end.disconnected();
    let mut room = [0; 100];
    assert_eq!(socket.receive(&mut room, ReceiveFlags::WAITALL), Ok(10));
    let peek = ReceiveFlags::PEEK;
    assert_eq!(socket.receive(&mut room, peek), Err(SocketError::Reset));
    let got = socket.receive(&mut room, ReceiveFlags::empty());
    assert_eq!(got, Err(SocketError::Reset), "peeking left it");
    assert_eq!(
        socket.receive(&mut room, ReceiveFlags::empty()),
        Ok(0),
        "the end"
    );
}

#[test]
fn sb_receive_without_a_connection_is_refused() {
    let set = pools();
    let sides = (Side::sending(10), Side::receiving(10));
    let socket = Socket::new(&set, sides, ());
    let end = socket.protocol_end();
    let mut room = [0; 10];
    let now = ReceiveFlags::DONTWAIT;
    assert_eq!(
        socket.receive(&mut room, now),
        Err(SocketError::NotConnected)
    );
    assert_eq!(socket.receive(&mut [], now), Ok(0), "nothing was asked for");
    end.connecting();
    let would_block = SocketError::WouldBlock {
        asked: 10,
        available: 0,
    };
    assert_eq!(socket.receive(&mut room, now), Err(would_block));
    end.append(received(&set, b"early", 0));
    assert_eq!(socket.receive(&mut room, now), Ok(5));
}

/// Bytes that went in count; why no more did is told by the next call.
#[test]
fn sb_send_woken_by_an_error_returns_what_went_in() {
    for shut in [false, true] {
        let (socket, end) = socket(&pools(), 1000, 0);
        let writer = thread::spawn({
            let socket = socket.clone();
            move || socket.send(&[1; 1500], SendFlags::empty())
        });
        until(|| socket.waits().writers == 1);
        let next = if shut {
            socket.shutdown(Shutdown::Write).expect("connected");
            SocketError::Shut { asked: 1 }
        } else {
            end.report(SocketError::Reset);
            SocketError::Reset
        };
        assert_eq!(writer.join().expect("writer"), Ok(1000));
        assert_eq!(socket.send(b"a", NOW), Err(next));
    }
}

#[test]
fn sb_send_woken_by_an_error_before_its_first_byte_tells_it() {
    let (socket, end) = socket(&pools(), 1000, 0);
    socket.send(&[0; 1000], NOW).expect("space");
    let writer = thread::spawn({
        let socket = socket.clone();
        move || socket.send(b"a", SendFlags::empty())
    });
    until(|| socket.waits().writers == 1);
    end.report(SocketError::Unreachable);
    assert_eq!(
        writer.join().expect("writer"),
        Err(SocketError::Unreachable)
    );
    assert_eq!(socket.take_error(), None);
}

#[test]
fn sb_receive_is_woken_by_the_end_by_an_error_and_by_a_shutdown() {
    type Act = fn(&Socket);
    let acts: [(Act, Result<usize, SocketError>); 4] = [
        (|s| s.protocol_end().peer_closed(), Ok(0)),
        (|s| s.protocol_end().disconnected(), Ok(0)),
        (
            |s| s.protocol_end().report(SocketError::Reset),
            Err(SocketError::Reset),
        ),
        (|s| s.shutdown(Shutdown::Read).expect("connected"), Ok(0)),
    ];
    for (act, expected) in acts {
        let (socket, _) = socket(&pools(), 10, 10);
        let reader = thread::spawn({
            let socket = socket.clone();
            move || socket.receive(&mut [0; 10], ReceiveFlags::empty())
        });
        until(|| socket.waits().readers == 1);
        act(&socket);
        assert_eq!(reader.join().expect("reader"), expected);
    }
}

/// Each direction ends by itself.
#[test]
fn sb_known_half_close_leaves_the_other_half_open() {
    let set = pools();
    let (socket, end, log) = logged(&set, Side::sending(100), Side::receiving(100));
    socket.send(b"request", NOW).expect("space");
    socket.shutdown(Shutdown::Write).expect("connected");
    assert_eq!(log.take(), [Told::Send(7, false), Told::Shut]);
    assert_eq!(end.with_send(|sb| sb.len()), 7, "is still to be sent");
    let mut room = [0; 100];
    assert!(end.append(received(&set, b"answer", 0)));
    assert_eq!(socket.receive(&mut room, ReceiveFlags::empty()), Ok(6));

    let (socket, end, log) = logged(&set, Side::sending(100), Side::receiving(100));
    end.peer_closed();
    assert_eq!(socket.receive(&mut room, ReceiveFlags::empty()), Ok(0));
    assert_eq!(socket.send(b"still", NOW), Ok(5));
    assert_eq!(log.take(), [Told::Send(5, false)]);
}

/// What was not read is freed, and what comes later too.
#[test]
fn sb_receive_after_a_shutdown_keeps_nothing() {
    let set = pools();
    let (socket, end) = socket(&set, 100, 100);
    end.append(received(&set, b"unread", 0));
    socket.shutdown(Shutdown::Read).expect("connected");
    assert!(set.is_full());
    assert!(!end.append(received(&set, b"late", 0)));
    assert!(set.is_full());
    assert_eq!(socket.receive(&mut [0; 10], ReceiveFlags::empty()), Ok(0));
    assert_eq!(socket.send(b"still", NOW), Ok(5));
}

#[test]
fn sb_shutdown_needs_a_connection() {
    let sides = (Side::sending(10), Side::receiving(10));
    let socket = Socket::new(&pools(), sides, ());
    let refused = socket.shutdown(Shutdown::Both);
    assert_eq!(refused, Err(SocketError::NotConnected));
}

#[test]
fn sb_close_is_told_with_the_last_handle_and_frees_what_was_not_read() {
    let set = pools();
    let (socket, end, log) = logged(&set, Side::sending(100), Side::receiving(100));
    end.append(received(&set, b"unread", 0));
    socket.send(b"to be sent", NOW).expect("space");
    let second = socket.clone();
    drop(socket);
    log.take();
    drop(second);
    assert_eq!(log.take(), [Told::Closed]);
    assert_eq!(end.with_receive(|sb| sb.len()), 0);
    assert_eq!(
        end.with_send(|sb| sb.len()),
        10,
        "is the protocol's to send"
    );
    drop(end);
    assert!(set.is_full());
}

#[test]
fn sb_timeouts_end_a_wait() {
    let (socket, _) = socket(&pools(), 1000, 1000);
    socket.set_send_timeout(Some(Duration::from_millis(5)));
    socket.set_receive_timeout(Some(Duration::from_millis(5)));
    let none = socket.receive(&mut [0; 7], ReceiveFlags::WAITALL);
    let timed_out = |asked, available| Err(SocketError::TimedOut { asked, available });
    assert_eq!(none, timed_out(7, 0));
    assert_eq!(socket.send(&[0; 1500], SendFlags::empty()), Ok(1000));
    assert_eq!(
        socket.send(&[0; 1500], SendFlags::empty()),
        timed_out(1500, 0)
    );
    socket.set_receive_timeout(Some(Duration::MAX));
    socket.set_nonblocking(true);
    let none = socket.receive(&mut [0; 7], ReceiveFlags::WAITALL);
    assert!(matches!(
        none,
        Err(SocketError::WouldBlock { asked: 7, .. })
    ));
    assert_eq!(socket.waits().readers, 0);
}

#[test]
fn sb_errors_have_a_kind_for_std() {
    for (error, kind) in [
        (SocketError::Reset, ErrorKind::ConnectionReset),
        (SocketError::Shut { asked: 3 }, ErrorKind::BrokenPipe),
        (SocketError::NotConnected, ErrorKind::NotConnected),
        (SocketError::NoAnswer, ErrorKind::TimedOut),
        (SocketError::NoRecords, ErrorKind::InvalidInput),
        (SocketError::Os(2), ErrorKind::NotFound),
    ] {
        assert_eq!(std::io::Error::from(error).kind(), kind, "{error}");
    }
}
