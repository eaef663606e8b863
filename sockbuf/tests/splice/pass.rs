//! The pass itself: rule by rule, over two buffers.

use std::time::Instant;

use mbuf::{BufferSet, Kind, Packet};
use sockbuf::splice::{End, Ends, Progress, SpliceOptions, Step, Then, Verdict, Wait, pass};
use sockbuf::{Side, SockBuf, SocketError};

use crate::common::{content, received};
use crate::wire::{pattern, pools};

struct Bench {
    set: BufferSet,
    source: SockBuf,
    drain: SockBuf,
    progress: Progress,
}

impl Bench {
    /// A source with clusters of so many bytes each, and a drain of this size.
    fn new(clusters: &[usize], space: usize) -> Self {
        let set = pools();
        let mut source = SockBuf::new(1 << 20);
        let bytes = pattern(clusters.iter().sum());
        let mut at = 0;
        for &len in clusters {
            source.append_stream(received(&set, &bytes[at..at + len], 0));
            at += len;
        }
        Self {
            set,
            source,
            drain: SockBuf::with_side(Side::sending(space)),
            progress: Progress::new(SpliceOptions::default(), Instant::now()),
        }
    }

    fn max(mut self, max: u64) -> Self {
        let options = SpliceOptions {
            max: Some(max),
            ..SpliceOptions::default()
        };
        self.progress = Progress::new(options, Instant::now());
        self
    }

    /// So many bytes are in the drain already.
    fn backed_up(mut self, bytes: usize) -> Self {
        self.drain
            .append_stream(received(&self.set, &vec![9; bytes], 0));
        self
    }

    fn pass_with(&mut self, ends: Ends) -> Step {
        let (from, to) = (&mut self.source, &mut self.drain);
        pass(
            from,
            to,
            ends,
            &mut self.progress,
            Instant::now(),
            &self.set,
        )
    }

    fn pass(&mut self) -> Step {
        self.pass_with(Ends::READY)
    }
}

#[test]
fn splice_pass_moves_whole_mbufs_and_copies_none() {
    let mut bench = Bench::new(&[1448; 45], 1 << 20);
    let addresses: Vec<_> = bench.source.segments().map(|s| s.data().as_ptr()).collect();
    let step = bench.pass();
    assert_eq!((step.moved, step.then), (45 * 1448, Then::Wait(Wait::Data)));
    assert!(
        bench
            .drain
            .segments()
            .map(|s| s.data().as_ptr())
            .eq(addresses)
    );
    assert!(
        bench
            .drain
            .segments()
            .all(|s| s.hops() == 1 && !s.is_shared())
    );
    assert_eq!(content(&bench.drain), pattern(45 * 1448));
    assert_eq!(bench.progress.bytes(), 45 * 1448);
}

#[test]
fn splice_pass_looks_for_errors_in_order() {
    let (reset, aborted) = (SocketError::Reset, SocketError::Aborted);
    let mut ends = Ends {
        source_error: Some(reset),
        drain_error: Some(aborted),
        drain_ready: false,
        urgent_inline: true,
    };
    let mut bench = Bench::new(&[100], 1000);
    bench.drain.side_mut().shut_down();
    let mut ended = |ends, shut: bool| {
        if !shut {
            bench.drain = SockBuf::new(1000);
        }
        let step = bench.pass_with(ends);
        assert_eq!((step.moved, bench.source.len()), (0, 100));
        step.then
    };
    assert_eq!(ended(ends, true), Then::End(End::SourceFailed(reset)));
    ends.source_error = None;
    assert_eq!(ended(ends, true), Then::End(End::DrainShut { left: 100 }));
    assert_eq!(ended(ends, false), Then::End(End::DrainFailed(aborted)));
    ends.drain_error = None;
    assert_eq!(ended(ends, false), Then::Wait(Wait::Connection));
}

#[test]
fn splice_pass_does_not_mind_another_splices_verdict_on_the_drain() {
    let idle = std::time::Duration::from_secs(1);
    for verdict in [
        Verdict::MaxReached { max: 7 },
        Verdict::Idle { idle },
        Verdict::Loop { hops: 128 },
    ] {
        let mut bench = Bench::new(&[100], 1000);
        let ends = Ends {
            drain_error: Some(verdict.into()),
            ..Ends::READY
        };
        assert_eq!(bench.pass_with(ends).moved, 100);
    }
}

#[test]
fn splice_pass_max_inside_an_mbuf_takes_a_part_by_reference() {
    let mut bench = Bench::new(&[1448; 3], 1 << 20).max(2000);
    let step = bench.pass();
    let end = End::Verdict(Verdict::MaxReached { max: 2000 });
    assert_eq!((step.moved, step.then), (2000, Then::End(end)));
    assert_eq!((bench.source.len(), bench.drain.segs()), (2344, 2));
    let part = bench.drain.seek(1448).unwrap().0;
    assert_eq!((part.len(), part.is_shared()), (552, true));
    assert_eq!(content(&bench.drain), pattern(2000));
    assert_eq!(content(&bench.source), pattern(4344)[2000..]);
}

#[test]
fn splice_pass_waits_for_a_whole_mbuf_unless_the_drain_is_empty() {
    let mut bench = Bench::new(&[9000], 4000).backed_up(1000);
    let step = bench.pass();
    assert_eq!(
        (step.moved, step.then),
        (0, Then::Wait(Wait::Space { need: 9000 }))
    );
    bench.drain.drop_front(1000).unwrap();
    let step = bench.pass();
    assert_eq!((step.moved, step.then), (4000, Then::Again));
    assert!(bench.drain.first().unwrap().is_shared(), "by reference");
    assert_eq!(content(&bench.drain), pattern(9000)[..4000]);
}

