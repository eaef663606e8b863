//! A way that loses what it works on, or does nothing, has no numbers.

use super::*;
use mbuf::Mbuf;

/// A desk with one packet between two rounds.
struct One {
    set: BufferSet,
    packet: Option<Mbuf>,
    seen: bool,
}

impl One {
    fn new() -> Result<Self, Fault> {
        let set = BufferSet::bsd(64, 2)?;
        Ok(One {
            packet: Some(set.header()?),
            set,
            seen: false,
        })
    }
}

impl Desk for One {
    fn set(&self) -> &BufferSet {
        &self.set
    }

    fn resting(&self) -> usize {
        1
    }

    fn into_set(self) -> BufferSet {
        self.set
    }
}

/// Looks at the packet, or does not if `IDLE`; takes one more that is never freed if `LEAK`.
struct Look<const IDLE: bool, const LEAK: bool>;

impl<const IDLE: bool, const LEAK: bool> Way for Look<IDLE, LEAK> {
    type Desk = One;
    const NAME: &'static str = "look";

    fn prepare(desk: &mut One) -> Result<(), Fault> {
        desk.seen = false;
        Ok(())
    }

    fn pass(desk: &mut One) -> Result<(), Fault> {
        desk.seen = !IDLE && desk.packet.is_some();
        if LEAK {
            std::mem::forget(desk.set.header()?);
        }
        Ok(())
    }

    fn settle(desk: &mut One) -> Result<f64, Fault> {
        if !desk.seen {
            return Err("not looked at".into());
        }
        Ok(1.0)
    }
}

fn rounds_of<W: Way<Desk = One>>() -> Rounds<One> {
    Rounds::new(One::new, vec![variant::<W>()], 3, Clock::calibrate()).expect("pools")
}

#[test]
fn work_that_is_done_has_numbers_at_every_placement() {
    let mut rounds = rounds_of::<Look<false, false>>();
    for placement in 0..rounds.placements() {
        let sample = rounds.round(0, placement).expect("does its work");
        assert!(sample.value > 0.0);
    }
    rounds.finish().expect("all is back");
}

#[test]
fn work_that_is_not_done_and_an_mbuf_that_is_lost_are_found() {
    let idle = rounds_of::<Look<true, false>>().round(0, 0);
    assert_eq!(idle.expect_err("does nothing"), "look: not looked at");
    let mut leaking = rounds_of::<Look<false, true>>();
    let lost = leaking.round(0, 0).expect_err("loses three");
    assert!(lost.contains("4 mbufs and clusters are out"), "{lost}");
    let lost = leaking.finish().expect_err("they are still lost");
    assert!(lost.contains("3 mbufs"), "{lost}");
}
