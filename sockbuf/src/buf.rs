//! One direction of a socket as a stream: bytes in mbufs, with two limits.

use mbuf::{AllocError, BufferSet, Chain, CopyError, Mbuf, OutOfRange, Packet, Segment, Segments};

use crate::error::{PastEnd, WriteError};

/// Storage that any buffer may hold down, however small its limit in bytes.
const LEAST_STORAGE: usize = 3 * 65536;

/// Storage allowed for each byte of the limit.
const STORAGE_PER_BYTE: usize = 8;

/// A stream of bytes in a chain of mbufs.
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
    /// Limit in bytes.
    hiwat: usize,
    /// Limit in storage.
    mbmax: usize,
}

impl SockBuf {
    /// An empty buffer for `hiwat` bytes that may hold down eight times as much storage, at least
    /// 192 KB.
    #[doc(alias = "sbreserve")]
    #[must_use]
    pub fn new(hiwat: usize) -> Self {
        Self::with_limits(
            hiwat,
            hiwat.saturating_mul(STORAGE_PER_BYTE).max(LEAST_STORAGE),
        )
    }

    /// An empty buffer for `hiwat` bytes and `mbmax` bytes of storage.
    #[must_use]
    pub const fn with_limits(hiwat: usize, mbmax: usize) -> Self {
        SockBuf {
            chain: Chain::new(),
            hiwat,
            mbmax,
        }
    }

    /// Changes the limits. They may be lower than what is in use: [`space`](Self::space) is negative
    /// then, and nothing is dropped.
    pub fn set_limits(&mut self, hiwat: usize, mbmax: usize) {
        self.hiwat = hiwat;
        self.mbmax = mbmax;
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

    /// The limit in bytes.
    #[doc(alias = "sb_hiwat")]
    #[inline]
    #[must_use]
    pub fn hiwat(&self) -> usize {
        self.hiwat
    }

    /// The limit in storage, bytes.
    #[doc(alias = "sb_mbmax")]
    #[must_use]
    pub fn mbmax(&self) -> usize {
        self.mbmax
    }

    /// Bytes that may still be added, by whichever limit is nearer.
    ///
    /// Negative after a limit was lowered, or after an append that took more storage than was left:
    /// space is asked for in bytes and charged in storage.
    #[doc(alias = "sbspace")]
    #[must_use]
    pub fn space(&self) -> isize {
        let left = |limit: usize, used: usize| {
            let limit = isize::try_from(limit).unwrap_or(isize::MAX);
            limit.saturating_sub_unsigned(used)
        };
        left(self.hiwat, self.len()).min(left(self.mbmax, self.charge()))
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

    /// The segment that holds the byte at `off`, and the byte's place in it. Walks from the front.
    #[must_use]
    pub fn seek(&self, off: usize) -> Option<(Segment<'_>, usize)> {
        self.chain.seek(off)
    }

    /// Links a packet's mbufs behind ours; no byte is copied. Empty mbufs are freed.
    ///
    /// Does not look at the limits: whoever appends has asked for [`space`](Self::space).
    #[doc(alias = "sbappendstream")]
    pub fn append_stream(&mut self, packet: Mbuf) {
        if packet.segments().all(|seg| !seg.is_empty()) {
            self.chain.push_back(packet);
        } else {
            self.append_without_empties(packet);
        }
        self.check("append_stream");
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

    /// Copies bytes in, as many as there is space for, and says how many that were.
    ///
    /// The last mbuf's tail room is filled first, then plain mbufs and clusters of the smallest class
    /// that takes what is left; all are filled from their start, so that the next write finds the
    /// tail room. An empty slice writes 0 bytes.
    ///
    /// # Errors
    /// [`WriteError`] when not one byte could be written; nothing has changed then. When memory runs
    /// out later, what was written until then counts.
    #[doc(alias = "sosend")]
    #[doc(alias = "m_getuio")]
    pub fn write(&mut self, data: &[u8], set: &BufferSet) -> Result<usize, WriteError> {
        let space = self.space();
        let accepted = data.len().min(usize::try_from(space).unwrap_or(0));
        if accepted == 0 && !data.is_empty() {
            return Err(WriteError::Full {
                queued: self.len(),
                space,
            });
        }
        let data = &data[..accepted];
        let mut done = self.chain.append_bytes(data);
        while done < data.len() {
            match filled(&data[done..], set) {
                Ok(m) => {
                    done += m.pkt_len();
                    self.chain.push_back(m);
                }
                Err(error) if done == 0 => return Err(error.into()),
                Err(_) => break,
            }
        }
        self.check("write");
        Ok(done)
    }

    /// Removes `n` bytes from the front and frees the mbufs that they leave empty.
    ///
    /// # Errors
    /// [`PastEnd`] when there are fewer; nothing has changed then.
    #[doc(alias = "sbdrop")]
    pub fn drop_front(&mut self, n: usize) -> Result<(), PastEnd> {
        self.cut(n).map(drop)
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

    /// Removes everything and hands it out.
    #[doc(alias = "sbflush")]
    pub fn take_all(&mut self) -> Option<Mbuf> {
        self.take_whole(usize::MAX)
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

/// A new mbuf with as much of `data` as it takes, from the start of its storage.
fn filled(data: &[u8], set: &BufferSet) -> Result<Mbuf, AllocError> {
    let largest = set.largest_class().unwrap_or(0).max(set.plain_room());
    let mut m = set.plain_with(data.len().min(largest))?;
    let n = data.len().min(m.first().tailroom());
    // A new mbuf's tail room was just asked for.
    if let Ok(room) = m.append(n) {
        room.copy_from_slice(&data[..n]);
    }
    Ok(m)
}
