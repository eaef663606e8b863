//! Bursts of packets that are plain by type: inline, unchained, unshared, of one pool.
//!
//! DPDK's FAST_FREE is the promise that a queue only ever sees such packets; nothing checks it. Here
//! the type keeps it. Packets come into a [`PlainBurst`] from their pool, or one by one with a check,
//! and are lent as [`PlainMut`], which can do nothing to them that freeing would have to look
//! at. So the burst goes back to its pool by copying pointers, and no header is read. Whoever wants
//! more of a packet takes it out.

use crate::error::{AllocError, NoRoom, OutOfRange};
use crate::handle::Mbuf;
use crate::header::HeaderPtr;
use crate::history::{self, LifeEvent};
use crate::offload::TxOffload;
use crate::pool::MbufPool;
use crate::word;
use mempool::PoolRef;
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::NonNull;

/// Up to `N` packets of one pool that are inline, unchained and unshared.
///
/// Dereferences to `[Mbuf]` for reading. Dropping it frees the packets, without looking at them.
///
/// ```
/// use mbuf::{BufferSet, Packet, PlainBurst};
///
/// let set = BufferSet::standard(64, 8)?;
/// let mut burst = PlainBurst::<32>::new();
/// burst.fill(set.mbuf_pool(), 32)?;
/// for mut packet in burst.iter_mut() {
///     packet.append(4)?.copy_from_slice(b"ping");
/// }
/// let mut taken = burst.pop().unwrap(); // an ordinary mbuf from here on
/// taken.cat(set.plain()?);
/// assert_eq!((burst.len(), burst[0].pkt_len()), (31, 4));
/// drop((burst, taken));
/// assert!(set.is_full());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// No `&mut Mbuf` is ever lent: with two of them, a chained packet could be swapped in.
///
/// ```compile_fail,E0596
/// # let set = mbuf::BufferSet::standard(64, 8).unwrap();
/// # let mut burst = mbuf::PlainBurst::<2>::new();
/// # burst.fill(set.mbuf_pool(), 2).unwrap();
/// let mut other = set.header().unwrap();
/// std::mem::swap(&mut burst[0], &mut other);
/// ```
#[doc(alias = "RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE")]
#[doc(alias = "rte_mbuf_raw_free_bulk")]
pub struct PlainBurst<const N: usize> {
    /// The first `len` are packets of `pool` whose words rest.
    packets: [MaybeUninit<Mbuf>; N],
    len: usize,
    /// `Some` whenever there are packets, which keep it alive.
    pool: Option<PoolRef>,
}

impl<const N: usize> PlainBurst<N> {
    /// An empty burst.
    pub const fn new() -> Self {
        Self {
            packets: [const { MaybeUninit::uninit() }; N],
            len: 0,
            pool: None,
        }
    }

    /// Frees what the burst holds and takes `n` empty header mbufs from `pool`, all or none.
    ///
    /// # Errors
    /// [`AllocError::BurstTooLong`] if `n` is more than `N`, when nothing changes;
    /// [`AllocError::Exhausted`], when the burst is empty.
    #[doc(alias = "rte_mbuf_raw_alloc_bulk")]
    #[inline]
    pub fn fill(&mut self, pool: &MbufPool, n: usize) -> Result<(), AllocError> {
        if n > N {
            return Err(AllocError::BurstTooLong { asked: n, room: N });
        }
        self.clear();
        pool.headers_into(&mut self.packets[..n])?;
        self.pool = Some(pool.raw().pool_ref());
        self.len = n;
        Ok(())
    }

    /// Takes the last packet out: an ordinary mbuf, which may be chained and shared.
    #[inline]
    pub fn pop(&mut self) -> Option<Mbuf> {
        self.len = self.len.checked_sub(1)?;
        // SAFETY: the last of the packets, which is no more in the burst.
        Some(unsafe { self.packets[self.len].assume_init_read() })
    }

    /// Takes packet `index` out; the last one comes into its place.
    pub fn swap_remove(&mut self, index: usize) -> Option<Mbuf> {
        if index >= self.len {
            return None;
        }
        self.packets.swap(index, self.len - 1);
        self.pop()
    }

    /// Takes packet `index` out; those behind it move up.
    pub fn remove(&mut self, index: usize) -> Option<Mbuf> {
        if index >= self.len {
            return None;
        }
        self.packets[index..self.len].rotate_left(1);
        self.pop()
    }

    /// Forgets the first `count` packets; those behind them move up.
    ///
    /// # Safety
    /// There are as many, and they are somebody else's now.
    #[inline]
    pub(crate) unsafe fn forget_front(&mut self, count: usize) {
        self.len -= count;
        let packets = self.packets.as_mut_ptr();
        // SAFETY: the packets behind the first `count`, within the array.
        unsafe { packets.copy_from(packets.add(count), self.len) };
    }

