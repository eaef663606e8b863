//! A variant that loses or doubles an object, or uses its backend in secret, has no numbers.

use super::*;
use crate::cases::mempool::ours::{LifoNoCache, Ours, Way};
use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Ours, but one put for many loses an object if `LOSE`, and the second get of one hands the first
/// one's object out again if `TWICE`.
struct Wrong<const LOSE: bool, const TWICE: bool> {
    pool: Ours,
    calls: AtomicUsize,
    first: AtomicPtr<u8>,
}

struct WrongWay<'a, const LOSE: bool, const TWICE: bool> {
    way: Way<'a>,
    store: &'a Wrong<LOSE, TWICE>,
}

// SAFETY: it is wrong, and nobody relies on what it hands out: objects are not touched, and the pool
// lives as long as the store.
unsafe impl<const LOSE: bool, const TWICE: bool> Store for Wrong<LOSE, TWICE> {
    const NAME: &'static str = "wrong";
    type Lane<'a> = WrongWay<'a, LOSE, TWICE>;

    fn build() -> Result<Self, String> {
        Ok(Wrong {
            pool: Ours::build()?,
            calls: AtomicUsize::new(0),
            first: AtomicPtr::default(),
        })
    }

    fn lane(&self) -> Self::Lane<'_> {
        WrongWay {
            way: self.pool.lane(),
            store: self,
        }
    }

    fn missing(&self) -> Option<usize> {
        self.pool.missing()
    }
}

// SAFETY: as above.
unsafe impl<const LOSE: bool, const TWICE: bool> Lane for WrongWay<'_, LOSE, TWICE> {
    type Item = NonNull<u8>;

    fn get(&mut self, out: &mut [MaybeUninit<NonNull<u8>>]) {
        self.way.get(out);
    }

    unsafe fn put(&mut self, items: &mut [MaybeUninit<NonNull<u8>>]) {
        let tenth = self.store.calls.fetch_add(1, Ordering::Relaxed) == 10;
        // SAFETY: as the caller promises.
        unsafe {
            self.way.put(if LOSE && tenth {
                &mut items[1..]
            } else {
                items
            })
        };
    }

    fn get_one(&mut self) -> NonNull<u8> {
        let one = self.way.get_one();
        if TWICE {
            match self.store.calls.fetch_add(1, Ordering::Relaxed) {
                0 => self.store.first.store(one.as_ptr(), Ordering::Relaxed),
                1 => {
                    let first = self.store.first.load(Ordering::Relaxed);
                    return NonNull::new(first).expect("stored by the first call");
                }
                _ => {}
            }
        }
        one
    }

    unsafe fn put_one(&mut self, item: NonNull<u8>) {
        // SAFETY: as the caller promises.
        unsafe { self.way.put_one(item) };
    }

    fn line(item: &mut NonNull<u8>) -> *mut u64 {
        item.as_ptr().cast()
    }
}

fn round<S: Store>(ask: Ask, regime: Regime, burst: Burst) -> Result<Round, String> {
    let mut crew = Crew::new(&[]).expect("no threads");
    One::<S>::new(ask, regime, burst)?.round(0, &mut crew)
}

#[test]
fn an_object_that_does_not_come_back_fails_the_round() {
    let lost = round::<Wrong<true, false>>(Ask::Get, Regime::Hot, Burst::Of(32));
    assert_eq!(lost.err().as_deref(), Some("1 objects are not back"));
    assert!(round::<Wrong<false, false>>(Ask::Get, Regime::Hot, Burst::Of(32)).is_ok());
}

#[test]
fn an_object_that_is_handed_out_twice_fails_the_audit() {
    let wrong = Wrong::<false, true>::build().expect("a pool");
    let audit = std::panic::catch_unwind(AssertUnwindSafe(|| stores::audit(&wrong)));
    match audit {
        Ok(Err(error)) => assert!(error.contains("1 objects were handed out twice"), "{error}"),
        // A checked pool does not wait for the audit.
        Err(panic) if ::mempool::CHECKED => {
            let said = panic.downcast::<String>().expect("a message");
            assert!(said.contains("was put twice"), "{said}");
        }
        other => panic!("one object is there twice: {other:?}"),
    }
    let right = Wrong::<false, false>::build().expect("a pool");
    assert_eq!(stores::audit(&right), Ok(()));
}

#[test]
fn hot_bursts_never_reach_the_backend_and_spilled_ones_do() {
    for burst in Burst::ALL {
        for ask in [Ask::Get, Ask::Pair] {
            let hot = round::<Ours>(ask, Regime::Hot, burst).expect("its work is done");
            assert_eq!(hot.calls, Some([0, 0]), "{burst:?}");
            let spill = round::<Ours>(ask, Regime::Spill, burst).expect("its work is done");
            let [gets, puts] = spill.calls.expect("counted");
            assert!(gets > 0 && puts > 0, "{burst:?}: {gets} gets, {puts} puts");
            let alone = round::<LifoNoCache>(ask, Regime::Hot, burst).expect("its work is done");
            let [gets, _] = alone.calls.expect("counted");
            let mean = alone.objects as f64 / gets as f64;
            assert!(
                (mean / burst.mean() as f64 - 1.0).abs() < 0.25,
                "{burst:?}: {mean}"
            );
        }
    }
}

#[test]
fn every_call_is_made_as_often_as_the_plan_says() {
    for burst in Burst::ALL {
        let round =
            round::<floor::Floor>(Ask::Pair, Regime::Half, burst).expect("its work is done");
        let plan = Plan::of(Regime::Half, burst);
        let calls = plan.calls * plan.stretches;
        let mean = round.objects as f64 / calls as f64;
        assert!(
            (mean / burst.mean() as f64 - 1.0).abs() < 0.1,
            "{burst:?}: {mean}"
        );
    }
}
