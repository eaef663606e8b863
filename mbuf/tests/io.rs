//! Packets through `std::io`.

mod common;

use common::{assert_is, random_packet, uncached};
use fastrand::Rng;
use mbuf::{AllocError, BufferSet, Covered, Packet};
use mempool::backend::FailSwitch;
use std::io::{self, BufRead, IoSlice, Read, Write};

#[test]
fn a_reader_gives_the_bytes_whatever_is_asked_at_a_time() {
    let set = uncached();
    let mut rng = Rng::with_seed(1);
    for _ in 0..300 {
        let mut keep = Vec::new();
        let (m, model) = random_packet(&mut rng, &set, 8, &mut keep);
        let mut all = Vec::new();
        m.reader().read_to_end(&mut all).unwrap();
        assert!(all == model);
        let (mut reader, mut read) = (m.reader(), Vec::new());
        loop {
            assert_eq!(reader.left(), model.len() - read.len());
            let mut some = vec![0; rng.usize(1..200)];
            let n = reader.read(&mut some).unwrap();
            if n == 0 {
                break;
            }
            read.extend_from_slice(&some[..n]);
        }
        assert!(read == model);
        let (mut reader, mut at) = (m.reader(), 0);
        while !reader.fill_buf().unwrap().is_empty() {
            let n = rng.usize(0..=reader.fill_buf().unwrap().len());
            assert!(reader.fill_buf().unwrap()[..n] == model[at..at + n]);
            reader.consume(n);
            at += n;
        }
        assert_eq!((at, reader.left()), (model.len(), 0));
        reader.skip_bytes(usize::MAX);
        assert_eq!(reader.read(&mut [0; 4]).unwrap(), 0);
        assert!(
            matches!(m.reader().read_exact(&mut vec![0; model.len() + 1]), Err(e) if e.kind() == io::ErrorKind::UnexpectedEof)
        );
    }
}

#[test]
fn io_slices_cover_the_bytes_without_empty_ones() {
    let set = uncached();
    let mut rng = Rng::with_seed(2);
    for _ in 0..300 {
        let mut keep = Vec::new();
        let (m, model) = random_packet(&mut rng, &set, 8, &mut keep);
        let all: Vec<u8> = m.io_slices().flat_map(|s| s.to_vec()).collect();
        assert!(all == model && m.io_slices().all(|s| !s.is_empty()));
        let offset = rng.usize(0..=model.len() + 3);
        let mut out = [IoSlice::new(b"untouched"); 3];
        let Covered { slices, bytes } = m.fill_io_slices(offset, &mut out);
        let got: Vec<u8> = out[..slices].iter().flat_map(|s| s.to_vec()).collect();
        let rest = model.get(offset..).unwrap_or_default();
        assert!(got.len() == bytes && got == rest[..bytes]);
        assert!(slices == 3 || bytes == rest.len());
        assert!(out[slices..].iter().all(|s| **s == *b"untouched"));
    }
}

/// Takes a few bytes at a time, with interruptions, and fails when it has `room` bytes.
struct Narrow {
    got: Vec<u8>,
    room: usize,
    calls: usize,
}

impl Write for Narrow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.got.len() == self.room {
            return Ok(0);
        }
        let all = slices.iter().flat_map(|s| s.iter().copied());
        let n = (self.room - self.got.len()).min(37);
        let before = self.got.len();
        self.got.extend(all.take(n));
        Ok(self.got.len() - before)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn write_to_gathers_and_goes_on_after_short_writes() {
    let set = uncached();
    let mut rng = Rng::with_seed(3);
    for _ in 0..100 {
        let mut keep = Vec::new();
        let (m, model) = random_packet(&mut rng, &set, 30, &mut keep);
        let mut whole = Vec::new();
        m.write_to(&mut whole).unwrap();
        assert!(whole == model);
        for room in [model.len(), model.len().saturating_sub(1)] {
            let (got, calls) = (Vec::new(), 0);
            let mut narrow = Narrow { got, room, calls };
            let result = m.write_to(&mut narrow);
            assert!(narrow.got == model[..room]);
            let kind = result.map_err(|e| e.kind());
            let short = room < model.len();
            assert_eq!(
                kind,
                if short {
                    Err(io::ErrorKind::WriteZero)
                } else {
                    Ok(())
                }
            );
        }
    }
}

