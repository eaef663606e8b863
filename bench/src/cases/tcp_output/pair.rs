//! Two connections in one thread and the wire between them, on a clock that goes on when nothing
//! else does.

use super::ends;
use mbuf::{BufferSet, Checksum, Mbuf, Packet, Received};
use std::collections::VecDeque;
use tcp_output::connection::{Config, Connection};
use tcp_output::input::Incoming;
use tcp_output::{ChecksumMode, CopyPolicy, OutputError, Seq, Stats, Time};

/// Limit of each buffer, bytes.
pub(super) const BUFFER: usize = 128 << 10;
/// Bytes that are written at once, at most.
pub(super) const CHUNK: usize = 32 << 10;
/// Steps without a byte read after which a transfer has stopped.
const PATIENCE: usize = 10_000;

/// What the wire does with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Carry {
    /// Hands it on as it is.
    Whole,
    /// Copies it into a receive buffer, as a card would. Only peers are compared with that.
    #[cfg_attr(not(feature = "peers"), expect(dead_code))]
    Copied,
}

/// How the two are to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) mtu: usize,
    /// Both sides make and verify checksums; else neither does.
    pub(super) sums: bool,
    pub(super) tso: bool,
    pub(super) carry: Carry,
    /// In thousandths of the packets.
    pub(super) loss: u32,
    /// A side answers each packet; else what has arrived together is answered together.
    pub(super) each: bool,
}

/// One direction of the wire.
struct Wire {
    packets: VecDeque<Mbuf>,
    plan: Plan,
    set: BufferSet,
    weather: fastrand::Rng,
    carried: u64,
    lost: u64,
}

impl Wire {
    fn new(plan: Plan, set: &BufferSet, seed: u64) -> Wire {
        Wire {
            packets: VecDeque::with_capacity(1024),
            plan,
            set: set.clone(),
            weather: fastrand::Rng::with_seed(seed),
            carried: 0,
            lost: 0,
        }
    }

    #[inline]
    fn put(&mut self, packet: Mbuf) -> Result<(), OutputError> {
        self.carried += 1;
        if self.plan.loss > 0 && self.weather.u32(..1000) < self.plan.loss {
            self.lost += 1;
            return Ok(());
        }
        let mut packet = match self.plan.carry {
            Carry::Whole => packet,
            Carry::Copied => copied(&packet, &self.set).ok_or(OutputError::NoBuffers)?,
        };
        if !self.plan.sums {
            packet.set_received(Received {
                ip_checksum: Checksum::Good,
                l4_checksum: Checksum::Good,
                ..Received::default()
            });
        }
        self.packets.push_back(packet);
        Ok(())
    }
}

fn copied(packet: &Mbuf, set: &BufferSet) -> Option<Mbuf> {
    let len = packet.pkt_len();
    let mut copy = set.header_with(len).ok()?;
    packet.copy_to(0, copy.append(len).ok()?).ok()?;
    Some(copy)
}

/// What went over the wire since the pair was made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) packets: u64,
    pub(super) acks: u64,
    pub(super) lost: u64,
    pub(super) stats: Stats,
    /// The clock, ms.
    pub(super) now: u64,
}

/// Client and server.
pub(super) struct Pair<P> {
    set: BufferSet,
    client: Connection<P>,
    server: Connection<P>,
    there: Wire,
    back: Wire,
    now: Time,
}

