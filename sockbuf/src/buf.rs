//! One direction of a socket as a stream: bytes in mbufs, with two limits.

mod urgent;
mod write;

use mbuf::{BufferSet, Chain, CopyError, Mbuf, OutOfRange, Packet, Segment, Segments, free_bulk};

use crate::compress::compress;
use crate::error::PastEnd;
use crate::side::{Held, Side};
use crate::usage::StorageUse;

/// A stream of bytes in a chain of mbufs.
///
/// Reading at an offset costs the same in a long buffer as in a short one, as long as it goes on where
/// the read before it ended: the places of two reads are remembered, so that data which is sent
/// again does not cost new data its place.
///
/// ```
/// use mbuf::BufferSet;
/// use sockbuf::SockBuf;
///
/// let set = BufferSet::bsd(64, 8)?;
/// let mut sb = SockBuf::new(65536);
/// assert_eq!(sb.write(b"hello, world", &set)?, 12);
/// let mut word = [0; 5];
/// sb.copy_to(7, &mut word)?;
/// assert_eq!(&word, b"world");
/// sb.drop_front(7)?;
/// assert_eq!((sb.len(), sb.space()), (5, 65531));
/// assert!(sb.drop_front(6).is_err(), "past the end");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
#[doc(alias = "sockbuf")]
pub struct SockBuf {
    /// The bytes; its counters are ours.
    chain: Chain,
    side: Side,
    /// Position of the urgent mark.
    urgent: Option<usize>,
}

impl SockBuf {
    /// An empty buffer for `hiwat` bytes that may hold down eight times as much storage, at least
    /// 192 KB.
    #[must_use]
    pub const fn new(hiwat: usize) -> Self {
        Self::with_side(Side::receiving(hiwat))
    }

    /// An empty buffer for `hiwat` bytes and `mbmax` bytes of storage.
    #[must_use]
    pub const fn with_limits(hiwat: usize, mbmax: usize) -> Self {
        Self::with_side(Side::with_limits(hiwat, mbmax))
    }

    /// An empty buffer with these limits.
    #[must_use]
    pub const fn with_side(side: Side) -> Self {
        SockBuf {
            chain: Chain::new(),
            side,
            urgent: None,
        }
    }

    /// The limits, and what else was said of this side.
    #[inline]
    #[must_use]
    pub fn side(&self) -> &Side {
        &self.side
    }

    /// The same, to be changed.
    #[inline]
    pub fn side_mut(&mut self) -> &mut Side {
        &mut self.side
    }

    /// Changes the limits. They may be lower than what is in use: [`space`](Self::space) is negative
    /// then, and nothing is dropped.
    pub fn set_limits(&mut self, hiwat: usize, mbmax: usize) {
        self.side.set_limits(hiwat, mbmax);
    }

