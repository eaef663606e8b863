//! Reading captures: against a reassembly of its own, written another way.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use driver_sim::pcap::{PcapError, PcapFile, Stream, tcp_streams, tcp_streams_in};
use driver_sim::{FrameSink, Hardware, Link, Reassembler, TxConfig, TxQueue, rx};
use etherparse::{NetHeaders, PacketHeaders, TransportHeader};

use crate::oracle::{Ask, tcp_packet};

pub fn capture() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../bench/data/linux-loss-sack-ts-ws.pcap")
}

/// One byte at a time into a map from sequence number to byte, headers read by another crate.
fn independent(file: &[u8]) -> HashMap<(u16, u16), Vec<u8>> {
    let mut starts = HashMap::new();
    let mut bytes: HashMap<(u16, u16), BTreeMap<u32, u8>> = HashMap::new();
    let mut reader = pcap_file::pcap::PcapReader::new(file).unwrap();
    while let Some(record) = reader.next_packet() {
        let record = record.unwrap();
        let headers = PacketHeaders::from_ethernet_slice(&record.data).unwrap();
        let (Some(TransportHeader::Tcp(tcp)), Some(NetHeaders::Ipv4(ip, _))) =
            (headers.transport, headers.net)
        else {
            continue;
        };
        let key = (tcp.source_port, tcp.destination_port);
        if tcp.syn {
            starts.insert(key, tcp.sequence_number.wrapping_add(1));
        }
        let length = usize::from(ip.total_len) - ip.header_len() - tcp.header_len();
        let start: u32 = starts[&key];
        for (i, byte) in headers.payload.slice()[..length].iter().enumerate() {
            let at = tcp
                .sequence_number
                .wrapping_add(i as u32)
                .wrapping_sub(start);
            bytes.entry(key).or_default().entry(at).or_insert(*byte);
        }
    }
    let contiguous = |map: BTreeMap<u32, u8>| {
        let in_order = map.into_iter().enumerate();
        in_order
            .map_while(|(i, (at, b))| (i as u32 == at).then_some(b))
            .collect()
    };
    bytes
        .into_iter()
        .map(|(key, map)| (key, contiguous(map)))
        .collect()
}

#[test]
fn the_lossy_capture_gives_the_streams_of_an_independent_reassembly() {
    let streams = tcp_streams(capture()).unwrap();
    let want = independent(&std::fs::read(capture()).unwrap());
    assert_eq!(streams.len(), want.len());
    assert!(!streams.is_empty());
    for stream in &streams {
        let key = (stream.key.src.port(), stream.key.dst.port());
        assert!(stream.payload == want[&key], "{}", stream.key);
        assert_eq!(stream.beyond_gap, 0);
    }
    let repeated: u64 = streams.iter().map(|s| s.repeated).sum();
    assert!(repeated > 0, "the capture has retransmissions");
}

#[test]
fn streams_through_receive_clusters_ring_and_wire_come_out_equal() {
    let set = mbuf::BufferSet::builder(2048)
        .class(2048, 1024)
        .build()
        .unwrap();
    for stream in tcp_streams(capture()).unwrap() {
        let wire = Hardware::new(Reassembler::new(Link::Raw));
        let mut queue = TxQueue::new(TxConfig::default(), wire).unwrap();
        let mut sent = 0;
        for part in stream.payload.chunks(8 * 1448) {
            let data = rx::cut(part, 1448, &set).unwrap();
            let ask = Ask {
                seq: 5 + sent as u32,
                ..Ask::default()
            };
            let (bytes, offload) = tcp_packet(&ask, part);
            let header = &bytes[..ask.header_len()];
            let mut m = set.header().unwrap();
            m.append(header.len()).unwrap().copy_from_slice(header);
            m.cat(data);
            m.set_offload(offload);
            assert_eq!(queue.send(&mut [Some(m)], &set), 1);
            queue.run_device(1);
            sent += part.len();
        }
        queue.drain_all();
        let wire = queue.into_backend().into_sink();
        let (_, out) = wire.streams().next().unwrap();
        assert!(out.bytes() == stream.payload);
        assert_eq!((out.repeated(), wire.bad()), (0, 0));
    }
    assert!(set.is_full());
}

/// A capture of these frames, raw IP.
fn file(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = PcapFile::new(Vec::new(), Link::Raw).unwrap();
    frames.iter().for_each(|f| file.frame(f));
    file.finish().unwrap()
}

fn frame(seq: u32, payload: &[u8]) -> Vec<u8> {
    Ask {
        mss: 0,
        seq,
        ..Ask::default()
    }
    .frames(payload)
    .remove(0)
}

