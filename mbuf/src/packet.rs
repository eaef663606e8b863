//! The read side of a packet, the same on every handle.

use crate::check::{self, Broken};
use crate::copy::{self, ByteSlices};
use crate::dump::{Dump, Hexdump};
use crate::error::{CopyError, OutOfRange, ReadError};
use crate::handle::Mbuf;
use crate::header::{HeaderPtr, SegFlags};
use crate::history::{self, LifeEvent, LifeEvents};
use crate::io::{self, Covered, IoSlices, PacketReader};
use crate::meta::{self, Flow, Received};
use crate::offload::TxOffload;
use crate::pool::MbufPool;
use crate::prefetch;
use crate::private;
use crate::segment::{Segment, Segments};
use crate::set::BufferSet;
use crate::tag::{self, Tag, Tags};
use crate::word;
use std::io::IoSlice;

/// Keeps [`Packet`] to this crate: bulk free relies on what its implementors look like in memory.
pub trait Sealed {
    #[doc(hidden)]
    fn raw(&self) -> RawPacket;
}

/// A header's address, opaque outside of this crate.
#[derive(Clone, Copy)]
pub struct RawPacket(pub(crate) HeaderPtr);

/// What can be read of a packet, whichever handle holds it: [`Mbuf`], [`SharedMbuf`] or [`TxMbuf`].
///
/// [`SharedMbuf`]: crate::SharedMbuf
/// [`TxMbuf`]: crate::TxMbuf
pub trait Packet: Sealed {
    /// The first segment.
    #[inline(always)]
    fn first(&self) -> Segment<'_> {
        // SAFETY: the handle is borrowed for as long as the view lives.
        unsafe { Segment::new(self.raw().0) }
    }

    /// All segments, first to last.
    #[inline(always)]
    fn segments(&self) -> Segments<'_> {
        Segments(Some(self.first()))
    }

    /// Asks for the line of the header that freeing, lengths and segments need; a hint, which does nothing
    /// where the processor has none.
    ///
    /// It pays a few packets ahead of where one is, for packets that were not looked at for long:
    ///
    /// ```
    /// # let set = mbuf::BufferSet::standard(64, 8)?;
    /// use mbuf::Packet;
    /// let burst: Vec<_> = (0..32).map(|_| set.header()).collect::<Result<_, _>>()?;
    /// for (at, m) in burst.iter().enumerate() {
    ///     if let Some(ahead) = burst.get(at + 4) {
    ///         ahead.prefetch_header();
    ///     }
    ///     assert_eq!(m.pkt_len(), 0);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "rte_mbuf_prefetch_part1")]
    #[inline(always)]
    fn prefetch_header(&self) {
        prefetch::line(self.raw().0.lines()[0]);
    }

    /// Asks for the line of the header that says how the packet was received, what a device shall do with
    /// it, and the user word.
    #[doc(alias = "rte_mbuf_prefetch_part2")]
    #[inline(always)]
    fn prefetch_meta(&self) {
        prefetch::line(self.raw().0.lines()[1]);
    }

    /// Asks for the line in which the data begin. Where they are is read from the header, which is
    /// therefore better here already.
    #[inline(always)]
    fn prefetch_data(&self) {
        prefetch::line(self.first().data().as_ptr());
    }

    /// Bytes in the packet.
    #[doc(alias = "m_pkthdr.len")]
    #[inline(always)]
    fn pkt_len(&self) -> usize {
        self.first().fields().pkt_len
    }

    /// Segments in the packet, at least 1.
    #[doc(alias = "nb_segs")]
    #[inline(always)]
    fn nsegs(&self) -> usize {
        self.first().fields().nsegs as usize
    }

    /// Offload requests; the default when nothing is asked.
    #[inline]
    fn offload(&self) -> TxOffload {
        let seg = self.first();
        if seg.fields().flags.contains(SegFlags::OFFLOAD) {
            // SAFETY: line 1 was written when the flag was set; the borrow keeps writers away.
            unsafe { seg.ptr().meta() }.offload
        } else {
            TxOffload::default()
        }
    }

    /// The word that the owner has set, 0 before.
    fn user(&self) -> u64 {
        let seg = self.first();
        if seg.fields().flags.contains(SegFlags::USER) {
            // SAFETY: as in `offload`.
            unsafe { seg.ptr().meta() }.user
        } else {
            0
        }
    }

    /// How the packet was received; `None` when nobody has said.
    #[inline]
    fn received(&self) -> Option<Received> {
        meta::received(self)
    }

    /// The VLAN tag that is not in the bytes.
    #[doc(alias = "ether_vtag")]
    #[doc(alias = "M_VLANTAG")]
    #[inline]
    fn vlan(&self) -> Option<u16> {
        meta::said(self, SegFlags::VLAN).map(|meta| meta.vlan)
    }

    /// The timestamp in nanoseconds. BSD's `m_microtime` is
    /// `m.timestamp().unwrap_or_else(now)`.
    #[doc(alias = "m_microtime")]
    #[doc(alias = "ph_timestamp")]
    #[inline]
    fn timestamp(&self) -> Option<u64> {
        meta::said(self, SegFlags::TIMESTAMP).map(|meta| meta.timestamp)
    }

    /// The flow that the packet belongs to.
    #[doc(alias = "ph_flowid")]
    #[inline]
    fn flow(&self) -> Option<Flow> {
        meta::flow(self)
    }

    /// The priority.
    #[inline]
    fn priority(&self) -> Option<u8> {
        meta::said(self, SegFlags::PRIORITY).map(|meta| meta.priority)
    }

    /// The tags, newest first.
    #[doc(alias = "m_tag_first")]
    fn tags(&self) -> Tags<'_> {
        tag::tags(self)
    }

    /// The newest tag of this kind; most absent ones are found so without a walk.
    #[doc(alias = "m_tag_find")]
    fn tag(&self, id: u16) -> Option<Tag<'_>> {
        tag::find(self, id)
    }

    /// The bytes for named fields of the first segment; none when its pool has no room for fields.
    fn private(&self) -> &[u8] {
        private::view(self).map_or(&[], |area| area.fields)
    }

    /// Gathers `dst.len()` bytes from `offset`.
    ///
    /// # Errors
    /// [`OutOfRange`] when they are not all there; `dst` is unchanged then.
    #[doc(alias = "m_copydata")]
    fn copy_to(&self, offset: usize, dst: &mut [u8]) -> Result<(), OutOfRange> {
        copy::gather(self.segments(), self.pkt_len(), offset, dst)
    }

    /// The bytes `[offset, offset + len)` as slices, one per segment that holds any of them.
    ///
    /// # Errors
    /// [`OutOfRange`] when they are not all there.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::bsd(64, 8)?;
    /// use mbuf::Packet;
    /// let mut m = set.copy_in(b"one ", 0)?;
    /// m.cat(set.copy_in(b"two", 0)?);
    /// assert!(m.pieces(1, 5)?.eq([&b"ne "[..], &b"tw"[..]]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "m_apply")]
    fn pieces(&self, offset: usize, len: usize) -> Result<ByteSlices<'_>, OutOfRange> {
        OutOfRange::check(offset, len, self.pkt_len())?;
        Ok(ByteSlices(copy::pieces(self.segments(), offset, len)))
    }

    /// The segment that holds byte `offset`, and the byte's place in it. At the very end: the
    /// end of the last segment.
    ///
    /// # Errors
    /// [`OutOfRange`] beyond the end.
    #[doc(alias = "m_getptr")]
    fn locate(&self, offset: usize) -> Result<(Segment<'_>, usize), OutOfRange> {
        copy::locate(self.segments(), self.pkt_len(), offset)
    }

    /// The bytes `[offset, offset + len)`: where they lie when one segment holds them all, else
    /// gathered in the front of `scratch`.
    ///
    /// # Errors
    /// [`ReadError`] when they are not all there, or not contiguous and `scratch` is shorter;
    /// `scratch` is unchanged then.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::bsd(64, 8)?;
    /// use mbuf::Packet;
    /// let mut m = set.copy_in(b"one ", 0)?;
    /// m.cat(set.copy_in(b"two", 0)?);
    /// assert_eq!(m.read(4, 3, &mut [])?, b"two");
    /// assert_eq!(m.read(2, 3, &mut [0; 8])?, b"e t");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "rte_pktmbuf_read")]
    fn read<'a>(
        &'a self,
        offset: usize,
        len: usize,
        scratch: &'a mut [u8],
    ) -> Result<&'a [u8], ReadError> {
        copy::read(self.segments(), self.pkt_len(), offset, len, scratch)
    }

    /// All bytes, gathered.
    fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.pkt_len());
        self.segments()
            .for_each(|s| bytes.extend_from_slice(s.data()));
        bytes
    }

    /// A packet with the same bytes `[offset, offset + len)`: clusters and external storage by
    /// reference, inline room by copying. What is shared is read-only for both while both live.
    ///
    /// `len` 0 gives an empty packet, also at the very end. The head is a header mbuf when the
    /// copy starts at 0 and the source's first segment is one. A copy from 0 takes over what the
    /// header says of the packet.
    ///
    /// # Errors
    /// [`CopyError`]; nothing is taken then and the source is unchanged.
    #[doc(alias = "m_copym")]
    fn ref_copy(&self, offset: usize, len: usize, set: &BufferSet) -> Result<Mbuf, CopyError> {
        let mut copy = copy::reference(self.segments(), self.pkt_len(), offset, len, set)?;
        if offset == 0 {
            copy.copy_header_from(self);
        }
        Ok(copy)
    }

    /// A packet with the same bytes and header, as [`ref_copy`](Self::ref_copy) makes it.
    ///
    /// A packet that nobody is to write any more is shared at no cost by
    /// [`Mbuf::into_shared`].
    ///
    /// # Errors
    /// [`CopyError`]; nothing is taken then.
    #[doc(alias = "rte_pktmbuf_clone")]
    fn clone_packet(&self, set: &BufferSet) -> Result<Mbuf, CopyError> {
        self.ref_copy(0, self.pkt_len(), set)
    }

    /// The bytes `[offset, offset + len)` copied into one piece of storage, the smallest that
    /// takes them with `lead` bytes of headroom. A copy from 0 takes over what the header says of
    /// the packet.
    ///
    /// # Errors
    /// [`CopyError`]; nothing is taken then.
    #[doc(alias = "rte_pktmbuf_copy")]
    fn byte_copy(
        &self,
        offset: usize,
        len: usize,
        lead: usize,
        set: &BufferSet,
    ) -> Result<Mbuf, CopyError> {
        let mut copy = copy::bytes(self.segments(), self.pkt_len(), offset, len, lead, set)?;
        if offset == 0 {
            copy.copy_header_from(self);
        }
        Ok(copy)
    }

    /// The bytes from `offset` to the end copied into one piece of storage, as
    /// [`byte_copy`](Self::byte_copy) does; from the very end that is an empty packet.
    ///
    /// # Errors
    /// [`CopyError`]; nothing is taken then.
    #[doc(alias = "M_COPYALL")]
    fn byte_copy_from(
        &self,
        offset: usize,
        lead: usize,
        set: &BufferSet,
    ) -> Result<Mbuf, CopyError> {
        OutOfRange::check(offset, 0, self.pkt_len())?;
        self.byte_copy(offset, self.pkt_len() - offset, lead, set)
    }

    /// The whole packet copied into one piece of storage with `lead` bytes of headroom.
    ///
    /// # Errors
    /// [`CopyError`]; nothing is taken then.
    #[doc(alias = "m_dup_pkt")]
    #[doc(alias = "m_copym2")]
    fn deep_copy(&self, lead: usize, set: &BufferSet) -> Result<Mbuf, CopyError> {
        self.byte_copy_from(0, lead, set)
    }

    /// Recounts what the header says of the chain.
    ///
    /// # Errors
    /// The first rule that does not hold.
    #[doc(alias = "rte_mbuf_check")]
    fn check(&self) -> Result<(), Broken> {
        check::packet(self)
    }

    /// As [`check`](Self::check), and that it is as `pool` hands mbufs out: unshared, unchained, in
    /// its own room.
    ///
    /// # Errors
    /// The first rule that does not hold.
    #[doc(alias = "rte_mbuf_raw_sanity_check")]
    fn check_fresh(&self, pool: &MbufPool) -> Result<(), Broken> {
        check::fresh(self, pool)
    }

    /// How many handles the packet has.
    #[doc(alias = "rte_mbuf_refcnt_read")]
    fn references(&self) -> usize {
        // SAFETY: the handle that is borrowed holds the element.
        word::count(unsafe { self.raw().0.word() }.load()) as usize
    }

    /// The packet for printing, one line per segment.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::standard(64, 8)?;
    /// use mbuf::Packet;
    /// let mut m = set.header()?;
    /// m.append(3)?.copy_from_slice(b"abc");
    /// println!("{}\n{}", m.dump(), m.hexdump(0, 64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "rte_pktmbuf_dump")]
    fn dump(&self) -> Dump<'_, Self> {
        Dump(self)
    }

    /// The bytes `[offset, offset + len)` for printing, as far as they are there, 16 on a line.
    fn hexdump(&self, offset: usize, len: usize) -> Hexdump<'_> {
        Hexdump {
            segments: self.segments(),
            offset,
            len,
        }
    }

    /// Reads the bytes, first to last, as `std::io` does; with the feature `bytes` also as a `Buf`.
    fn reader(&self) -> PacketReader<'_> {
        PacketReader::new(self)
    }

    /// The bytes as slices for a vectored write, one per segment that is not empty.
    fn io_slices(&self) -> IoSlices<'_> {
        IoSlices(self.reader())
    }

    /// Fills `out` with slices of the bytes from `offset` on, as many as there are; the others are
    /// left alone.
    #[doc(alias = "writev")]
    fn fill_io_slices<'a>(&'a self, offset: usize, out: &mut [IoSlice<'a>]) -> Covered {
        let mut from = self.reader();
        from.skip_bytes(offset);
        io::fill(from, out)
    }

    /// Writes all bytes, up to 16 segments at a time.
    ///
    /// # Errors
    /// What `to` says; how much it has taken by then, it knows.
    fn write_to(&self, to: &mut impl std::io::Write) -> std::io::Result<()> {
        io::write_to(self.reader(), to)
    }

    /// Notes that something has happened to the packet, in its [history](Self::history). Outside
    /// of checked mode ([`mempool::CHECKED`]) this is nothing.
    #[doc(alias = "rte_mbuf_history_mark")]
    #[inline(always)]
    fn note(&self, event: LifeEvent) {
        // SAFETY: the handle that is borrowed holds the packet.
        unsafe { history::note(self.raw().0, event) }
    }

    /// What has happened to the first segment, newest first: the last 16 events, also from before it
    /// was allocated. Nothing outside of checked mode.
    fn history(&self) -> LifeEvents {
        LifeEvents::of(self)
    }
}
