//! One connection, and a peer made by hand.
#![allow(dead_code, reason = "each test binary uses its own part")]

use mbuf::{BufferSet, Mbuf};
use tcp_output::checksum::{PseudoLength, Sum};
use tcp_output::connection::{Config, Connection, Events};
use tcp_output::input::{Incoming, TcpOption};
use tcp_output::policy::Reference;
use tcp_output::wire::*;
use tcp_output::*;
use zerocopy::IntoBytes;

use crate::common::{Seen, see, v4};

/// One established connection, and a peer made by hand.
pub struct Alone {
    pub set: BufferSet,
    pub tcp: Connection<Reference>,
    pub now: Time,
    /// The window field of the peer's next segments.
    pub window: u16,
    /// Their type of service: 3 is a congestion mark.
    pub tos: u8,
}

/// The peer's SYN, and what it has sent.
pub const PEER: Seq = Seq(u32::MAX - 99);

impl Alone {
    /// Established; the peer offers SACK and no other option.
    pub fn new(config: Config) -> Alone {
        Self::answered(config, TcpFlags::SYN | TcpFlags::ACK)
    }

    /// About to send its SYN.
    pub fn asking(config: Config) -> Alone {
        let set = BufferSet::bsd(1024, 128).expect("pools");
        let tcp = Connection::connect(v4(), &config, Reference, Seq(99), Time(0)).expect("size");
        Alone {
            set,
            tcp,
            now: Time(0),
            window: 60_000,
            tos: 0,
        }
    }

    /// As the peer's answer with these control bits leaves it.
    pub fn answered(config: Config, flags: TcpFlags) -> Alone {
        let mut alone = Alone::asking(config);
        alone.output();
        let syn = [TcpOption::MaxSegment(1460), TcpOption::SackPermitted];
        alone.arrive(PEER, Seq(100), flags, &syn, &[]);
        alone.output();
        assert_eq!(alone.tcp.state(), State::Established);
        alone
    }

    pub fn packet(
        &self,
        seq: Seq,
        ack: Seq,
        flags: TcpFlags,
        options: &[TcpOption<'_>],
        data: &[u8],
    ) -> Mbuf {
        let ends = v4().reversed();
        let mut text = Vec::new();
        options.iter().for_each(|option| option.encode(&mut text));
        text.resize(text.len().next_multiple_of(4), 0);
        let (source_port, dest_port) = ends.ports();
        let mut tcp = TcpHeader {
            source_port: source_port.into(),
            dest_port: dest_port.into(),
            seq: seq.0.into(),
            ack: ack.0.into(),
            data_offset: ((20 + text.len()) * 4) as u8,
            flags: flags.bits(),
            window: self.window.into(),
            checksum: 0.into(),
            urgent: 0.into(),
        };
        let len = 20 + text.len() + data.len();
        let mut sum = Sum::pseudo(&ends, len as u32, PseudoLength::Included);
        [tcp.as_bytes(), &text, data]
            .iter()
            .for_each(|part| sum.add(part));
        tcp.checksum = sum.checksum().into();
        let Endpoints::V4 { source, dest, .. } = ends else {
            panic!("IPv4")
        };
        let mut ip = Ipv4Header {
            version_ihl: 0x45,
            tos: self.tos,
            total_len: (20 + len as u16).into(),
            id: 0.into(),
            fragment: 0.into(),
            ttl: 9,
            protocol: PROTO_TCP,
            checksum: 0.into(),
            source: source.octets(),
            dest: dest.octets(),
        };
        let mut sum = Sum::new();
        sum.add(ip.as_bytes());
        ip.checksum = sum.checksum().into();
        let whole = [ip.as_bytes(), tcp.as_bytes(), &text, data].concat();
        self.set.copy_in(&whole, 0).expect("buffers")
    }

    pub fn arrive(
        &mut self,
        seq: Seq,
        ack: Seq,
        flags: TcpFlags,
        options: &[TcpOption<'_>],
        data: &[u8],
    ) -> Events {
        let packet = self.packet(seq, ack, flags, options, data);
        let segment = Incoming::parse(&packet).expect("right");
        self.tcp.on_segment(&segment, packet, self.now)
    }

    pub fn ack(&mut self, ack: Seq) -> Events {
        self.arrive(PEER + 1, ack, TcpFlags::ACK, &[], &[])
    }

    pub fn output(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        let mut out = |packet: Mbuf| {
            seen.push(see(&packet));
            Ok(())
        };
        self.tcp
            .poll_output(&self.set, self.now, &mut out)
            .expect("buffers");
        seen
    }
}
