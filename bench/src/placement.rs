//! Code and stack placement: the same function at several addresses.
//!
//! Where a loop happens to start, relative to fetch blocks and to the caches' sets, can
//! change its time by more than the effects measured here. So each variant exists in
//! [`PLACEMENTS`] copies behind differently sized gaps, called on differently shifted
//! stacks, and a result must hold over all of them.
//!
//! Generic copies alone would not do: identical machine code is folded into one. Each
//! copy therefore begins with inline assembly that jumps over a gap of its own size,
//! measured from a 64-byte boundary.
//!
//! **For authors of cases**: only what is inlined into [`Body::run`] moves. A callee
//! that the compiler keeps out of line is one function at one address for all copies;
//! hot paths under measurement must be `#[inline]` (or `#[inline(always)]`) down to the
//! loop. Time stamps are taken inside `run`, around each burst.

#![allow(unsafe_code)]

use std::hint::black_box;
use std::mem::MaybeUninit;

/// How many placements each variant exists in.
pub const PLACEMENTS: usize = 6;

/// Bytes between a 64-byte boundary and the body: all quarters of a cache line and two
/// odd places between, in different sets and pages.
const GAPS: [usize; PLACEMENTS] = [
    0,
    5 * 64 + 16,
    11 * 64 + 32,
    19 * 64 + 48,
    26 * 64 + 8,
    37 * 64 + 40,
];

/// Bytes by which the stack is shifted.
const HOLES: [usize; PLACEMENTS] = [0, 336, 1104, 1584, 2640, 3184];

/// What is measured, in a form that can be placed.
///
/// ```
/// use bench::placement::{self, Body, PLACEMENTS};
///
/// struct Sum;
/// impl Body for Sum {
///     type Args<'a> = &'a [u64];
///     type Out = u64;
///     #[inline(always)]
///     fn run(numbers: &[u64]) -> u64 {
///         numbers.iter().sum()
///     }
/// }
/// let copies = placement::table::<Sum>();
/// assert_eq!(copies.len(), PLACEMENTS);
/// assert!(copies.iter().all(|copy| copy(&[1, 2, 3]) == 6));
/// ```
pub trait Body {
    /// What it works on.
    type Args<'a>;
    /// What it gives back.
    type Out;
    /// The work. Must be `#[inline(always)]`, or the copies share one body.
    fn run(args: Self::Args<'_>) -> Self::Out;
}

/// A placed copy of a body.
pub type Entry<B> = for<'a> fn(<B as Body>::Args<'a>) -> <B as Body>::Out;

/// All copies of a body, by placement.
pub fn table<B: Body>() -> [Entry<B>; PLACEMENTS] {
    [
        shifted::<B, 0>,
        shifted::<B, 1>,
        shifted::<B, 2>,
        shifted::<B, 3>,
        shifted::<B, 4>,
        shifted::<B, 5>,
    ]
}

/// The copy number `P`, called on a stack shifted by its hole.
#[inline(never)]
fn shifted<B: Body, const P: usize>(args: B::Args<'_>) -> B::Out {
    // The match is on a constant: one arm is left in each copy.
    match P {
        0 => with_hole::<B, P, { HOLES[0] }>(args),
        1 => with_hole::<B, P, { HOLES[1] }>(args),
        2 => with_hole::<B, P, { HOLES[2] }>(args),
        3 => with_hole::<B, P, { HOLES[3] }>(args),
        4 => with_hole::<B, P, { HOLES[4] }>(args),
        _ => with_hole::<B, P, { HOLES[5] }>(args),
    }
}

#[inline(always)]
fn with_hole<B: Body, const P: usize, const BYTES: usize>(args: B::Args<'_>) -> B::Out {
    let hole = [const { MaybeUninit::<u8>::uninit() }; BYTES];
    black_box(&hole);
    let out = placed::<B, P>(args);
    // After the call, so that it cannot become a tail call on an unshifted stack.
    black_box(&hole);
    out
}

#[inline(never)]
fn placed<B: Body, const P: usize>(args: B::Args<'_>) -> B::Out {
    pad::<P>();
    B::run(args)
}

/// Starts the code that follows it at the gap of placement `P`; the address at which it
/// goes on (0 where there is no assembly for the architecture).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn pad<const P: usize>() -> usize {
    let here: usize;
    // SAFETY: the assembly jumps over bytes that are never executed to the label right
    // behind them, and writes nothing but the output register; no memory, stack or flag
    // is touched, as the options say.
    unsafe {
        std::arch::asm!(
            "jmp 2f",
            ".p2align 6, 0x90",
            ".skip {gap}, 0x90",
            "2:",
            "lea {here}, [rip + 2b]",
            gap = const GAPS[P],
            here = out(reg) here,
            options(nomem, nostack, preserves_flags),
        );
    }
    here
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn pad<const P: usize>() -> usize {
    let here: usize;
    // SAFETY: as on x86-64; every gap is a multiple of the 4-byte instruction size.
    unsafe {
        std::arch::asm!(
            "b 2f",
            ".p2align 6",
            ".skip {gap}",
            "2:",
            "adr {here}, 2b",
            gap = const GAPS[P],
            here = out(reg) here,
            options(nomem, nostack, preserves_flags),
        );
    }
    here
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
fn pad<const P: usize>() -> usize {
    let _ = GAPS[P];
    0
}

const _: () = {
    let mut i = 0;
    while i < PLACEMENTS {
        assert!(GAPS[i].is_multiple_of(4) && HOLES[i].is_multiple_of(16));
        i += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Says where its own copy stands: in memory, and on the stack.
    struct Where;
    impl Body for Where {
        type Args<'a> = &'a mut Vec<usize>;
        type Out = usize;
        #[inline(always)]
        fn run(stacks: &mut Vec<usize>) -> usize {
            let local = 0_u8;
            stacks.push(black_box(&raw const local).addr());
            stacks.len()
        }
    }

    #[test]
    fn copies_of_one_body_stand_at_different_addresses() {
        let table = table::<Where>();
        let entries: BTreeSet<usize> = table.iter().map(|f| *f as usize).collect();
        assert_eq!(entries.len(), PLACEMENTS, "folded into one: {entries:x?}");
        let bodies: [usize; PLACEMENTS] = [
            placed::<Where, 0> as *const () as usize,
            placed::<Where, 1> as *const () as usize,
            placed::<Where, 2> as *const () as usize,
            placed::<Where, 3> as *const () as usize,
            placed::<Where, 4> as *const () as usize,
            placed::<Where, 5> as *const () as usize,
        ];
        assert_eq!(
            bodies.iter().collect::<BTreeSet<_>>().len(),
            PLACEMENTS,
            "folded: {bodies:x?}"
        );
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[test]
    fn bodies_start_at_every_quarter_of_a_cache_line() {
        #[inline(never)]
        fn at<const P: usize>() -> usize {
            pad::<P>()
        }
        let starts = [
            at::<0>(),
            at::<1>(),
            at::<2>(),
            at::<3>(),
            at::<4>(),
            at::<5>(),
        ];
        let phases: Vec<usize> = starts.iter().map(|a| a % 64).collect();
        assert_eq!(phases, [0, 16, 32, 48, 8, 40]);
    }

    #[test]
    fn each_copy_runs_on_its_own_shift_of_the_stack() {
        let mut stacks = Vec::new();
        for copy in table::<Where>() {
            copy(&mut stacks);
        }
        let distinct: BTreeSet<_> = stacks.iter().map(|a| a % 4096).collect();
        assert!(distinct.len() >= 4, "stacks at {stacks:x?}");
    }
}
