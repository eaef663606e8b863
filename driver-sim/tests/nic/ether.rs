//! The Ethernet header in front of IP packets.

use driver_sim::ether::{EncapError, EtherAddrs, HEADER_LEN, encap};
use driver_sim::{FrameSink, Link, Reassembler, TcpSegment};
use mbuf::{BufferSet, Packet};

use crate::oracle::{Ask, tcp_packet};
use crate::support::{queue, send, set};

const ADDRS: EtherAddrs = EtherAddrs {
    dst: [1, 2, 3, 4, 5, 6],
    src: [7, 8, 9, 10, 11, 12],
};

#[test]
fn with_and_without_headroom_the_same_frames_leave() {
    let set = set();
    for (v6, kind) in [(false, [0x08, 0x00]), (true, [0x86, 0xdd])] {
        let ask = Ask {
            v6,
            mss: 1000,
            ..Ask::default()
        };
        let (bytes, offload) = tcp_packet(&ask, &[6; 2500]);
        let want: Vec<Vec<u8>> = ask
            .frames(&[6; 2500])
            .into_iter()
            .map(|ip| [&ADDRS.dst[..], &ADDRS.src, &kind, &ip].concat())
            .collect();
        for (lead, segments) in [(HEADER_LEN, 1), (HEADER_LEN - 1, 2)] {
            let mut m = set.header_with(4000).unwrap();
            m.set_lead(lead).unwrap();
            m.append(bytes.len()).unwrap().copy_from_slice(&bytes);
            m.set_offload(offload);
            let frame = encap(m, ADDRS, &set).map_err(|(_, e)| e).unwrap();
            assert_eq!(
                (frame.nsegs(), frame.pkt_len()),
                (segments, bytes.len() + HEADER_LEN)
            );
            assert_eq!(frame.offload().l2_len, 14);
            let mut queue = queue(16);
            send(&mut queue, frame, &set);
            queue.run_device(1);
            assert_eq!(queue.backend().sink().frames, want);
            let mut wire = Reassembler::new(Link::Ethernet);
            queue
                .backend()
                .sink()
                .frames
                .iter()
                .for_each(|f| wire.frame(f));
            assert_eq!((wire.frames(), wire.bad(), wire.not_tcp()), (3, 0, 0));
        }
    }
}

#[test]
fn a_shared_first_segment_gets_the_header_in_front_of_it() {
    let set = set();
    let (bytes, _) = tcp_packet(&Ask::default(), &[6; 500]);
    let mut m = set.header_with(2048).unwrap();
    m.set_lead(100).unwrap();
    m.append(bytes.len()).unwrap().copy_from_slice(&bytes);
    let kept = m.ref_copy(0, bytes.len(), &set).unwrap();
    let frame = encap(m, ADDRS, &set).map_err(|(_, e)| e).unwrap();
    assert_eq!(frame.nsegs(), 2);
    assert_eq!(frame.to_vec()[HEADER_LEN..], bytes);
    assert_eq!(kept.to_vec(), bytes);
}

#[test]
fn on_failure_the_packet_comes_back_as_it_was() {
    let set = BufferSet::builder(1).class(2048, 1).build().unwrap();
    let mut m = set.header().unwrap();
    m.append(20).unwrap().fill(0x45);
    let (m, e) = encap(m, ADDRS, &set).err().unwrap();
    assert!(matches!(e, EncapError::Alloc(_)));
    assert_eq!(m.to_vec(), [0x45; 20]);
    drop(m);
    for (first, found) in [(Some(0x15), 1), (None, 0)] {
        let mut m = set.header().unwrap();
        m.append(usize::from(first.is_some()))
            .unwrap()
            .fill(first.unwrap_or(0));
        let (m, e) = encap(m, ADDRS, &set).err().unwrap();
        assert!(matches!(e, EncapError::Version { found: f } if f == found));
        assert_eq!(m.to_vec(), first.into_iter().collect::<Vec<u8>>());
    }
    assert!(set.is_full());
}

#[test]
fn vlan_tags_and_cooked_headers_are_read() {
    let ip = &Ask {
        mss: 0,
        ..Ask::default()
    }
    .frames(b"hello")[0];
    let cooked = |len: usize, at: usize| {
        let mut frame = vec![0; len];
        frame[at..at + 2].copy_from_slice(&[0x08, 0x00]);
        frame.extend_from_slice(ip);
        frame
    };
    let tagged = |tags: &[u8]| [&[0; 12][..], tags, &[0x08, 0x00], ip].concat();
    let frames = [
        (Link::Raw, ip.clone()),
        (Link::Ethernet, tagged(&[])),
        (Link::Ethernet, tagged(&[0x81, 0x00, 0, 5])),
        (
            Link::Ethernet,
            tagged(&[0x88, 0xa8, 0, 5, 0x81, 0x00, 0, 6]),
        ),
        (Link::LinuxSll, cooked(16, 14)),
        (Link::LinuxSll2, cooked(20, 0)),
    ];
    for (link, frame) in frames {
        let segment = TcpSegment::parse(&frame, link).unwrap();
        assert_eq!((segment.payload, segment.seq), (&b"hello"[..], 1000));
        assert!(segment.checksums_good());
        for cut in 0..frame.len() {
            // Payload may be missing; a header may not.
            if let Ok(segment) = TcpSegment::parse(&frame[..cut], link) {
                assert!(cut >= frame.len() - 5);
                assert_eq!(segment.missing, frame.len() - cut);
                assert!(!segment.checksums_good());
            }
        }
    }
}
