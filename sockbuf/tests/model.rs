//! A socket buffer against a queue of bytes.

mod common;

use std::collections::VecDeque;

use common::{Seed, content, pools, received};
use mbuf::{BufferSet, Mbuf, Packet};
use sockbuf::{PastEnd, SockBuf, WriteError, splice};

/// One random call on the buffer and its model.
fn step(
    rng: &mut fastrand::Rng,
    sb: &mut SockBuf,
    model: &mut VecDeque<u8>,
    set: &BufferSet,
    held: &mut Vec<Mbuf>,
) {
    match rng.u8(0..10) {
        0 | 1 => {
            let data: Vec<u8> = (0..rng.usize(0..6000)).map(|_| rng.u8(..)).collect();
            match sb.write(&data, set) {
                Ok(n) => model.extend(&data[..n]),
                Err(WriteError::Full { queued, space }) => {
                    assert!(space <= 0 && queued == model.len())
                }
                Err(WriteError::Alloc(e)) => panic!("pools are large enough: {e}"),
            }
        }
        2 | 3 => {
            let mut packet = received(set, &[], rng.usize(0..64));
            for _ in 0..rng.usize(0..4) {
                let bytes: Vec<u8> = (0..rng.usize(0..1449)).map(|_| rng.u8(..)).collect();
                packet.cat(received(set, &bytes, rng.usize(0..64)));
            }
            let (bytes, segs, space) = (packet.to_vec(), packet.nsegs(), sb.space());
            match rng.u8(0..3) {
                0 => sb.append_stream(packet),
                1 => sb.append_packed(packet),
                _ => {
                    let rest = sb.append_some(packet, set).map_or(0, |rest| rest.pkt_len());
                    let fits = usize::try_from(space).unwrap_or(0);
                    assert_eq!(rest, bytes.len().saturating_sub(fits), "{segs} mbufs");
                    return model.extend(&bytes[..bytes.len() - rest]);
                }
            }
            model.extend(bytes);
        }
        4 | 5 => {
            let n = rng.usize(0..4000);
            match sb.cut(n) {
                Ok(gone) => {
                    model.drain(..n);
                    drop(gone);
                }
                Err(e) => assert_eq!(
                    e,
                    PastEnd {
                        asked: n,
                        have: model.len()
                    }
                ),
            }
        }
        6 => {
            let off = rng.usize(0..model.len() + 2);
            let len = rng.usize(0..5000);
            match sb.ref_copy(off, len, set) {
                Ok(copy) => {
                    let want: Vec<u8> = model.range(off..off + len).copied().collect();
                    assert_eq!(copy.to_vec(), want);
                    held.push(copy);
                }
                Err(_) => assert!(off + len > model.len()),
            }
        }
        7 => {
            let off = rng.usize(0..model.len() + 2);
            let found = sb.seek(off).map(|(seg, at)| seg.data()[at]);
            assert_eq!(found, model.get(off).copied());
        }
        8 => {
            let off = rng.usize(0..=model.len());
            let mut some = vec![0; rng.usize(0..=(model.len() - off).min(3000))];
            sb.copy_to(off, &mut some).expect("inside");
            assert!(some.iter().eq(model.range(off..off + some.len())));
        }
        _ => {
            held.pop();
        }
    }
    sb.check("model");
    assert_eq!(sb.len(), model.len());
}

#[test]
fn random_calls_keep_the_bytes_of_a_queue() {
    let set = pools();
    for seed in 0..60 {
        let _seed = Seed(seed);
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut sb = SockBuf::new(rng.usize(1000..50_000));
        let mut model = VecDeque::new();
        let mut held = Vec::new();
        for _ in 0..300 {
            step(&mut rng, &mut sb, &mut model, &set, &mut held);
            held.truncate(20);
            let mut tail = vec![0; model.len().min(100)];
            sb.copy_to(model.len() - tail.len(), &mut tail)
                .expect("inside");
            assert!(tail.iter().eq(model.range(model.len() - tail.len()..)));
        }
        assert!(content(&sb).iter().eq(model.iter()));
        drop((sb, held));
        assert!(set.is_full(), "leaks");
    }
}

#[test]
fn drop_past_the_end_changes_nothing() {
    let set = pools();
    let mut sb = SockBuf::new(65536);
    sb.write(&[9; 1536], &set).expect("space");
    let before = (sb.len(), sb.charge(), sb.segs());
    assert_eq!(
        sb.drop_front(2560),
        Err(PastEnd {
            asked: 2560,
            have: 1536
        })
    );
    assert_eq!((sb.len(), sb.charge(), sb.segs()), before);
    sb.drop_front(0).expect("0 is allowed");
    sb.drop_front(1536).expect("all of it");
    assert_eq!((sb.len(), sb.charge(), sb.segs()), (0, 0, 0));
}

