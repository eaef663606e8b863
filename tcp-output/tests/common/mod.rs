//! What the tests share: endpoints, pools whose gets can fail, packets read back by an independent parser.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::cell::RefCell;
use std::rc::Rc;

use etherparse::{NetSlice, SlicedPacket, TcpOptionElement, TcpOptionReadError, TransportSlice};
use mbuf::{BufferSet, Mbuf, OffloadFlags, Packet, TxOffload};
use mempool::backend::{FailAt, FailSwitch, Lifo};
use sockbuf::SockBuf;
use tcp_output::{CopyPolicy, Endpoints, Sender, Seq, Tcb, TcbFlags, Time};

pub fn v4() -> Endpoints {
    Endpoints::V4 {
        source: [192, 0, 2, 1].into(),
        dest: [198, 51, 100, 7].into(),
        source_port: 40_001,
        dest_port: 443,
    }
}

pub fn v6() -> Endpoints {
    Endpoints::V6 {
        source: [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into(),
        dest: [0x2001, 0xdb8, 0, 0, 1, 0, 0xffff, 7].into(),
        source_port: 40_001,
        dest_port: 443,
    }
}

/// BSD's sizes without caches, and a switch for each pool: mbufs, then the classes upward.
pub fn failing_set(mbufs: usize, clusters: usize) -> (BufferSet, Vec<FailSwitch>) {
    let switches = Rc::new(RefCell::new(Vec::new()));
    let collect = Rc::clone(&switches);
    let most = mbufs.max(clusters);
    let set = BufferSet::bsd_builder(mbufs, clusters)
        .configure(move |builder| {
            let (backend, switch) = FailAt::new(Lifo::new(most));
            collect.borrow_mut().push(switch);
            builder.cache(0).custom_backend(Box::new(backend))
        })
        .build()
        .expect("pools");
    let switches = switches.borrow().clone();
    (set, switches)
}

/// An mbuf of a send buffer: `ext` is its cluster's class, 0 for inline.
pub fn piece(set: &BufferSet, ext: usize, header: bool, bytes: &[u8]) -> Mbuf {
    let mut m = if header { set.header() } else { set.plain() }.expect("mbuf");
    if ext > 0 {
        set.attach_cluster(&mut m, ext).expect("cluster");
    }
    m.append(bytes.len()).expect("room").copy_from_slice(bytes);
    m
}

/// `n` clusters of 2 KB with `each` bytes of a counting pattern: what a splice leaves behind.
pub fn spliced(set: &BufferSet, n: usize, each: usize) -> SockBuf {
    let mut sb = SockBuf::new(1 << 20);
    for i in 0..n {
        sb.append_stream(piece(set, 2048, i == 0, &pattern(i * each, each)));
    }
    sb
}

pub fn pattern(start: usize, len: usize) -> Vec<u8> {
    (start..start + len).map(|i| (i % 251) as u8).collect()
}

/// A packet as etherparse reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub seq: u32,
    pub ack: u32,
    pub flags: Vec<&'static str>,
    pub options: Vec<String>,
    pub options_len: usize,
    pub window: u16,
    /// Value of the timestamps option.
    pub clock: Option<u32>,
    pub urgent: u16,
    /// The packet may be marked on its way.
    pub ect: bool,
    pub payload: Vec<u8>,
    pub storage: String,
    pub offload: TxOffload,
    pub ip_id: Option<u16>,
    /// IP and TCP header.
    pub header: Vec<u8>,
    pub checksum: u16,
    /// What the checksum should be, by etherparse.
    pub right_checksum: u16,
}

