//! A network between two connections: delay, loss, disorder, duplicates, a rate, a path that narrows,
//! and a virtual clock. The same seed gives the same run.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::BTreeMap;

use mbuf::{BufferSet, Mbuf, Packet};
use tcp_output::checksum::Sum;
use tcp_output::connection::{Config, Connection};
use tcp_output::input::Incoming;
use tcp_output::wire::TcpFlags;
use tcp_output::*;

use crate::common::tso_mss;
use crate::pair::{Side, policy};

/// One direction of the path.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// From end to end, ms, and how much longer at most for packets that come late.
    pub delay: u32,
    pub jitter: u32,
    /// Of a thousand packets: lost, late, delivered twice.
    pub lost: u32,
    pub late: u32,
    pub twice: u32,
    /// Bytes in a millisecond, and how many wait for their turn before more are dropped; 0: any.
    pub rate: u64,
    pub queue: u64,
    /// Longest packet, and whether a router in the middle is the first to know.
    pub mtu: u32,
    pub far: bool,
    /// When the last byte has left, in µs.
    pub free_at: u64,
}

impl Link {
    /// 10 ms, any rate, Ethernet's packets, nothing lost.
    pub const CALM: Link = Link {
        delay: 10,
        jitter: 0,
        lost: 0,
        late: 0,
        twice: 0,
        rate: 0,
        queue: 64 << 10,
        mtu: 1500,
        far: false,
        free_at: 0,
    };
}

pub enum Flying {
    Packet(Mbuf),
    /// A router's word that packets are too long.
    TooLong(u32),
}

pub struct Net {
    /// The buffers of both connections; what the network copies has others.
    pub set: BufferSet,
    pub copies: BufferSet,
    pub sides: [Side; 2],
    /// From the first side, from the second.
    pub links: [Link; 2],
    pub flying: BTreeMap<(Time, u64), (usize, Flying)>,
    pub now: Time,
    pub rng: fastrand::Rng,
    /// Calls of output that failed. None may unless the test says so.
    pub failures: usize,
    pub may_fail: bool,
    pub steps: usize,
    /// Retransmission timers that have expired.
    pub timeouts: usize,
    sent: u64,
}

/// Events after which a run counts as one without an end.
const MOST_STEPS: usize = 400_000;

/// Says what ran when a test fails.
pub struct Says(pub String);

impl Drop for Says {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed: {}", self.0);
        }
    }
}

impl Net {
    /// A client whose SYN has arrived, and the server that it made.
    pub fn new(
        set: BufferSet,
        ends: Endpoints,
        config: [Config; 2],
        policies: usize,
        iss: [Seq; 2],
        seed: u64,
    ) -> Net {
        let client = Connection::connect(ends, &config[0], policy(policies), iss[0], Time(0));
        let mut client = Side::new(client.expect("size"), iss[0]);
        let syn = syn(&mut client, &set);
        let server = Connection::accept(&syn, &config[1], policy(policies + 1), iss[1], Time(0));
        Net {
            sides: [client, Side::new(server.expect("a SYN"), iss[1])],
            copies: BufferSet::bsd_builder(4096, 256)
                .configure(|pool| pool.cache(0))
                .build()
                .expect("pools"),
            set,
            links: [Link::CALM; 2],
            flying: BTreeMap::new(),
            now: Time(0),
            rng: fastrand::Rng::with_seed(seed),
            failures: 0,
            may_fail: false,
            steps: 0,
            timeouts: 0,
            sent: 0,
        }
    }

    /// Until nothing happens any more before `ms` from now.
    pub fn run(&mut self, ms: u32) {
        self.run_until(ms, |_| false);
    }

    /// Until `done`, or until nothing happens any more before `ms` from now. Whether it is done.
    pub fn run_until(&mut self, ms: u32, done: impl Fn(&Net) -> bool) -> bool {
        let until = self.now + ms;
        (0..2).for_each(|i| self.turn(i));
        loop {
            if done(self) {
                return true;
            }
            if !self.step(until) {
                return false;
            }
            self.steps += 1;
            assert!(self.steps < MOST_STEPS, "no end: {:?}", self.states());
        }
    }

    pub fn states(&self) -> [State; 2] {
        [self.sides[0].tcp.state(), self.sides[1].tcp.state()]
    }