impl<P: CopyPolicy + Clone> Pair<P> {
    /// A pair whose connection stands.
    pub(super) fn new(plan: Plan, policy: P, seed: u64) -> Result<Self, String> {
        let set = BufferSet::builder(8192)
            .class(2048, 2048)
            .class(4096, 512)
            .class(16_384, 128)
            .build()
            .map_err(|e| e.to_string())?;
        let receive = match plan.mtu > 1500 {
            true => BufferSet::builder(256).class(plan.mtu.next_multiple_of(64), 128),
            false => BufferSet::builder(4096).class(2048, 2048),
        };
        let receive = receive.build().map_err(|e| e.to_string())?;
        let config = Config {
            max_segment: (plan.mtu - 40) as u32,
            send_buffer: BUFFER as u32,
            receive_buffer: BUFFER as u32,
            checksum: match plan.sums {
                true => ChecksumMode::Software,
                false => ChecksumMode::None,
            },
            tso: plan.tso,
            ..Config::default()
        };
        let text = |e: &dyn std::error::Error| e.to_string();
        let mut client = Connection::connect(ends(), &config, policy.clone(), Seq(1), Time(0))
            .map_err(|e| text(&e))?;
        let mut there = Wire::new(Plan { loss: 0, ..plan }, &receive, seed);
        let mut out = |packet| there.put(packet);
        client
            .poll_output(&set, Time(0), &mut out)
            .map_err(|e| text(&e))?;
        let syn = there.packets.pop_front().ok_or("no SYN")?;
        let segment = Incoming::parse(&syn).map_err(|e| text(&e))?;
        let server = Connection::accept(&segment, &config, policy, Seq(9), Time(0));
        there.plan = plan;
        Ok(Pair {
            set,
            client,
            server: server.map_err(|e| text(&e))?,
            there,
            back: Wire::new(plan, &receive, !seed),
            now: Time(0),
        })
    }

    /// Moves `from` to `to`, which is as long.
    ///
    /// # Errors
    /// When it stops.
    pub(super) fn transfer(&mut self, from: &[u8], to: &mut [u8]) -> Result<(), String> {
        let (mut written, mut read, mut idle) = (0, 0, 0);
        while read < to.len() {
            let before = (written, read, self.there.carried, self.back.carried);
            let end = from.len().min(written + CHUNK);
            if written < end {
                written += self
                    .client
                    .write(&from[written..end], &self.set)
                    .unwrap_or(0);
            }
            output(&mut self.client, &self.set, self.now, &mut self.there)?;
            deliver(
                &mut self.there,
                &mut self.server,
                &self.set,
                self.now,
                &mut self.back,
            )?;
            read += self.server.read(&mut to[read..]);
            output(&mut self.server, &self.set, self.now, &mut self.back)?;
            deliver(
                &mut self.back,
                &mut self.client,
                &self.set,
                self.now,
                &mut self.there,
            )?;
            if before == (written, read, self.there.carried, self.back.carried) {
                self.wait()?;
            }
            idle = if read > before.1 { 0 } else { idle + 1 };
            if idle > PATIENCE {
                return Err(format!("stopped after {read} bytes"));
            }
        }
        Ok(())
    }

    /// Nothing moves: until the next timer.
    #[cold]
    fn wait(&mut self) -> Result<(), String> {
        let timeouts = [self.client.next_timeout(), self.server.next_timeout()];
        let next = timeouts.into_iter().flatten().min();
        self.now = next.ok_or("nothing moves and no timer runs")?.max(self.now);
        self.client.on_timer(self.now);
        self.server.on_timer(self.now);
        output(&mut self.client, &self.set, self.now, &mut self.there)?;
        output(&mut self.server, &self.set, self.now, &mut self.back)
    }

    pub(super) fn seen(&self) -> Seen {
        Seen {
            packets: self.there.carried,
            acks: self.back.carried,
            lost: self.there.lost + self.back.lost,
            stats: self.client.tcb().stats,
            now: self.now.0,
        }
    }

    /// Ends both and says how many mbufs and clusters are not back.
    pub(super) fn left(&mut self) -> usize {
        self.client.abort();
        self.server.abort();
        self.client.take();
        self.server.take();
        for wire in [&mut self.there, &mut self.back] {
            wire.packets.clear();
        }
        self.set.in_use() + self.there.set.in_use()
    }
}

#[inline]
fn output<P: CopyPolicy>(
    from: &mut Connection<P>,
    set: &BufferSet,
    now: Time,
    wire: &mut Wire,
) -> Result<(), String> {
    let sent = from.poll_output(set, now, &mut |packet| wire.put(packet));
    sent.map(drop).map_err(|e| e.to_string())
}

/// All that is on the wire arrives, and is answered.
#[inline]
fn deliver<P: CopyPolicy>(
    wire: &mut Wire,
    to: &mut Connection<P>,
    set: &BufferSet,
    now: Time,
    back: &mut Wire,
) -> Result<(), String> {
    while let Some(packet) = wire.packets.pop_front() {
        let segment = Incoming::parse(&packet).map_err(|e| e.to_string())?;
        to.on_segment(&segment, packet, now);
        if wire.plan.each {
            output(to, set, now, back)?;
        }
    }
    Ok(())
}