#[test]
fn splice_pass_waits_for_the_low_water_mark() {
    let mut bench = Bench::new(&[1000; 5], 4000).backed_up(2000);
    let step = bench.pass();
    assert_eq!(
        (step.moved, step.then),
        (0, Then::Wait(Wait::Space { need: 2048 }))
    );
    bench.drain.drop_front(48).unwrap();
    let step = bench.pass();
    assert_eq!(
        (step.moved, step.then),
        (2000, Then::Again),
        "as many as fit whole"
    );
    let mut bench = Bench::new(&[1000], 4000).backed_up(3000);
    assert_eq!(
        bench.pass().moved,
        1000,
        "all there is goes in below the mark too"
    );
}

#[test]
fn splice_pass_says_whether_more_follows() {
    let mut bench = Bench::new(&[1000; 5], 4000);
    let _ = bench.pass();
    assert!(bench.drain.side().more_to_come());
    bench.drain.drop_front(4000).unwrap();
    let _ = bench.pass();
    assert!(!bench.drain.side().more_to_come());
    let mut bench = Bench::new(&[1000; 5], 4000).max(1000);
    let _ = bench.pass();
    assert!(
        !bench.drain.side().more_to_come(),
        "no more is going to be moved"
    );
}

#[test]
fn splice_pass_skips_addresses_and_control_messages() {
    let mut bench = Bench::new(&[], 1 << 20);
    let kinds = [
        Kind::Address,
        Kind::Control,
        Kind::Data,
        Kind::Control,
        Kind::Data,
    ];
    for (i, kind) in kinds.into_iter().enumerate() {
        let mut m = received(&bench.set, &[i as u8; 100], 0);
        m.set_kind(kind);
        bench.source.append_stream(m);
    }
    let step = bench.pass();
    assert_eq!(
        (step.moved, step.skipped, step.then),
        (100, 200, Then::Again)
    );
    assert_eq!(step.aside.map(|m| m.pkt_len()), Some(200));
    let step = bench.pass();
    assert_eq!(
        (step.moved, step.skipped, step.then),
        (100, 100, Then::Wait(Wait::Data))
    );
    drop(step);
    assert_eq!(content(&bench.drain), [[2; 100], [4; 100]].concat());
    assert!(bench.source.is_empty());
}

#[test]
fn splice_pass_clears_what_the_header_says() {
    let mut bench = Bench::new(&[10, 10], 1000);
    let mut m = received(&bench.set, b"tagged", 0);
    m.set_vlan(Some(7));
    bench.source.append_stream(m);
    let _ = bench.pass();
    let third = bench
        .drain
        .cut(20)
        .unwrap()
        .map(drop)
        .and(bench.drain.take_all());
    assert_eq!(third.unwrap().vlan(), None);
}

#[test]
fn splice_pass_sends_the_urgent_byte_as_the_last_of_its_chunk() {
    let mut bench = Bench::new(&[1000; 3], 1 << 20);
    bench.source.set_urgent(1500);
    let step = bench.pass();
    assert_eq!(
        (step.moved, step.urgent, step.then),
        (1501, true, Then::Again)
    );
    assert_eq!(bench.drain.urgent(), Some(1500));
    let step = bench.pass();
    assert_eq!((step.moved, step.urgent), (1499, false));
    assert_eq!(content(&bench.drain), pattern(3000));
    let mut bench = Bench::new(&[1000; 3], 1 << 20);
    bench.source.set_urgent(3000);
    assert_eq!(
        (bench.pass().moved, bench.drain.urgent()),
        (3000, None),
        "not there yet"
    );
    let mut bench = Bench::new(&[1000; 3], 1 << 20);
    bench.source.set_urgent(1500);
    let aside = Ends {
        urgent_inline: false,
        ..Ends::READY
    };
    assert_eq!(
        bench.pass_with(aside).moved,
        3000,
        "it is not in the stream"
    );
}

#[test]
fn splice_pass_an_urgent_byte_gets_1024_bytes_of_space_more() {
    let mut bench = Bench::new(&[1000; 3], 4000).backed_up(4000);
    bench.source.set_urgent(999);
    let step = bench.pass();
    assert_eq!((step.moved, step.urgent), (1000, true));
    let mut bench = Bench::new(&[1000; 3], 4000).backed_up(4000);
    assert_eq!(bench.pass().moved, 0);
}

#[test]
fn splice_pass_a_source_that_is_shut_is_over_when_it_is_empty() {
    let mut bench = Bench::new(&[1000; 3], 1500);
    bench.source.side_mut().shut_down();
    let step = bench.pass();
    assert_eq!(
        (step.moved, step.then),
        (1500, Then::Again),
        "an empty drain takes what fits"
    );
    bench.drain.drop_front(1500).unwrap();
    let step = bench.pass();
    assert_eq!((step.moved, step.then), (1500, Then::End(End::Finished)));
    let mut bench = Bench::new(&[], 10);
    assert_eq!(bench.pass().then, Then::Wait(Wait::Data), "empty, and open");
}

#[test]
fn splice_pass_max_comes_before_the_end_of_the_source() {
    let mut bench = Bench::new(&[1000], 1500).max(1000);
    bench.source.side_mut().shut_down();
    let end = End::Verdict(Verdict::MaxReached { max: 1000 });
    assert_eq!(bench.pass().then, Then::End(end));
}
