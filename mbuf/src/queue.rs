//! Bounded queues of packets between threads.
//!
//! What a queue drops is freed after its lock is let go, and counted.

use crate::handle::Mbuf;
use crate::list::PacketList;
use parking_lot::Mutex;
use std::fmt;

/// A list behind a lock, with a limit.
///
/// ```
/// # let set = mbuf::BufferSet::standard(64, 8)?;
/// use mbuf::PacketQueue;
/// let queue = PacketQueue::new(2);
/// assert!(queue.enqueue(set.header()?) && queue.enqueue(set.header()?));
/// assert!(!queue.enqueue(set.header()?), "full: the newest is freed");
/// assert_eq!((queue.len(), queue.drops(), set.in_use()), (2, 1, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "mbuf_queue")]
#[derive(Debug)]
pub struct PacketQueue(Mutex<State>);

#[derive(Debug)]
struct State {
    list: PacketList,
    limit: usize,
    drops: u64,
}

impl State {
    fn is_full(&self) -> bool {
        self.list.len() >= self.limit
    }
}

/// The numbers of a queue at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueStats {
    /// Packets in it.
    pub len: usize,
    /// Bytes in them.
    pub bytes: usize,
    /// From how many packets on it is full.
    pub limit: usize,
    /// Packets that it has dropped so far.
    pub drops: u64,
}

impl PacketQueue {
    /// An empty queue that is full from `limit` packets on.
    #[doc(alias = "mq_init")]
    pub const fn new(limit: usize) -> Self {
        Self(Mutex::new(State {
            list: PacketList::new(),
            limit,
            drops: 0,
        }))
    }

    /// Puts a packet behind the others; a full queue drops it. True when it was taken.
    #[doc(alias = "mq_enqueue")]
    pub fn enqueue(&self, packet: Mbuf) -> bool {
        let mut state = self.0.lock();
        if state.is_full() {
            state.drops += 1;
            drop(state);
            free_dropped(packet);
            return false;
        }
        state.list.enqueue(packet);
        true
    }

    /// Puts a packet behind the others; a full queue gives it back, and has dropped nothing.
    ///
    /// # Errors
    /// The packet.
    pub fn try_enqueue(&self, packet: Mbuf) -> Result<(), Mbuf> {
        let mut state = self.0.lock();
        if state.is_full() {
            return Err(packet);
        }
        state.list.enqueue(packet);
        Ok(())
    }

    /// Puts a packet behind the others; a full queue drops its oldest for it. True when nothing
    /// was dropped. A queue with limit 0 takes nothing and drops the packet.
    #[doc(alias = "mq_push")]
    pub fn push(&self, packet: Mbuf) -> bool {
        let mut state = self.0.lock();
        if !state.is_full() {
            state.list.enqueue(packet);
            return true;
        }
        state.drops += 1;
        let dropped = match state.list.dequeue() {
            Some(oldest) => {
                state.list.enqueue(packet);
                oldest
            }
            None => packet,
        };
        drop(state);
        free_dropped(dropped);
        false
    }

    /// Puts all packets of `list` behind the others, or, if the queue is full, drops them all;
    /// `list` is empty then. Returns how many were dropped.
    ///
    /// What counts is whether the queue is full *before*: below its limit it takes everything, and
    /// may end above it. So it is in BSD, and it costs the same for a list of any length.
    #[doc(alias = "mq_enlist")]
    pub fn enlist(&self, list: &mut PacketList) -> usize {
        let mut state = self.0.lock();
        if !state.is_full() {
            state.list.append(list);
            return 0;
        }
        state.drops += list.len() as u64;
        drop(state);
        list.note_dropped();
        list.purge()
    }

    /// Takes the first packet out.
    #[doc(alias = "mq_dequeue")]
    pub fn dequeue(&self) -> Option<Mbuf> {
        self.0.lock().list.dequeue()
    }

    /// Takes all packets out.
    #[doc(alias = "mq_delist")]
    #[doc(alias = "mq_dechain")]
    pub fn delist(&self) -> PacketList {
        self.0.lock().list.take()
    }

    /// Frees all packets; how many they were. They do not count as dropped.
    #[doc(alias = "mq_purge")]
    pub fn purge(&self) -> usize {
        let mut all = self.delist();
        all.purge()
    }

    /// Changes the limit. Packets above a lower one stay.
    #[doc(alias = "mq_set_maxlen")]
    pub fn set_limit(&self, limit: usize) {
        self.0.lock().limit = limit;
    }

    /// Packets in the queue.
    #[doc(alias = "mq_len")]
    pub fn len(&self) -> usize {
        self.0.lock().list.len()
    }

    /// True when there is no packet.
    #[doc(alias = "mq_empty")]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True when the next packet would be dropped.
    #[doc(alias = "mq_full")]
    pub fn is_full(&self) -> bool {
        self.0.lock().is_full()
    }

    /// Packets dropped so far.
    #[doc(alias = "mq_drops")]
    pub fn drops(&self) -> u64 {
        self.0.lock().drops
    }

    /// All numbers, of one moment.
    #[doc(alias = "mq_hdatalen")]
    pub fn stats(&self) -> QueueStats {
        let state = self.0.lock();
        QueueStats {
            len: state.list.len(),
            bytes: state.list.bytes(),
            limit: state.limit,
            drops: state.drops,
        }
    }

    /// Prints the packets as they are now, one line each. The lock is held meanwhile: what is
    /// printed to must not use this queue.
    pub(crate) fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.lock();
        write!(
            f,
            "queue limit {} drops {}: {}",
            state.limit, state.drops, state.list
        )
    }
}

#[cold]
fn free_dropped(packet: Mbuf) {
    crate::Packet::note(&packet, crate::LifeEvent::Dropped);
    drop(packet);
}
