//! What goes over the wire: headers and checksums against an independent parser, and the same bytes
//! whatever the copy policy.

mod common;

use common::{NOW, pattern, piece, see, send, set, spliced, storage, tcb, v4, v6};
use mbuf::{BufferSet, Mbuf, OffloadFlags, Packet};
use sockbuf::SockBuf;
use tcp_output::options::SackBlock;
use tcp_output::policy::{Copy, Reference, Threshold};
use tcp_output::*;

/// The shapes that the first mbuf misleads about, and plain ones.
fn shapes(set: &BufferSet) -> Vec<(&'static str, SockBuf, u32)> {
    let mut small_first = SockBuf::new(1 << 20);
    small_first.append_stream(piece(set, 0, true, &pattern(0, 100)));
    small_first.append_stream(piece(set, 65536, false, &pattern(100, 65420)));
    let mut large_first = SockBuf::new(1 << 20);
    large_first.append_stream(piece(set, 65536, true, &pattern(0, 10)));
    for i in 0..40 {
        large_first.append_stream(piece(set, 2048, false, &pattern(10 + i * 1448, 1448)));
    }
    let mut skipped = SockBuf::new(1 << 20);
    skipped.append_stream(piece(set, 0, true, &pattern(0, 100)));
    skipped.append_stream(piece(set, 16384, false, &pattern(100, 14480)));
    let mut crumbs = SockBuf::new(1 << 20);
    crumbs.append_stream(piece(set, 16384, true, &pattern(0, 16384)));
    for i in 0..181 {
        crumbs.append_stream(piece(set, 0, false, &pattern(16384 + i * 8, 8)));
    }
    let mut odd = SockBuf::new(1 << 20);
    for (i, len) in [1usize, 3, 5, 1460, 7, 1, 1, 999].into_iter().enumerate() {
        odd.append_stream(piece(
            set,
            if i % 2 == 0 { 0 } else { 2048 },
            i == 0,
            &pattern(odd.len(), len),
        ));
    }
    vec![
        ("spliced", spliced(set, 45, 1448), 0),
        ("spliced, one segment", spliced(set, 1, 1448), 0),
        ("small first", small_first, 0),
        ("large first", large_first, 0),
        ("offset skips the first", skipped, 100),
        ("sent cluster before crumbs", crumbs, 16384),
        ("odd pieces", odd, 0),
        (
            "tiny",
            {
                let mut sb = SockBuf::new(1000);
                sb.write(&pattern(0, 1), set).expect("space");
                sb
            },
            0,
        ),
    ]
}

/// Header bytes and payload of each packet, checksum included, as one policy sends them.
fn sent_by(
    policy: impl CopyPolicy,
    tcb: &Tcb,
    mode: ChecksumMode,
    tso: bool,
    sb: &SockBuf,
    set: &BufferSet,
) -> Vec<Vec<u8>> {
    let mut sender = Sender::new(tcb.clone(), policy)
        .with_checksum(mode)
        .with_tso(tso);
    let packets = send(&mut sender, sb, set);
    for packet in &packets {
        assert!(
            packet.first().headroom() >= MAX_LINK_HEADER,
            "{}",
            storage(packet)
        );
        let seen = see(packet);
        if mode == ChecksumMode::Software && seen.offload.tso_mss == 0 {
            assert_eq!(seen.checksum, seen.right_checksum);
            assert!(!seen.offload.flags.contains(OffloadFlags::TCP_CSUM));
        }
    }
    packets.iter().map(Packet::to_vec).collect()
}

#[test]
fn every_policy_puts_the_same_bytes_on_the_wire() {
    let set = set();
    let modes = [
        ChecksumMode::Software,
        ChecksumMode::Partial(PseudoLength::Included),
        ChecksumMode::Partial(PseudoLength::Left),
    ];
    for (name, sb, sent) in shapes(&set) {
        for (ends, opd) in [(v4(), 1460), (v6(), 1440)] {
            for (mode, tso) in modes
                .into_iter()
                .flat_map(|mode| [(mode, false), (mode, true)])
            {
                let mut tcb = tcb(ends, opd);
                tcb.send.nxt += sent;
                tcb.send.max += sent;
                let by_reference = sent_by(Reference, &tcb, mode, tso, &sb, &set);
                assert!(!by_reference.is_empty());
                let by_copy = sent_by(Copy, &tcb, mode, tso, &sb, &set);
                let by_threshold = sent_by(Threshold { factor: 5 }, &tcb, mode, tso, &sb, &set);
                assert!(
                    by_reference == by_copy && by_reference == by_threshold,
                    "{name} {mode:?} tso {tso}"
                );
                let header = tcb.ends.ip_header_len() + 32;
                let stream: Vec<u8> = by_reference
                    .iter()
                    .flat_map(|p| p[header..].to_vec())
                    .collect();
                assert!(
                    stream == pattern(sent as usize, sb.len() - sent as usize),
                    "{name}: payload"
                );
            }
        }
    }
    assert!(set.is_full());
}