#[test]
fn a_writer_appends_what_was_written_in_pieces_of_any_size() {
    let set = uncached();
    let mut rng = Rng::with_seed(4);
    for _ in 0..300 {
        let mut keep = Vec::new();
        let (mut m, mut model) = random_packet(&mut rng, &set, 4, &mut keep);
        let mut writer = m.writer(Some(&set));
        for _ in 0..rng.usize(0..12) {
            let some: Vec<u8> = (0..rng.usize(0..700)).map(|_| rng.u8(..)).collect();
            writer.write_all(&some).unwrap();
            if rng.bool() {
                writer.flush().unwrap();
            }
            model.extend(some);
        }
        drop(writer);
        assert_is(&m, &model);
    }
    assert!(set.is_full());
}

#[test]
fn a_writer_without_a_set_ends_with_the_storage() {
    let set = uncached();
    let mut m = set.header().unwrap();
    assert_eq!(m.writer(None).write(&[1; 200]).unwrap(), 144);
    let error = m.writer(None).write_all(&[1]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WriteZero);
    assert_is(&m, &[1; 144]);
    let mut m = set.header_with(2048).unwrap();
    m.append(10).unwrap().fill(2);
    let copy = m.ref_copy(0, 10, &set).unwrap();
    assert_eq!(m.writer(None).write(&[1]).unwrap(), 0, "shared");
    assert_eq!(m.writer(Some(&set)).write(&[3]).unwrap(), 1);
    assert_is(&copy, &[2; 10]);
    assert_is(&m, &[[2; 10].as_slice(), &[3]].concat());
}

/// The k-th allocation fails, for every k: smaller segments take the bytes instead.
#[test]
fn a_writer_survives_the_failure_of_any_allocation() {
    let bytes: Vec<u8> = (0..150_000).map(|at| (at % 251) as u8).collect();
    let mut shapes = std::collections::HashSet::new();
    for k in 0..12 {
        let switch = FailSwitch::new();
        let set = BufferSet::bsd_builder(64, 8)
            .fail_switch(&switch)
            .build()
            .unwrap();
        let mut m = set.header().unwrap();
        switch.fail_at(k);
        m.writer(Some(&set)).write_all(&bytes).unwrap();
        switch.fail_at(0);
        assert_is(&m, &bytes);
        shapes.insert(m.nsegs());
        drop(m);
        assert!(set.is_full());
    }
    assert!(shapes.len() > 1, "some did fail: {shapes:?}");
}

#[test]
fn a_writer_that_finds_no_buffer_says_why_and_keeps_what_was_written() {
    let set = BufferSet::bsd_builder(4, 1)
        .configure(|b| b.cache(0))
        .build()
        .unwrap();
    let mut m = set.header().unwrap();
    let mut writer = m.writer(Some(&set));
    let error = writer.write_all(&[5; 500_000]).unwrap_err();
    assert!(
        error.get_ref().is_some_and(|e| e.is::<AllocError>()),
        "{error}"
    );
    let error = writer.write(&[6]).unwrap_err();
    assert!(
        error.get_ref().is_some_and(|e| e.is::<AllocError>()),
        "{error}"
    );
    assert_eq!(writer.write(&[]).unwrap(), 0);
    drop(writer);
    assert_eq!(m.nsegs(), 4);
    assert_is(&m, &vec![5; 144 + 65536 + 16384 + 8192]);
    drop(m);
    assert!(set.is_full());
}
