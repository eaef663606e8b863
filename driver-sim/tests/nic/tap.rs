//! The TAP device over a datagram socket, which takes and gives frames as a device does and needs
//! no root.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;

use driver_sim::ether::{NotCarried, decap};
use driver_sim::tap::{Tap, TapConfig, TapStats};
use driver_sim::{Hardware, TxConfig, TxQueue};
use mbuf::{BufferSet, Checksum, Mbuf, OffloadFlags, Packet, TxOffload};
use mempool::backend::FailSwitch;

use crate::oracle::{Ask, tcp_packet};
use crate::support::{chain, packet, send, set};

/// A device and the socket that stands for the kernel.
fn tap(config: &TapConfig) -> (Tap, UnixDatagram) {
    let (ours, kernel) = UnixDatagram::pair().unwrap();
    kernel.set_nonblocking(true).unwrap();
    (Tap::from_fd(OwnedFd::from(ours), config).unwrap(), kernel)
}

fn plain() -> TapConfig {
    TapConfig {
        offload: false,
        max_frame: 1514,
        ..TapConfig::default()
    }
}

/// The next frame that the kernel's end got.
fn got(kernel: &UnixDatagram) -> Option<Vec<u8>> {
    let mut frame = vec![0; 1 << 17];
    let n = kernel.recv(&mut frame).ok()?;
    frame.truncate(n);
    Some(frame)
}

#[track_caller]
fn check_law(tap: &Tap) -> TapStats {
    let stats = *tap.stats();
    assert_eq!(stats.given, stats.sent + stats.dropped(), "{stats:?}");
    stats
}

#[test]
fn fault_a7_what_the_kernel_does_not_want_now_stays_the_callers() {
    let set = set();
    let (mut tap, kernel) = tap(&plain());
    // As many frames as the kernel takes; then room for four.
    let mut fill = [Some(packet(&[60], 0, &set))];
    while tap.send(&mut fill) == 1 {
        fill = [Some(packet(&[60], 0, &set))];
    }
    let before = check_law(&tap);
    assert_eq!((before.busy, fill[0].is_some()), (1, true));
    (0..4).for_each(|_| drop(got(&kernel).unwrap()));

    let length = |i| if i == 3 { 1515 } else { 100 + i };
    let mut burst: [Option<Mbuf>; 8] = std::array::from_fn(|i| Some(packet(&[length(i)], 1, &set)));
    assert_eq!(tap.send(&mut burst), 5);
    let after = check_law(&tap);
    assert_eq!(after.sent - before.sent, 4);
    assert_eq!(
        (after.dropped_oversize, after.dropped(), after.busy),
        (1, 1, 2)
    );
    assert!(burst[..5].iter().all(Option::is_none));
    let left: Vec<usize> = burst[5..].iter().flatten().map(Packet::pkt_len).collect();
    assert_eq!(left, [105, 106, 107]);

    while got(&kernel).is_some() {}
    assert_eq!(tap.send(&mut burst), 8);
    assert_eq!(check_law(&tap).sent - after.sent, 3);
    let lengths: Vec<usize> = std::iter::from_fn(|| got(&kernel))
        .map(|f| f.len())
        .collect();
    assert_eq!(lengths, [105, 106, 107]);
    drop((fill, burst));
    assert!(set.is_full());
}

#[test]
fn fault_f8_a_frame_of_unknown_protocol_in_three_mbufs_is_freed_whole() {
    let set = set();
    let pieces = vec![2048; 4];
    let (mut tap, kernel) = tap(&TapConfig { pieces, ..plain() });
    let mut frame = [7; 5000];
    frame[12..14].copy_from_slice(&[0x88, 0xcc]);
    kernel.send(&frame).unwrap();
    let mut burst = [None];
    assert_eq!(tap.receive(&mut burst, &set).unwrap(), 1);
    let received = burst[0].take().unwrap();
    assert_eq!((received.nsegs(), received.pkt_len()), (3, 5000));
    assert_eq!(decap(received).unwrap_err(), NotCarried::Type(0x88cc));
    drop(tap);
    assert!(set.is_full(), "{} objects leaked", set.in_use());
}

