//! The reassembly queue against a map of bytes.

mod common;

use common::{pattern, piece, set};
use mbuf::{BufferSet, Mbuf, Packet};
use tcp_output::Seq;
use tcp_output::input::{Limits, Reassembly};
use tcp_output::options::SackBlock;

/// `len` bytes of the stream from `at`, in mbufs of odd sizes.
fn slice(set: &BufferSet, at: usize, len: usize) -> Mbuf {
    let mut packet = set.header().expect("mbuf");
    let mut done = 0;
    for part in [1, 7, 200, 0, usize::MAX] {
        let n = part.min(len - done);
        let ext = if n > 224 { 2048 } else { 0 };
        packet.cat(piece(set, ext, false, &pattern(at + done, n)));
        done += n;
    }
    packet
}

/// Which bytes of the stream are there, and which of them were given out.
struct Model {
    have: Vec<bool>,
    next: usize,
}

impl Model {
    fn arrive(&mut self, at: usize, len: usize) -> usize {
        self.have[at..at + len].fill(true);
        let more = self.have[self.next..]
            .iter()
            .take_while(|has| **has)
            .count();
        self.next += more;
        more
    }

    /// The ranges beyond what is in order.
    fn ranges(&self, base: Seq) -> Vec<SackBlock> {
        let seq = |at| base + at as u32;
        let mut ranges: Vec<SackBlock> = Vec::new();
        for at in (self.next..self.have.len()).filter(|at| self.have[*at]) {
            match ranges.last_mut() {
                Some(last) if last.end == seq(at) => last.end = seq(at + 1),
                _ => ranges.push(SackBlock {
                    start: seq(at),
                    end: seq(at + 1),
                }),
            }
        }
        ranges
    }
}

#[test]
fn any_order_overlap_and_repetition_gives_the_stream_once() {
    let set = set();
    for seed in 0..120 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let total = rng.usize(1..2500);
        // Some streams cross 2^31, some 2^32.
        let base = Seq([0, 0x7fff_ff00, 0xffff_ff00, rng.u32(..)][seed as usize % 4]);
        let mut queue = Reassembly::default();
        let mut model = Model {
            have: vec![false; total],
            next: 0,
        };
        let mut stream = Vec::new();
        while model.next < total {
            let at = rng.usize(0..total);
            let len = rng.usize(0..=(total - at).min(600));
            let next = base + model.next as u32;
            let out = queue
                .arrive(base + at as u32, slice(&set, at, len), next)
                .expect("room");
            let more = model.arrive(at, len);
            assert_eq!(out.as_ref().map_or(0, Packet::pkt_len), more);
            stream.extend(out.iter().flat_map(Packet::to_vec));
            let blocks: Vec<SackBlock> = queue.blocks().collect();
            let mut sorted = blocks.clone();
            sorted.sort_by_key(|block| block.start - base);
            assert_eq!(sorted, model.ranges(base), "seed {seed}");
            if len > 0 && at > model.next {
                let newest = blocks[0];
                let seq = base + at as u32;
                assert!(newest.start.leq(seq) && seq.lt(newest.end), "newest first");
            }
            let held: usize = sorted
                .iter()
                .map(|block| (block.end - block.start) as usize)
                .sum();
            assert_eq!(queue.len(), held);
        }
        assert!(stream == pattern(0, total), "seed {seed}");
        assert!(queue.is_empty() && queue.held() == (0, 0) && set.is_full());
    }
}

#[test]
fn blocks_come_most_recent_first() {
    let set = set();
    let mut queue = Reassembly::default();
    for at in [10u32, 30, 50, 70, 31] {
        let data = slice(&set, at as usize, 2);
        assert!(queue.arrive(Seq(at), data, Seq(0)).expect("room").is_none());
    }
    let starts: Vec<u32> = queue.blocks().map(|block| block.start.0).collect();
    assert_eq!(starts, [30, 70, 50, 10]);
    queue
        .arrive(Seq(10), slice(&set, 10, 1), Seq(0))
        .expect("known");
    assert_eq!(
        queue.blocks().next().map(|block| block.start.0),
        Some(10),
        "a duplicate too"
    );
}

#[test]
fn limits_hold_and_what_is_in_order_is_always_taken() {
    let set = set();
    let limits = Limits {
        storage: 20_000,
        mbufs: 12,
        runs: 3,
    };
    let mut queue = Reassembly::new(limits);
    for at in [10u32, 20, 30] {
        let data = piece(&set, 0, true, &pattern(at as usize, 5));
        queue.arrive(Seq(at), data, Seq(0)).expect("room");
    }
    let level = set.in_use();
    let refused = queue
        .arrive(Seq(40), piece(&set, 0, true, &pattern(40, 5)), Seq(0))
        .expect_err("a fourth run");
    assert_eq!((refused.asked, refused.runs, refused.mbufs), (5, 3, 3));
    let many = slice(&set, 25, 210);
    assert!(many.nsegs() == 6);
    assert_eq!(set.in_use(), level + 6, "alive until it is refused or kept");
    queue
        .arrive(Seq(25), many, Seq(0))
        .expect("9 mbufs in 2 runs");
    let refused = queue
        .arrive(Seq(235), slice(&set, 235, 300), Seq(0))
        .expect_err("15 mbufs");
    assert!(refused.mbufs <= 12);
    for _ in 0..2 {
        let wasteful = piece(&set, 16384, true, &pattern(12, 1));
        let _ = queue.arrive(Seq(15), wasteful, Seq(0));
        assert!(queue.held().0 <= limits.storage, "charged by storage");
    }
    let whole = queue
        .arrive(Seq(0), slice(&set, 0, 1000), Seq(0))
        .expect("in order");
    assert!(whole.is_some_and(|data| data.to_vec() == pattern(0, 1000)));
    assert!(queue.is_empty() && queue.held() == (0, 0) && set.is_full());
}

#[test]
fn old_and_empty_segments_leave_nothing() {
    let set = set();
    let mut queue = Reassembly::default();
    let next = Seq(5);
    for (seq, len) in [
        (Seq(u32::MAX - 3), 9),
        (Seq(4), 1),
        (Seq(5), 0),
        (Seq(9), 0),
    ] {
        let out = queue
            .arrive(seq, slice(&set, 0, len), next)
            .expect("nothing to keep");
        assert!(out.is_none());
    }
    assert!(queue.is_empty() && set.is_full());
}

#[test]
fn what_is_kept_is_freed_with_the_queue() {
    let set = set();
    let mut queue = Reassembly::default();
    queue
        .arrive(Seq(9), slice(&set, 9, 900), Seq(0))
        .expect("room");
    assert!(!set.is_full());
    queue.clear();
    assert!(set.is_full());
    queue
        .arrive(Seq(9), slice(&set, 9, 900), Seq(0))
        .expect("room");
    drop(queue);
    assert!(set.is_full());
}
