//! Models of waiting and waking, run in all interleavings (up to a bound on preemptions).
//!
//! `RUSTFLAGS="--cfg loom -Cdebug-assertions" cargo test --release -p sockbuf --lib loom`

use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use loom::sync::Arc;
use loom::thread;

use crate::wait::{Available, Monitor, Patience};

impl Available for usize {
    fn available(&self) -> usize {
        *self
    }
}

const FOR_EVER: Patience<'_> = Patience::Until(None);

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Takes `n` as soon as there are as many.
fn take(monitor: &Monitor<usize>, n: usize) {
    let mut turn = monitor.turn(FOR_EVER).expect("waits");
    while *turn < n {
        turn.wait(n, FOR_EVER).expect("waits");
    }
    *turn -= n;
}

/// A lost wake is a deadlock, which the model checker reports.
#[test]
fn loom_a_sleeper_gets_what_comes_in_two_parts() {
    check(|| {
        let monitor = Arc::new(Monitor::new(0));
        let sleeper = thread::spawn({
            let monitor = monitor.clone();
            move || take(&monitor, 2)
        });
        monitor.change(|value| *value += 1);
        monitor.change(|value| *value += 1);
        sleeper.join().unwrap();
        assert_eq!(monitor.look(|value| *value), 0);
        assert!(monitor.wakes() <= 1, "too little is no reason to wake");
    });
}

/// Whoever waits for his turn gets it when the other's ends, also if that one slept.
#[test]
fn loom_turns_follow_each_other() {
    check(|| {
        let monitor = Arc::new(Monitor::new(0));
        let users = [(); 2].map(|()| {
            let monitor = monitor.clone();
            thread::spawn(move || take(&monitor, 1))
        });
        monitor.change(|value| *value += 2);
        for user in users {
            user.join().unwrap();
        }
        assert_eq!((monitor.look(|value| *value), monitor.sleepers()), (0, 0));
    });
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: StdArc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A task that found nothing is told of what came, once.
#[test]
fn loom_a_task_is_told_or_has_seen_it() {
    check(|| {
        let monitor = Arc::new(Monitor::new(0));
        let giver = thread::spawn({
            let monitor = monitor.clone();
            move || monitor.change(|value| *value += 1)
        });
        let count = StdArc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(count.clone());
        let seen = monitor.poll(&waker, |value| (*value == 0).then_some(1));
        giver.join().unwrap();
        assert_eq!(count.0.load(Ordering::Relaxed), usize::from(!seen));
    });
}
