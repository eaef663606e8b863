//! Limits: reserve, user sizes, low-water marks, low memory, sizing by traffic.

use mbuf::{BufferSet, Mbuf};
use mempool::Budget;
use sockbuf::{
    Held, Pressure, RECEIVE_STEP, SB_MAX, Side, SizeError, Sizing, SockBuf, reserve_both,
};

use crate::common::pools;

/// Mbufs and no clusters: each is one percent of the memory.
struct Memory {
    set: BufferSet,
    held: Vec<Mbuf>,
    pressure: Pressure,
}

impl Memory {
    fn new() -> Self {
        let set = BufferSet::builder(100).configure(|pool| pool.cache(0));
        let set = set.build().expect("pool");
        let pressure = Pressure::of_set(&set);
        Memory {
            set,
            held: Vec::new(),
            pressure,
        }
    }

    fn used(&mut self, percent: usize) -> &Pressure {
        self.held.truncate(percent);
        while self.held.len() < percent {
            self.held.push(self.set.plain().expect("left"));
        }
        assert_eq!(self.pressure.percent(), percent as u64);
        &self.pressure
    }
}

fn impossible(asked: usize) -> Result<(), SizeError> {
    Err(SizeError::Impossible { asked, max: SB_MAX })
}

#[test]
fn sb_reserve_refuses_0_and_more_than_the_maximum() {
    let mut side = Side::receiving(5000);
    let before = side;
    for asked in [0, SB_MAX + 1, usize::MAX] {
        assert_eq!(side.reserve(asked), impossible(asked));
        assert_eq!(side, before);
    }
    for asked in [1, SB_MAX] {
        side.reserve(asked).expect("possible");
        assert_eq!(side.hiwat(), asked);
    }
}

#[test]
fn sb_reserve_allows_storage_by_factor_and_192_kb_at_least() {
    let mut side = Side::receiving(1);
    for (bytes, storage) in [
        (1, 196_608),
        (24_576, 196_608),
        (24_577, 196_616),
        (SB_MAX, 16 << 20),
    ] {
        side.reserve(bytes).expect("possible");
        assert_eq!(side.mbmax(), storage);
    }
    side.set_storage_factor(2);
    side.reserve(SB_MAX).expect("possible");
    assert_eq!(side.mbmax(), 2 * SB_MAX);
}

#[test]
fn sb_reserve_below_the_content_is_legal_and_space_is_negative() {
    let set = pools();
    let mut sb = SockBuf::new(10_000);
    sb.write(&[1; 8000], &set).expect("space");
    sb.side_mut().reserve(3000).expect("possible");
    assert_eq!((sb.len(), sb.space()), (8000, -5000));
    sb.drop_front(5001).expect("read");
    assert_eq!(sb.space(), 1);
}

#[test]
fn sb_reserve_clamps_the_low_water_mark() {
    let mut side = Side::sending(65536);
    assert_eq!(side.lowat(), 2048);
    side.reserve(100).expect("possible");
    assert_eq!(side.lowat(), 100);
    side.reserve(65536).expect("possible");
    assert_eq!(side.lowat(), 100, "it does not come back by itself");
}

#[test]
fn sb_soreserve_defaults_and_undoes_the_first_when_the_second_fails() {
    let (mut send, mut receive) = (Side::default(), Side::default());
    for bad in [0, SB_MAX + 1] {
        assert_eq!(
            reserve_both((&mut send, 4096), (&mut receive, bad)),
            impossible(bad)
        );
        assert_eq!(
            reserve_both((&mut send, bad), (&mut receive, 4096)),
            impossible(bad)
        );
        assert_eq!((send, receive), (Side::default(), Side::default()));
    }
    reserve_both((&mut send, 4096), (&mut receive, 9000)).expect("both possible");
    assert_eq!((send.hiwat(), send.wat(), send.lowat()), (4096, 4096, 2048));
    assert_eq!(
        (receive.hiwat(), receive.wat(), receive.lowat()),
        (9000, 9000, 1)
    );
    reserve_both((&mut send, 1000), (&mut receive, 1)).expect("both possible");
    assert_eq!((send.lowat(), receive.lowat()), (1000, 1));
}

#[test]
fn sb_checklowmem_has_hysteresis() {
    let mut memory = Memory::new();
    let steps = [
        (0, false),
        (80, false),
        (81, true),
        (70, true),
        (60, true),
        (59, false),
        (80, false),
        (100, true),
    ];
    for (percent, low) in steps {
        assert_eq!(memory.used(percent).is_low(), low, "{percent} %");
    }
    assert!(memory.used(95).admits());
    assert!(!memory.used(96).admits());
}

#[test]
fn sb_checklowmem_goes_by_a_budget_where_pools_share_one() {
    let budget = Budget::new(1 << 20).expect("limit");
    let shared = budget.clone();
    let set = BufferSet::bsd_builder(64, 16)
        .configure(move |pool| pool.cache(0).budget(&shared))
        .build()
        .expect("pools");
    let memory = Pressure::of_budget(&budget);
    let mut held = Vec::new();
    while let Ok(m) = set.header_with(65536) {
        held.push(m);
    }
    assert!(memory.is_low() && memory.clone().is_low(), "{memory:?}");
    held.truncate(10);
    assert!(memory.is_low(), "{memory:?}");
    held.truncate(8);
    assert!(!memory.is_low(), "{memory:?}");
}

