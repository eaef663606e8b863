//! Urgent bytes, sent and received.

use sockbuf::{ReceiveFlags, SendFlags, Side, SocketError, Urgent};

use crate::common::{pools, received};
use crate::sockets::{Told, logged, socket};

const NOW: ReceiveFlags = ReceiveFlags::DONTWAIT;

#[test]
fn sb_send_of_an_urgent_byte_may_take_1024_more_and_marks_the_last() {
    let (socket, _, log) = logged(&pools(), Side::sending(1000), Side::receiving(0));
    socket.send(&[0; 1000], SendFlags::empty()).expect("space");
    let urgent = SendFlags::OOB | SendFlags::DONTWAIT;
    assert_eq!(socket.send(&[1; 1000], urgent), Ok(1000));
    assert_eq!(socket.send(&[1; 24], urgent), Ok(24));
    let full = SocketError::WouldBlock {
        asked: 1,
        available: 0,
    };
    assert_eq!(socket.send(&[1], urgent), Err(full));
    let told = [
        Told::Send(1000, false),
        Told::Urgent(2000, Some(1999)),
        Told::Urgent(2024, Some(2023)),
    ];
    assert_eq!(log.take(), told);
}

/// Parts of a long urgent send are copied without the lock; the mark is on the last byte of all.
#[test]
fn sb_send_of_much_that_is_urgent_marks_its_last_byte() {
    let (socket, end, log) = logged(&pools(), Side::sending(65536), Side::receiving(0));
    socket.send(&[0; 10], SendFlags::empty()).expect("space");
    socket.send(&[1; 30_000], SendFlags::OOB).expect("space");
    assert_eq!(end.with_send(|sb| sb.urgent()), Some(30_009));
    assert_eq!(log.take().last(), Some(&Told::Urgent(30_010, Some(30_009))));
}

#[test]
fn sb_receive_stops_at_the_mark_and_peeking_leaves_it() {
    let set = pools();
    for flags in [NOW, ReceiveFlags::WAITALL, ReceiveFlags::empty()] {
        let (socket, end) = socket(&set, 0, 1000);
        end.append(received(&set, b"plain!urgent", 0));
        end.urgent(5, Urgent::Inline);
        let mut room = [0; 7];
        assert_eq!(socket.receive(&mut room, flags | ReceiveFlags::PEEK), Ok(5));
        assert!(!socket.at_mark());
        assert_eq!(socket.receive(&mut room, flags), Ok(5));
        assert_eq!(&room[..5], b"plain");
        assert!(socket.at_mark());
        assert_eq!(socket.receive(&mut room, flags | ReceiveFlags::PEEK), Ok(7));
        assert!(socket.at_mark());
        assert_eq!(socket.receive(&mut room, flags), Ok(7));
        assert_eq!((&room, socket.at_mark()), (b"!urgent", false));
    }
}

/// A mark ends a wait for more than is in front of it.
#[test]
fn sb_receive_does_not_wait_for_what_is_beyond_the_mark() {
    let set = pools();
    let (socket, end) = socket(&set, 0, 1000);
    let reader = std::thread::spawn({
        let socket = socket.clone();
        move || socket.receive(&mut [0; 100], ReceiveFlags::WAITALL)
    });
    end.append(received(&set, b"plain", 0));
    end.urgent(5, Urgent::Inline);
    assert_eq!(reader.join().expect("reader"), Ok(5));
}

#[test]
fn sb_receive_urgent_gives_a_byte_set_aside_once() {
    let (socket, end) = socket(&pools(), 0, 1000);
    let nothing = Err(SocketError::NothingUrgent);
    assert_eq!(socket.receive_urgent(NOW), nothing);
    end.urgent(0, Urgent::Awaited);
    let awaited = SocketError::WouldBlock {
        asked: 1,
        available: 0,
    };
    assert_eq!(socket.receive_urgent(NOW), Err(awaited));
    end.urgent(0, Urgent::Aside(b'!'));
    assert_eq!(socket.receive_urgent(ReceiveFlags::PEEK), Ok(b'!'));
    assert_eq!(socket.receive_urgent(NOW), Ok(b'!'));
    assert_eq!(socket.receive_urgent(NOW), nothing);
}
