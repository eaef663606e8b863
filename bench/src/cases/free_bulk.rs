//! `free-bulk`: what it costs to free a burst, by strategy; and the pair of allocating and freeing,
//! since cost can hide on either side.
//!
//! *Hot* bursts are freed right after they were allocated. *Cold* ones come from a pool whose
//! headers are far more than the caches hold, in random order: on pages as the system gives them, where
//! most of the time goes into finding them, and (*cold-2m*) on pages of 2 MB, reserved or transparent.

mod cold;
mod crowd;
pub(super) mod floor;
mod hot;
mod shape;
mod stock;

use crate::cell::{CellSpec, Group, Needs, Params};
use mbuf::{FreeStrategy, Packet};
pub(super) use shape::ROOM;
pub(crate) use shape::Shape;

const BURSTS: [usize; 5] = [8, 32, 64, 128, 256];

/// The cells of the group.
pub(crate) fn group() -> Group {
    let mut cells = Vec::new();
    for heat in ["hot", "cold", "cold-2m", "pair"] {
        for shape in Shape::ALL {
            // A burst of eight has one block of eight: that is the flat shape.
            let bursts = BURSTS.iter().filter(|&&b| b > 8 || shape != Shape::Blocks);
            cells.extend(bursts.map(|&burst| cell(shape, heat, burst)));
        }
    }
    for shape in Shape::RARE {
        // A mixture has one of everything in 32 slots.
        let bursts = BURSTS.iter().filter(|&&b| b > 8 || shape != Shape::Mixed);
        cells.extend(bursts.map(|&burst| cell(shape, "hot", burst)));
    }
    cells.extend(BURSTS.map(crowd::cell));
    let absent = super::alloc::beside_dpdk("free-bulk", &mut cells);
    Group {
        name: "free-bulk",
        question: "What does it cost to free a burst of packets?",
        cells,
        absent,
    }
}

/// A quick run has the rarer shapes at one burst, and large pages for flat bursts.
fn quick(shape: Shape, heat: &str, burst: usize) -> bool {
    match heat {
        "cold-2m" => shape == Shape::Flat,
        _ => burst == 32 || Shape::ALL.contains(&shape),
    }
}

fn cell(shape: Shape, heat: &'static str, burst: usize) -> CellSpec {
    CellSpec {
        id: format!("free-bulk/{}/{heat}/burst={burst}", shape.name()),
        group: "free-bulk",
        params: Params::new()
            .with("shape", shape.name())
            .with("heat", heat)
            .with("burst", burst),
        unit: "ns/mbuf",
        lower_is_better: true,
        baseline: "staged",
        needs: if quick(shape, heat, burst) {
            Needs::ONE_CPU
        } else {
            Needs::ONE_CPU.full_only()
        },
        build: Box::new(move |env| match heat {
            "cold" => cold::build(shape, burst, false, env),
            "cold-2m" => cold::build(shape, burst, true, env),
            _ => hot::build(shape, burst, heat == "pair", env),
        }),
    }
}

/// A way to free a burst, inlined into each placed copy.
#[allow(unsafe_code)] // the floors believe what they are told about the burst
pub(super) trait Free {
    /// # Safety
    /// A floor's burst has the shape that the floor is for, and its pools outlive the call.
    unsafe fn free<P: Packet>(slots: &mut [Option<P>]);
}

macro_rules! strategies {
    ($($name:ident),*) => {$(
        pub(super) struct $name;
        #[allow(unsafe_code)]
        impl Free for $name {
            #[inline(always)]
            unsafe fn free<P: Packet>(slots: &mut [Option<P>]) {
                mbuf::free_bulk_with(FreeStrategy::$name, slots);
            }
        }
    )*};
}
strategies!(Each, Staged, Runs, Direct);

/// What `copies` makes of each strategy, under its name.
macro_rules! of_strategies {
    ($copies:ident, $($arguments:expr),*) => {
        vec![
            (FreeStrategy::Each.name(), $copies::<Each>($($arguments),*)),
            (FreeStrategy::Staged.name(), $copies::<Staged>($($arguments),*)),
            (FreeStrategy::Runs.name(), $copies::<Runs>($($arguments),*)),
            (FreeStrategy::Direct.name(), $copies::<Direct>($($arguments),*)),
        ]
    };
}
use of_strategies;

/// What `copies` makes of the shape's floor, if it has one: raw mbufs say nothing of what clusters
/// and memory of others need.
macro_rules! of_floor {
    ($shape:expr, $copies:ident, $($arguments:expr),*) => {
        match $shape {
            Shape::Flat => Some($copies::<floor::Flat>($($arguments),*)),
            Shape::Nulls => Some($copies::<floor::Nulls>($($arguments),*)),
            Shape::TwoPools => Some($copies::<floor::Pools<1>>($($arguments),*)),
            Shape::Blocks => Some($copies::<floor::Pools<8>>($($arguments),*)),
            Shape::Chain2 => Some($copies::<floor::Chains<2>>($($arguments),*)),
            Shape::Chain8 => Some($copies::<floor::Chains<8>>($($arguments),*)),
            Shape::Shared => Some($copies::<floor::Shared>($($arguments),*)),
            Shape::Clones => Some($copies::<floor::Clones>($($arguments),*)),
            Shape::OneCluster | Shape::External | Shape::Mixed => None,
        }
    };
}
use of_floor;