#[test]
fn sb_checkreserve_refuses_growth_beyond_the_usual_while_memory_is_low() {
    let mut memory = Memory::new();
    let refused = |asked| Err(SizeError::LowMemory { asked, usual: 5000 });
    assert_eq!(Side::check_reserve(5001, 5000, memory.used(80)), Ok(()));
    let low = memory.used(81);
    assert_eq!(Side::check_reserve(5001, 5000, low), refused(5001));
    assert_eq!(Side::check_reserve(5000, 5000, low), Ok(()));
}

#[test]
fn sb_setsize_takes_less_than_1_as_1_and_sets_both_sizes() {
    let mut memory = Memory::new();
    let mut side = Side::sending(5000);
    for (asked, got) in [(0, 1), (-1, 1), (i64::MIN, 1), (7000, 7000)] {
        side.set_size(asked, memory.used(0)).expect("possible");
        assert_eq!((side.hiwat(), side.wat()), (got, got));
    }
    let before = side;
    assert_eq!(side.set_size(3 << 20, memory.used(0)), impossible(3 << 20));
    assert!(side.set_size(i64::MAX, memory.used(0)).is_err());
    let asked = 7001;
    let refused = Err(SizeError::LowMemory { asked, usual: 7000 });
    assert_eq!(side.set_size(7001, memory.used(90)), refused);
    assert_eq!(side, before);
    side.set_size(6000, memory.used(90)).expect("smaller");
    side.shut_down();
    assert_eq!(
        side.set_size(-3, memory.used(0)),
        Err(SizeError::Shut { asked: 1 })
    );
    assert_eq!((side.hiwat(), side.is_shut()), (6000, true));
}

#[test]
fn sb_lowat_is_clamped_to_1_and_the_limit() {
    let mut side = Side::receiving(5000);
    for (asked, got) in [
        (-5, 1),
        (0, 1),
        (1, 1),
        (5000, 5000),
        (5001, 5000),
        (i64::MAX, 5000),
    ] {
        side.set_lowat(asked);
        assert_eq!(side.lowat(), got);
    }
}

#[test]
fn sb_sndspace_follows_what_is_in_flight() {
    let mut memory = Memory::new();
    let mut side = Side::sending(16384);
    let mut fit = |side: &mut Side, held, in_flight, percent| {
        let memory = memory.used(percent);
        let sizing = Sizing {
            usual: 16384,
            segment: 1000,
            memory,
        };
        side.fit_sending(held, in_flight, sizing)
    };
    let none = Held::default();
    assert_eq!(
        fit(&mut side, none, 30_000, 0),
        47_000,
        "rounded up to segments"
    );
    assert_eq!(
        (side.hiwat(), side.wat(), side.mbmax()),
        (47_000, 16384, 376_000)
    );
    assert_eq!(fit(&mut side, none, 5000, 0), 22_000, "it shrinks too");
    assert_eq!(
        fit(&mut side, none, usize::MAX, 0),
        SB_MAX,
        "and has an end"
    );
    assert_eq!(
        fit(&mut side, none, 1 << 20, 90),
        17_000,
        "memory is low: the usual"
    );
    assert_eq!(fit(&mut side, none, 1 << 20, 70), 17_000, "still low");

    // A writable buffer stays writable, by bytes and by storage.
    fit(&mut side, none, 80_000, 0);
    let held = Held {
        bytes: 60_000,
        storage: 90_000,
    };
    assert_eq!(fit(&mut side, held, 0, 0), 63_000);
    assert!(side.space(held) >= 2048);
    fit(&mut side, none, 80_000, 0);
    let held = Held {
        bytes: 10_000,
        storage: 500_000,
    };
    assert_eq!(fit(&mut side, held, 0, 0), 63_000, "(500,000 + 2048) / 8");
    assert!(side.space(held) >= 2048);
    // One that is not is fitted all the same.
    let held = Held {
        bytes: 62_000,
        storage: 90_000,
    };
    assert!(side.space(held) < 2048);
    assert_eq!(fit(&mut side, held, 0, 0), 17_000);
}

#[test]
fn sb_sndspace_keeps_the_size_that_a_user_set() {
    let mut memory = Memory::new();
    let memory = memory.used(0);
    let mut side = Side::sending(16384);
    side.set_size(30_000, memory).expect("possible");
    let sizing = Sizing {
        usual: 16384,
        segment: 1000,
        memory,
    };
    assert_eq!(side.fit_sending(Held::default(), 1 << 20, sizing), 30_000);
    assert_eq!(side.fit_receiving(30_000, sizing), 30_000);
}

#[test]
fn sb_rcvspace_grows_by_a_step_when_seven_eighths_arrived() {
    let mut memory = Memory::new();
    let mut side = Side::receiving(16384);
    let mut fit = |side: &mut Side, arrived, percent| {
        let memory = memory.used(percent);
        let sizing = Sizing {
            usual: 16384,
            segment: 1448,
            memory,
        };
        side.fit_receiving(arrived, sizing)
    };
    assert_eq!(fit(&mut side, 14336, 0), 16384, "exactly 7/8 is not more");
    let grown = (16384 + RECEIVE_STEP).next_multiple_of(1448);
    assert_eq!(fit(&mut side, 14337, 0), grown);
    assert_eq!(fit(&mut side, 0, 0), grown, "it does not shrink by itself");
    for _ in 0..200 {
        let arrived = side.hiwat();
        fit(&mut side, arrived, 0);
    }
    assert_eq!(side.hiwat(), SB_MAX);
    assert_eq!(
        fit(&mut side, SB_MAX, 81),
        17376,
        "memory is low: the usual"
    );
    side.set_lowat(17_000);
    assert_eq!(
        fit(&mut side, 0, 81),
        17376,
        "a readable buffer stays readable"
    );
}