pub fn see(packet: &Mbuf) -> Seen {
    packet.check().expect("packet counters");
    let bytes = packet.to_vec();
    let sliced = SlicedPacket::from_ip(&bytes).expect("a whole IP packet");
    let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else {
        panic!("no TCP")
    };
    let header = tcp.to_header();
    let payload = tcp.payload();
    let (ip_id, ecn, right_checksum) = match sliced.net.as_ref().expect("IP") {
        NetSlice::Ipv4(ip) => {
            let ip = ip.header().to_header();
            assert_eq!(
                ip.header_checksum,
                ip.calc_header_checksum(),
                "IPv4 header checksum"
            );
            assert!(ip.dont_fragment && ip.dscp.value() == 0);
            assert_eq!(usize::from(ip.total_len), bytes.len());
            (
                Some(ip.identification),
                ip.ecn.value(),
                header.calc_checksum_ipv4(&ip, payload),
            )
        }
        NetSlice::Ipv6(ip) => {
            let ip = ip.header().to_header();
            assert_eq!(usize::from(ip.payload_length) + 40, bytes.len());
            let sum = header.calc_checksum_ipv6(&ip, payload);
            (None, ip.traffic_class, sum)
        }
        other => panic!("{other:?}"),
    };
    let bits = [
        (header.ack, "ACK"),
        (header.cwr, "CWR"),
        (header.ece, "ECE"),
        (header.fin, "FIN"),
        (header.psh, "PSH"),
        (header.rst, "RST"),
        (header.syn, "SYN"),
        (header.urg, "URG"),
    ];
    Seen {
        seq: header.sequence_number,
        ack: header.acknowledgment_number,
        flags: bits
            .iter()
            .filter(|(set, _)| *set)
            .map(|(_, name)| *name)
            .collect(),
        options: header.options_iterator().filter_map(option_name).collect(),
        options_len: header.options.len(),
        clock: header.options_iterator().find_map(|o| match o {
            Ok(TcpOptionElement::Timestamp(value, _)) => Some(value),
            _ => None,
        }),
        window: header.window_size,
        urgent: header.urgent_pointer,
        ect: ecn == 2,
        payload: payload.to_vec(),
        storage: storage(packet),
        offload: packet.offload(),
        ip_id,
        header: bytes[..bytes.len() - payload.len()].to_vec(),
        checksum: header.checksum,
        right_checksum: right_checksum.expect("length fits"),
    }
}

fn option_name(option: Result<TcpOptionElement, TcpOptionReadError>) -> Option<String> {
    let option = match option {
        Ok(option) => option,
        Err(TcpOptionReadError::UnknownId(19)) => return Some("MD5".into()),
        Err(other) => panic!("{other}"),
    };
    match option {
        TcpOptionElement::Noop => None,
        TcpOptionElement::MaximumSegmentSize(_) => Some("MSS".into()),
        TcpOptionElement::WindowScale(_) => Some("WS".into()),
        TcpOptionElement::SelectiveAcknowledgementPermitted => Some("SACKOK".into()),
        TcpOptionElement::Timestamp(..) => Some("TS".into()),
        TcpOptionElement::SelectiveAcknowledgement(_, more) => {
            Some(format!("SACK{}", 1 + more.iter().flatten().count()))
        }
    }
}

/// The storage in the words of the row table.
pub fn storage(packet: &Mbuf) -> String {
    let lead = packet.first().lead();
    match (packet.nsegs(), packet.first().storage()) {
        (1, mbuf::Storage::Inline) => format!("1 mbuf (inline), lead {lead}"),
        (1, mbuf::Storage::Cluster { class }) => format!("1 mbuf (cl {class}), lead {lead}"),
        (n, _) => format!("{n} mbufs (hdr + {} by ref/small copy), lead {lead}", n - 1),
    }
}

/// What a TSO packet leaves to the hardware: the frames' payload size, 0 when it is none.
pub fn tso_mss(offload: &TxOffload) -> u16 {
    if offload.flags.contains(OffloadFlags::TSO) {
        offload.tso_mss
    } else {
        0
    }
}

pub const NOW: Time = Time(1_000_000);

/// An open connection just before the sequence numbers wrap.
pub fn tcb(ends: Endpoints, max_opd: u32) -> Tcb {
    let flags = TcbFlags::TIMESTAMPS | TcbFlags::SACK | TcbFlags::NODELAY;
    let mut tcb = Tcb::new(ends, max_opd, flags, Seq(u32::MAX - 20_000), Seq(77)).expect("size");
    (tcb.wnd, tcb.max_wnd, tcb.send.cwnd) = (1 << 20, 1 << 20, 1 << 20);
    (tcb.ts_recent, tcb.ts_offset, tcb.rcv.last) = (0x1234_5678, 99, NOW);
    tcb
}

/// BSD's sizes, enough of each.
pub fn set() -> BufferSet {
    BufferSet::bsd_builder(2048, 96)
        .class(2048, 512)
        .build()
        .expect("pools")
}

/// Everything that one call of output sends.
pub fn send<P: CopyPolicy>(sender: &mut Sender<P>, sb: &SockBuf, set: &BufferSet) -> Vec<Mbuf> {
    let mut packets = Vec::new();
    let mut out = |packet| {
        packets.push(packet);
        Ok(())
    };
    sender.output(sb, set, NOW, &mut out).expect("buffers");
    packets
}
