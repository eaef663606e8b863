//! Two values under both their locks: what goes from one to the other is never in neither.
//!
//! Locks are taken in one order everywhere: what is received first, what is sent second.

use std::task::Waker;

use super::waiting::Wake;
use super::{Available, Monitor, State};
use crate::sync::{Condvar, MutexGuard};

/// Two values under their locks, without a turn at either: for who is done at once.
pub(crate) struct Both<'a, A: Available, B: Available> {
    pub(crate) first: Held<'a, A>,
    pub(crate) second: Held<'a, B>,
}

/// One of the two.
pub(crate) struct Held<'a, T> {
    monitor: &'a Monitor<T>,
    state: MutexGuard<'a, State<T>>,
    /// Who is to be told of the next change of at least so much.
    watch: Option<(usize, Waker)>,
}

impl<'a, A: Available, B: Available> Both<'a, A, B> {
    pub(crate) fn lock(first: &'a Monitor<A>, second: &'a Monitor<B>) -> Self {
        Self {
            first: Held::lock(first),
            second: Held::lock(second),
        }
    }

    /// What this call changes is no news for `waker`, whatever it watches.
    pub(crate) fn unwatch(&mut self, waker: &Waker) {
        self.first.state.for_change.forget(waker);
        self.second.state.for_change.forget(waker);
    }

    /// Lets go of both. Who watches is told of later changes only; those for whom there is enough now are
    /// still to be woken.
    pub(crate) fn unlock(self) -> Wakes<'a> {
        let Self {
            mut first,
            mut second,
        } = self;
        let wakes = (first.settle(), second.settle());
        let changed = (&first.monitor.changed, &second.monitor.changed);
        Wakes { wakes, changed }
    }
}

/// Those who are to be woken: by calls of theirs, so when no lock is held.
#[must_use]
pub(crate) struct Wakes<'a> {
    wakes: (Wake, Wake),
    changed: (&'a Condvar, &'a Condvar),
}

impl Wakes<'_> {
    pub(crate) fn fire(self) {
        self.wakes.0.fire(self.changed.0);
        self.wakes.1.fire(self.changed.1);
    }
}

impl<'a, T: Available> Held<'a, T> {
    fn lock(monitor: &'a Monitor<T>) -> Self {
        Self {
            monitor,
            state: monitor.state.lock(),
            watch: None,
        }
    }

    pub(crate) fn value(&mut self) -> &mut T {
        &mut self.state.value
    }

    /// Has `waker` woken, once, by a later change that leaves at least `need`, or that everybody is told
    /// of.
    pub(crate) fn watch(&mut self, need: usize, waker: &Waker) {
        self.watch = Some((need, waker.clone()));
    }

    fn settle(&mut self) -> Wake {
        let available = self.state.value.available();
        let wake = self.state.for_change.wake(available);
        if let Some((need, waker)) = self.watch.take() {
            self.state.for_change.register(need, &waker);
        }
        wake
    }
}
