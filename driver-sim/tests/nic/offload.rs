//! What the hardware makes of a packet, against frames made by another crate.

use driver_sim::{BadPacket, FrameSink, Link, Reassembler, SegmentError};
use etherparse::{IpNumber, Ipv4Header, UdpHeader};
use mbuf::{OffloadFlags, TxOffload};

use crate::oracle::{Ask, tcp_packet};
use crate::support::{chain, queue, send, set};

/// Sends `bytes` cut at random into segments, some of them empty.
fn transmit(
    bytes: &[u8],
    offload: TxOffload,
    rng: &mut fastrand::Rng,
) -> Result<Vec<Vec<u8>>, BadPacket> {
    thread_local!(static SET: mbuf::BufferSet = set());
    SET.with(|set| transmit_from(bytes, offload, rng, set))
}

fn transmit_from(
    bytes: &[u8],
    offload: TxOffload,
    rng: &mut fastrand::Rng,
    set: &mbuf::BufferSet,
) -> Result<Vec<Vec<u8>>, BadPacket> {
    let mut lengths = Vec::new();
    let mut left = bytes.len();
    while left > 0 {
        let n = rng.usize(0..=left.min(1 + bytes.len() / 5));
        lengths.push(n);
        left -= n;
    }
    let mut m = chain(bytes, &lengths, set);
    m.set_offload(offload);
    let mut queue = queue(1024);
    send(&mut queue, m, set);
    assert_eq!(queue.run_device(1), 1);
    match queue.device_stats().last_bad {
        Some(bad) => Err(bad),
        None => Ok(queue.into_backend().into_sink().frames),
    }
}

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 % 256) as u8).collect()
}

#[test]
fn tso_frames_equal_the_oracle_for_all_families_options_flags_and_lengths() {
    let mut rng = fastrand::Rng::with_seed(11);
    for v6 in [false, true] {
        for options in [0, 12, 24, 40] {
            for mss in [1, 7, 536, 1448] {
                for len in [0, 1, mss - 1, mss, mss + 1, 2 * mss, 5 * mss + 3] {
                    let ask = Ask {
                        v6,
                        mss: mss as u16,
                        options,
                        // Both wrap within the packet.
                        seq: u32::MAX - 2 * mss as u32,
                        id: u16::MAX - 1,
                        fin: rng.bool(),
                        psh: rng.bool(),
                        cwr: rng.bool(),
                        ..Ask::default()
                    };
                    let payload = payload(len);
                    let (bytes, offload) = tcp_packet(&ask, &payload);
                    let frames = transmit(&bytes, offload, &mut rng).unwrap();
                    assert_eq!(frames, ask.frames(&payload), "{ask:?}, {len} bytes");
                }
            }
        }
    }
}

#[test]
fn fault_j4_segments_larger_than_a_buffer_are_cut_from_chains() {
    let mut rng = fastrand::Rng::with_seed(12);
    let ask = Ask {
        mss: 8948,
        ..Ask::default()
    };
    let payload = payload(60_000);
    let (bytes, offload) = tcp_packet(&ask, &payload);
    assert_eq!(
        transmit(&bytes, offload, &mut rng).unwrap(),
        ask.frames(&payload)
    );
}

#[test]
fn checksum_only_equals_the_oracle_for_odd_and_even_lengths() {
    let mut rng = fastrand::Rng::with_seed(13);
    for v6 in [false, true] {
        for len in [0, 1, 2, 3, 100, 1447, 1448] {
            let ask = Ask {
                v6,
                mss: 0,
                fin: true,
                cwr: true,
                ..Ask::default()
            };
            let payload = payload(len);
            let (bytes, offload) = tcp_packet(&ask, &payload);
            let frames = transmit(&bytes, offload, &mut rng).unwrap();
            assert_eq!(frames, ask.frames(&payload), "{ask:?}, {len} bytes");
        }
    }
}

#[test]
fn a_packet_that_asks_for_nothing_leaves_as_it_is() {
    let mut rng = fastrand::Rng::with_seed(14);
    let (bytes, _) = tcp_packet(&Ask::default(), &payload(5000));
    let frames = transmit(&bytes, TxOffload::default(), &mut rng).unwrap();
    assert_eq!(frames, [bytes]);
}

#[test]
fn a_wrong_seed_gives_a_wrong_sum_on_the_wire() {
    let mut rng = fastrand::Rng::with_seed(15);
    let ask = Ask::default();
    let (mut bytes, offload) = tcp_packet(&ask, &payload(3000));
    bytes[20 + 16] ^= 1;
    let mut wire = Reassembler::new(Link::Raw);
    for frame in transmit(&bytes, offload, &mut rng).unwrap() {
        wire.frame(&frame);
    }
    assert_eq!((wire.frames(), wire.bad()), (3, 3));
}

#[test]
fn fault_i5_padding_behind_the_ip_packet_is_in_no_sum() {
    let mut rng = fastrand::Rng::with_seed(16);
    let ask = Ask {
        mss: 0,
        options: 0,
        ..Ask::default()
    };
    let (mut bytes, offload) = tcp_packet(&ask, b"x");
    bytes.extend_from_slice(&[0xaa; 5]);
    let frames = transmit(&bytes, offload, &mut rng).unwrap();
    assert_eq!(frames[0][..41], ask.frames(b"x")[0]);
    assert_eq!(frames[0][41..], [0xaa; 5]);
}