    /// Bytes in the buffer.
    #[doc(alias = "sb_cc")]
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.chain.len()
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chain.len() == 0
    }

    /// Storage held down: each mbuf, and each cluster at its full size.
    #[doc(alias = "sb_mbcnt")]
    #[must_use]
    pub fn charge(&self) -> usize {
        self.chain.charge()
    }

    /// Segments in the buffer.
    #[must_use]
    pub fn segs(&self) -> usize {
        self.chain.segs()
    }

    /// Bytes and storage in use, to be held against the limits.
    #[inline]
    #[must_use]
    pub fn held(&self) -> Held {
        Held {
            bytes: self.chain.len(),
            storage: self.chain.charge(),
        }
    }

    /// What the bytes cost in storage. Walks the buffer.
    #[must_use]
    pub fn storage_use(&self) -> StorageUse {
        StorageUse::of(&self.chain)
    }

    /// The limit in bytes.
    #[doc(alias = "sb_hiwat")]
    #[inline]
    #[must_use]
    pub fn hiwat(&self) -> usize {
        self.side.hiwat()
    }

    /// The limit in storage, bytes.
    #[doc(alias = "sb_mbmax")]
    #[must_use]
    pub fn mbmax(&self) -> usize {
        self.side.mbmax()
    }

    /// Bytes that may still be added, by whichever limit is nearer.
    ///
    /// Negative after a limit was lowered, or after an append that took more storage than was left:
    /// space is asked for in bytes and charged in storage.
    #[doc(alias = "sbspace")]
    #[inline]
    #[must_use]
    pub fn space(&self) -> isize {
        self.side.space(self.held())
    }

    /// The segments, first to last.
    #[must_use]
    pub fn segments(&self) -> Segments<'_> {
        self.chain.segments()
    }

    /// The first segment.
    #[doc(alias = "sb_mb")]
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<Segment<'_>> {
        self.chain.first()
    }

    /// The segment that holds the byte at `off`, and the byte's place in it; `None` at the end and
    /// beyond.
    #[doc(alias = "sbsndptr")]
    #[doc(alias = "m_getptr")]
    #[must_use]
    pub fn seek(&self, off: usize) -> Option<(Segment<'_>, usize)> {
        self.chain.seek(off)
    }

    /// How many mbufs [`seek`](Self::seek) passes over on its way; `None` where it finds none.
    #[must_use]
    pub fn steps_to(&self, off: usize) -> Option<usize> {
        self.chain.steps_to(off)
    }

    /// Links a packet's mbufs behind ours; no byte is copied. Empty mbufs are freed.
    ///
    /// Does not look at the limits: whoever appends has asked for [`space`](Self::space).
    /// [`append_packed`](Self::append_packed) saves storage where mbufs hold little.
    ///
    /// Nobody else can change the packet's lengths afterwards, so the counters hold:
    ///
    /// ```compile_fail,E0382
    /// # let set = mbuf::BufferSet::bsd(64, 8).unwrap();
    /// # let mut sb = sockbuf::SockBuf::new(65536);
    /// let mut m = set.copy_in(b"received", 0).unwrap();
    /// sb.append_stream(m);
    /// m.trim_back(1).unwrap();
    /// ```
    #[doc(alias = "sbappendstream")]
    pub fn append_stream(&mut self, mut packet: Mbuf) {
        // Headers leave an empty mbuf in front when they were trimmed off.
        if packet.first().is_empty() {
            match packet.split_first() {
                (_, Some(rest)) => packet = rest,
                (_, None) => return,
            }
        }
        if packet.segments().all(|seg| !seg.is_empty()) {
            self.chain.push_back(packet);
        } else {
            self.append_without_empties(packet);
        }
        self.check("append_stream");
    }

    /// As [`append_stream`](Self::append_stream), but what is small is copied where there is room: an mbuf
    /// of at most a quarter of our last one's storage, into that one's tail room. So a peer that
    /// sends little at a time does not have a cluster held down by each packet.
    ///
    /// ```
    /// use mbuf::BufferSet;
    /// use sockbuf::SockBuf;
    /// let set = BufferSet::bsd(256, 128)?;
    /// let mut sb = SockBuf::new(65536);
    /// for _ in 0..100 {
    ///     let mut received = set.header_with(2048)?;
    ///     received.append(60)?;
    ///     sb.append_packed(received);
    /// }
    /// assert_eq!((sb.len(), sb.segs()), (6000, 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "sbappendstream")]
    #[doc(alias = "sbcompress")]
    pub fn append_packed(&mut self, packet: Mbuf) {
        compress(&mut self.chain, packet, true);
        self.check("append_packed");
    }

    /// Links as much of a packet as there is [`space`](Self::space) for and returns the rest, which
    /// begins with the first byte that was not taken: all of it when there is no space.
    ///
    /// Where the limit lies within a cluster, both parts refer to it. Where there is no mbuf for that,
    /// the packet is cut before that segment.
    #[doc(alias = "sosend")]
    pub fn append_some(&mut self, mut packet: Mbuf, set: &BufferSet) -> Option<Mbuf> {
        let space = usize::try_from(self.space()).unwrap_or(0);
        if packet.pkt_len() <= space {
            self.append_stream(packet);
            return None;
        }
        if space == 0 {
            return Some(packet);
        }
        if let Ok(rest) = packet.split(space, set) {
            self.append_stream(packet);
            return Some(rest);
        }
        let mut whole = Chain::new();
        whole.push_back(packet);
        if let Some(front) = whole.take_whole(space) {
            self.append_stream(front);
        }
        whole.into_packet()
    }

    #[cold]
    fn append_without_empties(&mut self, packet: Mbuf) {
        let mut rest = Some(packet);
        while let Some(packet) = rest {
            let (first, behind) = packet.split_first();
            if first.pkt_len() > 0 {
                self.chain.push_back(first);
            }
            rest = behind;
        }
    }

    /// Removes `n` bytes from the front and frees the mbufs that they leave empty.
    ///
    /// # Errors
    /// [`PastEnd`] when there are fewer; nothing has changed then.
    #[doc(alias = "sbdrop")]
    pub fn drop_front(&mut self, n: usize) -> Result<(), PastEnd> {
        free_bulk(&mut [self.cut(n)?]);
        Ok(())
    }

    /// Removes `n` bytes from the front and hands out the mbufs that they leave empty, so that the
    /// caller frees them where it suits him. An mbuf that is only partly dropped stays.
    ///
    /// # Errors
    /// [`PastEnd`] when there are fewer; nothing has changed then.
    #[doc(alias = "sbcut_locked")]
    pub fn cut(&mut self, n: usize) -> Result<Option<Mbuf>, PastEnd> {
        let removed = self.chain.cut(n).map_err(|e| PastEnd {
            asked: n,
            have: e.have,
        })?;
        self.check("cut");
        Ok(removed)
    }

    /// Removes everything and hands it out. The urgent mark is forgotten.
    #[doc(alias = "sbflush")]
    pub fn take_all(&mut self) -> Option<Mbuf> {
        self.urgent = None;
        self.take_whole(usize::MAX)
    }

    /// Frees everything and sets the limits to 0: nothing goes in any more.
    #[doc(alias = "sbrelease")]
    pub fn release(&mut self) {
        free_bulk(&mut [self.take_all()]);
        self.side.set_limits(0, 0);
    }

    /// Removes whole mbufs from the front, as many as hold at most `max` bytes.
    pub(crate) fn take_whole(&mut self, max: usize) -> Option<Mbuf> {
        let taken = self.chain.take_whole(max);
        self.check("take_whole");
        taken
    }

    /// A packet that refers to the bytes at `off..off + len`: clusters by reference, inline bytes
    /// copied. The buffer keeps them.
    ///
    /// # Errors
    /// [`CopyError`] when the range is not all there, or for want of mbufs. The buffer is unchanged.
    #[doc(alias = "m_copym")]
    pub fn ref_copy(&self, off: usize, len: usize, set: &BufferSet) -> Result<Mbuf, CopyError> {
        self.chain.ref_copy(off, len, set)
    }

    /// Copies the bytes at `off` into `dst`, all of it.
    ///
    /// # Errors
    /// [`OutOfRange`] when the range is not all there; `dst` is unchanged then.
    #[doc(alias = "m_copydata")]
    #[inline]
    pub fn copy_to(&self, off: usize, dst: &mut [u8]) -> Result<(), OutOfRange> {
        self.chain.copy_to(off, dst)
    }

    /// Recounts everything, in debug builds, and panics with the place's name if a counter is wrong.
    /// Every method that changes something ends with it.
    #[doc(alias = "sbcheck")]
    #[inline]
    pub fn check(&self, place: &str) {
        if cfg!(debug_assertions) {
            self.recount(place);
        }
    }

    #[cold]
    fn recount(&self, place: &str) {
        let (mut bytes, mut charge, mut segs) = (0, 0, 0);
        for seg in self.segments() {
            assert!(!seg.is_empty(), "{place}: empty mbuf in the buffer");
            bytes += seg.len();
            charge += seg.charge();
            segs += 1;
        }
        let counted = (self.chain.len(), self.chain.charge(), self.chain.segs());
        assert_eq!(
            counted,
            (bytes, charge, segs),
            "{place}: bytes, storage, mbufs: counters against recount"
        );
    }
}
