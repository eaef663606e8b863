//! A record buffer against a queue of records.

mod common;

use std::collections::VecDeque;

use common::{Seed, received};
use fastrand::Rng;
use mbuf::{BufferSet, Kind, Mbuf, Packet};
use sockbuf::{AppendError, PastEnd, RecordBuf};

#[derive(Default, PartialEq, Debug)]
struct Record {
    bytes: VecDeque<(Kind, u8)>,
    eor: bool,
}

impl Record {
    fn push(&mut self, kind: Kind, bytes: &[u8]) {
        self.bytes.extend(bytes.iter().map(|&byte| (kind, byte)));
    }
}

#[derive(Default)]
struct Model(VecDeque<Record>);

impl Model {
    fn len(&self) -> usize {
        self.0.iter().map(|record| record.bytes.len()).sum()
    }

    fn data_len(&self) -> usize {
        let all = self.0.iter().flat_map(|record| &record.bytes);
        all.filter(|(kind, _)| *kind == Kind::Data).count()
    }

    fn append(&mut self, bytes: &[u8], eor: bool) {
        let open = self.0.back().is_some_and(|last| !last.eor);
        if !open && bytes.is_empty() && !eor && self.0.is_empty() {
            return;
        }
        if !open {
            self.0.push_back(Record::default());
        }
        let last = self.0.back_mut().expect("one");
        last.push(Kind::Data, bytes);
        last.eor |= eor;
    }

    /// Drops as many bytes as there are. What is left empty goes; the record behind it stays.
    fn cut(&mut self, n: usize) {
        let mut rest = n;
        while let Some(first) = self.0.front_mut() {
            if first.bytes.len() > rest {
                first.bytes.drain(..rest);
                return;
            }
            rest -= first.bytes.len();
            self.0.pop_front();
            if rest == 0 {
                return;
            }
        }
    }
}

fn bytes(rng: &mut Rng, max: usize) -> Vec<u8> {
    let len = if rng.u8(0..5) == 0 {
        0
    } else {
        rng.usize(0..max)
    };
    (0..len).map(|_| rng.u8(..)).collect()
}

/// A packet of up to four mbufs, some of them empty, some shared; and its bytes.
fn packet(rng: &mut Rng, set: &BufferSet, held: &mut Vec<Mbuf>) -> (Mbuf, Vec<u8>) {
    let lead = rng.usize(0..64);
    let mut m = received(set, &bytes(rng, 1449), lead);
    for _ in 0..rng.usize(0..4) {
        m.cat(received(set, &bytes(rng, 700), 0));
    }
    if rng.bool() {
        held.push(m.clone_packet(set).expect("mbufs"));
    }
    let bytes = m.to_vec();
    (m, bytes)
}

fn step(
    rng: &mut Rng,
    set: &BufferSet,
    rb: &mut RecordBuf,
    model: &mut Model,
    held: &mut Vec<Mbuf>,
) {
    match rng.u8(0..9) {
        0 | 1 => {
            let (mut m, bytes) = packet(rng, set, held);
            let eor = rng.bool();
            m.set_eor(eor);
            rb.append(m);
            model.append(&bytes, eor);
        }
        2 => {
            let (mut m, bytes) = packet(rng, set, held);
            let eor = rng.bool();
            m.set_eor(eor);
            rb.append_record(m);
            let mut record = Record {
                eor,
                ..Record::default()
            };
            record.push(Kind::Data, &bytes);
            model.0.push_back(record);
        }
        3 | 4 => with_address(rng, set, rb, model, held),
        5 | 6 => {
            let n = rng.usize(0..2500);
            let have = model.len();
            match rb.cut(n) {
                Ok(gone) => {
                    assert!(gone.is_none_or(|gone| gone.check().is_ok()));
                    model.cut(n);
                }
                Err(e) => {
                    assert_eq!(e, PastEnd { asked: n, have });
                    assert!(n > have);
                }
            }
        }
        7 => {
            let first = model.0.pop_front();
            if rng.bool() {
                assert_eq!(rb.drop_record(), first.is_some());
            } else {
                let taken = rb.take_record();
                let got = taken.map(|parts| {
                    let parts = [parts.address, parts.control, parts.data];
                    let parts = parts.iter().flatten().map(|part| part.pkt_len());
                    parts.sum::<usize>()
                });
                assert_eq!(got, first.map(|record| record.bytes.len()));
            }
        }
        _ => {
            held.pop();
        }
    }
}

fn with_address(
    rng: &mut Rng,
    set: &BufferSet,
    rb: &mut RecordBuf,
    model: &mut Model,
    held: &mut Vec<Mbuf>,
) {
    let address = bytes(rng, 30);
    let (control, said) = packet(rng, set, held);
    let (data, sent) = packet(rng, set, held);
    let mut record = Record::default();
    record.push(Kind::Address, &address);
    record.push(Kind::Control, &said);
    record.push(Kind::Data, &sent);
    let space = rb.space();
    let asked = record.bytes.len();
    match rb.append_address(&address, Some(data), Some(control), set) {
        Ok(()) => {
            assert!(asked as isize <= space);
            model.0.push_back(record);
        }
        Err(e) => assert_eq!(e, AppendError::NoSpace { asked, space }),
    }
}

#[test]
fn random_calls_keep_the_records_of_a_queue() {
    let set = BufferSet::bsd_builder(8192, 64).class(2048, 1024);
    let set = set.build().expect("pools");
    for seed in 0..80 {
        let _seed = Seed(seed);
        let mut rng = Rng::with_seed(seed);
        let mut rb = RecordBuf::new(rng.usize(3000..60_000));
        let (mut model, mut held) = (Model::default(), Vec::new());
        for _ in 0..250 {
            step(&mut rng, &set, &mut rb, &mut model, &mut held);
            held.truncate(20);
            assert_eq!((rb.len(), rb.data_len()), (model.len(), model.data_len()));
            assert_eq!(rb.nrecords(), model.0.len());
        }
        for (record, want) in rb.records().zip(&model.0) {
            let segs = record.segments();
            let got = segs.flat_map(|seg| seg.data().iter().map(move |&byte| (seg.kind(), byte)));
            assert!(got.eq(want.bytes.iter().copied()));
            assert_eq!(record.is_eor(), want.eor);
        }
        assert_eq!(rb.records().count(), model.0.len());
        drop((rb, held));
        assert!(set.is_full(), "leaks");
    }
}
