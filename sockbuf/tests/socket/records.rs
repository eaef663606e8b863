//! Sockets of records.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use mbuf::{BufferSet, Packet};
use sockbuf::{
    Message, Outgoing, Protocol, ProtocolEnd, ReceiveFlags, Received, RecordBuf, RecordSocket,
    SendFlags, Side, SocketError,
};

use crate::common::{pools, received};
use crate::sockets::until;

/// Datagrams need no connection. Counts what it is told.
#[derive(Clone, Default)]
struct Datagrams(Arc<AtomicUsize>);

impl Protocol<RecordBuf> for Datagrams {
    fn needs_connection(&self) -> bool {
        false
    }
    fn send(&self, _: &ProtocolEnd<RecordBuf>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn socket(set: &BufferSet, size: usize) -> (RecordSocket, ProtocolEnd<RecordBuf>) {
    let sides = (Side::sending(size), Side::receiving(size));
    let socket = RecordSocket::new(set, sides, ());
    let end = socket.protocol_end();
    end.connected();
    (socket, end)
}

fn addressed<'a>(set: &BufferSet, data: &[u8]) -> Outgoing<'a> {
    Outgoing {
        address: Some(b"to"),
        control: None,
        data: Some(received(set, data, 0)),
    }
}

const NOW: SendFlags = SendFlags::DONTWAIT;

#[test]
fn sb_send_of_a_record_is_all_or_nothing() {
    let set = pools();
    let (socket, end) = socket(&set, 100);
    assert_eq!(socket.send(&[1; 100], NOW), Ok(100));
    end.with_send(|rb| drop(rb.take_record()));
    let too_long = SocketError::TooLong {
        asked: 101,
        max: 100,
    };
    assert_eq!(socket.send(&[1; 101], NOW), Err(too_long));
    assert_eq!(socket.send(&[1; 60], NOW), Ok(60));
    let full = SocketError::WouldBlock {
        asked: 41,
        available: 40,
    };
    assert_eq!(socket.send(&[1; 41], NOW), Err(full));
    assert_eq!(socket.send(&[1; 40], NOW), Ok(40));
    assert_eq!(end.with_send(|rb| rb.nrecords()), 2);
}

/// Nor does one wait for what the storage limit will never allow.
#[test]
fn sb_send_of_a_record_beyond_the_storage_limit_is_too_long() {
    let set = pools();
    let sides = (Side::with_limits(5000, 3000), Side::receiving(0));
    let socket = RecordSocket::new(&set, sides, ());
    socket.protocol_end().connected();
    let too_long = SocketError::TooLong {
        asked: 3001,
        max: 3000,
    };
    assert_eq!(socket.send(&[1; 3001], SendFlags::empty()), Err(too_long));
    assert_eq!(socket.send(&[1; 3000], SendFlags::empty()), Ok(3000));
}

#[test]
fn sb_send_of_control_messages_counts_towards_the_length() {
    let set = pools();
    let (socket, end) = socket(&set, 100);
    let control = Message {
        level: 0,
        kind: 1,
        data: &[0; 8],
    };
    let record = |len| Outgoing {
        address: None,
        control: Some(control.to_mbuf(&set).expect("mbuf")),
        data: Some(received(&set, &vec![1; len], 0)),
    };
    let too_long = SocketError::TooLong {
        asked: 101,
        max: 100,
    };
    assert_eq!(socket.send_record(record(77), NOW), Err(too_long));
    assert_eq!(socket.send_record(record(76), NOW), Ok(100));
    let sent = end.with_send(|rb| rb.take_record()).expect("one");
    assert_eq!(sent.control.expect("control").pkt_len(), 24);
    drop(sent.data);
    assert!(set.is_full());
}

#[test]
fn sb_send_needs_a_destination_or_a_connection_and_not_both() {
    let set = pools();
    let told = Datagrams::default();
    let sides = (Side::sending(100), Side::receiving(100));
    let socket = RecordSocket::new(&set, sides, told.clone());
    let end = socket.protocol_end();
    assert_eq!(socket.send(b"a", NOW), Err(SocketError::NoDestination));
    assert_eq!(socket.send_record(addressed(&set, b"a"), NOW), Ok(3));
    end.connected();
    let both = socket.send_record(addressed(&set, b"a"), NOW);
    assert_eq!(both, Err(SocketError::Connected));
    assert_eq!(socket.send(b"a", NOW), Ok(1));
    assert_eq!(told.0.load(Ordering::Relaxed), 2);
    let sent = end.with_send(|rb| rb.take_record()).expect("two");
    assert_eq!(sent.address.expect("address").to_vec(), b"to");
    end.disconnected();
    assert_eq!(socket.send(b"a", NOW), Err(SocketError::Shut { asked: 1 }));
    assert!(end.with_send(|rb| rb.is_empty()));
}

#[test]
fn sb_send_of_a_record_waits_for_space_for_all_of_it() {
    let set = pools();
    let (socket, end) = socket(&set, 100);
    for _ in 0..2 {
        socket.send(&[1; 50], NOW).expect("space");
    }
    let writer = thread::spawn({
        let socket = socket.clone();
        move || socket.send(&[2; 100], SendFlags::empty())
    });
    until(|| socket.waits().writers == 1);
    end.with_send(|rb| drop(rb.take_record()));
    assert_eq!(socket.waits().writer_wakes, 0, "not enough yet");
    end.with_send(|rb| drop(rb.take_record()));
    assert_eq!(writer.join().expect("writer"), Ok(100));
    assert_eq!(socket.waits().writer_wakes, 1);
}

#[test]
fn sb_receive_of_a_record_copies_what_fits_and_says_what_was_there() {
    let set = pools();
    let (socket, end) = socket(&set, 1000);
    let mut ended = received(&set, b"second", 0);
    ended.set_eor(true);
    end.append(received(&set, b"first", 0));
    end.append(ended);
    end.append(received(&set, b"", 0));
    let mut room = [0; 5];
    let got = |len, whole, eor| Ok(Some(Received { len, whole, eor }));
    assert_eq!(
        socket.receive(&mut room, ReceiveFlags::PEEK),
        got(5, 5, false)
    );
    assert_eq!(
        socket.receive(&mut room, ReceiveFlags::empty()),
        got(5, 5, false)
    );
    assert_eq!(
        socket.receive(&mut room, ReceiveFlags::empty()),
        got(5, 6, true)
    );
    assert_eq!(&room, b"secon");
    assert_eq!(
        socket.receive(&mut room, ReceiveFlags::empty()),
        got(0, 0, false)
    );
    let none = socket.receive(&mut room, ReceiveFlags::DONTWAIT);
    assert!(matches!(none, Err(SocketError::WouldBlock { .. })));
    end.peer_closed();
    assert_eq!(socket.receive(&mut room, ReceiveFlags::PEEK), Ok(None));
    assert_eq!(socket.receive(&mut room, ReceiveFlags::empty()), Ok(None));
    assert!(set.is_full());
}

#[test]
fn sb_receive_of_a_record_waits_for_one_and_tells_errors_once() {
    let set = pools();
    let (socket, end) = socket(&set, 1000);
    let reader = thread::spawn({
        let socket = socket.clone();
        move || socket.receive_record(ReceiveFlags::empty())
    });
    until(|| socket.waits().readers == 1);
    end.append(received(&set, b"", 0));
    let record = reader.join().expect("reader").expect("a record");
    assert!(record.expect("one").data.is_some(), "without a byte");
    end.report(SocketError::Unreachable);
    let peeked = socket.receive(&mut [], ReceiveFlags::PEEK);
    assert_eq!(peeked, Err(SocketError::Unreachable));
    let told = socket.receive_record(ReceiveFlags::DONTWAIT).err();
    assert_eq!(told, Some(SocketError::Unreachable));
    let none = socket.receive_record(ReceiveFlags::DONTWAIT).err();
    assert!(matches!(none, Some(SocketError::WouldBlock { .. })));
}

#[test]
fn sb_send_of_a_record_with_its_end_keeps_it() {
    let set = pools();
    let (socket, end) = socket(&set, 1000);
    socket.send(b"whole", NOW | SendFlags::EOR).expect("space");
    assert!(end.with_send(|rb| rb.front().expect("one").is_eor()));
}
