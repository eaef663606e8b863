//! Finding an offset: how many mbufs are passed over, and that it is the right byte.

mod common;

use common::{content, received};
use mbuf::{BufferSet, Packet};
use sockbuf::SockBuf;

const MSS: usize = 1448;

fn many() -> BufferSet {
    BufferSet::bsd_builder(24_000, 8)
        .class(2048, 10_100)
        .build()
        .expect("pools")
}

/// A send buffer of `n` mbufs of one MSS each.
fn filled(set: &BufferSet, n: usize) -> SockBuf {
    let mut sb = SockBuf::new(64 << 20);
    for i in 0..n {
        sb.append_stream(received(set, &[i as u8; MSS], 0));
    }
    sb
}

/// Most mbufs passed over while the buffer is sent MSS by MSS, from `from` on.
fn steps(sb: &SockBuf, set: &BufferSet, from: usize) -> usize {
    let mut most = 0;
    for off in (from..sb.len()).step_by(MSS) {
        most = most.max(sb.steps_to(off).expect("inside"));
        drop(
            sb.ref_copy(off, MSS.min(sb.len() - off), set)
                .expect("copy"),
        );
    }
    most
}

#[test]
fn sb_sndptr_costs_the_same_for_10_and_10000_mbufs() {
    let set = many();
    for n in [10, 100, 1000, 10_000] {
        let sb = filled(&set, n);
        assert_eq!(
            sb.steps_to((n - 1) * MSS),
            Some(n - 1),
            "unread: from the head"
        );
        let aligned = steps(&sb, &set, 0);
        let again = steps(&sb, &set, 0);
        let odd = steps(&sb, &set, 700);
        println!("{n} mbufs: passed over at most {aligned}, again {again}, at odd offsets {odd}");
        assert!(aligned <= 1 && again <= 1 && odd <= 1);
    }
}

#[test]
fn sb_sndptr_is_kept_while_lost_data_is_sent_again() {
    let set = many();
    let sb = filled(&set, 10_000);
    let sent = 9_000;
    for i in 0..sent {
        drop(sb.ref_copy(i * MSS, MSS, &set).expect("new data"));
    }
    for (lost, new) in (1000..2000).zip(sent..) {
        if lost > 1000 {
            assert!(
                sb.steps_to(lost * MSS) <= Some(1),
                "again, one behind the other"
            );
        }
        let again = sb.ref_copy(lost * MSS, MSS, &set).expect("lost data");
        assert_eq!(again.to_vec(), [lost as u8; MSS]);
        assert!(sb.steps_to(new * MSS) <= Some(1), "new data has its place");
        drop(sb.ref_copy(new * MSS, MSS, &set).expect("new data"));
    }
    // The head, as after a timeout: found at once, and nothing is forgotten for it.
    drop(sb.ref_copy(0, MSS, &set).expect("head"));
    assert!(sb.steps_to((sent + 999) * MSS) <= Some(1));
}

#[test]
fn sb_sndptr_survives_drops_in_front_of_it() {
    let set = many();
    let mut sb = filled(&set, 1000);
    for _ in 0..500 {
        drop(sb.ref_copy(400 * MSS, MSS, &set).expect("copy"));
        sb.drop_front(MSS).expect("acknowledged");
        let at = sb.steps_to(400 * MSS - 1);
        assert!(at <= Some(1), "{at:?} mbufs passed over");
        sb.append_stream(received(&set, &[1; MSS], 0));
    }
    // Within the marked mbuf, up to its end, and beyond.
    drop(sb.ref_copy(10 * MSS, 1, &set).expect("copy"));
    sb.drop_front(10 * MSS + 100).expect("acknowledged");
    assert_eq!(sb.steps_to(MSS - 100), Some(1));
    sb.drop_front(500 * MSS).expect("acknowledged");
    assert_eq!(sb.steps_to(0), Some(0));
    assert_eq!(sb.len(), 489 * MSS + MSS - 100);
    drop(sb.take_all());
    sb.write(b"anew", &set).expect("space");
    assert_eq!((sb.steps_to(3), sb.steps_to(4)), (Some(0), None));
    drop(sb);
    assert!(set.is_full());
}

#[test]
fn sb_sndptr_is_right_when_the_tail_it_stands_in_grows() {
    let set = many();
    let mut sb = SockBuf::new(65536);
    let mut sent = 0;
    for round in 0..2000_usize {
        sb.write(&[round as u8; 7], &set).expect("space");
        let mut got = [0; 7];
        sb.copy_to(sent, &mut got).expect("inside");
        assert_eq!(got, [round as u8; 7]);
        assert!(sb.steps_to(sent) <= Some(1));
        sent += 7;
    }
    assert_eq!(content(&sb).len(), sent);
}