#[test]
fn a_frame_takes_the_buffers_that_it_reaches_and_leaves_the_others() {
    let set = set();
    let (mut tap, kernel) = tap(&TapConfig {
        offload: false,
        ..TapConfig::default()
    });
    let bytes: Vec<u8> = (0..65_549usize).map(|i| (i % 251) as u8).collect();
    let lengths = [1, 60, 1514, 2046, 2047, 4094, 4095, 9000, 65_549, 60];
    for &len in &lengths {
        kernel.send(&bytes[..len]).unwrap();
    }
    let mut burst = [const { None }; 16];
    assert_eq!(tap.receive(&mut burst, &set).unwrap(), lengths.len());
    for (m, len) in burst.iter().flatten().zip(lengths) {
        assert_eq!(m.to_vec(), bytes[..len]);
        let room: usize = m.segments().map(|s| s.capacity()).sum();
        assert!(
            room <= 2 * len.max(2048) + 64,
            "{room} bytes of room for {len}"
        );
    }
    let stats = tap.stats();
    assert_eq!(stats.received, lengths.len() as u64);
    assert_eq!(stats.received_bytes, lengths.iter().sum::<usize>() as u64);
    drop((tap, burst));
    assert!(set.is_full());
}

#[test]
fn a_packet_of_many_segments_leaves_whole() {
    let set = set();
    for offload in [false, true] {
        let (mut tap, kernel) = tap(&TapConfig {
            offload,
            ..TapConfig::default()
        });
        let header = if offload { 10 } else { 0 };
        for nsegs in [1, 2, 126, 127, 128, 129, 300] {
            let m = packet(&vec![3; nsegs], 5, &set);
            let want = m.to_vec();
            assert_eq!(tap.send(&mut [Some(m)]), 1);
            assert_eq!(got(&kernel).unwrap()[header..], want, "{nsegs} segments");
        }
        check_law(&tap);
    }
    assert!(set.is_full());
}

/// What virtio-net says of a frame: flags, GSO type, and the four numbers behind them.
fn virtio(frame: &[u8]) -> (u8, u8, [u16; 4]) {
    let n = |at: usize| u16::from_ne_bytes([frame[at], frame[at + 1]]);
    (frame[0], frame[1], [n(2), n(4), n(6), n(8)])
}

#[test]
fn requests_become_a_virtio_net_header() {
    let set = set();
    let (mut tap, kernel) = tap(&TapConfig::default());
    for v6 in [false, true] {
        for mss in [0, 1448] {
            let ask = Ask {
                v6,
                mss,
                ..Ask::default()
            };
            let payload = [9; 5000];
            let (bytes, offload) = tcp_packet(&ask, &payload);
            let header = ask.header_len();
            // Cut within the headers, whose fields are still found.
            let mut m = chain(&bytes, &[30, header - 30, bytes.len() - header], &set);
            m.set_offload(offload);
            assert_eq!(tap.send(&mut [Some(m)]), 1);
            let frame = got(&kernel).unwrap();
            let l3 = offload.l3_len;
            let gso = match (mss, v6) {
                (0, _) => (1, 0, [0, 0, l3, 16]),
                (_, false) => (1, 1, [header as u16, 1448, l3, 16]),
                (_, true) => (1, 4, [header as u16, 1448, l3, 16]),
            };
            assert_eq!(virtio(&frame), gso);
            assert_eq!(frame.len(), 10 + bytes.len());
            assert_eq!(frame[10 + header..], payload);
            // The seed counts the whole length, cut or not: as of the packet that is not to be cut.
            let whole = tcp_packet(&Ask { mss: 0, ..ask }, &payload).0;
            let field = usize::from(l3) + 16;
            assert_eq!(frame[10 + field..][..2], whole[field..][..2]);
        }
    }
    assert_eq!(check_law(&tap).sent, 4);
}