#[test]
fn a_udp_sum_of_zero_is_sent_as_ones() {
    let mut rng = fastrand::Rng::with_seed(17);
    let offload = TxOffload {
        flags: OffloadFlags::IPV4 | OffloadFlags::IPV4_CSUM | OffloadFlags::UDP_CSUM,
        l3_len: 20,
        l4_len: 8,
        ..TxOffload::default()
    };
    let mut ones = 0;
    for word in 0..=u16::MAX {
        // One word of the payload runs through all values, so one of the sums is 0.
        if word % 1024 != 0 && !sum_is_zero(word) {
            continue;
        }
        let data = word.to_be_bytes();
        let mut ip = Ipv4Header::new(10, 64, IpNumber::UDP, [10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
        let mut udp = UdpHeader {
            source_port: 53,
            destination_port: 9999,
            length: 10,
            checksum: 0,
        };
        udp.checksum = 10 * 256 + 1 + 10 * 256 + 2 + 17 + 10;
        let bytes = [&ip.to_bytes()[..], &udp.to_bytes()[..], &data].concat();
        ip.header_checksum = ip.calc_header_checksum();
        udp.checksum = udp.calc_checksum_ipv4(&ip, &data).unwrap();
        let want = [&ip.to_bytes()[..], &udp.to_bytes()[..], &data].concat();
        assert_eq!(
            transmit(&bytes, offload, &mut rng).unwrap(),
            [want],
            "{word:#x}"
        );
        ones += u32::from(udp.checksum == 0xffff);
    }
    assert_eq!(ones, 1);
}

/// Whether ports, lengths, addresses and this word add up to all ones.
fn sum_is_zero(word: u16) -> bool {
    let fixed: u32 = 0x0a00 + 1 + 0x0a00 + 2 + 17 + 10 + 53 + 9999 + 10;
    (fixed + u32::from(word)).is_multiple_of(0xffff)
}

#[test]
fn requests_that_do_not_fit_the_packet_are_refused_and_nothing_is_sent() {
    let mut rng = fastrand::Rng::with_seed(18);
    let (good, ask) = tcp_packet(&Ask::default(), &payload(3000));
    let (good6, ask6) = tcp_packet(
        &Ask {
            v6: true,
            ..Ask::default()
        },
        &payload(3000),
    );
    let with = |change: fn(&mut TxOffload)| {
        let mut changed = ask;
        change(&mut changed);
        changed
    };
    let patched = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    let csum = with(|a| a.flags.remove(OffloadFlags::TSO));
    type Expect = fn(&SegmentError) -> bool;
    let cases: [(&[u8], TxOffload, Expect); 13] = [
        (&good[..51], ask, |e| {
            matches!(e, SegmentError::Short { need: 52, have: 51 })
        }),
        (&good[..1], csum, |e| {
            matches!(e, SegmentError::Short { have: 1, .. })
        }),
        (&good, with(|a| a.tso_mss = 0), |e| {
            *e == SegmentError::ZeroMss
        }),
        (&good, with(|a| a.tso_mss = u16::MAX), |e| {
            *e == SegmentError::FrameTooLong { len: 65_587 }
        }),
        (&good, with(|a| a.l3_len = 24), |e| {
            matches!(
                e,
                SegmentError::HeaderLength {
                    layer: "IP",
                    said: 24,
                    found: 20
                }
            )
        }),
        (&good, with(|a| a.l4_len = 20), |e| {
            matches!(
                e,
                SegmentError::HeaderLength {
                    layer: "TCP",
                    said: 20,
                    found: 32
                }
            )
        }),
        (&good, ask6, |e| {
            matches!(e, SegmentError::Version { found: 4, .. })
        }),
        (&good6, ask, |e| {
            matches!(e, SegmentError::Version { found: 6, .. })
        }),
        (&patched(0, 0x55), ask, |e| {
            matches!(e, SegmentError::Version { found: 5, .. })
        }),
        (&patched(9, 17), ask, |e| {
            matches!(e, SegmentError::NotTcp { protocol: 17, .. })
        }),
        (&patched(6, 0x20), ask, |e| {
            matches!(
                e,
                SegmentError::NotTcp {
                    fragment: 0x2000,
                    ..
                }
            )
        }),
        (&patched(2, 0xff), csum, |e| {
            matches!(e, SegmentError::IpLength { .. })
        }),
        (&good6, with(|a| a.l3_len = 60_000), |e| {
            matches!(e, SegmentError::Short { .. })
        }),
    ];
    for (i, (bytes, offload, expect)) in cases.into_iter().enumerate() {
        match transmit(bytes, offload, &mut rng) {
            Err(BadPacket::Segment(e)) => assert!(expect(&e), "case {i}: {e:?}"),
            other => panic!("case {i}: {other:?}"),
        }
    }
}

#[test]
fn random_requests_on_random_bytes_never_panic() {
    let mut rng = fastrand::Rng::with_seed(19);
    let set = set();
    for _ in 0..20_000 {
        let len = rng.usize(1..120);
        let mut bytes: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
        bytes[0] = [0x45, 0x46, 0x60, 0x4f, bytes[0]][rng.usize(..5)];
        let mut m = chain(&bytes, &[len], &set);
        m.set_offload(TxOffload {
            flags: OffloadFlags::from_bits_truncate(rng.u16(..64)),
            l2_len: [0, 14, rng.u16(..)][rng.usize(..3)],
            l3_len: [20, 24, 40, rng.u16(..)][rng.usize(..4)],
            l4_len: [0, 8, 20, 32, rng.u16(..)][rng.usize(..5)],
            tso_mss: [0, 1, 10, rng.u16(..)][rng.usize(..4)],
        });
        let mut queue = queue(4);
        send(&mut queue, m, &set);
        assert_eq!(queue.run_device(1), 1);
        let sent: usize = queue.backend().sink().frames.len();
        assert_eq!(sent == 0, queue.device_stats().bad == 1);
    }
    assert!(set.is_full());
}
