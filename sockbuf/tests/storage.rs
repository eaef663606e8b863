//! What bytes cost in storage, and what giving them back costs.

mod common;

use common::{pools, received};
use mbuf::{BufferSet, Mbuf};
use sockbuf::{SockBuf, WriteError};

const HIWAT: usize = 65536;

/// Writes of `w` bytes until the buffer is full: how many went in whole, and the buffer.
fn full_of(set: &BufferSet, w: usize) -> (usize, SockBuf) {
    let data = vec![w as u8; w];
    let mut sb = SockBuf::new(HIWAT);
    let mut whole = 0;
    loop {
        match sb.write(&data, set) {
            Ok(n) if n == w => whole += 1,
            Ok(_) => {}
            Err(WriteError::Full { .. }) => return (whole, sb),
            Err(short) => panic!("{short}"),
        }
    }
}

/// What a 64 KB send buffer of BSD takes by writes of one size, storage limit 512 KB: computed from
/// its rules of placing and merging, not measured. Size, writes, bytes.
const BSD: [(usize, usize, usize); 15] = [
    (1, 16377, 16377),
    (2, 8189, 16378),
    (4, 4095, 16380),
    (7, 2048, 14336),
    (8, 2048, 16384),
    (16, 2048, 32768),
    (64, 1024, 65536),
    (100, 655, 65500),
    (144, 455, 65520),
    (145, 228, 33060),
    (200, 228, 45600),
    (512, 128, 65536),
    (1000, 65, 65000),
    (1448, 45, 65160),
    (2048, 32, 65536),
];

/// BSD's charge for one write, from the same rules. Size, charge.
const BSD_CHARGE: [(usize, usize); 14] = [
    (1, 256),
    (100, 256),
    (144, 256),
    (145, 2304),
    (1448, 2304),
    (2048, 2304),
    (2049, 2306),
    (2051, 4352),
    (9000, 9600),
    (16384, 16640),
    (16385, 65792),
    (20000, 65792),
    (65537, 68096),
    (70000, 74240),
];

#[test]
fn sb_known28_a_64k_buffer_takes_64k_of_any_write_size() {
    let set = pools();
    println!("bytes a write | BSD: writes, bytes | ours: writes, bytes, charge, per byte");
    for (w, writes, bytes) in BSD {
        let (whole, sb) = full_of(&set, w);
        let held = sb.storage_use();
        println!(
            "{w:13} | {writes:10} {bytes:6} | {whole:10} {:6} {:6} {:.2}",
            held.bytes,
            held.charge,
            held.charge_per_byte()
        );
        assert_eq!((whole, held.bytes), (HIWAT / w, HIWAT));
        assert!(held.bytes >= bytes && whole >= writes);
    }
    let edges = [
        2047, 2048, 2049, 2050, 2051, 4095, 4097, 8191, 8193, 9344, 9345,
    ];
    let large = [12289, 16384, 16385, 20000, 32768, 40000, 65535, 65536];
    for w in (1..=460).chain(edges).chain(large) {
        let (_, sb) = full_of(&set, w);
        let held = sb.storage_use();
        assert_eq!(held.bytes, HIWAT, "writes of {w}");
        assert!(held.charge <= sb.mbmax() / 2, "writes of {w}: {held:?}");
    }
}

#[test]
fn sb_known28_one_write_is_charged_no_more_than_by_bsd() {
    let set = pools();
    println!("bytes of a write | BSD: charge | ours: charge, per byte");
    for (w, charge) in BSD_CHARGE {
        let mut sb = SockBuf::new(1 << 20);
        assert_eq!(sb.write(&vec![1; w], &set), Ok(w));
        let held = sb.storage_use();
        println!(
            "{w:16} | {charge:11} | {:12} {:.2}",
            held.charge,
            held.charge_per_byte()
        );
        assert!(held.charge <= charge, "{held:?}");
        assert_eq!(held.waste(), held.charge - w);
    }
}

/// Writes of `w` bytes until the buffer is full, each sent at once: what is in flight is read-only, so
/// that no write can use its tail room. Most that was charged for a buffer that a send ends in.
fn in_flight(set: &BufferSet, w: usize) -> (SockBuf, Vec<Mbuf>, usize) {
    let (mut sb, mut sent, mut buffer) = (SockBuf::new(HIWAT), Vec::new(), 0);
    while let Ok(n) = sb.write(&vec![w as u8; w], set) {
        sent.push(sb.ref_copy(sb.len() - n, n, set).expect("copy"));
        let (last, _) = sb.seek(sb.len() - 1).expect("written");
        buffer = buffer.max(last.charge());
    }
    (sb, sent, buffer)
}

