//! A value under a lock, those who wait for it to change, and those who wait for their turn at it.
//!
//! No wake is lost: who waits looks at the value and counts himself in under one lock, and who changes
//! the value looks for waiters under the same lock. A wake is paid for only by one who finds a waiter,
//! and once: it empties the count, so what changes before the waiters run finds nobody. Each
//! says how much he waits for, so that one who needs much is not woken by every little.

mod both;
mod waiting;

use std::ops::{Deref, DerefMut};
use std::task::Waker;
use std::time::Instant;

use crate::sync::{Condvar, Mutex, MutexGuard};

pub(crate) use both::{Both, Wakes};
use waiting::Waiting;

/// What is waited for in a value.
pub(crate) trait Available {
    /// How much of it there is; `usize::MAX` when everybody should look.
    fn available(&self) -> usize;
}

/// A value, and who waits.
#[derive(Debug)]
pub(crate) struct Monitor<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    turn: Condvar,
}

#[derive(Debug)]
struct State<T> {
    value: T,
    /// Somebody is in the middle of something, and has let go of the lock.
    busy: bool,
    for_change: Waiting,
    for_turn: Waiting,
}

/// How long somebody is ready to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience<'a> {
    /// Not at all.
    None,
    /// Asleep until then; for ever without a time.
    Until(Option<Instant>),
    /// Not at all, but this one is told when it is worth another try.
    Task(&'a Waker),
}

/// There is nothing now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotNow {
    /// And nobody wanted to wait.
    WouldBlock,
    /// Nor was there in time.
    TimedOut,
}

impl<T: Available> Monitor<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            state: Mutex::new(State {
                value,
                busy: false,
                for_change: Waiting::new(),
                for_turn: Waiting::new(),
            }),
            changed: Condvar::new(),
            turn: Condvar::new(),
        }
    }

    /// Looks at the value.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.state.lock().value)
    }

    /// Changes the value, and wakes those for whom there is enough then.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut state = self.state.lock();
        let result = change(&mut state.value);
        let available = state.value.available();
        let wake = state.for_change.wake(available);
        drop(state);
        wake.fire(&self.changed);
        result
    }

    /// Makes everybody look again, because of something outside of the value.
    pub(crate) fn wake_all(&self) {
        let wake = self.state.lock().for_change.wake(usize::MAX);
        wake.fire(&self.changed);
    }

    /// Sleeps while the value is as `still` says, and is woken only when everybody is. Takes no turn.
    pub(crate) fn wait_while(&self, patience: Patience<'_>, still: impl Fn(&T) -> bool) {
        let mut state = self.state.lock();
        while still(&state.value) {
            let woken = sleep(
                &self.changed,
                &mut state,
                |state| &mut state.for_change,
                usize::MAX,
                patience,
            );
            if woken.is_err() {
                return;
            }
        }
    }

    /// How often sleeping threads were woken, or tasks.
    pub(crate) fn wakes(&self) -> u64 {
        let state = self.state.lock();
        state.for_change.wakes() + state.for_turn.wakes()
    }

    /// Threads asleep.
    pub(crate) fn sleepers(&self) -> usize {
        let state = self.state.lock();
        state.for_change.sleepers() + state.for_turn.sleepers()
    }

    /// Whether `lacking` finds that nothing is lacking. Otherwise `waker` is told when there is as much
    /// as it says.
    pub(crate) fn poll(&self, waker: &Waker, lacking: impl FnOnce(&T) -> Option<usize>) -> bool {
        let mut state = self.state.lock();
        let need = lacking(&state.value);
        if let Some(need) = need {
            state.for_change.register(need, waker);
        }
        need.is_none()
    }

    /// Takes one's turn at the value: users come one after the other, also if one of them sleeps.
    pub(crate) fn turn(&self, patience: Patience<'_>) -> Result<Turn<'_, T>, NotNow> {
        let mut state = self.state.lock();
        while state.busy {
            sleep(
                &self.turn,
                &mut state,
                |state| &mut state.for_turn,
                0,
                patience,
            )?;
        }
        Ok(Turn {
            monitor: self,
            state: Some(state),
            kept: false,
        })
    }
}

/// Waits for a wake of at least `need`.
fn sleep<T>(
    condvar: &Condvar,
    state: &mut MutexGuard<'_, State<T>>,
    which: fn(&mut State<T>) -> &mut Waiting,
    need: usize,
    patience: Patience<'_>,
) -> Result<(), NotNow> {
    let deadline = match patience {
        Patience::None => return Err(NotNow::WouldBlock),
        Patience::Task(waker) => {
            which(state).register(need, waker);
            return Err(NotNow::WouldBlock);
        }
        Patience::Until(deadline) => deadline,
    };
    let seen = which(state).enter(need);
    loop {
        let timed_out = match deadline {
            None => {
                condvar.wait(state);
                false
            }
            Some(deadline) => condvar.wait_until(state, deadline).timed_out(),
        };
        if which(state).woken_since(seen) {
            return Ok(());
        }
        if timed_out {
            which(state).leave();
            return Err(NotNow::TimedOut);
        }
    }
}

/// A user's turn at a value, under its lock. Others wait for theirs until this is dropped, also while
/// it sleeps or lets go of the lock.
pub(crate) struct Turn<'a, T: Available> {
    monitor: &'a Monitor<T>,
    /// The lock; none only within [`unlocked`](Self::unlocked).
    state: Option<MutexGuard<'a, State<T>>>,
    /// Whether it was let go of in between.
    kept: bool,
}

impl<'a, T: Available> Turn<'a, T> {
    fn state(&mut self) -> &mut MutexGuard<'a, State<T>> {
        let monitor = self.monitor;
        self.state.get_or_insert_with(|| monitor.state.lock())
    }

    fn keep(&mut self) {
        if !self.kept {
            self.kept = true;
            self.state().busy = true;
        }
    }

    /// Sleeps until there is as much as `need`, or everybody was told to look.
    pub(crate) fn wait(&mut self, need: usize, patience: Patience<'_>) -> Result<(), NotNow> {
        if let Patience::Until(_) = patience {
            self.keep();
        }
        let changed = &self.monitor.changed;
        sleep(
            changed,
            self.state(),
            |state| &mut state.for_change,
            need,
            patience,
        )
    }

    /// Does something without the lock. The turn is kept.
    pub(crate) fn unlocked<R>(&mut self, act: impl FnOnce() -> R) -> R {
        self.keep();
        self.state = None;
        let result = act();
        self.state();
        result
    }
}

impl<T: Available> Deref for Turn<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.state.as_ref().expect("locked").value
    }
}

impl<T: Available> DerefMut for Turn<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.state().value
    }
}

impl<T: Available> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        if self.kept {
            let state = self.state();
            state.busy = false;
            let wake = state.for_turn.wake(usize::MAX);
            self.state = None;
            wake.fire(&self.monitor.turn);
        }
    }
}