fn only(frames: &[Vec<u8>]) -> Stream {
    let mut streams = tcp_streams_in(&file(frames)[..]).unwrap();
    assert_eq!(streams.len(), 1);
    streams.remove(0)
}

fn syn(seq: u32) -> Vec<u8> {
    let mut f = frame(seq, b"");
    f[20 + 13] |= 2;
    f
}

#[test]
fn loss_overlap_reordering_and_wrap_are_put_right() {
    let at = u32::MAX - 3;
    let frames = [
        syn(at.wrapping_sub(1)),
        frame(at.wrapping_add(6), b"ghi"),
        frame(at, b"abcd"),
        frame(at.wrapping_add(2), b"cdef"),
        frame(at, b"abcd"),
        // A keep-alive probe: the byte before the first.
        frame(at.wrapping_sub(1), b"x"),
        frame(at.wrapping_add(12), b"beyond"),
    ];
    let stream = only(&frames);
    assert_eq!(stream.payload, b"abcdefghi");
    assert_eq!(
        (stream.segments, stream.repeated, stream.beyond_gap),
        (6, 6, 6)
    );
    // Without the SYN the lowest sequence number is the start.
    let headless = only(&[frame(20, b"cd"), frame(18, b"ab"), frame(22, b"ef")]);
    assert_eq!(headless.payload, b"abcdef");
}

#[test]
fn a_new_syn_on_the_same_ports_starts_a_new_stream() {
    let frames = [
        syn(10),
        frame(11, b"one"),
        syn(10),
        frame(14, b"more"),
        syn(900),
        frame(901, b"two"),
    ];
    let streams = tcp_streams_in(&file(&frames)[..]).unwrap();
    let payloads: Vec<&[u8]> = streams.iter().map(|s| &s.payload[..]).collect();
    assert_eq!(payloads, [&b"onemore"[..], b"two"]);
}

#[test]
fn frames_that_are_not_tcp_or_cut_short_are_passed_over() {
    let good = frame(1, b"data");
    let mut udp = good.clone();
    udp[9] = 17;
    let mut fragment = good.clone();
    fragment[7] = 3;
    let cut = good[..30].to_vec();
    let junk = vec![0xff; 9];
    assert_eq!(
        only(&[udp, fragment, cut, junk, vec![], good]).payload,
        b"data"
    );
}

#[test]
fn damaged_files_are_typed_errors() {
    let whole = file(&[frame(1, b"data"), frame(5, b"more")]);
    assert!(matches!(
        tcp_streams_in(&whole[..10]),
        Err(PcapError::Header(_))
    ));
    assert!(matches!(
        tcp_streams_in(&b"not a capture file at all, is it"[..]),
        Err(PcapError::Header(_))
    ));
    assert!(matches!(tcp_streams_in(&[][..]), Err(PcapError::Header(_))));
    for cut in 1..whole.len() {
        let result = tcp_streams_in(&whole[..cut]);
        match cut {
            0..24 => assert!(matches!(result, Err(PcapError::Header(_))), "{cut}"),
            // Exactly behind the header, or behind the first record, the file is whole.
            24 | 96 => assert!(result.is_ok(), "{cut}"),
            25..96 => assert!(
                matches!(result, Err(PcapError::Frame { frame: 1, .. })),
                "{cut}"
            ),
            _ => assert!(
                matches!(result, Err(PcapError::Frame { frame: 2, .. })),
                "{cut}"
            ),
        }
    }
    let mut other = whole.clone();
    other[20..24].copy_from_slice(&[0, 0, 0, 105]);
    assert!(matches!(
        tcp_streams_in(&other[..]),
        Err(PcapError::LinkType { number: 105 })
    ));
    let missing = tcp_streams("/no/such/file.pcap");
    assert!(matches!(missing, Err(PcapError::Open { .. })));
}

#[test]
fn a_capture_that_cannot_be_written_is_reported_with_its_losses() {
    #[derive(Debug)]
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self
                .0
                .checked_sub(bytes.len())
                .ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    assert_eq!(PcapFile::new(Full(10), Link::Raw).unwrap_err().lost, 0);
    let mut file = PcapFile::new(Full(100), Link::Raw).unwrap();
    (0..3).for_each(|_| file.frame(&[0; 60]));
    assert_eq!(file.frames(), 1);
    let error = file.finish().map(|_| ()).unwrap_err();
    assert_eq!(error.lost, 2);
    assert_eq!(error.source.kind(), std::io::ErrorKind::StorageFull);
}