#[test]
fn requests_that_cannot_be_are_dropped_and_counted() {
    let set = set();
    let (bytes, offload) = tcp_packet(&Ask::default(), &[1; 3000]);
    let with = |ask: TxOffload| {
        let mut m = chain(&bytes, &[bytes.len()], &set);
        m.set_offload(ask);
        Some(m)
    };
    let (mut simple, _kernel) = tap(&TapConfig {
        max_frame: 9000,
        ..plain()
    });
    assert_eq!(simple.send(&mut [with(offload)]), 1);
    assert_eq!(check_law(&simple).dropped_unsupported, 1);

    let (mut tap, kernel) = tap(&TapConfig::default());
    let wrong = [
        TxOffload {
            tso_mss: 0,
            ..offload
        },
        TxOffload {
            l3_len: 24,
            ..offload
        },
        TxOffload {
            l4_len: 60_000,
            ..offload
        },
        TxOffload {
            l2_len: 14,
            ..offload
        },
        TxOffload {
            flags: offload.flags | OffloadFlags::IPV6,
            ..offload
        },
    ];
    let mut burst = wrong.map(with);
    assert_eq!(tap.send(&mut burst), wrong.len());
    assert_eq!(check_law(&tap).dropped_unsupported, wrong.len() as u64);
    assert!(got(&kernel).is_none());
    assert!(set.is_full());
}

#[test]
fn checksums_are_believed_as_the_virtio_net_header_says() {
    let set = set();
    let (mut tap, kernel) = tap(&TapConfig::default());
    for (flags, said) in [
        (0, Checksum::Unknown),
        (1, Checksum::Good),
        (2, Checksum::Good),
    ] {
        let mut frame = vec![0; 10 + 60];
        frame[0] = flags;
        kernel.send(&frame).unwrap();
        let mut burst = [None];
        assert_eq!(tap.receive(&mut burst, &set).unwrap(), 1);
        let m = burst[0].as_ref().unwrap();
        assert_eq!(m.pkt_len(), 60);
        assert_eq!(m.received().unwrap().l4_checksum, said);
    }
    // Less than a header, and a header alone, are no frames.
    for n in [4, 10] {
        kernel.send(&[0; 10][..n]).unwrap();
        assert_eq!(tap.receive(&mut [None], &set).unwrap(), 0);
    }
    assert_eq!((tap.stats().received, tap.stats().bad_reads), (3, 2));
}

#[test]
fn an_interface_that_is_gone_takes_and_counts_all() {
    let set = set();
    let (mut tap, kernel) = tap(&plain());
    drop(kernel);
    let mut burst = [3, 4, 5].map(|len| Some(packet(&[len], 0, &set)));
    assert_eq!(tap.send(&mut burst), 3);
    let stats = check_law(&tap);
    assert_eq!((stats.dropped_gone, tap.is_gone()), (3, true));
    assert!(stats.last_error.is_some());
    assert_eq!(tap.receive(&mut [None], &set).unwrap(), 0);
    drop(tap);
    assert!(set.is_full());
}

#[test]
fn behind_the_simulated_hardware_a_plain_device_gets_cut_frames() {
    let set = set();
    let (tap, kernel) = tap(&plain());
    let mut queue = TxQueue::new(TxConfig::default(), Hardware::new(tap)).unwrap();
    let ask = Ask::default();
    let (bytes, offload) = tcp_packet(&ask, &[6; 4000]);
    let mut m = chain(&bytes, &[bytes.len()], &set);
    m.set_offload(offload);
    send(&mut queue, m, &set);
    queue.run_device(1);
    let frames: Vec<Vec<u8>> = std::iter::from_fn(|| got(&kernel)).collect();
    assert_eq!(frames, ask.frames(&[6; 4000]));
    let stats = check_law(queue.backend().sink());
    assert_eq!((stats.sent, stats.given), (3, 3));
}

#[test]
fn whichever_buffer_is_missing_the_frame_stays_with_the_kernel() {
    let frame: Vec<u8> = (0..6000usize).map(|i| (i % 251) as u8).collect();
    for k in 1.. {
        let switch = FailSwitch::new();
        let builder = BufferSet::standard_builder(256, 16).fail_switch(&switch);
        // Fewer clusters than stand ready when there are enough.
        let set = builder.build().unwrap();
        let (mut tap, kernel) = tap(&plain());
        kernel.send(&frame).unwrap();
        switch.fail_at(k);
        let mut burst = [None];
        let first = tap.receive(&mut burst, &set);
        let reached = switch.gets() >= k;
        if first.is_err() {
            assert!(burst[0].is_none());
            assert_eq!(tap.receive(&mut burst, &set).unwrap(), 1);
        }
        assert_eq!(burst[0].take().unwrap().to_vec(), frame, "allocation {k}");
        drop(tap);
        assert!(set.is_full());
        if !reached {
            println!("{} allocations failed, one at a time", k - 1);
            return;
        }
    }
}
