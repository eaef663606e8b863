//! What a chain knows besides its bytes: where reads ended, where records end, what bytes are.

mod common;

use common::uncached;
use fastrand::Rng;
use mbuf::{BufferSet, Chain, Kind, Mbuf, Packet};
use std::sync::Arc;
use std::thread;

fn of(set: &BufferSet, bytes: &[u8]) -> Mbuf {
    set.copy_in(bytes, 0).unwrap()
}

fn chain_of(set: &BufferSet, n: u8, each: usize) -> Chain {
    let mut chain = Chain::new();
    (0..n).for_each(|i| chain.push_back(of(set, &vec![i; each])));
    chain
}

#[test]
fn a_read_begins_where_the_one_before_ended() {
    let set = uncached();
    let chain = chain_of(&set, 40, 10);
    assert_eq!(chain.steps_to(399), Some(39));
    for off in (0..400).step_by(5) {
        assert!(chain.steps_to(off) <= Some(1));
        let mut five = [0; 5];
        chain.copy_to(off, &mut five).unwrap();
        assert_eq!(five, [(off / 10) as u8; 5]);
    }
    assert_eq!(chain.steps_to(400), None);
    // One that reads again, further in front, has a place of its own.
    chain.copy_to(100, &mut [0; 10]).unwrap();
    assert_eq!(
        (chain.steps_to(110), chain.steps_to(390)),
        (Some(1), Some(0))
    );
    assert_eq!(
        chain.steps_to(50),
        Some(5),
        "in front of both: from the head"
    );
}

#[test]
fn reads_of_nothing_and_beyond_the_end_are_not_remembered() {
    let set = uncached();
    let chain = chain_of(&set, 40, 10);
    chain.copy_to(200, &mut []).unwrap();
    assert!(chain.copy_to(395, &mut [0; 6]).is_err());
    assert!(chain.copy_to(usize::MAX, &mut [0; 6]).is_err());
    assert!(chain.ref_copy(usize::MAX, 2, &set).is_err());
    assert!(chain.seek(usize::MAX).is_none());
    assert_eq!(chain.steps_to(200), Some(20));
}

/// Marks in segments that go, stay, and stand without a byte at the cut.
#[test]
fn what_was_read_may_leave_the_chain() {
    let set = uncached();
    for seed in 0..300 {
        let mut rng = Rng::with_seed(seed);
        let (mut chain, mut model) = (Chain::new(), Vec::new());
        for _ in 0..60 {
            let bytes: Vec<u8> = (0..rng.usize(0..4)).map(|_| rng.u8(..)).collect();
            match rng.u8(0..8) {
                0..4 => {
                    chain.push_back(of(&set, &bytes));
                    model.extend(bytes);
                }
                4 => {
                    let n = rng.usize(0..=model.len().min(5));
                    drop(chain.cut(n).unwrap());
                    model.drain(..n);
                }
                5 => {
                    let gone = chain.take_segs(rng.usize(0..3));
                    model.drain(..gone.map_or(0, |gone| gone.pkt_len()));
                }
                6 => {
                    let gone = chain.take_whole(rng.usize(0..4));
                    model.drain(..gone.map_or(0, |gone| gone.pkt_len()));
                }
                _ => {
                    let n = chain.append_bytes(&bytes);
                    model.extend(&bytes[..n]);
                }
            }
            let off = rng.usize(0..=model.len());
            let len = rng.usize(0..=model.len() - off);
            let mut got = vec![0; len];
            chain.copy_to(off, &mut got).unwrap();
            assert_eq!(got, model[off..off + len], "seed {seed}");
            let copy = chain.ref_copy(off, len, &set).unwrap();
            assert_eq!(copy.to_vec(), model[off..off + len], "seed {seed}");
            let found = chain.seek(off).map(|(seg, at)| seg.data()[at]);
            assert_eq!(found, model.get(off).copied(), "seed {seed}");
        }
        drop(chain);
        assert!(set.is_full(), "seed {seed}");
    }
}

#[test]
fn threads_may_read_a_chain_at_a_time() {
    let set = uncached();
    let chain = Arc::new(chain_of(&set, 100, 10));
    let reader = |start: u8| {
        let chain = Arc::clone(&chain);
        thread::spawn(move || {
            for i in (start..100).chain(0..start) {
                let mut ten = [0; 10];
                chain.copy_to(usize::from(i) * 10, &mut ten).unwrap();
                assert_eq!(ten, [i; 10]);
            }
        })
    };
    let readers: Vec<_> = [0, 33, 66].into_iter().map(reader).collect();
    readers
        .into_iter()
        .for_each(|reader| reader.join().unwrap());
    let mut chain = Arc::into_inner(chain).expect("all have let go");
    drop(chain.cut(995).unwrap());
    let (seg, at) = chain.seek(4).unwrap();
    assert_eq!((seg.data(), at), (&[99; 5][..], 4));
}

#[test]
fn position_counts_what_has_left() {
    let set = uncached();
    let mut chain = chain_of(&set, 4, 10);
    drop(chain.cut(15).unwrap());
    assert_eq!(chain.position(), 15);
    drop(chain.take_segs(1));
    assert_eq!((chain.position(), chain.len(), chain.segs()), (20, 20, 2));
    assert!(chain.cut(21).is_err());
    drop(chain.take_whole(usize::MAX));
    assert_eq!((chain.position(), chain.len()), (40, 0));
    chain.push_back(of(&set, b"more"));
    assert_eq!(chain.seek(3).unwrap().1, 3);
}

#[test]
fn records_end_in_a_chain_and_not_in_the_packet() {
    let set = uncached();
    let mut chain = Chain::new();
    chain.end_record();
    chain.push_back(of(&set, b"one"));
    chain.end_record();
    chain.push_back(of(&set, b"two"));
    let ends = |chain: &Chain| {
        chain
            .segments()
            .map(|seg| seg.ends_record())
            .collect::<Vec<_>>()
    };
    assert_eq!(ends(&chain), [true, false]);
    let both = chain.into_packet().unwrap();
    let mut other = Chain::new();
    other.push_back(both);
    assert_eq!(ends(&other), [false, false]);
}

#[test]
fn kind_and_end_are_said_of_segments_and_gone_with_the_mbuf() {
    let set = uncached();
    let mut m = of(&set, b"a");
    m.cat(of(&set, b"b"));
    for kind in [Kind::Control, Kind::Address, Kind::Data, Kind::Control] {
        m.set_kind(kind);
        assert!(m.segments().all(|seg| seg.kind() == kind));
    }
    m.set_eor(true);
    let ends: Vec<bool> = m.segments().map(|seg| seg.is_eor()).collect();
    assert_eq!(ends, [false, true]);
    m.cat(of(&set, b"c"));
    m.set_eor(false);
    assert!(m.segments().all(|seg| !seg.is_eor()));
    let mut chain = Chain::new();
    chain.set_eor();
    chain.push_back(m);
    chain.set_eor();
    assert!(chain.last().unwrap().is_eor());
    drop(chain);
    for _ in 0..4 {
        let m = set.header().unwrap();
        assert_eq!((m.first().kind(), m.first().is_eor()), (Kind::Data, false));
    }
}
