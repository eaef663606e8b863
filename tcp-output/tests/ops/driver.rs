//! Drives one connection from a string of bytes: segments that a peer, an attacker or chance could
//! send, the user's calls, the clock, a way out that refuses.
//!
//! The bytes come from a seeded generator (`tests/ops`) or from a fuzzer (`fuzz`). After every step the
//! connection's own rules must hold, and whatever waits must have a timer.

use mbuf::{BufferSet, Mbuf, Packet};
use tcp_output::connection::{Config, Connection, Events};
use tcp_output::input::Incoming;
use tcp_output::policy::{Copy, Reference, Threshold};
use tcp_output::*;

/// Decisions out of a string of bytes; 0 when they have run out.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u32 {
        (0..4).fold(0, |word, _| word << 8 | u32::from(self.byte()))
    }

    fn one_in(&mut self, n: u8) -> bool {
        self.byte().is_multiple_of(n)
    }

    /// A number below `n`, which is not 0.
    fn below(&mut self, n: u32) -> u32 {
        (u32::from(self.byte()) << 8 | u32::from(self.byte())) % n
    }

    /// At, a little off, or far from a number.
    fn near(&mut self, of: Seq) -> Seq {
        match self.byte() % 8 {
            0 => Seq(self.word()),
            1 => of + self.below(3000),
            2 => Seq(of.0.wrapping_sub(self.below(3000))),
            _ => of,
        }
    }
}

/// The pools of a run: small, so that they run dry, and uncached, so that counts are exact.
pub fn pools() -> BufferSet {
    BufferSet::bsd_builder(256, 32)
        .configure(|pool| pool.cache(0))
        .build()
        .expect("pools")
}

/// What runs did, to see that they did something.
#[derive(Default, Debug)]
pub struct Tally {
    pub steps: usize,
    pub sent: usize,
    pub received: usize,
    pub short: usize,
    pub ended: usize,
    pub replaced: usize,
}

struct World<'s> {
    set: &'s BufferSet,
    tcp: Connection<Box<dyn CopyPolicy>>,
    now: Time,
    /// What a segment to the connection bears: its addresses turned around.
    ends: Endpoints,
    tally: &'s mut Tally,
}

/// Does what `decisions` say until they end; then the connection goes and every buffer is back.
///
/// # Panics
/// When a rule does not hold.
pub fn run(set: &BufferSet, decisions: &[u8], tally: &mut Tally) {
    let mut source = Source(decisions);
    let mut world = World::new(set, &mut source, tally);
    while !source.0.is_empty() {
        world.tally.steps += 1;
        world.step(&mut source);
        if let Err(broken) = world.tcp.check() {
            panic!("{broken}");
        }
    }
    world.tcp.abort();
    world.output(0);
    assert_eq!(
        world.tcp.next_timeout(),
        None,
        "a timer without a connection"
    );
    drop(world);
    assert!(set.is_full(), "buffers are missing");
}

/// A connection about to be opened, as the bytes say.
fn open(ends: Endpoints, source: &mut Source<'_>, now: Time) -> Connection<Box<dyn CopyPolicy>> {
    let wishes = TcbFlags::ASK_SACK
        | TcbFlags::ASK_TIMESTAMPS
        | TcbFlags::ASK_SCALE
        | TcbFlags::ASK_ECN
        | TcbFlags::NODELAY
        | TcbFlags::KEEP_ALIVE;
    let config = Config {
        flags: TcbFlags::from_bits_truncate(source.word()) & wishes,
        max_segment: 64 + source.below(9000),
        send_buffer: 1 + source.below(65_536),
        receive_buffer: 1 + source.below(65_536) * (1 + u32::from(source.byte() % 9)),
        tso: source.byte() & 1 == 0,
        ..Config::default()
    };
    let policy: Box<dyn CopyPolicy> = match source.byte() % 3 {
        0 => Box::new(Reference),
        1 => Box::new(Copy),
        _ => Box::new(Threshold { factor: 5 }),
    };
    let iss = Seq(source.word());
    Connection::connect(ends, &config, policy, iss, now).expect("size")
}

