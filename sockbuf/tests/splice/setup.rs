//! What is checked before two sockets are spliced, in order.

use std::time::Duration;

use sockbuf::splice::{End, SpliceError, SpliceOptions, SpliceState, Splicer};
use sockbuf::{Protocol, Socket};

use crate::wire::{limits, pair, pools};

struct Raw;

impl Protocol for Raw {
    fn can_splice(&self) -> bool {
        false
    }
}

const ANY: SpliceOptions = SpliceOptions {
    max: None,
    idle: None,
    gather: sockbuf::splice::Gather::Off,
};

/// Each has all the faults that come later, too.
#[test]
fn splice_setup_errors_come_in_order() {
    let set = pools();
    let splicer = Splicer::by_hand();
    let none = SpliceOptions {
        max: Some(0),
        ..ANY
    };
    let raw = Socket::new(&set, limits(1000), Raw);
    let source = Socket::new(&set, limits(1000), ());
    let drain = Socket::new(&set, limits(1000), ());
    drain.protocol_end().listening();
    for (from, to) in [(&raw, &drain), (&drain, &raw)] {
        assert_eq!(
            from.splice(to, none, &splicer),
            Err(SpliceError::Unsupported)
        );
    }
    let impossible = SpliceError::Impossible {
        max: Some(0),
        idle: None,
    };
    assert_eq!(source.splice(&drain, none, &splicer), Err(impossible));
    for (from, to) in [(&source, &drain), (&drain, &source)] {
        assert_eq!(from.splice(to, ANY, &splicer), Err(SpliceError::Listening));
    }
    let (drain, _far) = pair(&set);
    assert_eq!(
        source.splice(&drain, ANY, &splicer),
        Err(SpliceError::NotConnected)
    );
    let (source, _near) = pair(&set);
    assert_eq!(source.splice(&drain, ANY, &splicer), Ok(()));
    assert_eq!(
        source.splice(&drain, ANY, &splicer),
        Err(SpliceError::SourceBusy)
    );
    let (other, _near) = pair(&set);
    assert_eq!(
        other.splice(&drain, ANY, &splicer),
        Err(SpliceError::DrainBusy)
    );
    assert_eq!(other.splice_state(), SpliceState::default(), "unchanged");
    assert_eq!(other.unsplice(), Err(SpliceError::NotSpliced));
    assert_eq!(source.unsplice(), Ok(0));
    assert_eq!(source.unsplice(), Err(SpliceError::NotSpliced));
    assert_eq!(source.splice_state().end, Some(End::Unspliced));
    assert_eq!(
        other.splice(&drain, ANY, &splicer),
        Ok(()),
        "the drain is free again"
    );
}

#[test]
fn splice_no_time_to_be_idle_is_refused() {
    let set = pools();
    let (source, _near) = pair(&set);
    let options = SpliceOptions {
        idle: Some(Duration::ZERO),
        ..ANY
    };
    let refused = source.splice(&source, options, &Splicer::by_hand());
    assert!(matches!(refused, Err(SpliceError::Impossible { .. })));
}

#[test]
fn splice_ends_with_its_splicer() {
    let set = pools();
    let ((source, _near), (drain, _far)) = (pair(&set), pair(&set));
    let splicer = Splicer::spawn().unwrap();
    source.splice(&drain, ANY, &splicer).unwrap();
    assert_eq!(splicer.active(), 1);
    drop(splicer);
    assert_eq!(source.splice_state().end, Some(End::Unspliced));
    source.splice(&drain, ANY, &Splicer::by_hand()).unwrap();
    assert!(
        !source.splice_state().active,
        "and so with one that is gone at once"
    );
}
