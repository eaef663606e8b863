//! Arriving packets read as segments: real traffic, hostile bytes, and checksums over every shape of chain.

mod common;

use std::fs::File;
use std::path::Path;

use common::{pattern, piece, see, send, set, tcb, v4, v6};
use etherparse::{SlicedPacket, TransportSlice};
use mbuf::{BufferSet, Checksum, Mbuf, Packet, Received};
use pcap_file::pcap::PcapReader;
use sockbuf::SockBuf;
use tcp_output::checksum::{PseudoLength, Sum};
use tcp_output::input::*;
use tcp_output::policy::Copy;
use tcp_output::wire::*;
use tcp_output::*;
use zerocopy::{FromBytes, IntoBytes};

const ETHERNET: usize = 14;

/// The IP packets of a capture, without link headers but with whatever stands behind them.
fn capture(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let file = File::open(&path).expect("the capture is part of the project");
    let mut reader = PcapReader::new(file).expect("a capture");
    let mut packets = Vec::new();
    while let Some(record) = reader.next_raw_packet() {
        let data = record.expect("whole").data;
        if matches!(data[12..ETHERNET], [0x08, 0] | [0x86, 0xdd]) {
            packets.push(data[ETHERNET..].to_vec());
        }
    }
    packets
}

/// The same bytes in pieces of the given lengths, again and again; 0 makes an empty mbuf.
fn chain(set: &BufferSet, bytes: &[u8], lens: &[usize]) -> Mbuf {
    let mut packet = set.header().expect("mbuf");
    let (mut at, mut lens) = (0, lens.iter().cycle());
    while at < bytes.len() {
        let n = (*lens.next().expect("endless")).min(bytes.len() - at);
        let ext = if n > 224 { 2048 } else { 0 };
        packet.cat(piece(set, ext, false, &bytes[at..at + n]));
        at += n;
    }
    packet
}

/// The headers again, from what was read; of the IP header only what no segment holds is copied.
fn encode(segment: &Incoming, original: &[u8]) -> Vec<u8> {
    let (ip, tcp_at) = encode_ip(segment, original);
    let header_len = segment.payload().start - tcp_at;
    let mut options = Vec::new();
    let mut read = TcpOptions::new(&original[tcp_at + TCP_HEADER_LEN..][..header_len - 20]);
    for option in read.by_ref() {
        option.expect("well-formed").encode(&mut options);
    }
    options.extend(read.rest());
    let (source_port, dest_port) = segment.ends.ports();
    let mut header = TcpHeader {
        source_port: source_port.into(),
        dest_port: dest_port.into(),
        seq: segment.seq.0.into(),
        ack: segment.ack.0.into(),
        data_offset: (header_len * 4) as u8,
        flags: segment.flags.bits(),
        window: segment.window.into(),
        checksum: 0.into(),
        urgent: segment.urgent.into(),
    };
    let payload = &original[segment.payload()];
    let tcp_len = (header_len + payload.len()) as u32;
    let mut sum = Sum::pseudo(&segment.ends, tcp_len, PseudoLength::Included);
    for part in [header.as_bytes(), &options, payload] {
        sum.add(part);
    }
    header.checksum = sum.checksum().into();
    [&ip, header.as_bytes(), &options, payload].concat()
}

fn encode_ip(segment: &Incoming, original: &[u8]) -> (Vec<u8>, usize) {
    let len = segment.payload().end;
    match segment.ends {
        Endpoints::V4 { source, dest, .. } => {
            let (theirs, _) = Ipv4Header::read_from_prefix(original).expect("long enough");
            let mut ours = Ipv4Header {
                version_ihl: 0x45,
                total_len: (len as u16).into(),
                protocol: PROTO_TCP,
                checksum: 0.into(),
                source: source.octets(),
                dest: dest.octets(),
                ..theirs
            };
            let mut sum = Sum::new();
            sum.add(ours.as_bytes());
            ours.checksum = sum.checksum().into();
            (ours.as_bytes().to_vec(), 20)
        }
        Endpoints::V6 { source, dest, .. } => {
            let (theirs, _) = Ipv6Header::read_from_prefix(original).expect("long enough");
            let ours = Ipv6Header {
                payload_len: ((len - 40) as u16).into(),
                next_header: PROTO_TCP,
                source: source.octets(),
                dest: dest.octets(),
                ..theirs
            };
            (ours.as_bytes().to_vec(), 40)
        }
    }
}

/// What another parser says of it.
fn agree(segment: &Incoming, bytes: &[u8]) {
    let sliced = SlicedPacket::from_ip(bytes).expect("a whole packet");
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else {
        panic!("no TCP")
    };
    let header = tcp.to_header();
    assert_eq!(segment.seq, Seq(header.sequence_number));
    assert_eq!(segment.ack, Seq(header.acknowledgment_number));
    assert_eq!(segment.flags.contains(TcpFlags::SYN), header.syn);
    assert_eq!(segment.flags.contains(TcpFlags::FIN), header.fin);
    assert_eq!(&bytes[segment.payload()], tcp.payload());
}