    /// Takes a packet in, which must be inline, unchained, unshared, and of the burst's pool (of any
    /// if the burst is empty).
    ///
    /// # Errors
    /// The packet, if it is not, or if the burst is full.
    #[inline]
    pub fn push(&mut self, packet: Mbuf) -> Result<(), Mbuf> {
        // SAFETY: the handle holds the packet.
        let (word, pool) = unsafe { (packet.ptr().word().load(), packet.ptr().fields().pool) };
        let fits = self.len < N && (self.len == 0 || self.pool == Some(pool));
        if !fits || word != word::resting_of(word) {
            return Err(packet);
        }
        self.pool = Some(pool);
        self.packets[self.len].write(packet);
        self.len += 1;
        Ok(())
    }

    /// Packet `index`, for writing.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<PlainMut<'_>> {
        let packet = self.packets[..self.len].get_mut(index)?;
        // SAFETY: one of the packets.
        Some(PlainMut(unsafe { packet.assume_init_mut() }))
    }

    /// All packets, for writing.
    #[inline]
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = PlainMut<'_>> {
        let packets = self.packets[..self.len].iter_mut();
        // SAFETY: these are the packets.
        packets.map(|packet| PlainMut(unsafe { packet.assume_init_mut() }))
    }

    /// Frees all packets.
    #[inline]
    pub fn clear(&mut self) {
        let len = std::mem::take(&mut self.len);
        // SAFETY: the first `len` are packets of the pool, and no more in the burst.
        unsafe { free(self.packets.as_mut_ptr().cast(), len, self.pool) };
    }

    /// The pool of the packets, `None` if there are none.
    pub fn pool(&self) -> Option<PoolRef> {
        self.pool.filter(|_| self.len > 0)
    }
}

/// Gives `len` packets of `pool` back, without a look at them.
///
/// # Safety
/// So many packets of this pool lie there, whose words rest, and which the caller has given up.
#[inline(always)]
pub(crate) unsafe fn free(packets: *mut Mbuf, len: usize, pool: Option<PoolRef>) {
    if let Some(pool) = pool
        && len > 0
    {
        // SAFETY: by contract. An `Mbuf` is the address of its element.
        unsafe {
            let objects = std::slice::from_raw_parts(packets.cast::<NonNull<u8>>(), len);
            if mempool::CHECKED {
                for object in objects {
                    history::note(HeaderPtr(object.cast()), LifeEvent::Free);
                }
            }
            pool.put_bulk(objects);
        }
    }
}

impl<const N: usize> Drop for PlainBurst<N> {
    #[inline]
    fn drop(&mut self) {
        self.clear();
    }
}

impl<const N: usize> Default for PlainBurst<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Deref for PlainBurst<N> {
    type Target = [Mbuf];

    #[inline]
    fn deref(&self) -> &[Mbuf] {
        // SAFETY: these are the packets. What can be done through `&Mbuf` leaves their words at rest.
        unsafe { self.packets[..self.len].assume_init_ref() }
    }
}

impl<const N: usize> fmt::Debug for PlainBurst<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A packet of a [`PlainBurst`], for writing: everything that leaves it plain.
pub struct PlainMut<'a>(&'a mut Mbuf);

impl<'a> PlainMut<'a> {
    /// The packet, for what leaves it plain.
    pub(crate) fn mbuf(&mut self) -> &mut Mbuf {
        self.0
    }

    /// The packet's bytes.
    #[inline]
    pub fn data_mut(&mut self) -> &mut [u8] {
        // Inline room is never shared.
        self.0.data_mut().unwrap_or_default()
    }

    /// As [`Mbuf::prepend`].
    ///
    /// # Errors
    /// [`NoRoom`] when the headroom is shorter.
    #[inline]
    pub fn prepend(&mut self, n: usize) -> Result<&mut [u8], NoRoom> {
        self.0.prepend(n)
    }

    /// As [`Mbuf::append`].
    ///
    /// # Errors
    /// [`NoRoom`] when the tailroom is shorter.
    #[inline]
    pub fn append(&mut self, n: usize) -> Result<&mut [u8], NoRoom> {
        self.0.append(n)
    }

    /// As [`Mbuf::trim_front`].
    ///
    /// # Errors
    /// [`OutOfRange`] when the packet is shorter.
    pub fn trim_front(&mut self, n: usize) -> Result<(), OutOfRange> {
        self.0.trim_front(n)
    }

    /// As [`Mbuf::trim_back`].
    ///
    /// # Errors
    /// [`OutOfRange`] when the packet is shorter.
    pub fn trim_back(&mut self, n: usize) -> Result<(), OutOfRange> {
        self.0.trim_back(n)
    }

    /// As [`Mbuf::set_lead`].
    ///
    /// # Errors
    /// [`NoRoom`] when the room is smaller, or holds data.
    #[inline]
    pub fn set_lead(&mut self, n: usize) -> Result<(), NoRoom> {
        self.0.set_lead(n)
    }

    /// As [`Mbuf::set_offload`].
    pub fn set_offload(&mut self, offload: TxOffload) {
        self.0.set_offload(offload);
    }

    /// As [`Mbuf::set_user`].
    pub fn set_user(&mut self, user: u64) {
        self.0.set_user(user);
    }
}

impl Deref for PlainMut<'_> {
    type Target = Mbuf;

    #[inline]
    fn deref(&self) -> &Mbuf {
        self.0
    }
}
