//! Random chunks, maxima and drains against a queue of bytes.

use std::collections::VecDeque;
use std::time::Instant;

use fastrand::Rng;
use mbuf::{BufferSet, Kind};
use sockbuf::splice::{End, Ends, Gather, Progress, SpliceOptions, Then, Verdict, Wait, pass};
use sockbuf::{Side, SockBuf};

use crate::common::{Seed, content, received};

fn set() -> BufferSet {
    BufferSet::bsd_builder(4096, 256)
        .configure(|pool| pool.cache(0))
        .build()
        .unwrap()
}

struct Model {
    /// What the source is to hold, and the drain.
    source: VecDeque<u8>,
    drain: VecDeque<u8>,
    next: u8,
}

impl Model {
    fn chunk(&mut self, n: usize) -> Vec<u8> {
        let bytes: Vec<u8> = (0..n).map(|i| self.next.wrapping_add(i as u8)).collect();
        self.next = self.next.wrapping_add(n as u8 | 1);
        self.source.extend(&bytes);
        bytes
    }
}

fn arrive(rng: &mut Rng, set: &BufferSet, source: &mut SockBuf, model: &mut Model) {
    let n = match rng.u8(0..4) {
        0 => rng.usize(1..100),
        1 => 1448,
        2 => rng.usize(1..10_000),
        _ => rng.usize(1..3),
    };
    let bytes = model.chunk(n);
    source.append_stream(received(set, &bytes, rng.usize(0..64)));
    if rng.u8(0..8) == 0 {
        let mut aside = received(set, &[0xee; 20], 0);
        aside.set_kind([Kind::Address, Kind::Control][rng.usize(0..2)]);
        source.append_stream(aside);
    }
}

fn run(seed: u64) {
    let _seed = Seed(seed);
    let (set, mut rng, now) = (set(), Rng::with_seed(seed), Instant::now());
    let max = rng.bool().then(|| rng.u64(1..200_000));
    let gather = [Gather::Off, Gather::WhenBackedUp][rng.usize(0..2)];
    let options = SpliceOptions {
        max,
        gather,
        ..SpliceOptions::default()
    };
    let mut progress = Progress::new(options, now);
    let mut source = SockBuf::new(1 << 20);
    let mut drain = SockBuf::with_side(Side::sending(rng.usize(1..100_000)));
    let mut model = Model {
        source: VecDeque::new(),
        drain: VecDeque::new(),
        next: 0,
    };
    let mut moved = 0;
    for _ in 0..200 {
        match rng.u8(0..3) {
            0 => arrive(&mut rng, &set, &mut source, &mut model),
            1 => {
                let n = rng.usize(0..=drain.len());
                drain.drop_front(n).unwrap();
                model.drain.drain(..n);
            }
            _ => {
                let (space, empty) = (drain.space(), drain.is_empty());
                let step = pass(
                    &mut source,
                    &mut drain,
                    Ends::READY,
                    &mut progress,
                    now,
                    &set,
                );
                moved += step.moved;
                model.drain.extend(model.source.drain(..step.moved));
                assert!(step.moved == 0 || step.moved as isize <= space);
                match step.then {
                    Then::End(End::Verdict(Verdict::MaxReached { max })) => {
                        assert_eq!(moved as u64, max);
                        break;
                    }
                    Then::Wait(Wait::Space { need }) => {
                        assert!(!empty, "it always goes into an empty drain");
                        assert!(step.moved == 0 && need as isize > space);
                    }
                    Then::Wait(Wait::Data) => assert!(model.source.is_empty()),
                    Then::Again => assert!(step.moved > 0 && !source.is_empty()),
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(content(&drain), Vec::from(model.drain.clone()));
        assert!(max.is_none_or(|max| moved as u64 <= max));
        assert_eq!(progress.bytes(), moved as u64);
    }
    let data = source.segments().filter(|seg| seg.kind() == Kind::Data);
    let left: Vec<u8> = data.flat_map(|seg| seg.data().to_vec()).collect();
    assert_eq!(left, Vec::from(model.source));
    drop((source, drain));
    assert!(set.is_full());
}

#[test]
fn splice_passes_agree_with_a_queue_of_bytes() {
    for seed in 0..400 {
        run(seed);
    }
}
