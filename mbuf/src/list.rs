//! Lists of packets: linked through their headers, so that queueing takes no memory.

use crate::free::free_bulk;
use crate::handle::Mbuf;
use crate::header::HeaderPtr;
use crate::history::{self, LifeEvent};
use crate::packet::Packet;
use std::fmt;

/// Packets that are given to one bulk free.
const BURST: usize = 64;

/// Packets in a row, first in, first out.
///
/// ```
/// # let set = mbuf::BufferSet::standard(64, 8)?;
/// use mbuf::PacketList;
/// let mut list = PacketList::new();
/// list.enqueue(set.header()?);
/// list.enqueue(set.header()?);
/// let mut all = PacketList::new();
/// all.append(&mut list);
/// assert_eq!((all.len(), list.len()), (2, 0));
/// assert_eq!(all.purge(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "mbuf_list")]
#[doc(alias = "m_nextpkt")]
#[derive(Default)]
pub struct PacketList {
    ends: Option<Ends>,
    len: usize,
    bytes: usize,
}

/// First and last packet. The list owns all from one to the other, exclusively, through
/// `next_packet`; the last one's is `None`.
#[derive(Clone, Copy)]
struct Ends {
    head: HeaderPtr,
    tail: HeaderPtr,
}

// SAFETY: as for `Mbuf`, which it is a row of.
unsafe impl Send for PacketList {}
// SAFETY: as for `Mbuf`.
unsafe impl Sync for PacketList {}

impl PacketList {
    /// An empty list.
    #[doc(alias = "ml_init")]
    pub const fn new() -> Self {
        Self {
            ends: None,
            len: 0,
            bytes: 0,
        }
    }

    /// Packets in the list.
    #[doc(alias = "ml_len")]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there is no packet.
    #[doc(alias = "ml_empty")]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ends.is_none()
    }

    /// Bytes in all packets together.
    #[doc(alias = "ml_hdatalen")]
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts a packet behind the others.
    #[doc(alias = "ml_enqueue")]
    #[inline]
    pub fn enqueue(&mut self, packet: Mbuf) {
        let bytes = packet.pkt_len();
        let ptr = packet.into_raw();
        // SAFETY: the packet's only reference has just been handed over.
        unsafe {
            history::note(ptr, LifeEvent::Queued);
            ptr.meta_mut().next_packet = None;
        }
        self.append_ends(
            Ends {
                head: ptr,
                tail: ptr,
            },
            1,
            bytes,
        );
    }

    #[inline]
    fn append_ends(&mut self, more: Ends, len: usize, bytes: usize) {
        match &mut self.ends {
            None => self.ends = Some(more),
            Some(ends) => {
                // SAFETY: our tail is ours, exclusively.
                unsafe { ends.tail.meta_mut() }.next_packet = Some(more.head);
                ends.tail = more.tail;
            }
        }
        self.len += len;
        self.bytes += bytes;
    }

    /// Takes the first packet out.
    #[doc(alias = "ml_dequeue")]
    #[inline]
    pub fn dequeue(&mut self) -> Option<Mbuf> {
        let Ends { head, tail } = self.ends?;
        // SAFETY: the list owns the packet, and lets go of it here.
        let packet = unsafe {
            let next = head.meta_mut().next_packet.take();
            self.ends = next.map(|head| Ends { head, tail });
            history::note(head, LifeEvent::Dequeued);
            Mbuf::from_raw(head)
        };
        self.len -= 1;
        self.bytes -= packet.pkt_len();
        Some(packet)
    }

    /// Puts all packets of `more` behind ours; `more` is empty then. Costs the same for any length.
    #[doc(alias = "ml_enlist")]
    pub fn append(&mut self, more: &mut PacketList) {
        let PacketList { ends, len, bytes } = &mut *more;
        if let Some(ends) = ends.take() {
            self.append_ends(ends, std::mem::take(len), std::mem::take(bytes));
        }
    }

    /// Takes all packets out.
    #[doc(alias = "ml_dechain")]
    pub fn take(&mut self) -> PacketList {
        std::mem::take(self)
    }

    /// Fills the slots of `out` that are `None` with the first packets; how many that were.
    pub fn dequeue_bulk(&mut self, out: &mut [Option<Mbuf>]) -> usize {
        let before = self.len;
        for slot in out.iter_mut().filter(|slot| slot.is_none()) {
            *slot = self.dequeue();
            if slot.is_none() {
                break;
            }
        }
        before - self.len
    }

    /// Frees all packets, in bulk; how many they were.
    #[doc(alias = "ml_purge")]
    #[doc(alias = "m_purge")]
    pub fn purge(&mut self) -> usize {
        let all = self.len;
        let rest = Rest(self);
        rest.0.free_all();
        all
    }

    fn free_all(&mut self) {
        let mut burst = [const { None }; BURST];
        loop {
            let n = self.dequeue_bulk(&mut burst);
            if n == 0 {
                return;
            }
            free_bulk(&mut burst[..n]);
        }
    }

    /// The packets, first to last, for reading.
    pub fn iter(&self) -> PacketListIter<'_> {
        PacketListIter {
            next: self.ends.as_ref().map(|ends| &ends.head),
        }
    }

    /// Notes that a full queue has dropped these packets.
    pub(crate) fn note_dropped(&self) {
        if mempool::CHECKED {
            self.iter().for_each(|m| m.note(LifeEvent::Dropped));
        }
    }
}