#[test]
fn sb_known28_a_send_in_flight_wastes_one_buffer_at_most() {
    let set = BufferSet::bsd(20_000, 1024).expect("pools");
    let sizes = [
        16, 100, 144, 145, 224, 225, 300, 448, 449, 1000, 1448, 2049, 5000, 16385,
    ];
    for w in sizes {
        let (_, packed) = full_of(&set, w);
        let (sb, sent, buffer) = in_flight(&set, w);
        let (least, held) = (packed.charge(), sb.storage_use());
        println!(
            "writes of {w}: charge {least} with nothing in flight, {} with {} sends, {:.2} per byte",
            held.charge,
            sent.len(),
            held.charge_per_byte()
        );
        assert_eq!(held.bytes, HIWAT, "in flight or not");
        assert!(held.charge <= least + sent.len() * buffer, "writes of {w}");
    }
}

#[test]
fn sb_known28_tail_room_is_used_again_when_the_send_is_done() {
    let set = pools();
    let mut sb = SockBuf::new(HIWAT);
    sb.write(&[1; 300], &set).expect("space");
    let sent = sb.ref_copy(0, 300, &set).expect("copy");
    sb.write(&[2; 300], &set).expect("space");
    assert_eq!((sb.segs(), sb.charge()), (3, 2304 + 512), "two small mbufs");
    sb.drop_front(300).expect("acknowledged");
    drop(sent);
    sb.write(&[3; 148], &set).expect("space");
    assert_eq!((sb.segs(), sb.charge()), (2, 512));
}

/// 60-byte packets, each in a cluster: the window fills by storage long before its bytes, unless small
/// data is packed.
#[test]
fn sb_known1_small_packets_do_not_hold_a_cluster_each() {
    let set = BufferSet::bsd(4096, 400).expect("pools");
    let packet = || {
        let mut m = set.header_with(2048).expect("cluster");
        m.append(60).expect("room").fill(6);
        m
    };
    let (mut packed, mut linked) = (SockBuf::new(HIWAT), SockBuf::new(HIWAT));
    while linked.space() >= 60 {
        linked.append_stream(packet());
    }
    while packed.space() >= 60 {
        packed.append_packed(packet());
    }
    assert_eq!(linked.len(), 228 * 60, "512 KB of storage are used up");
    assert_eq!(packed.len(), HIWAT / 60 * 60);
    assert!(packed.charge() <= 33 * 2304);
}

/// A window that closed for want of storage opens as what holds it is read.
#[test]
fn sb_known2_space_comes_back_with_the_storage() {
    let set = BufferSet::bsd(4096, 400).expect("pools");
    let mut sb = SockBuf::new(HIWAT);
    while sb.space() > 0 {
        sb.append_stream(received(&set, &[2; 150], 0));
    }
    let (bytes, closed) = (sb.len(), sb.space());
    assert!(bytes < 40_000 && closed <= 0);
    sb.drop_front(bytes / 2).expect("read");
    assert_eq!(
        sb.space(),
        (HIWAT - bytes / 2) as isize,
        "bytes are the nearer limit again"
    );
    sb.drop_front(sb.len()).expect("read");
    assert_eq!(sb.space(), HIWAT as isize);
}

/// What was given back to a pool: calls, of these to the backend, objects in the latter.
fn puts(set: &BufferSet) -> Vec<(u64, u64, u64)> {
    let stats = set.pools().map(|pool| pool.stats());
    let puts = stats.map(|s| (s.hits + s.misses, s.backend_puts, s.backend_objects_put));
    puts.collect()
}

/// The mbufs of a drop go back in one go: one cursor into the cache, which gives up half of itself at a
/// time when it is full. Their clusters go through the cache too.
#[test]
fn sb_drop_gives_back_in_bulk() {
    const CACHE: usize = 64;
    for n in [1, 45, 256, 1000] {
        let set = BufferSet::builder(2048)
            .class(2048, 1024)
            .configure(|pool| pool.cache(CACHE))
            .build()
            .expect("pools");
        let mut sb = SockBuf::new(16 << 20);
        for _ in 0..n {
            let mut m = set.header_with(2048).expect("cluster");
            m.append(1448).expect("room");
            sb.append_stream(m);
        }
        let before = puts(&set);
        sb.drop_front(n * 1448).expect("acknowledged");
        assert!(set.is_full());
        let after = puts(&set);
        let done = |pool: usize| {
            let ((a, b, c), (d, e, f)) = (after[pool], before[pool]);
            (a - d, b - e, c - f)
        };
        println!("{n} mbufs: {:?}, clusters: {:?}", done(0), done(1));
        let (calls, backend, objects) = done(0);
        assert_eq!(
            calls,
            1 + backend,
            "one, and one more each time that the cache is full"
        );
        assert_eq!(objects, backend * CACHE as u64 / 2);
        let (_, backend, objects) = done(1);
        assert_eq!(objects, backend * CACHE as u64 / 2);
    }
}