impl<'s> World<'s> {
    fn new(set: &'s BufferSet, source: &mut Source<'_>, tally: &'s mut Tally) -> Self {
        let ends = Endpoints::V4 {
            source: [10, 0, 0, 1].into(),
            dest: [10, 0, 0, 2].into(),
            source_port: 5000,
            dest_port: 80,
        };
        let mut world = World {
            set,
            tcp: open(ends, source, Time(0)),
            now: Time(0),
            ends: ends.reversed(),
            tally,
        };
        world.output(0);
        world
    }

    /// Another connection in place of one that has ended.
    fn reopen(&mut self, source: &mut Source<'_>) {
        self.output(0);
        self.tcp = open(self.ends.reversed(), source, self.now);
        self.output(0);
    }

    fn step(&mut self, source: &mut Source<'_>) {
        if self.tcp.state() == State::Closed && source.one_in(4) {
            self.reopen(source);
        }
        match source.byte() % 16 {
            0..8 => self.segment(source),
            8 | 9 => {
                let data = vec![5; source.below(9000) as usize];
                self.tally.short += usize::from(self.tcp.write(&data, self.set).is_err());
            }
            10 => {
                let mut data = vec![0; source.below(9000) as usize];
                self.tally.received += self.tcp.read(&mut data);
            }
            11 => drop(self.tcp.take()),
            12 => self.clock(source),
            13 => self.rare(source),
            _ => {}
        }
        if !source.one_in(4) {
            self.output(source.byte());
        }
    }

    /// To the next timer, or anywhere.
    fn clock(&mut self, source: &mut Source<'_>) {
        let next = self.tcp.next_timeout().filter(|_| !source.one_in(4));
        self.now = next
            .unwrap_or(self.now + source.word() % 100_000)
            .max(self.now);
        let events = self.tcp.on_timer(self.now);
        self.tally.ended += usize::from(events.contains(Events::CLOSED));
        assert!(
            self.tcp.next_timeout().is_none_or(|at| at > self.now),
            "an expired timer"
        );
    }

    fn rare(&mut self, source: &mut Source<'_>) {
        let events = match source.byte() % 32 {
            0 => self.tcp.abort(),
            1 => self.tcp.leave(self.now),
            2..5 => self.tcp.close(),
            _ => {
                self.tcp.on_path_mtu(source.below(2000));
                Events::empty()
            }
        };
        self.tally.ended += usize::from(events.contains(Events::CLOSED));
    }

    /// A segment near enough to be believed at times.
    fn segment(&mut self, source: &mut Source<'_>) {
        let tcb = self.tcp.tcb();
        let outstanding = tcb.send.max - tcb.una;
        let seq = source.near(tcb.rcv.nxt);
        let ack = tcb.una + source.word() % (outstanding + 1);
        let ack = source.near(ack);
        let syn_sent = tcb.state == State::SynSent;
        let odd = [0x01, 0x02, 0x04, 0x10, 0x20, 0x40, 0x80, 0x12];
        let usual = if syn_sent { 0x12 } else { 0x10 };
        let odd = odd.get(usize::from(source.byte() % 64)).copied();
        let flags = usual ^ odd.unwrap_or(0);
        let options = self.options(source);
        let len = source.below(1600) * u32::from(source.byte() % 2);
        let window = (source.below(65_536) * u32::from(!source.one_in(4))) as u16;
        let bytes = self.encode(
            seq,
            ack,
            flags,
            window,
            &options,
            len as usize,
            source.byte() == 3,
        );
        let Ok(packet) = self.set.copy_in(&bytes, 0) else {
            self.tally.short += 1;
            return;
        };
        let Ok(segment) = Incoming::parse(&packet) else {
            return;
        };
        let events = self.tcp.on_segment(&segment, packet, self.now);
        self.tally.ended += usize::from(events.contains(Events::CLOSED));
        self.tally.replaced += usize::from(events.contains(Events::REPLACED));
    }

