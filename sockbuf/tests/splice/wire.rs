//! Pairs of sockets over a wire in memory.

use std::sync::{Arc, Mutex};

use mbuf::{BufferSet, Packet};
use sha2::{Digest, Sha256};
use sockbuf::{Protocol, ProtocolEnd, ReceiveFlags, SendFlags, Shutdown, Side, Socket, Urgent};

/// Between two sockets. What is sent is at the other end at once, as far as there is space: referred to
/// there, and acknowledged here.
struct Cable {
    ends: Mutex<[Option<ProtocolEnd>; 2]>,
    /// One packet at a time in each direction, or the stream would not stay in order.
    busy: [Mutex<()>; 2],
    set: BufferSet,
}

/// What one of the two sockets has of it.
struct Plug {
    cable: Arc<Cable>,
    side: usize,
}

impl Cable {
    fn end(&self, side: usize) -> Option<ProtocolEnd> {
        self.ends.lock().unwrap()[side].clone()
    }

    /// Carries all that there is space for from this side to the other.
    fn carry(&self, side: usize) {
        let _turn = self.busy[side].lock().unwrap();
        let (Some(from), to) = (self.end(side), self.end(1 - side)) else {
            return;
        };
        let Some(to) = to else {
            from.report(sockbuf::SocketError::Reset);
            return from.disconnected();
        };
        while let Some(n) = self.carry_once(&from, &to) {
            from.acknowledge(n).unwrap();
        }
        if from.with_send(|sb| sb.is_empty() && sb.side().is_shut()) {
            to.peer_closed();
        }
    }

    fn carry_once(&self, from: &ProtocolEnd, to: &ProtocolEnd) -> Option<usize> {
        let space = usize::try_from(to.receive_space()).unwrap_or(0);
        let (packet, urgent) = from.with_send(|sb| {
            let n = sb.len().min(space);
            let packet = (n > 0).then(|| sb.ref_copy(0, n, &self.set).expect("mbufs"));
            (packet, sb.urgent().filter(|off| *off < n))
        });
        let (packet, before) = (packet?, to.with_receive(|sb| sb.len()));
        let n = packet.pkt_len();
        to.append(packet);
        if let Some(off) = urgent {
            to.urgent(before + off, Urgent::Inline);
        }
        Some(n)
    }
}

impl Protocol for Plug {
    fn send(&self, _: &ProtocolEnd) {
        self.cable.carry(self.side);
    }

    /// There is room again.
    fn received(&self, _: &ProtocolEnd, _: usize) {
        self.cable.carry(1 - self.side);
    }

    fn shut_down(&self, _: &ProtocolEnd) {
        self.cable.carry(self.side);
    }

    fn closed(&self, _: &ProtocolEnd) {
        self.cable.carry(self.side);
        let end = self.cable.ends.lock().unwrap()[self.side].take();
        drop(end);
    }
}

/// BSD's sizes, and plenty of them.
pub fn pools() -> BufferSet {
    BufferSet::bsd(16384, 2048).unwrap()
}

pub fn limits(bytes: usize) -> (Side, Side) {
    (Side::sending(bytes), Side::receiving(bytes))
}

/// Two sockets with buffers of this size in each direction, connected to each other.
pub fn pair_of(set: &BufferSet, bytes: usize) -> (Socket, Socket) {
    let cable = Arc::new(Cable {
        ends: Mutex::new([None, None]),
        busy: [Mutex::new(()), Mutex::new(())],
        set: set.clone(),
    });
    let [a, b] = [0, 1].map(|side| {
        let cable = Arc::clone(&cable);
        Socket::new(set, limits(bytes), Plug { cable, side })
    });
    *cable.ends.lock().unwrap() = [Some(a.protocol_end()), Some(b.protocol_end())];
    a.protocol_end().connected();
    b.protocol_end().connected();
    (a, b)
}

pub fn pair(set: &BufferSet) -> (Socket, Socket) {
    pair_of(set, 65536)
}

/// `client ⇄ source` and `drain ⇄ server`: what stands between the two in the middle is to be spliced.
pub struct Relay {
    pub client: Socket,
    pub source: Socket,
    pub drain: Socket,
    pub server: Socket,
}

impl Relay {
    pub fn new(set: &BufferSet) -> Self {
        Self::of(set, 65536)
    }

    pub fn of(set: &BufferSet, bytes: usize) -> Self {
        let (client, source) = pair_of(set, bytes);
        let (drain, server) = pair_of(set, bytes);
        Self {
            client,
            source,
            drain,
            server,
        }
    }
}

/// Bytes that repeat at no length that occurs elsewhere.
pub fn pattern(n: usize) -> Vec<u8> {
    (0..n)
        .map(|i| (i % 251) as u8 ^ (i / 65_521) as u8)
        .collect()
}

pub fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Byte count and digest agree.
#[track_caller]
pub fn assert_same(got: &[u8], want: &[u8]) {
    assert_eq!(got.len(), want.len());
    assert_eq!(digest(got), digest(want));
}

/// All that there is now.
pub fn read_now(socket: &Socket) -> Vec<u8> {
    let mut got = Vec::new();
    let mut room = vec![0; 65536];
    while let Ok(n @ 1..) = socket.receive(&mut room, ReceiveFlags::DONTWAIT) {
        got.extend_from_slice(&room[..n]);
    }
    got
}

/// All until the end of the stream.
pub fn read_all(socket: &Socket) -> Vec<u8> {
    let mut got = Vec::new();
    let mut room = vec![0; 65536];
    loop {
        match socket.receive(&mut room, ReceiveFlags::empty()).unwrap() {
            0 => return got,
            n => got.extend_from_slice(&room[..n]),
        }
    }
}

pub fn write(socket: &Socket, bytes: &[u8]) {
    assert_eq!(socket.send(bytes, SendFlags::empty()), Ok(bytes.len()));
}

pub fn finish(socket: &Socket) {
    socket.shutdown(Shutdown::Write).unwrap();
}
