//! Two sockets that are spliced: passes over their buffers under both locks, and what is told to whom
//! afterwards, without a lock.

use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use mbuf::free_bulk;

use super::pass::{Ends, Step, Then, Wait, pass};
use super::progress::Progress;
use super::splicer::Queue;
use super::verdict::End;
use crate::buf::SockBuf;
use crate::socket::{ProtocolEnd, Urgent};
use crate::sync::{AtomicU32, Mutex, Ordering};
use crate::wait::{Both, Wakes};

/// How long a pass that lacked an mbuf waits before it tries again.
const RETRY: Duration = Duration::from_millis(5);

/// What a receive side knows of the splice that takes its bytes, or took them last.
#[derive(Debug, Default)]
pub(crate) struct Spliced {
    pub(super) link: Option<Weak<Link>>,
    pub(super) bytes: u64,
    pub(super) end: Option<End>,
}

impl Spliced {
    /// Whether what is received is not for the user.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.link.is_some()
    }
}

/// Two sockets, and how far their splice has come.
///
/// Locks are taken in this order: the progress, the source's receive buffer, the drain's send buffer.
#[derive(Debug)]
pub(crate) struct Link {
    /// Which of its splicer's.
    pub(super) id: u64,
    source: ProtocolEnd<SockBuf>,
    drain: ProtocolEnd<SockBuf>,
    queue: Weak<Queue>,
    /// 1 while it is in the queue.
    queued: AtomicU32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    progress: Progress,
    /// No more passes.
    ended: bool,
}

impl Link {
    pub(super) fn new(
        id: u64,
        (source, drain): (ProtocolEnd<SockBuf>, ProtocolEnd<SockBuf>),
        progress: Progress,
        queue: Weak<Queue>,
    ) -> Self {
        Self {
            id,
            source,
            drain,
            queue,
            queued: AtomicU32::new(0),
            state: Mutex::new(State {
                progress,
                ended: false,
            }),
        }
    }

    /// Puts it into the queue, unless it is in there.
    pub(super) fn schedule(self: &Arc<Self>) {
        if self.queued.swap(1, Ordering::AcqRel) == 0
            && let Some(queue) = self.queue.upgrade()
        {
            queue.push(Arc::clone(self));
        }
    }

    /// It has come out of the queue: what happens from now on puts it in again.
    pub(super) fn taken(&self) {
        self.queued.store(0, Ordering::Release);
    }

    /// Makes one pass, tells both protocols, and sees to it that the next one is made when it is due.
    pub(super) fn run(self: &Arc<Self>, now: Instant) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        let (mut step, tail, wakes) = self.pass(&mut state.progress, now);
        if let Then::Wait(_) = step.then
            && let Some(verdict) = state.progress.idle_at(now)
        {
            step.then = Then::End(End::Verdict(verdict));
        }
        state.ended = matches!(step.then, Then::End(_));
        let deadline = state.progress.deadline();
        drop(state);
        wakes.fire();
        let ending = match step.then {
            Then::End(end) => Some(end),
            Then::Again | Then::Wait(_) => None,
        };
        let told = Told { link: self, ending };
        self.tell(&mut step, tail);
        match step.then {
            Then::Again => self.schedule(),
            Then::Wait(Wait::Memory) => self.wake_at(now + RETRY),
            Then::Wait(_) => {
                if let Some(deadline) = deadline {
                    self.wake_at(deadline);
                }
            }
            Then::End(_) => {}
        }
        drop(told);
    }

    /// One pass under both locks; whether the drain held a tail back for more, which does not come; and
    /// whom to wake.
    fn pass(self: &Arc<Self>, progress: &mut Progress, now: Instant) -> (Step, bool, Wakes<'_>) {
        let (from, to) = (&*self.source.0, &*self.drain.0);
        let mut both = Both::lock(&from.receive, &to.send);
        let waker = Waker::from(Arc::clone(self));
        both.unwatch(&waker);
        let ends = Ends {
            source_error: from.status.error(),
            drain_error: to.status.error(),
            drain_ready: !to.needs_connection || to.status.is_connected(),
            urgent_inline: both.first.value().urgent == Urgent::Inline,
        };
        let received = both.first.value();
        let sent = &mut both.second.value().0;
        let step = pass(&mut received.buf, sent, ends, progress, now, &from.set);
        // A tail that waits for more must not wait for what waits for it.
        let tail = step.then != Then::Again && sent.side().more_to_come();
        if tail {
            sent.side_mut().set_more_to_come(false);
        }
        received.spliced.bytes = progress.bytes();
        if let Then::Wait(wait) = step.then {
            let (data, space) = match wait {
                Wait::Data => (1, usize::MAX),
                Wait::Space { need } => (usize::MAX, need),
                Wait::Connection | Wait::Memory => (usize::MAX, usize::MAX),
            };
            both.first.watch(data, &waker);
            both.second.watch(space, &waker);
        }
        (step, tail, both.unlock())
    }

    /// Tells the protocols what was moved: first that there is room, so that a window update goes out
    /// before the data.
    fn tell(&self, step: &mut Step, tail: bool) {
        free_bulk(&mut [step.aside.take()]);
        let gone = step.moved + step.skipped;
        if gone > 0 {
            self.source.0.protocol.received(&self.source, gone);
        }
        if step.urgent {
            self.drain.0.protocol.send_urgent(&self.drain);
        } else if step.moved > 0 || tail {
            self.drain.0.protocol.send(&self.drain);
        }
    }

    fn wake_at(&self, time: Instant) {
        if let Some(queue) = self.queue.upgrade() {
            queue.wake_at(time, self.id);
        }
    }

    /// Ends the splice by the user's wish; false when it has ended before.
    pub(super) fn unsplice(&self) -> bool {
        let ended = std::mem::replace(&mut self.state.lock().ended, true);
        if !ended {
            self.finish(End::Unspliced);
        }
        !ended
    }

    /// Both sockets are their users' again.
    fn finish(&self, end: End) {
        // First, so that whoever sees the end finds it gone from the splicer.
        if let Some(queue) = self.queue.upgrade() {
            queue.remove(self.id);
        }
        let (from, to) = (&*self.source.0, &*self.drain.0);
        let mut both = Both::lock(&from.receive, &to.send);
        let spliced = &mut both.first.value().spliced;
        spliced.link = None;
        spliced.end = Some(end);
        let side = both.second.value().0.side_mut();
        let held = side.more_to_come();
        side.set_more_to_come(false);
        to.fed.store(0, Ordering::Release);
        if let Some(error) = end.error() {
            from.status.report(error);
        }
        both.unlock().fire();
        from.wake_all();
        to.wake_all();
        if held {
            to.protocol.send(&self.drain);
        }
    }
}

/// What comes after the protocols were told, also if one of them unwinds.
struct Told<'a> {
    link: &'a Arc<Link>,
    ending: Option<End>,
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        match self.ending {
            Some(end) => self.link.finish(end),
            None if std::thread::panicking() => self.link.schedule(),
            None => {}
        }
    }
}

impl Wake for Link {
    fn wake(self: Arc<Self>) {
        self.schedule();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.schedule();
    }
}
