//! Sockets for the tests, over a protocol that writes down what it is told.
#![allow(dead_code)] // each binary uses its part

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mbuf::BufferSet;
use sockbuf::{Protocol, ProtocolEnd, Side, Socket};

/// What a protocol was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// Bytes in the send buffer, and whether more follow at once.
    Send(usize, bool),
    /// The same, and where the urgent byte is.
    Urgent(usize, Option<usize>),
    Received(usize),
    Shut,
    Closed,
}

#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Told>>>);

impl Log {
    fn push(&self, told: Told) {
        self.0.lock().expect("log").push(told);
    }

    /// What was told since this was asked last.
    pub fn take(&self) -> Vec<Told> {
        std::mem::take(&mut self.0.lock().expect("log"))
    }
}

impl Protocol for Log {
    fn send(&self, end: &ProtocolEnd) {
        let told = end.with_send(|sb| Told::Send(sb.len(), sb.side().more_to_come()));
        self.push(told);
    }

    fn send_urgent(&self, end: &ProtocolEnd) {
        self.push(end.with_send(|sb| Told::Urgent(sb.len(), sb.urgent())));
    }

    fn received(&self, _: &ProtocolEnd, bytes: usize) {
        self.push(Told::Received(bytes));
    }

    fn shut_down(&self, _: &ProtocolEnd) {
        self.push(Told::Shut);
    }

    fn closed(&self, _: &ProtocolEnd) {
        self.push(Told::Closed);
    }
}

/// A connected socket that logs, with limits for sending and receiving.
pub fn logged(set: &BufferSet, send: Side, receive: Side) -> (Socket, ProtocolEnd, Log) {
    let log = Log::default();
    let socket = Socket::new(set, (send, receive), log.clone());
    let end = socket.protocol_end();
    end.connected();
    (socket, end, log)
}

/// A connected socket of these sizes.
pub fn socket(set: &BufferSet, send: usize, receive: usize) -> (Socket, ProtocolEnd) {
    let sides = (Side::sending(send), Side::receiving(receive));
    let socket = Socket::new(set, sides, ());
    let end = socket.protocol_end();
    end.connected();
    (socket, end)
}

/// Comes back as soon as it is so.
pub fn until(so: impl Fn() -> bool) {
    while !so() {
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// All bytes in the send buffer.
pub fn unsent(end: &ProtocolEnd) -> Vec<u8> {
    end.with_send(|sb| {
        let mut bytes = vec![0; sb.len()];
        sb.copy_to(0, &mut bytes).expect("all of it");
        bytes
    })
}

pub fn numbered(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i % 251) as u8).collect()
}
