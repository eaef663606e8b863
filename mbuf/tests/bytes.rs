//! Packets as `bytes` sees them.
#![cfg(feature = "bytes")]

mod common;

use bytes::{Buf, BufMut, Bytes};
use common::{assert_is, random_packet, uncached};
use fastrand::Rng;
use mbuf::Packet;
use std::io::IoSlice;

#[test]
fn a_reader_is_a_buf_over_the_chain() {
    let set = uncached();
    let mut rng = Rng::with_seed(1);
    for _ in 0..300 {
        let mut keep = Vec::new();
        let (m, model) = random_packet(&mut rng, &set, 8, &mut keep);
        let (mut ours, mut theirs) = (m.reader(), &model[..]);
        while theirs.has_remaining() {
            assert_eq!(ours.remaining(), theirs.remaining());
            let n = rng.usize(0..=theirs.remaining().min(90));
            match rng.u8(0..4) {
                0 if n >= 8 => assert_eq!(ours.get_u64(), theirs.get_u64()),
                1 => assert_eq!(ours.copy_to_bytes(n), theirs.copy_to_bytes(n)),
                2 => {
                    ours.advance(n);
                    theirs.advance(n);
                }
                _ => {
                    let mut slices = [IoSlice::new(&[]); 20];
                    let filled = ours.chunks_vectored(&mut slices);
                    let all: Vec<u8> = slices[..filled].iter().flat_map(|s| s.to_vec()).collect();
                    assert!(all == theirs);
                }
            }
        }
        assert!(!ours.has_remaining() && ours.chunk().is_empty());
    }
}

#[test]
#[should_panic(expected = "advanced 6 of 5 bytes")]
fn advancing_past_the_end_panics_as_the_trait_has_it() {
    let mut m = uncached().header().unwrap();
    m.append(5).unwrap();
    m.reader().advance(6);
}

#[test]
fn tailroom_is_a_buf_mut() {
    let set = uncached();
    let mut rng = Rng::with_seed(2);
    for _ in 0..300 {
        let mut keep = Vec::new();
        let (mut m, mut model) = random_packet(&mut rng, &set, 4, &mut keep);
        let room = m.segments().last().unwrap().tailroom();
        let mut tail = m.tail_buf();
        assert_eq!(tail.remaining_mut(), room);
        let mut left = room;
        while left > 0 && rng.u8(0..5) > 0 {
            let some: Vec<u8> = (0..rng.usize(0..=left.min(99)))
                .map(|_| rng.u8(..))
                .collect();
            tail.put_slice(&some);
            left -= some.len();
            assert_eq!((tail.remaining_mut(), tail.chunk_mut().len()), (left, left));
            model.extend(some);
        }
        drop(tail);
        assert_is(&m, &model);
        assert_eq!(m.segments().last().unwrap().tailroom(), left);
    }
}

#[test]
fn shared_storage_has_no_tailroom_to_lend() {
    let set = uncached();
    let mut m = set.header_with(2048).unwrap();
    m.append(10).unwrap().fill(1);
    let copy = m.ref_copy(0, 10, &set).unwrap();
    assert_eq!(m.tail_buf().remaining_mut(), 0);
    assert_is(&m, &copy.to_vec());
}

#[test]
fn bytes_of_a_shared_packet_are_not_copied_and_keep_it_alive() {
    let set = uncached();
    let mut rng = Rng::with_seed(3);
    for _ in 0..100 {
        let mut keep = Vec::new();
        let (m, model) = random_packet(&mut rng, &set, 6, &mut keep);
        let places: Vec<_> = m.segments().map(|s| s.data().as_ptr()).collect();
        let shared = m.into_shared();
        let pieces: Vec<Bytes> = shared.to_bytes().collect();
        drop(shared);
        for (piece, place) in pieces.iter().zip(places) {
            assert!(piece.is_empty() || piece.as_ptr() == place, "copied");
        }
        let last = pieces.last().unwrap().clone();
        let there = std::thread::spawn(move || last.slice(..).to_vec())
            .join()
            .unwrap();
        assert!(pieces.concat() == model && model.ends_with(&there));
        drop(pieces);
        drop(keep);
        assert!(set.is_full());
    }
}
