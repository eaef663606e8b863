//! Two connections over a wire in memory.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::VecDeque;

use mbuf::{BufferSet, Mbuf, Packet};
use tcp_output::connection::{Config, Connection, Events};
use tcp_output::input::{Incoming, answer_with_reset};
use tcp_output::policy::{Copy, Reference, Threshold};
use tcp_output::*;

use crate::common::see;

/// One side: its connection, what it sent, what it received, what it was told.
pub struct Side {
    pub tcp: Connection<Box<dyn CopyPolicy>>,
    pub iss: Seq,
    pub to_send: Vec<u8>,
    pub written: usize,
    pub received: Vec<u8>,
    pub events: Events,
    /// Reads what arrives.
    pub reads: bool,
}

/// Two sides and what is between them.
pub struct Pair {
    pub set: BufferSet,
    pub sides: [Side; 2],
    pub wire: VecDeque<(usize, Mbuf)>,
    pub now: Time,
    pub packets: usize,
    pub weather: fastrand::Rng,
    pub loss_percent: u8,
    /// Packets that come late, and again.
    pub disorder_percent: u8,
}

pub fn policy(n: usize) -> Box<dyn CopyPolicy> {
    match n % 3 {
        0 => Box::new(Reference),
        1 => Box::new(Copy),
        _ => Box::new(Threshold { factor: 5 }),
    }
}

pub fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..len).map(|_| rng.u8(..)).collect()
}

pub const ISS: [Seq; 2] = [Seq(u32::MAX - 5_000), Seq(0x7fff_f000)];

impl Side {
    pub fn new(tcp: Connection<Box<dyn CopyPolicy>>, iss: Seq) -> Side {
        Side {
            tcp,
            iss,
            to_send: Vec::new(),
            written: 0,
            received: Vec::new(),
            events: Events::empty(),
            reads: true,
        }
    }

    pub fn user(&mut self, set: &BufferSet) {
        let rest = &self.to_send[self.written..];
        if !rest.is_empty()
            && let Ok(n) = self.tcp.write(&rest[..rest.len().min(7777)], set)
        {
            self.written += n;
        }
        let mut buffer = [0; 5000];
        while self.reads {
            let n = self.tcp.read(&mut buffer);
            self.received.extend(&buffer[..n]);
            if n == 0 {
                break;
            }
        }
    }

    /// Every byte on the wire is the byte of the stream that its number says.
    pub fn oracle(&self, packet: &Mbuf) {
        let seen = see(packet);
        assert_eq!(seen.checksum, seen.right_checksum);
        if !seen.payload.is_empty() {
            let at = (Seq(seen.seq) - self.iss - 1) as usize;
            assert!(self.to_send[at..at + seen.payload.len()] == seen.payload);
        }
    }
}

impl Pair {
    /// A client that is about to send its SYN, and the server that it makes.
    pub fn connected(ends: Endpoints, config: [Config; 2], n: usize) -> Pair {
        let set = BufferSet::bsd(4096, 256).expect("pools");
        let client = Connection::connect(ends, &config[0], policy(n), ISS[0], Time(0));
        let mut client = client.expect("size");
        let mut syn = Vec::new();
        let mut out = |packet| {
            syn.push(packet);
            Ok(())
        };
        client.poll_output(&set, Time(0), &mut out).expect("sent");
        let segment = Incoming::parse(&syn[0]).expect("a SYN");
        let server = Connection::accept(&segment, &config[1], policy(n + 1), ISS[1], Time(0));
        let server = server.expect("a SYN");
        drop(syn);
        Pair::of(set, client, server)
    }

    pub fn of(
        set: BufferSet,
        a: Connection<Box<dyn CopyPolicy>>,
        b: Connection<Box<dyn CopyPolicy>>,
    ) -> Pair {
        Pair {
            set,
            sides: [Side::new(a, ISS[0]), Side::new(b, ISS[1])],
            wire: VecDeque::new(),
            now: Time(0),
            packets: 0,
            weather: fastrand::Rng::with_seed(1),
            loss_percent: 0,
            disorder_percent: 0,
        }
    }

    /// One round: users, output, delivery, and the clock when nothing moves. Whether anything is left
    /// to happen.
    pub fn step(&mut self, until: Time) -> bool {
        for i in 0..2 {
            self.sides[i].user(&self.set);
            let side = &mut self.sides[i];
            let mut sent = Vec::new();
            let mut out = |packet| {
                sent.push(packet);
                Ok(())
            };
            side.tcp
                .poll_output(&self.set, self.now, &mut out)
                .expect("buffers");
            self.packets += sent.len();
            for packet in sent {
                self.sides[i].oracle(&packet);
                self.send(1 - i, packet);
            }
        }
        if !self.wire.is_empty() {
            self.now = self.now + 1;
            for (to, packet) in std::mem::take(&mut self.wire) {
                self.deliver(to, packet);
            }
            return true;
        }
        let timeouts = self.sides.iter().filter_map(|side| side.tcp.next_timeout());
        let Some(at) = timeouts.min().filter(|at| *at <= until) else {
            return false;
        };
        self.now = self.now.max(at);
        for side in &mut self.sides {
            side.events |= side.tcp.on_timer(self.now);
        }
        true
    }

    pub fn send(&mut self, to: usize, packet: Mbuf) {
        if self.weather.u8(0..100) < self.loss_percent {
            return;
        }
        if self.weather.u8(0..100) < self.disorder_percent {
            let again = packet.deep_copy(0, &self.set).expect("buffers");
            let place = self.weather.usize(0..=self.wire.len());
            self.wire.insert(place, (to, again));
        }
        let place = match self.weather.u8(0..100) < self.disorder_percent {
            true => self.weather.usize(0..=self.wire.len()),
            false => self.wire.len(),
        };
        self.wire.insert(place, (to, packet));
    }

    pub fn deliver(&mut self, to: usize, packet: Mbuf) {
        let segment = Incoming::parse(&packet).expect("what we sent");
        let side = &mut self.sides[to];
        let events = side.tcp.on_segment(&segment, packet, self.now);
        side.events |= events;
        if events.contains(Events::UNWANTED) {
            let wire = &mut self.wire;
            let mut out = |packet| {
                wire.push_back((1 - to, packet));
                Ok(())
            };
            answer_with_reset(&segment, &self.set, ChecksumMode::Software, &mut out)
                .expect("buffers");
        }
    }

    /// Until nothing happens any more before `ms` from now.
    pub fn run(&mut self, ms: u32) {
        let until = self.now + ms;
        for _ in 0..200_000 {
            if !self.step(until) {
                return;
            }
        }
        panic!("no end: {:?}", self.states());
    }

    pub fn states(&self) -> [State; 2] {
        [self.sides[0].tcp.state(), self.sides[1].tcp.state()]
    }

    pub fn all_arrived(&self) {
        for (from, to) in [(0, 1), (1, 0)] {
            let (from, to) = (&self.sides[from], &self.sides[to]);
            assert_eq!(from.written, from.to_send.len());
            assert!(from.to_send == to.received, "{} bytes", to.received.len());
        }
    }

    /// Both connections go, and with them every buffer.
    pub fn end(self) {
        let Pair {
            set, sides, wire, ..
        } = self;
        drop((sides, wire));
        assert!(set.is_full());
    }
}