    /// The next event: an arrival or a timer. Whether there was one.
    fn step(&mut self, until: Time) -> bool {
        let timeout = |i: usize| self.sides[i].tcp.next_timeout().map(|at| (at, i));
        let timer = (0..2).filter_map(timeout).min();
        let arrival = self.flying.first_key_value().map(|(at, _)| at.0);
        let next = [timer.map(|(at, _)| at), arrival]
            .into_iter()
            .flatten()
            .min();
        let Some(at) = next.filter(|at| *at <= until) else {
            return false;
        };
        self.now = self.now.max(at);
        if arrival == Some(at) {
            self.arrive();
        } else if let Some((_, i)) = timer {
            let side = &mut self.sides[i];
            let lost = side.tcp.tcb().timer(Timer::Retransmit);
            self.timeouts += usize::from(lost.is_some_and(|at| at <= self.now));
            side.events |= side.tcp.on_timer(self.now);
            self.turn(i);
        }
        true
    }

    fn arrive(&mut self) {
        let Some((_, (to, what))) = self.flying.pop_first() else {
            return;
        };
        let side = &mut self.sides[to];
        match what {
            Flying::TooLong(mtu) => {
                side.tcp.on_path_mtu(mtu);
            }
            Flying::Packet(packet) => {
                let segment = Incoming::parse(&packet).expect("what we sent");
                side.events |= side.tcp.on_segment(&segment, packet, self.now);
            }
        }
        self.turn(to);
    }

    /// A side's user, and its output.
    pub fn turn(&mut self, i: usize) {
        self.sides[i].user(&self.set);
        let (mut sent, mtu) = (Vec::new(), self.links[i]);
        let mut out = |packet: Mbuf| {
            if !mtu.far && frame_len(&packet) > mtu.mtu as usize {
                return Err(OutputError::TooLong { mtu: mtu.mtu });
            }
            sent.push(packet);
            Ok(())
        };
        let side = &mut self.sides[i];
        let result = side.tcp.poll_output(&self.set, self.now, &mut out);
        if let Err(error) = result {
            assert!(self.may_fail, "{error}");
            self.failures += 1;
        }
        let tcb = side.tcp.tcb();
        let waits = tcb.outstanding() || !side.tcp.send_buffer().is_empty();
        let runs = tcb.send.rexmt.is_some() || tcb.send.persist.is_some();
        assert!(
            runs || !waits || tcb.state == State::Closed,
            "no timer: {tcb:?}"
        );
        for packet in sent {
            for frame in cut(packet, &self.copies) {
                self.sides[i].oracle(&frame);
                self.send(i, frame);
            }
        }
    }

    fn send(&mut self, from: usize, packet: Mbuf) {
        let mut chance = |of: u32| self.rng.u32(0..1000) < of;
        let link = self.links[from];
        let (lost, late, twice) = (chance(link.lost), chance(link.late), chance(link.twice));
        if packet.pkt_len() > link.mtu as usize {
            self.fly(self.now + 1, from, Flying::TooLong(link.mtu));
            return;
        }
        let Some(left) = self.links[from].take(self.now, packet.pkt_len()) else {
            return;
        };
        if lost {
            return;
        }
        let late = if late {
            self.rng.u32(0..=link.jitter)
        } else {
            0
        };
        if twice {
            let copy = packet.deep_copy(0, &self.copies).expect("buffers");
            let later = self.rng.u32(0..=link.jitter);
            self.fly(left + (link.delay + later), 1 - from, Flying::Packet(copy));
        }
        self.fly(left + (link.delay + late), 1 - from, Flying::Packet(packet));
    }

    fn fly(&mut self, at: Time, to: usize, what: Flying) {
        self.sent += 1;
        self.flying.insert((at, self.sent), (to, what));
    }

    /// Every byte has arrived, in order and once.
    pub fn all_arrived(&self) -> bool {
        [(0, 1), (1, 0)].into_iter().all(|(from, to)| {
            let (from, to) = (&self.sides[from], &self.sides[to]);
            assert!(from.to_send.starts_with(&to.received), "not what was sent");
            from.to_send.len() == to.received.len()
        })
    }