#[test]
fn fault_b3_reading_at_the_end() {
    let set = pools();
    let mut sb = SockBuf::new(65536);
    sb.write(&[3; 100], &set).expect("space");
    assert!(sb.copy_to(100, &mut [0]).is_err());
    assert!(sb.copy_to(100, &mut []).is_ok());
    let mut last = [0];
    sb.copy_to(99, &mut last).expect("one byte");
    assert_eq!(last, [3]);
    assert!(sb.copy_to(usize::MAX, &mut [0]).is_err());
}

#[test]
fn fault_a3_split_inside_the_second_mbuf() {
    let set = pools();
    let mut sb = SockBuf::new(65536);
    for byte in 1..=3 {
        sb.append_stream(received(&set, &[byte; 1000], 0));
    }
    let gone = sb.cut(1500).expect("inside").expect("one whole mbuf");
    assert_eq!((gone.pkt_len(), gone.nsegs()), (1000, 1));
    sb.check("after the cut");
    assert_eq!(
        (sb.len(), sb.segs(), sb.charge()),
        (1500, 2, 2 * (256 + 2048))
    );
    assert_eq!(content(&sb)[..500], [2; 500]);
}

#[test]
fn small_writes_share_their_storage() {
    let set = pools();
    let mut sb = SockBuf::new(65536);
    let mut written = 0;
    while let Ok(n) = sb.write(&[1; 200], &set) {
        written += n;
    }
    assert_eq!(
        written, 65536,
        "the byte limit is reached before the storage limit"
    );
    assert!(
        sb.charge() <= 65536 * 5 / 4,
        "{} bytes of storage",
        sb.charge()
    );
}

#[test]
fn storage_limit_blocks_before_the_byte_limit() {
    let set = pools();
    let mut sb = SockBuf::with_limits(65536, 10_000);
    for _ in 0..4 {
        sb.append_stream(received(&set, &[0; 60], 0));
        sb.append_stream(received(&set, &[0; 200], 0));
    }
    assert_eq!(sb.charge(), 4 * (256 + 256 + 2048));
    assert_eq!(sb.space(), 10_000 - 4 * 2560);
    let space = sb.space();
    assert!(space < 0);
    assert_eq!(
        sb.write(&[1], &set),
        Err(WriteError::Full {
            queued: 1040,
            space
        })
    );
    assert_eq!(sb.write(&[], &set), Ok(0));
    sb.set_limits(100, usize::MAX);
    assert_eq!(sb.space(), 100 - 1040);
}

#[test]
fn tail_that_is_in_flight_is_not_written_into() {
    let set = pools();
    let mut sb = SockBuf::new(65536);
    sb.write(&[1; 1000], &set).expect("space");
    let sent = sb.ref_copy(0, 1000, &set).expect("copy");
    sb.write(&[2; 10], &set).expect("space");
    assert_eq!((sb.segs(), sent.to_vec()), (2, vec![1; 1000]));
    drop(sent);
    sb.write(&[3; 10], &set).expect("space");
    assert_eq!(sb.segs(), 2, "the second mbuf's tail room is used");
}

#[test]
fn splice_moves_whole_mbufs_up_to_the_drains_space() {
    let set = pools();
    let (mut from, mut to) = (SockBuf::new(1 << 20), SockBuf::new(10_000));
    for byte in 0..20 {
        from.append_stream(received(&set, &[byte; 1448], 0));
    }
    let in_use = set.in_use();
    assert_eq!(splice::move_whole(&mut from, &mut to, usize::MAX), 6 * 1448);
    assert_eq!(
        splice::move_whole(&mut from, &mut to, usize::MAX),
        0,
        "1312 left, the next has 1448"
    );
    to.drop_front(2000).expect("acknowledged");
    assert_eq!(
        splice::move_whole(&mut from, &mut to, 1447),
        0,
        "max inside an mbuf"
    );
    assert_eq!(splice::move_whole(&mut from, &mut to, 1448), 1448);
    assert_eq!(to.len() + from.len(), 20 * 1448 - 2000);
    assert_eq!(
        content(&to)[..],
        [
            vec![1; 896],
            vec![2; 1448],
            vec![3; 1448],
            vec![4; 1448],
            vec![5; 1448],
            vec![6; 1448]
        ]
        .concat()
    );
    assert!(set.in_use() < in_use, "nothing was allocated");
    assert_eq!(
        splice::move_whole(&mut SockBuf::new(10), &mut to, usize::MAX),
        0
    );
}
