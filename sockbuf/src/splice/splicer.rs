//! Who makes the passes: a thread of its own, or whoever has time.
//!
//! Each splice that has something to move gets one pass, then the others do, then the thread yields: in
//! the meantime more arrives, and the next pass moves more at once. That gathering is what makes splicing in a
//! thread of its own faster than at every packet that comes in.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::link::Link;
use crate::sync::{Condvar, Mutex};

/// Makes the passes of the splices that were begun with it. When it is dropped, they end.
///
/// ```
/// use std::time::Instant;
/// use mbuf::BufferSet;
/// use sockbuf::splice::{SpliceOptions, Splicer};
/// use sockbuf::{Side, Socket};
///
/// let set = BufferSet::bsd(64, 8)?;
/// let limits = || (Side::sending(65536), Side::receiving(65536));
/// let (source, drain) = (Socket::new(&set, limits(), ()), Socket::new(&set, limits(), ()));
/// let (from, to) = (source.protocol_end(), drain.protocol_end());
/// from.connected();
/// to.connected();
///
/// let splicer = Splicer::by_hand();
/// source.splice(&drain, SpliceOptions::default(), &splicer)?;
/// from.append(set.copy_in(b"passed on", 0)?);
/// while splicer.turn(Instant::now()) > 0 {}
/// assert_eq!(to.with_send(|sb| sb.len()), 9);
/// assert_eq!(source.unsplice()?, 9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[doc(alias = "sosplice_taskq")]
pub struct Splicer {
    queue: Arc<Queue>,
    worker: Option<JoinHandle<()>>,
}

/// What is to be done, and when.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    due: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ready: VecDeque<Arc<Link>>,
    /// When which splice is to be looked at although nothing happened.
    timers: BTreeSet<(Instant, u64)>,
    /// All that have not ended.
    links: BTreeMap<u64, Entry>,
    last_id: u64,
    stop: bool,
}

#[derive(Debug)]
struct Entry {
    link: Arc<Link>,
    /// Its only timer. One that is too early is left to fire: a splice that makes progress would
    /// otherwise move it at each pass.
    timer: Option<Instant>,
}

impl Splicer {
    /// One with a thread of its own.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn spawn() -> io::Result<Self> {
        let queue = Arc::new(Queue::new());
        let theirs = Arc::clone(&queue);
        let worker = thread::Builder::new()
            .name("splicer".into())
            .spawn(move || theirs.work())?;
        Ok(Self {
            queue,
            worker: Some(worker),
        })
    }

    /// One without a thread: passes are made by [`turn`](Self::turn) only.
    #[must_use]
    pub fn by_hand() -> Self {
        Self {
            queue: Arc::new(Queue::new()),
            worker: None,
        }
    }

    /// Makes one pass of each splice that had something to do before. Returns how many those were.
    pub fn turn(&self, now: Instant) -> usize {
        let ready = self.queue.due_by(now);
        self.queue.run(ready, || now)
    }

    /// When [`turn`](Self::turn) will have something to do even if nothing happens until then.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        let state = self.queue.state.lock();
        state.timers.first().map(|(time, _)| *time)
    }

    /// Splices that have not ended.
    #[must_use]
    pub fn active(&self) -> usize {
        self.queue.state.lock().links.len()
    }

    pub(super) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }
}

impl Drop for Splicer {
    fn drop(&mut self) {
        self.queue.stop();
        if let Some(worker) = self.worker.take()
            && worker.thread().id() != thread::current().id()
        {
            // It ends by the flag; if a protocol panicked in it there is nobody else to be told.
            let _ = worker.join();
        }
        let links = std::mem::take(&mut self.queue.state.lock().links);
        links.values().for_each(|entry| {
            entry.link.unsplice();
        });
        self.queue.clear();
    }
}

impl Queue {
    fn new() -> Self {
        Self {
            state: Mutex::new(State::default()),
            due: Condvar::new(),
        }
    }

    /// Adds a splice that `make` makes of its number.
    pub(super) fn add(&self, make: impl FnOnce(u64) -> Link) -> Arc<Link> {
        let mut state = self.state.lock();
        state.last_id += 1;
        let id = state.last_id;
        let link = Arc::new(make(id));
        let entry = Entry {
            link: Arc::clone(&link),
            timer: None,
        };
        state.links.insert(id, entry);
        link
    }

    pub(super) fn push(&self, link: Arc<Link>) {
        self.state.lock().ready.push_back(link);
        self.due.notify_all();
    }

    /// Has this splice looked at by `time`.
    pub(super) fn wake_at(&self, time: Instant, id: u64) {
        let mut state = self.state.lock();
        if state.set_timer(time, id) {
            drop(state);
            self.due.notify_all();
        }
    }

    pub(super) fn remove(&self, id: u64) {
        let mut state = self.state.lock();
        let gone = state.links.remove(&id);
        if let Some(time) = gone.as_ref().and_then(|entry| entry.timer) {
            state.timers.remove(&(time, id));
        }
        drop(state);
        drop(gone);
    }

    /// How many are ready, or their time has come.
    fn due_by(&self, now: Instant) -> usize {
        let mut state = self.state.lock();
        state.expire(now);
        state.ready.len()
    }

    /// Makes a pass of each of the first `ready`; says how many those were. They are taken out one by
    /// one, so that a protocol that unwinds keeps nobody else from his turn.
    fn run(&self, ready: usize, now: impl Fn() -> Instant) -> usize {
        for done in 0..ready {
            let Some(link) = self.state.lock().ready.pop_front() else {
                return done;
            };
            link.taken();
            link.run(now());
        }
        ready
    }

    fn stop(&self) {
        self.state.lock().stop = true;
        self.due.notify_all();
    }

    fn clear(&self) {
        let mut state = self.state.lock();
        let stop = state.stop;
        let all = std::mem::take(&mut *state);
        state.stop = stop;
        drop(state);
        drop(all);
    }

    /// What the thread does.
    fn work(&self) {
        while let Some(ready) = self.wait() {
            self.run(ready, Instant::now);
            thread::yield_now();
        }
    }

    /// Sleeps until something is ready, and says how many are; `None` when it is to stop.
    fn wait(&self) -> Option<usize> {
        let mut state = self.state.lock();
        loop {
            if state.stop {
                return None;
            }
            if !state.timers.is_empty() {
                state.expire(Instant::now());
            }
            if !state.ready.is_empty() {
                return Some(state.ready.len());
            }
            match state.timers.first() {
                Some(&(time, _)) => {
                    self.due.wait_until(&mut state, time);
                }
                None => self.due.wait(&mut state),
            }
        }
    }
}

impl State {
    /// Whether that comes before all others.
    fn set_timer(&mut self, time: Instant, id: u64) -> bool {
        let Some(entry) = self.links.get_mut(&id) else {
            return false;
        };
        if entry.timer.is_some_and(|earlier| earlier <= time) {
            return false;
        }
        if let Some(later) = entry.timer.replace(time) {
            self.timers.remove(&(later, id));
        }
        self.timers.insert((time, id));
        self.timers.first() == Some(&(time, id))
    }

    /// Those whose time has come are ready.
    fn expire(&mut self, now: Instant) {
        while let Some(&(time, id)) = self.timers.first() {
            if time > now {
                return;
            }
            self.timers.pop_first();
            if let Some(entry) = self.links.get_mut(&id) {
                entry.timer = None;
                self.ready.push_back(Arc::clone(&entry.link));
            }
        }
    }
}
