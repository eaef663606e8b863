//! Who waits for one thing: how many threads sleep, which tasks are to be told, the least that anybody needs.

use std::task::Waker;

use crate::sync::Condvar;

/// Kept under the lock of what is waited for.
#[derive(Debug)]
pub(super) struct Waiting {
    threads: usize,
    /// The least that any of them needs.
    least: usize,
    /// Raised by each wake: a sleeper sees that he was meant.
    epoch: u64,
    tasks: Tasks,
}

/// Nearly always one.
#[derive(Debug, Default)]
struct Tasks {
    first: Option<Waker>,
    others: Vec<Waker>,
}

impl Waiting {
    pub(super) const fn new() -> Self {
        Self {
            threads: 0,
            least: usize::MAX,
            epoch: 0,
            tasks: Tasks {
                first: None,
                others: Vec::new(),
            },
        }
    }

    /// A thread is about to sleep. Returns what [`woken_since`](Self::woken_since) wants to know.
    pub(super) fn enter(&mut self, need: usize) -> u64 {
        self.threads += 1;
        self.least = self.least.min(need);
        self.epoch
    }

    pub(super) fn woken_since(&self, seen: u64) -> bool {
        self.epoch != seen
    }

    /// A thread that nobody woke goes. What it needed stays noted for the others: at worst they are
    /// woken too early.
    pub(super) fn leave(&mut self) {
        self.threads -= 1;
        if self.threads == 0 && self.tasks.first.is_none() {
            self.least = usize::MAX;
        }
    }

    /// A task is to be told, once.
    pub(super) fn register(&mut self, need: usize, waker: &Waker) {
        self.least = self.least.min(need);
        let Tasks { first, others } = &mut self.tasks;
        let mut known = first.iter().chain(others.iter());
        if !known.any(|known| known.will_wake(waker)) {
            match first {
                None => *first = Some(waker.clone()),
                Some(_) => others.push(waker.clone()),
            }
        }
    }

    /// This one is not to be told any more. What it needed stays noted, as in [`leave`](Self::leave).
    pub(super) fn forget(&mut self, waker: &Waker) {
        let Tasks { first, others } = &mut self.tasks;
        others.retain(|known| !known.will_wake(waker));
        if first.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *first = others.pop();
        }
    }

    /// Counts everybody out if there is enough for one of them. The wake is to be fired without the lock.
    #[inline]
    pub(super) fn wake(&mut self, available: usize) -> Wake {
        let nobody = self.threads == 0 && self.tasks.first.is_none();
        if nobody || available < self.least {
            return Wake(None);
        }
        self.wake_everybody()
    }

    #[cold]
    fn wake_everybody(&mut self) -> Wake {
        self.epoch += 1;
        self.least = usize::MAX;
        Wake(Some(Due {
            threads: std::mem::take(&mut self.threads) > 0,
            tasks: std::mem::take(&mut self.tasks),
        }))
    }

    /// How often there was somebody to wake.
    pub(super) fn wakes(&self) -> u64 {
        self.epoch
    }

    pub(super) fn sleepers(&self) -> usize {
        self.threads
    }
}

/// Who is to be woken, as soon as the lock is free.
#[must_use]
pub(crate) struct Wake(Option<Due>);

struct Due {
    threads: bool,
    tasks: Tasks,
}

impl Wake {
    #[inline]
    pub(super) fn fire(self, condvar: &Condvar) {
        if let Some(due) = self.0 {
            due.fire(condvar);
        }
    }
}

impl Due {
    #[cold]
    fn fire(self, condvar: &Condvar) {
        if self.threads {
            condvar.notify_all();
        }
        let Tasks { first, others } = self.tasks;
        first.into_iter().chain(others).for_each(Waker::wake);
    }
}