fn round_trip(name: &str, segments: usize) {
    let set = set();
    let mut seen = 0;
    for bytes in capture(name) {
        for lens in [&[2048][..], &[100], &[1, 0, 3, 5, 1460], &[224]] {
            let packet = chain(&set, &bytes, lens);
            let segment = match Incoming::parse(&packet) {
                Ok(segment) => segment,
                Err(ParseError::Protocol(other)) => {
                    assert_ne!(other, PROTO_TCP);
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            seen += 1;
            agree(&segment, &bytes);
            let len = segment.payload().end;
            assert!(encode(&segment, &bytes) == bytes[..len], "{segment:?}");
            let payload = segment.into_payload(packet);
            let payload = payload.map_or_else(Vec::new, |data| data.to_vec());
            assert!(payload == bytes[segment.payload()]);
        }
    }
    assert_eq!(seen, 4 * segments, "{name}");
    assert!(set.is_full());
}

#[test]
fn sack_and_timestamps_come_out_byte_for_byte() {
    round_trip("../bench/data/linux-loss-sack-ts-ws.pcap", 829);
}

#[test]
fn ipv6_comes_out_byte_for_byte() {
    round_trip("tests/data/captures/linux-loss-ipv6.pcap", 440);
}

#[test]
fn segments_without_options_come_out_byte_for_byte() {
    round_trip("tests/data/captures/linux-loss-noopts.pcap", 423);
}

#[test]
fn odd_lengths_come_out_byte_for_byte() {
    round_trip("tests/data/captures/linux-nagle-odd.pcap", 59);
}

#[test]
fn zero_windows_come_out_byte_for_byte() {
    round_trip("tests/data/captures/linux-zerowindow-persist.pcap", 68);
}

/// One packet of ours with a software checksum.
fn ours(ends: Endpoints, payload: usize, set: &BufferSet) -> Vec<u8> {
    let mut sb = SockBuf::new(1 << 20);
    sb.write(&pattern(0, payload), set).expect("space");
    let mut tcb = tcb(ends, 1460);
    tcb.flags |= TcbFlags::ACK_NOW;
    let mut sender = Sender::new(tcb, Copy)
        .with_checksum(ChecksumMode::Software)
        .with_tso(false);
    send(&mut sender, &sb, set).swap_remove(0).to_vec()
}

#[test]
fn what_we_send_is_what_we_read() {
    let set = set();
    for ends in [v4(), v6()] {
        for len in [0usize, 1, 2, 777, 1448] {
            let bytes = ours(ends, len, &set);
            let packet = chain(&set, &bytes, &[53, 1]);
            let seen = see(&packet);
            let segment = Incoming::parse(&packet).expect("our own");
            assert_eq!(segment.ends, ends);
            assert_eq!((segment.seq.0, segment.ack.0), (seen.seq, seen.ack));
            assert_eq!(segment.payload_len() as usize, len);
            assert_eq!(segment.seq_len() as usize, len);
            assert_eq!(
                segment.options.timestamps.map(|clocks| clocks.value),
                seen.clock
            );
        }
    }
}

#[test]
fn fault_i5_padding_of_the_link_is_neither_payload_nor_summed() {
    let set = set();
    for ends in [v4(), v6()] {
        for len in [0usize, 1, 3] {
            let bytes = ours(ends, len, &set);
            for padding in 1..20 {
                let mut padded = bytes.clone();
                padded.resize(bytes.len() + padding, 0xa5);
                let packet = chain(&set, &padded, &[7, 100]);
                let segment = Incoming::parse(&packet).expect("checksum without padding");
                assert_eq!(segment.payload_len() as usize, len);
                let payload = segment.into_payload(packet);
                let payload = payload.map_or_else(Vec::new, |data| data.to_vec());
                assert_eq!(payload, pattern(0, len));
            }
        }
    }
    assert!(set.is_full());
}

#[test]
fn fault_i7_sums_go_over_empty_odd_and_foreign_pieces() {
    let set = set();
    let bytes = ours(v4(), 1301, &set);
    for cut in 1..200 {
        let mut packet = piece(&set, 0, true, &bytes[..cut.min(100)]);
        let mut at = cut.min(100);
        for (len, ext) in [(0, 0), (1, 2048), (0, 2048), (cut % 7, 0), (101, 2048)] {
            let end = (at + len).min(bytes.len());
            packet.cat(piece(&set, ext, false, &bytes[at..end]));
            at = end;
        }
        packet.cat(piece(&set, 2048, false, &bytes[at..]));
        Incoming::parse(&packet).expect("the same sum however it lies");
    }
}

#[test]
fn each_flipped_bit_is_noticed() {
    let set = set();
    let bytes = ours(v4(), 33, &set);
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let packet = chain(&set, &damaged, &[200]);
        assert!(Incoming::parse(&packet).is_err(), "bit {bit}");
    }
}

#[test]
fn what_the_device_found_of_checksums_is_believed() {
    let set = set();
    let mut damaged = ours(v4(), 10, &set);
    *damaged.last_mut().expect("payload") ^= 1;
    let mut packet = chain(&set, &damaged, &[200]);
    let said = |ip_checksum, l4_checksum| Received {
        ip_checksum,
        l4_checksum,
        ..Received::default()
    };
    let wrong = |sum| Err(ParseError::Checksum(sum));
    assert_eq!(Incoming::parse(&packet), wrong(Summed::Tcp));
    packet.set_received(said(Checksum::Good, Checksum::Good));
    assert!(Incoming::parse(&packet).is_ok());
    packet.set_received(said(Checksum::Bad, Checksum::Good));
    assert_eq!(Incoming::parse(&packet), wrong(Summed::Ip));
    packet.set_received(said(Checksum::Unknown, Checksum::Bad));
    assert_eq!(Incoming::parse(&packet), wrong(Summed::Tcp));
}

#[test]
fn every_cut_is_refused_with_the_numbers() {
    let set = set();
    for ends in [v4(), v6()] {
        let bytes = ours(ends, 3, &set);
        for len in 1..bytes.len() {
            let packet = chain(&set, &bytes[..len], &[200]);
            let error = Incoming::parse(&packet).expect_err("cut short");
            let least = if ends.is_v6() { 40 } else { 20 };
            match error {
                ParseError::Short { need, have } => assert!(have == len && need == least),
                ParseError::IpLength { said, have, .. } => {
                    assert!(said == bytes.len() && have == len);
                }
                other => panic!("{other}"),
            }
        }
    }
    let empty = set.header().expect("mbuf");
    let none = ParseError::Short { need: 20, have: 0 };
    assert_eq!(Incoming::parse(&empty), Err(none));
}

#[test]
fn fragments_options_and_other_protocols_are_told_apart() {
    let set = set();
    let good = ours(v4(), 8, &set);
    let parse = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        edit(&mut bytes);
        let mut packet = chain(&set, &bytes, &[200]);
        packet.set_received(Received {
            ip_checksum: Checksum::Good,
            l4_checksum: Checksum::Good,
            ..Received::default()
        });
        Incoming::parse(&packet)
    };
    assert_eq!(parse(&|b| b[6] = 0x20), Err(ParseError::Fragment(0x2000)));
    assert_eq!(parse(&|b| b[7] = 1), Err(ParseError::Fragment(0x4001)));
    assert_eq!(parse(&|b| b[9] = 17), Err(ParseError::Protocol(17)));
    assert_eq!(parse(&|b| b[0] = 0x55), Err(ParseError::Version(5)));
    let short = ParseError::IpHeaderLength { said: 16 };
    assert_eq!(parse(&|b| b[0] = 0x44), Err(short));
    for (words, said) in [(4, 16), (15, 60)] {
        let error = ParseError::TcpHeaderLength { said, have: 40 };
        assert_eq!(parse(&|b| b[32] = words << 4), Err(error));
    }
    let with_ip_options = parse(&|b| {
        b[0] = 0x46;
        b[3] += 4;
        b.splice(20..20, [1, 1, 1, 0]);
    });
    assert_eq!(with_ip_options.expect("options").payload(), 56..64);
    assert!(parse(&|b| b[1] = 3).expect("marked").congested);
}

