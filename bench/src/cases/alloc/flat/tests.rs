//! A variant that loses a packet, or does nothing, has no numbers.

use super::*;
use crate::cases::alloc::desk::MOST;
use mbuf::Mbuf;

/// As ours, but of every burst one packet is kept if `LOSE`, and nothing is done while it is timed
/// if `IDLE`.
struct Wrong<const LOSE: bool, const IDLE: bool>;

type Ours = Bulk<Direct>;

impl<const LOSE: bool, const IDLE: bool> Way for Wrong<LOSE, IDLE> {
    const NAME: &'static str = "wrong";

    fn get(desk: &mut Desk, call: usize) -> Result<(), AllocError> {
        if IDLE { Ok(()) } else { Ours::get(desk, call) }
    }

    fn packets(desk: &Desk, call: usize) -> impl Iterator<Item = &Mbuf> {
        Ours::packets(desk, call)
    }

    fn put(desk: &mut Desk, call: usize) {
        if LOSE {
            std::mem::forget(desk.slots(call)[0].take());
        }
        Ours::put(desk, call);
    }
}

fn round_of<W: Way>(pair: bool, burst: usize) -> Result<Sample, String> {
    let clock = Clock::calibrate();
    let mut cell = Flat::new(vec![variant::<W>(pair)], pair, burst, clock).expect("pools");
    (0..PLACEMENTS).try_fold(Sample::new(1.0), |_, placement| cell.round(0, placement))
}

#[test]
fn a_way_that_does_its_work_has_numbers() {
    for pair in [false, true] {
        for burst in [1, 8, MOST] {
            round_of::<Ours>(pair, burst).expect("ours");
            round_of::<Plain>(pair, burst).expect("plain");
            round_of::<Floor>(pair, burst).expect("floor");
        }
    }
}

#[test]
fn a_lost_packet_and_a_burst_that_was_never_there_are_found() {
    for pair in [false, true] {
        let lost = round_of::<Wrong<true, false>>(pair, 8).expect_err("leaks");
        assert!(lost.contains("not back in their pool"), "{lost}");
        let idle = round_of::<Wrong<false, true>>(pair, 8).expect_err("does nothing");
        assert!(idle.contains("not whole"), "{idle}");
    }
}

#[test]
fn work_that_is_done_only_when_it_is_looked_at_is_found() {
    let clock = Clock::calibrate();
    let mut cell = Flat::new(vec![variant::<Ours>(true)], true, 32, clock).expect("pools");
    cell.variants[0].copies = variant::<Wrong<false, true>>(true).copies;
    let idle = cell.round(0, 0).expect_err("the timed part does nothing");
    assert!(idle.contains("did not write"), "{idle}");
}
