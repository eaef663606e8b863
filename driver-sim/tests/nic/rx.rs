//! Receive buffers as a NIC fills them.

use driver_sim::{RxFill, rx};
use mbuf::{AllocError, BufferSet, Packet, Storage};

use crate::support::set;

#[test]
fn each_frame_gets_a_header_mbuf_and_a_2_kb_cluster() {
    let set = set();
    let payload: Vec<u8> = (0..10_000).map(|i| (i % 253) as u8).collect();
    let chain = rx::cut(&payload, 1448, &set).unwrap();
    assert_eq!(chain.to_vec(), payload);
    assert_eq!((chain.nsegs(), chain.pkt_len()), (7, 10_000));
    for (i, segment) in chain.segments().enumerate() {
        assert_eq!(segment.len(), if i < 6 { 1448 } else { 10_000 - 6 * 1448 });
        assert_eq!(segment.storage(), Storage::Cluster { class: 2048 });
        assert!(segment.is_header());
    }
    let frames: Vec<Vec<u8>> = RxFill::default()
        .frames(&payload, &set)
        .map(|m| m.unwrap().to_vec())
        .collect();
    assert!(frames.iter().eq(payload.chunks(1448)));
}

#[test]
fn a_frame_longer_than_a_buffer_is_scattered() {
    let set = set();
    let fill = RxFill {
        mss: 9000,
        cluster: 2048,
        lead: 66,
    };
    let frame = fill.frame(&[3; 8948], &set).unwrap();
    let lengths: Vec<usize> = frame.segments().map(|s| s.len()).collect();
    assert_eq!(lengths, [1982, 2048, 2048, 2048, 822]);
    assert_eq!(frame.first().lead(), 66);
    let headers: Vec<bool> = frame.segments().map(|s| s.is_header()).collect();
    assert_eq!(headers, [true, false, false, false, false]);
}

#[test]
fn an_empty_payload_is_one_empty_frame_in_a_chain_and_none_as_frames() {
    let set = set();
    let chain = rx::cut(&[], 1448, &set).unwrap();
    assert_eq!((chain.nsegs(), chain.pkt_len()), (1, 0));
    assert_eq!(RxFill::default().frames(&[], &set).count(), 0);
}

#[test]
fn when_buffers_run_out_nothing_stays_allocated() {
    for clusters in 0..5 {
        for mbufs in 1..5 {
            let set = BufferSet::builder(mbufs)
                .class(2048, clusters.max(1))
                .build()
                .unwrap();
            let held = (clusters == 0).then(|| set.header_with(2048).unwrap());
            let used = set.in_use();
            let result = rx::cut(&[1; 5 * 1448], 1448, &set);
            assert!(matches!(result, Err(AllocError::Exhausted { .. })));
            assert_eq!(set.in_use(), used);
            let fill = RxFill {
                mss: 20_000,
                ..RxFill::default()
            };
            assert!(fill.chain(&[1; 5 * 2048], &set).is_err());
            assert_eq!(set.in_use(), used);
            let mut frames = RxFill::default().frames(&[1; 5 * 1448], &set);
            assert!(frames.by_ref().collect::<Result<Vec<_>, _>>().is_err());
            assert!(frames.next().is_none());
            drop(held);
            assert!(set.is_full());
        }
    }
}

#[test]
fn no_class_is_an_error_of_its_own() {
    let set = BufferSet::builder(8).class(2048, 2).build().unwrap();
    let fill = RxFill {
        cluster: 4096,
        ..RxFill::default()
    };
    assert!(matches!(
        fill.frame(&[1], &set),
        Err(AllocError::NoClass {
            asked: 4096,
            largest: 2048
        })
    ));
    assert!(set.is_full());
}
