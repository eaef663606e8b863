//! Random chains against a `Vec<u8>`: every operation keeps the bytes, the lengths and other
//! packets' bytes.

mod common;

use common::{assert_is, random_packet, uncached};
use fastrand::Rng;
use mbuf::{Chain, Packet};

const SEEDS: u64 = 300;

#[test]
fn edits_keep_the_bytes_of_the_model() {
    let set = uncached();
    for seed in 0..SEEDS {
        let mut rng = Rng::with_seed(seed);
        let mut keep = Vec::new();
        let (mut m, mut model) = random_packet(&mut rng, &set, 6, &mut keep);
        let kept: Vec<_> = keep.iter().map(Packet::to_vec).collect();
        for _ in 0..30 {
            edit(&mut rng, &mut m, &mut model, &set, &mut Vec::new());
            assert_is(&m, &model);
        }
        let now: Vec<_> = keep.iter().map(Packet::to_vec).collect();
        assert!(kept == now, "seed {seed}: a sharer's bytes changed");
        drop((m, keep));
        assert!(
            set.is_full(),
            "seed {seed}: {} objects leaked",
            set.in_use()
        );
    }
}

fn edit(
    rng: &mut Rng,
    m: &mut mbuf::Mbuf,
    model: &mut Vec<u8>,
    set: &mbuf::BufferSet,
    keep: &mut Vec<mbuf::Mbuf>,
) {
    let n = rng.usize(0..200);
    let byte = rng.u8(..);
    match rng.u8(0..7) {
        0 => {
            if let Ok(room) = m.prepend(n) {
                room.fill(byte);
                model.splice(0..0, std::iter::repeat_n(byte, n));
            }
        }
        1 => {
            if let Ok(room) = m.append(n) {
                room.fill(byte);
                model.extend(std::iter::repeat_n(byte, n));
            }
        }
        2 => match m.trim_front(n) {
            Ok(()) => drop(model.drain(..n)),
            Err(e) => assert!(n > model.len(), "{e}"),
        },
        3 => match m.trim_back(n) {
            Ok(()) => model.truncate(model.len() - n),
            Err(e) => assert!(n > model.len(), "{e}"),
        },
        4 => {
            let len = m.first().len();
            if let Some(data) = m.data_mut() {
                data.fill(byte);
                model[..len].fill(byte);
            }
        }
        5 => {
            let (tail, bytes) = random_packet(rng, set, 2, keep);
            m.cat(tail);
            model.extend(bytes);
        }
        _ => {
            let off = rng.usize(0..=model.len());
            let mut out = vec![0; rng.usize(0..=model.len() - off)];
            m.copy_to(off, &mut out).unwrap();
            assert!(out == model[off..off + out.len()]);
            assert!(m.copy_to(off, &mut vec![0; model.len() - off + 1]).is_err());
        }
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
