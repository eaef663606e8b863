//! The receive side, thin: fills receive buffers the way a NIC would.
//!
//! Each frame gets a header mbuf with a cluster of its own, and plain mbufs with clusters for what
//! does not fit into the first; payload is cut at the segment size, as it came over the wire.

use mbuf::{AllocError, BufferSet, Mbuf};

/// How frames are laid into receive buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RxFill {
    /// Payload bytes per frame.
    pub mss: usize,
    /// Bytes of one receive buffer.
    pub cluster: usize,
    /// Bytes in front of the payload in the frame's first buffer, where its headers were.
    pub lead: usize,
}

impl Default for RxFill {
    /// 1448 bytes a frame into clusters of 2048, no lead.
    fn default() -> Self {
        RxFill {
            mss: 1448,
            cluster: 2048,
            lead: 0,
        }
    }
}

impl RxFill {
    /// One packet per frame of `payload`, in order.
    ///
    /// The iterator ends behind the first error.
    pub fn frames<'a>(
        self,
        payload: &'a [u8],
        set: &'a BufferSet,
    ) -> impl Iterator<Item = Result<Mbuf, AllocError>> + use<'a> {
        let mut failed = false;
        payload
            .chunks(self.mss.max(1))
            .map(move |frame| self.frame(frame, set))
            .take_while(move |result| !std::mem::replace(&mut failed, result.is_err()))
    }

    /// One frame in receive buffers.
    ///
    /// # Errors
    ///
    /// [`AllocError`] when buffers run out or no class is as large as asked; what was allocated
    /// for the frame is freed.
    pub fn frame(&self, payload: &[u8], set: &BufferSet) -> Result<Mbuf, AllocError> {
        let buffer = self.cluster.max(1);
        let lead = self.lead.min(buffer - 1);
        let (now, later) = payload.split_at(payload.len().min(buffer - lead));
        let mut head = fill(set.header_with(buffer)?, lead, now);
        let mut tail = None;
        // From the last one on, so that linking never walks a chain.
        for piece in later.chunks(buffer).rev() {
            let mut m = fill(set.plain_with(buffer)?, 0, piece);
            if let Some(next) = tail.take() {
                m.cat(next);
            }
            tail = Some(m);
        }
        if let Some(rest) = tail {
            head.cat(rest);
        }
        Ok(head)
    }

    /// All frames of `payload` linked into one chain, one header mbuf and cluster per frame (more
    /// clusters where a frame is longer than one).
    ///
    /// # Errors
    ///
    /// As for [`frame`](Self::frame); nothing stays allocated.
    pub fn chain(&self, payload: &[u8], set: &BufferSet) -> Result<Mbuf, AllocError> {
        let mut frames = payload.chunks(self.mss.max(1)).rev();
        let mut chain = self.frame(frames.next().unwrap_or_default(), set)?;
        for frame in frames {
            let mut m = self.frame(frame, set)?;
            m.cat(chain);
            chain = m;
        }
        Ok(chain)
    }
}

/// Cuts a payload stream into 2 KB receive clusters with at most `mss` bytes each, as
/// [`RxFill::chain`] does.
///
/// # Errors
///
/// [`AllocError`] when buffers run out; nothing stays allocated then.
///
/// ```
/// use mbuf::{BufferSet, Packet};
///
/// let set = BufferSet::standard(64, 16)?;
/// let chain = driver_sim::rx::cut(&[7; 3000], 1448, &set)?;
/// let lengths: Vec<usize> = chain.segments().map(|s| s.len()).collect();
/// assert_eq!(lengths, [1448, 1448, 104]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn cut(payload: &[u8], mss: usize, set: &BufferSet) -> Result<Mbuf, AllocError> {
    RxFill {
        mss,
        ..RxFill::default()
    }
    .chain(payload, set)
}

/// A fresh buffer, known to hold `lead + data.len()` bytes, filled.
fn fill(mut m: Mbuf, lead: usize, data: &[u8]) -> Mbuf {
    if m.set_lead(lead).is_ok()
        && let Ok(room) = m.append(data.len())
    {
        room.copy_from_slice(data);
    }
    m
}
