//! Random chains against a `Vec<u8>`: every operation keeps the bytes, the lengths and other
//! packets' bytes.

#[path = "../common/mod.rs"]
mod common;
mod driver;

use common::{assert_is, random_packet, uncached};
use fastrand::Rng;
use mbuf::{Chain, Packet};

const SEEDS: u64 = 400;

/// Says which run it was when one fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.0);
        }
    }
}

#[test]
fn every_operation_keeps_the_bytes_of_every_packet() {
    let set = driver::pools();
    let mut tally = driver::Tally::new();
    for seed in 0..SEEDS {
        let _seed = Seed(seed);
        let mut rng = Rng::with_seed(seed);
        let decisions: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(3000).collect();
        driver::run(&set, &decisions, &mut tally);
    }
    println!("operation: runs, of these without buffers\n{tally:#?}");
    let takes_buffers = "append_with byte_copy defrag make_contiguous make_range_writable \
        make_space make_writable prepend_with pulldown pullup ref_copy split write_at";
    for what in takes_buffers.split_whitespace() {
        let (runs, short) = tally[what];
        assert!(runs > 2 * short && short > 10, "{what}: {runs} {short}");
    }
}

#[test]
fn copies_equal_the_range_and_share_clusters_only() {
    let set = uncached();
    for seed in 0..SEEDS {
        let mut rng = Rng::with_seed(seed);
        let mut keep = Vec::new();
        let (m, model) = random_packet(&mut rng, &set, 8, &mut keep);
        let off = rng.usize(0..=model.len());
        let len = rng.usize(0..=model.len() - off);
        let by_ref = m.ref_copy(off, len, &set).unwrap();
        assert_is(&by_ref, &model[off..off + len]);
        for seg in by_ref.segments() {
            let inline = matches!(seg.storage(), mbuf::Storage::Inline);
            assert_eq!(
                seg.is_shared(),
                !inline,
                "clusters shared, inline room copied"
            );
        }
        let lead = rng.usize(0..300);
        let by_byte = m.byte_copy(off, len, lead, &set).unwrap();
        assert_is(&by_byte, &model[off..off + len]);
        assert_eq!((by_byte.nsegs(), by_byte.first().headroom()), (1, lead));
        assert!(m.ref_copy(off, model.len() - off + 1, &set).is_err());
        assert_is(&m, &model);
        drop((m, by_ref, by_byte, keep));
        assert!(set.is_full(), "seed {seed}");
    }
}

#[test]
fn chain_equals_a_queue_of_bytes() {
    let set = uncached();
    for seed in 0..SEEDS {
        let mut rng = Rng::with_seed(seed);
        let (mut chain, mut model) = (Chain::new(), Vec::new());
        for _ in 0..40 {
            step(&mut rng, &set, &mut chain, &mut model);
            let recount: usize = chain.segments().map(|s| s.len()).sum();
            let charge: usize = chain.segments().map(|s| s.charge()).sum();
            assert_eq!((chain.len(), chain.charge()), (recount, charge));
            assert_eq!(chain.segs(), chain.segments().count());
            let mut bytes = vec![0; chain.len()];
            chain.copy_to(0, &mut bytes).unwrap();
            assert!(bytes == model, "seed {seed}");
        }
        drop(chain);
        assert!(set.is_full(), "seed {seed}");
    }
}

fn step(rng: &mut Rng, set: &mbuf::BufferSet, chain: &mut Chain, model: &mut Vec<u8>) {
    match rng.u8(0..5) {
        0 | 1 => {
            let (m, bytes) = random_packet(rng, set, 3, &mut Vec::new());
            chain.push_back(m);
            model.extend(bytes);
        }
        2 => {
            let n = rng.usize(0..600);
            match chain.cut(n) {
                Ok(gone) => {
                    model.drain(..n);
                    assert!(gone.is_none_or(|g| g.check().is_ok()));
                }
                Err(e) => assert_eq!((e.len, e.have), (n, model.len())),
            }
        }
        3 => {
            let max = rng.usize(0..600);
            if let Some(moved) = chain.take_whole(max) {
                assert!(moved.pkt_len() <= max);
                assert_is(&moved, &model[..moved.pkt_len()]);
                model.drain(..moved.pkt_len());
            }
        }
        _ => {
            let bytes: Vec<u8> = (0..rng.usize(0..50)).map(|_| rng.u8(..)).collect();
            let n = chain.append_bytes(&bytes);
            model.extend(&bytes[..n]);
        }
    }
}

#[test]
fn seek_finds_each_byte_and_nothing_beyond() {
    let set = uncached();
    let mut rng = Rng::with_seed(7);
    let (m, model) = random_packet(&mut rng, &set, 12, &mut Vec::new());
    let mut chain = Chain::new();
    chain.push_back(m);
    for (at, byte) in model.iter().enumerate() {
        let (seg, off) = chain.seek(at).unwrap();
        assert_eq!(seg.data()[off], *byte);
    }
    assert!(chain.seek(model.len()).is_none());
}

#[test]
fn split_first_and_cat_are_inverse() {
    let set = uncached();
    for seed in 0..50 {
        let mut rng = Rng::with_seed(seed);
        let (m, model) = random_packet(&mut rng, &set, 5, &mut Vec::new());
        let segs = m.nsegs();
        let (mut first, rest) = m.split_first();
        assert_eq!(first.nsegs(), 1);
        first.check().unwrap();
        if let Some(rest) = rest {
            rest.check().unwrap();
            first.cat(rest);
        }
        assert_is(&first, &model);
        assert_eq!(first.nsegs(), segs);
    }
}
