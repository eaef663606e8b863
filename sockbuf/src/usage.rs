//! What the bytes of a buffer cost in storage.

use mbuf::{Chain, Segment};

/// Bytes in a buffer, and the storage that they hold down.
///
/// ```
/// use mbuf::BufferSet;
/// use sockbuf::SockBuf;
/// let set = BufferSet::bsd(64, 8)?;
/// let mut sb = SockBuf::new(65536);
/// sb.write(&[0; 1448], &set)?;
/// let held = sb.storage_use();
/// assert_eq!((held.bytes, held.capacity, held.charge), (1448, 2048, 2304));
/// assert_eq!((held.waste(), held.charge_per_byte()), (856, 2304.0 / 1448.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StorageUse {
    /// Bytes in the buffer.
    pub bytes: usize,
    /// Bytes that the storage could hold.
    pub capacity: usize,
    /// What is charged: each mbuf, and each cluster or external memory at its full size.
    pub charge: usize,
    /// Mbufs.
    pub segs: usize,
}

impl StorageUse {
    /// Walks the chain.
    pub(crate) fn of(chain: &Chain) -> Self {
        StorageUse {
            bytes: chain.len(),
            capacity: chain.segments().map(Segment::capacity).sum(),
            charge: chain.charge(),
            segs: chain.segs(),
        }
    }

    /// What is charged beyond the bytes.
    #[must_use]
    pub fn waste(&self) -> usize {
        self.charge.saturating_sub(self.bytes)
    }

    /// What is charged for one byte; 0 when there is none.
    ///
    /// The limit on storage allows for
    /// [`STORAGE_PER_BYTE`](crate::STORAGE_PER_BYTE), as far as nobody set another factor.
    #[must_use]
    pub fn charge_per_byte(&self) -> f64 {
        if self.bytes == 0 {
            return 0.0;
        }
        self.charge as f64 / self.bytes as f64
    }
}