#[test]
fn hostile_bytes_are_an_error_or_a_segment_within_the_packet() {
    let set = set();
    let mut rng = fastrand::Rng::with_seed(3);
    let seeds = [ours(v4(), 40, &set), ours(v6(), 40, &set)];
    let mut parsed = 0;
    for i in 0..30_000 {
        let mut bytes = if i % 3 == 0 {
            (0..rng.usize(0..200)).map(|_| rng.u8(..)).collect()
        } else {
            seeds[i % 2].clone()
        };
        for _ in 0..rng.usize(0..4) {
            if let Some(byte) = rng.choice(&mut bytes) {
                *byte = rng.u8(..);
            }
        }
        bytes.truncate(rng.usize(0..=bytes.len() + 200));
        let mut packet = chain(&set, &bytes, &[rng.usize(1..224), rng.usize(0..3)]);
        packet.set_received(Received {
            ip_checksum: Checksum::Good,
            l4_checksum: Checksum::Good,
            ..Received::default()
        });
        if let Ok(segment) = Incoming::parse(&packet) {
            parsed += 1;
            assert!(segment.payload().end <= bytes.len());
            let payload = segment.into_payload(packet);
            assert_eq!(
                payload.map_or(0, |data| data.pkt_len()),
                segment.payload_len() as usize
            );
        }
    }
    assert!(parsed > 5_000, "{parsed}");
    assert!(set.is_full());
}