/// Goes on with the others when an owner of external storage unwinds.
struct Rest<'a>(&'a mut PacketList);

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            self.0.free_all();
        }
    }
}

impl Drop for PacketList {
    fn drop(&mut self) {
        self.purge();
    }
}

impl Extend<Mbuf> for PacketList {
    fn extend<I: IntoIterator<Item = Mbuf>>(&mut self, packets: I) {
        packets.into_iter().for_each(|m| self.enqueue(m));
    }
}

impl FromIterator<Mbuf> for PacketList {
    fn from_iter<I: IntoIterator<Item = Mbuf>>(packets: I) -> Self {
        let mut list = Self::new();
        list.extend(packets);
        list
    }
}

/// All packets, first to last; what is not taken is freed with the iterator.
pub struct PacketListIntoIter(PacketList);

impl Iterator for PacketListIntoIter {
    type Item = Mbuf;

    fn next(&mut self) -> Option<Mbuf> {
        self.0.dequeue()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len, Some(self.0.len))
    }
}

impl ExactSizeIterator for PacketListIntoIter {}

impl IntoIterator for PacketList {
    type Item = Mbuf;
    type IntoIter = PacketListIntoIter;

    fn into_iter(self) -> PacketListIntoIter {
        PacketListIntoIter(self)
    }
}

impl<'a> IntoIterator for &'a PacketList {
    type Item = &'a Mbuf;
    type IntoIter = PacketListIter<'a>;

    fn into_iter(self) -> PacketListIter<'a> {
        self.iter()
    }
}

/// Iterator over the packets of a list, first to last.
#[derive(Clone)]
pub struct PacketListIter<'a> {
    /// Where the list keeps the pointer to the next packet.
    next: Option<&'a HeaderPtr>,
}

// SAFETY: a view of packets, which nobody writes while it lives.
unsafe impl Send for PacketListIter<'_> {}
// SAFETY: as above.
unsafe impl Sync for PacketListIter<'_> {}

impl<'a> Iterator for PacketListIter<'a> {
    type Item = &'a Mbuf;

    fn next(&mut self) -> Option<&'a Mbuf> {
        let ptr = self.next?;
        // SAFETY: the list owns the packet and is borrowed for `'a`.
        self.next = unsafe { ptr.meta() }.next_packet.as_ref();
        // SAFETY: an `Mbuf` is transparent over the address of its header; this one belongs to
        // the list, and through a shared reference it can only be read.
        Some(unsafe { &*std::ptr::from_ref(ptr).cast::<Mbuf>() })
    }
}

impl fmt::Debug for PacketList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketList len {} bytes {} ", self.len, self.bytes)?;
        f.debug_list().entries(self).finish()
    }
}