    /// Any bytes, or SACK blocks and timestamps that may be right.
    fn options(&self, source: &mut Source<'_>) -> Vec<u8> {
        let tcb = self.tcp.tcb();
        let clocks = |source: &mut Source<'_>| {
            let value = tcb
                .ts_recent
                .wrapping_add(source.below(3000))
                .wrapping_sub(100);
            [
                &[1, 1, 8, 10][..],
                &value.to_be_bytes(),
                &(self.now.0 as u32).to_be_bytes(),
            ]
            .concat()
        };
        match source.byte() % 6 {
            0 | 1 => Vec::new(),
            2 if tcb.state == State::SynSent => {
                let all = [2, 4, 2, source.byte(), 3, 3, source.byte() % 16, 4, 2, 1];
                [&all[..], &clocks(source)[2..]].concat()
            }
            2 => (0..source.below(11) * 4).map(|_| source.byte()).collect(),
            3 => clocks(source),
            _ => {
                let reach = tcb.send.max - tcb.una + 1;
                let mut text = vec![1, 1, 5, 18];
                for _ in 0..2 {
                    let start = tcb.una + source.word() % reach;
                    let end = start + source.word() % reach;
                    let (start, end) = (source.near(start), source.near(end));
                    text.extend([start.0.to_be_bytes(), end.0.to_be_bytes()].concat());
                }
                text
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of a header")]
    fn encode(
        &self,
        seq: Seq,
        ack: Seq,
        flags: u8,
        window: u16,
        options: &[u8],
        len: usize,
        marked: bool,
    ) -> Vec<u8> {
        let Endpoints::V4 { source, dest, .. } = self.ends else {
            unreachable!("made above");
        };
        let (from, to) = self.ends.ports();
        let padded = options.len().next_multiple_of(4);
        let mut bytes = vec![0x45, if marked { 3 } else { 0 }];
        bytes.extend(((40 + padded + len) as u16).to_be_bytes());
        bytes.extend([0, 0, 0, 0, 9, 6, 0, 0]);
        bytes.extend(source.octets());
        bytes.extend(dest.octets());
        bytes.extend([from.to_be_bytes(), to.to_be_bytes()].concat());
        bytes.extend([seq.0.to_be_bytes(), ack.0.to_be_bytes()].concat());
        bytes.extend([((20 + padded) * 4) as u8, flags]);
        bytes.extend(window.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(options);
        bytes.resize(40 + padded + len, 0);
        self.sum(&mut bytes);
        bytes
    }

    fn sum(&self, bytes: &mut [u8]) {
        let mut sum = checksum::Sum::new();
        sum.add(&bytes[..20]);
        let ip = sum.checksum().to_be_bytes();
        bytes[10..12].copy_from_slice(&ip);
        let len = (bytes.len() - 20) as u32;
        let mut sum = checksum::Sum::pseudo(&self.ends, len, PseudoLength::Included);
        sum.add(&bytes[20..]);
        let tcp = sum.checksum().to_be_bytes();
        bytes[36..38].copy_from_slice(&tcp);
    }

    /// Output, over a way out that refuses as `mood` says.
    fn output(&mut self, mood: u8) {
        let mut refusals = [
            OutputError::NoBuffers,
            OutputError::Unreachable,
            OutputError::TooLong { mtu: 500 },
            OutputError::Other(5),
        ]
        .into_iter()
        .cycle()
        .skip(usize::from(mood));
        let (tally, mut count) = (&mut *self.tally, 0);
        let mut out = |packet: Mbuf| {
            packet.check().expect("packet counters");
            tally.sent += 1;
            count += 1;
            assert!(count < 5000, "output does not end");
            match mood >= 240 && count % 3 == 0 {
                true => Err(refusals.next().expect("endless")),
                false => Ok(()),
            }
        };
        let result = self.tcp.poll_output(self.set, self.now, &mut out);
        self.tally.short += usize::from(result.is_err());
        let tcb = self.tcp.tcb();
        let open = tcb.state != State::Closed;
        let waits =
            tcb.outstanding() || (tcb.state.synchronized() && !self.tcp.send_buffer().is_empty());
        assert!(
            !(open && waits) || self.tcp.next_timeout().is_some(),
            "waits without a timer: {tcb:?}"
        );
    }
}
