//! Sizing by traffic: a buffer grows with what is in flight, and shrinks when memory is low.

use super::{Held, SB_MAX, Side};
use crate::error::SizeError;
use crate::pressure::Pressure;

/// By how much a receive buffer grows at a time, bytes.
#[doc(alias = "tcp_autorcvbuf_inc")]
pub const RECEIVE_STEP: usize = 16 * 1024;

/// What sizing goes by besides the buffer.
#[derive(Clone, Copy, Debug)]
pub struct Sizing<'a> {
    /// The size that buffers have unless a user sets another; one that differs is kept.
    #[doc(alias = "tcp_sendspace")]
    #[doc(alias = "tcp_recvspace")]
    pub usual: usize,
    /// Sizes are rounded up to a multiple of it, bytes; 0 and 1 do not round.
    #[doc(alias = "t_maxseg")]
    pub segment: usize,
    /// How short memory is.
    pub memory: &'a Pressure,
}

impl Side {
    /// Fits the limit of a sending side to `in_flight` bytes, sent and not yet acknowledged. Returns
    /// the limit.
    ///
    /// A writable buffer stays writable, or those who wait for space would have been told in vain.
    ///
    /// ```
    /// use mbuf::BufferSet;
    /// use sockbuf::{Held, Pressure, Side, Sizing};
    /// let memory = Pressure::of_set(&BufferSet::standard(64, 8)?);
    /// let sizing = Sizing { usual: 16384, segment: 1448, memory: &memory };
    /// let mut side = Side::sending(16384);
    /// assert_eq!(side.fit_sending(Held::default(), 30_000, sizing), 33 * 1448);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "tcp_update_sndspace")]
    pub fn fit_sending(&mut self, held: Held, in_flight: usize, sizing: Sizing<'_>) -> usize {
        let mut size = if sizing.memory.is_low() {
            sizing.usual.min(self.hiwat)
        } else if self.wat != sizing.usual {
            self.wat
        } else {
            SB_MAX.min(self.wat.saturating_add(in_flight))
        };
        let lowat = isize::try_from(self.lowat).unwrap_or(isize::MAX);
        if self.space(held) >= lowat {
            let storage = held.storage.saturating_add(self.lowat);
            size = size
                .max(held.bytes.saturating_add(self.lowat))
                .max(storage.div_ceil(self.factor));
        }
        self.resize(size, sizing.segment)
    }

    /// Fits the limit of a receiving side, after `arrived` bytes within one round trip: more than
    /// 7/8 of the limit, and it grows by [`RECEIVE_STEP`]. Returns the limit.
    ///
    /// A readable buffer stays readable: the limit does not fall below the low-water mark.
    #[doc(alias = "tcp_update_rcvspace")]
    pub fn fit_receiving(&mut self, arrived: usize, sizing: Sizing<'_>) -> usize {
        let size = if sizing.memory.is_low() {
            sizing.usual.min(self.hiwat)
        } else if self.wat != sizing.usual {
            self.wat
        } else if arrived > self.hiwat / 8 * 7 {
            SB_MAX.min(self.hiwat + RECEIVE_STEP)
        } else {
            self.hiwat
        };
        let size = size.max(self.lowat);
        if size == self.hiwat {
            return size;
        }
        self.resize(size, sizing.segment)
    }

    fn resize(&mut self, size: usize, segment: usize) -> usize {
        let rounded = size.checked_next_multiple_of(segment.max(1));
        let size = rounded.map_or(SB_MAX, |size| size.min(SB_MAX));
        if size != self.hiwat {
            // Only 0 is refused, a side that nothing goes into: it stays one.
            let _: Result<(), SizeError> = self.reserve(size);
        }
        self.hiwat
    }
}