#[test]
fn headers_say_what_the_connection_is() {
    let set = set();
    let sb = spliced(&set, 1, 100);
    for ends in [v4(), v6()] {
        let mut tcb = tcb(ends, 1440);
        tcb.rcv.sacks = 2;
        tcb.rcv.sack_blocks = [SackBlock {
            start: Seq(500),
            end: Seq(600),
        }; 3];
        let mut sender = Sender::new(tcb, Reference).with_checksum(ChecksumMode::Software);
        let packets = send(&mut sender, &sb, &set);
        let seen = see(&packets[0]);
        assert_eq!(
            (seen.seq, seen.ack, seen.window),
            (u32::MAX - 20_000, 77, 65535)
        );
        assert_eq!(seen.options, ["TS", "SACK2"]);
        let ip = ends.ip_header_len();
        let tcp = &seen.header[ip..];
        assert_eq!(tcp[..4], [0x9c, 0x41, 0x01, 0xbb]);
        assert_eq!(tcp[24..28], (NOW.0 as u32 + 99).to_be_bytes(), "our clock");
        assert_eq!(
            tcp[28..32],
            0x1234_5678u32.to_be_bytes(),
            "the peer's clock"
        );
        assert_eq!((seen.offload.l3_len, seen.offload.l4_len), (ip as u16, 52));
        match ends {
            Endpoints::V4 { .. } => {
                assert_eq!(seen.header[12..20], [192, 0, 2, 1, 198, 51, 100, 7])
            }
            Endpoints::V6 { .. } => assert_eq!(seen.header[22..24], [0, 1], "source ends in 1"),
        }
    }
}

/// One packet for a segment of `len` bytes from an sb of odd pieces.
fn one_packet(ends: Endpoints, mode: ChecksumMode, tso: bool, set: &BufferSet) -> Mbuf {
    let sb = spliced(set, 10, 1447);
    let mut sender = Sender::new(tcb(ends, 1440), Reference)
        .with_checksum(mode)
        .with_tso(tso);
    send(&mut sender, &sb, set).swap_remove(0)
}

#[test]
fn partial_checksums_are_finished_by_hardware() {
    let set = set();
    for ends in [v4(), v6()] {
        for (mode, tso) in [
            (ChecksumMode::Partial(PseudoLength::Included), false),
            (ChecksumMode::Partial(PseudoLength::Left), false),
            (ChecksumMode::Partial(PseudoLength::Included), true),
            (ChecksumMode::Software, true),
        ] {
            let packet = one_packet(ends, mode, tso, &set);
            let seen = see(&packet);
            assert!(seen.offload.flags.contains(OffloadFlags::TCP_CSUM));
            assert_eq!(seen.offload.flags.contains(OffloadFlags::TSO), tso);
            // The hardware: sum everything behind the IP header, the field as it stands.
            let text = &packet.to_vec()[ends.ip_header_len()..];
            let mut sum: u64 = text
                .chunks(2)
                .map(|w| u64::from(w[0]) << 8 | u64::from(*w.get(1).unwrap_or(&0)))
                .sum();
            if tso || mode == ChecksumMode::Partial(PseudoLength::Left) {
                sum += text.len() as u64;
            }
            while sum > 0xffff {
                sum = (sum >> 16) + (sum & 0xffff);
            }
            assert_eq!(!(sum as u16), seen.right_checksum, "{mode:?} tso {tso}");
        }
    }
}

#[test]
fn fault_i7_odd_pieces_sum_as_the_linear_text() {
    let set = set();
    let mut sb = SockBuf::new(1 << 20);
    for (ext, len) in [(2048, 301), (0, 1), (2048, 77), (0, 42), (4096, 333)] {
        sb.append_stream(piece(&set, ext, false, &pattern(sb.len(), len)));
    }
    let mut sender = Sender::new(tcb(v4(), 1460), Reference).with_checksum(ChecksumMode::Software);
    let packets = send(&mut sender, &sb, &set);
    assert_eq!(packets[0].nsegs(), 6);
    let seen = see(&packets[0]);
    assert_eq!(seen.checksum, seen.right_checksum);
}

#[test]
fn fault_i3_retransmission_with_appended_bytes() {
    let set = set();
    let mut sb = SockBuf::new(1 << 20);
    sb.write(&pattern(0, 1407), &set).expect("space");
    let mut sender = Sender::new(tcb(v4(), 1460), Reference).with_checksum(ChecksumMode::Software);
    let mut lengths = Vec::new();
    for time in [NOW.0, NOW.0 + 10_000, NOW.0 + 40_000] {
        let mut seen = Vec::new();
        let mut out = |packet: Mbuf| {
            seen.push(see(&packet));
            Ok(())
        };
        if time == NOW.0 {
            sender
                .output(&sb, &set, Time(time), &mut out)
                .expect("buffers");
        } else {
            sb.write(&pattern(1407, 10), &set).expect("space");
            sender
                .on_timer(&sb, &set, Time(time), &mut out)
                .expect("buffers");
        }
        assert_eq!(seen[0].checksum, seen[0].right_checksum);
        assert_eq!(seen[0].seq, u32::MAX - 20_000);
        lengths.push(seen[0].payload.len());
    }
    assert_eq!(lengths, [1407, 1417, 1427]);
}

#[test]
fn fault_i9_a_pure_ack_is_summed_too() {
    let set = set();
    let sb = SockBuf::new(1000);
    for mode in [ChecksumMode::Software, ChecksumMode::default()] {
        let mut tcb = tcb(v6(), 1440);
        tcb.flags |= TcbFlags::ACK_NOW;
        let mut sender = Sender::new(tcb, Reference).with_checksum(mode);
        let packets = send(&mut sender, &sb, &set);
        let seen = see(&packets[0]);
        assert!(seen.payload.is_empty());
        let left_to_hardware = seen.offload.flags.contains(OffloadFlags::TCP_CSUM);
        assert_eq!(left_to_hardware, mode != ChecksumMode::Software);
        assert!(left_to_hardware || seen.checksum == seen.right_checksum);
    }
}