    /// Both sides close, wait for strays, and every buffer is back.
    pub fn close(mut self) {
        for side in &mut self.sides {
            side.tcp.close();
        }
        self.run(1_000_000);
        assert_eq!(self.states(), [State::Closed; 2]);
        let Net {
            set,
            copies,
            sides,
            flying,
            ..
        } = self;
        drop((sides, flying));
        assert!(set.is_full() && copies.is_full(), "buffers are missing");
    }
}

impl Link {
    /// When a packet that comes now has left, unless there is no room for it.
    fn take(&mut self, now: Time, len: usize) -> Option<Time> {
        if self.rate == 0 {
            return Some(now);
        }
        let start = self.free_at.max(now.0 * 1000);
        if (start - now.0 * 1000) * self.rate / 1000 > self.queue {
            return None;
        }
        self.free_at = start + (len as u64 * 1000).div_ceil(self.rate);
        Some(Time(self.free_at.div_ceil(1000)))
    }
}

fn syn(client: &mut Side, set: &BufferSet) -> Incoming {
    let mut segment = None;
    let mut out = |packet: Mbuf| {
        segment = Some(Incoming::parse(&packet).expect("a SYN"));
        Ok(())
    };
    client
        .tcp
        .poll_output(set, Time(0), &mut out)
        .expect("buffers");
    segment.expect("a SYN")
}

/// Length of a packet, or of the longest frame that the NIC makes of it.
fn frame_len(packet: &Mbuf) -> usize {
    match tso_mss(&packet.offload()) {
        0 => packet.pkt_len(),
        mss => header_len(&packet.to_vec()).1 + usize::from(mss),
    }
}

/// Bytes of the IP header, and with the TCP header.
fn header_len(bytes: &[u8]) -> (usize, usize) {
    let ip = if bytes[0] >> 4 == 6 { 40 } else { 20 };
    (ip, ip + usize::from(bytes[ip + 12] >> 4) * 4)
}

/// What a NIC makes of a packet: frames of one segment each.
pub fn cut(packet: Mbuf, set: &BufferSet) -> Vec<Mbuf> {
    let mss = usize::from(tso_mss(&packet.offload()));
    if mss == 0 {
        return vec![packet];
    }
    let bytes = packet.to_vec();
    let (ip, all) = header_len(&bytes);
    let (header, payload) = bytes.split_at(all);
    let frames = payload.len().div_ceil(mss);
    let frame = |(i, part): (usize, &[u8])| {
        let mut frame = [header, part].concat();
        number(&mut frame, ip, i, mss);
        if i + 1 < frames {
            frame[ip + 13] &= !(TcpFlags::FIN | TcpFlags::PSH).bits();
        }
        if i > 0 {
            frame[ip + 13] &= !TcpFlags::CWR.bits();
        }
        sum(&mut frame, ip);
        set.copy_in(&frame, 0).expect("buffers")
    };
    payload.chunks(mss).enumerate().map(frame).collect()
}

/// Lengths, identification and sequence number of the `i`-th frame.
fn number(frame: &mut [u8], ip: usize, i: usize, mss: usize) {
    let add = |field: &mut [u8], n: u32| {
        let old = field
            .iter()
            .fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        let new = old.wrapping_add(n).to_be_bytes();
        field.copy_from_slice(&new[4 - field.len()..]);
    };
    let len = frame.len() as u16;
    if ip == 20 {
        frame[2..4].copy_from_slice(&len.to_be_bytes());
        add(&mut frame[4..6], i as u32);
    } else {
        frame[4..6].copy_from_slice(&(len - 40).to_be_bytes());
    }
    add(&mut frame[ip + 4..ip + 8], (i * mss) as u32);
}

/// Both checksums.
fn sum(frame: &mut [u8], ip: usize) {
    let mut sum = Sum::new();
    if ip == 20 {
        frame[10..12].fill(0);
        sum.add(&frame[..20]);
        let value = sum.checksum().to_be_bytes();
        frame[10..12].copy_from_slice(&value);
    }
    frame[ip + 16..ip + 18].fill(0);
    let mut sum = Sum::new();
    sum.add(if ip == 20 {
        &frame[12..20]
    } else {
        &frame[8..40]
    });
    sum.add_word(6);
    sum.add_word((frame.len() - ip) as u16);
    sum.add(&frame[ip..]);
    let value = sum.checksum().to_be_bytes();
    frame[ip + 16..ip + 18].copy_from_slice(&value);
}
