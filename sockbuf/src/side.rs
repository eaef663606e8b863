//! One side of a socket besides its bytes: how much it may hold, and what was said of it.

mod auto;

use crate::error::SizeError;
use crate::pressure::Pressure;

pub use auto::{RECEIVE_STEP, Sizing};

/// The largest buffer that can be asked for, bytes.
#[doc(alias = "sb_max")]
pub const SB_MAX: usize = 2 << 20;

/// Storage allowed for each byte of the limit, unless told otherwise.
pub const STORAGE_PER_BYTE: usize = 8;

/// Storage that any buffer may hold down, however small its limit in bytes.
const LEAST_STORAGE: usize = 3 * 65536;

/// The usual low-water mark of a sending side.
const SEND_LOWAT: usize = 2048;

/// Limits of one side, and its state.
///
/// Two limits bound what a buffer holds: `hiwat` its bytes, `mbmax` the storage that these bytes hold
/// down. The second follows from the first by a factor, 8 unless
/// [`set_storage_factor`](Self::set_storage_factor) says otherwise.
///
/// ```
/// use sockbuf::{Side, SizeError};
///
/// let mut side = Side::sending(65536);
/// assert_eq!((side.hiwat(), side.mbmax(), side.lowat()), (65536, 8 * 65536, 2048));
/// side.reserve(1024)?;
/// assert_eq!((side.hiwat(), side.mbmax(), side.lowat()), (1024, 3 * 65536, 1024));
/// let refused = side.reserve(3 << 20);
/// assert_eq!(refused, Err(SizeError::Impossible { asked: 3 << 20, max: 2 << 20 }));
/// # Ok::<(), SizeError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Side {
    hiwat: usize,
    wat: usize,
    mbmax: usize,
    lowat: usize,
    factor: usize,
    shut: bool,
    more: bool,
}

impl Default for Side {
    /// Nothing goes in, and no low-water mark yet.
    fn default() -> Self {
        Self::with_limits(0, 0)
    }
}

/// What a buffer holds: to be held against the limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Held {
    /// Bytes.
    #[doc(alias = "sb_cc")]
    pub bytes: usize,
    /// Storage that they hold down: each mbuf, and each cluster at its full size.
    #[doc(alias = "sb_mbcnt")]
    pub storage: usize,
}

impl Side {
    /// For `hiwat` bytes and as much storage as the factor gives; low-water mark 1.
    #[must_use]
    pub const fn receiving(hiwat: usize) -> Self {
        let mut side = Self::with_limits(hiwat, 0);
        side.mbmax = storage_for(hiwat, STORAGE_PER_BYTE);
        side
    }

    /// As [`receiving`](Self::receiving), with a low-water mark of 2048 bytes, or `hiwat` if that is less.
    #[must_use]
    pub const fn sending(hiwat: usize) -> Self {
        let mut side = Self::receiving(hiwat);
        side.lowat = least(SEND_LOWAT, hiwat);
        side
    }

    /// For `hiwat` bytes and `mbmax` bytes of storage; low-water mark 1.
    #[must_use]
    pub const fn with_limits(hiwat: usize, mbmax: usize) -> Self {
        Self {
            hiwat,
            wat: hiwat,
            mbmax,
            lowat: least(1, hiwat),
            factor: STORAGE_PER_BYTE,
            shut: false,
            more: false,
        }
    }

    /// The limit in bytes.
    #[doc(alias = "sb_hiwat")]
    #[inline]
    #[must_use]
    pub const fn hiwat(&self) -> usize {
        self.hiwat
    }

    /// The size that the user set, or the usual one. Sizing by traffic moves
    /// [`hiwat`](Self::hiwat) and keeps this.
    #[doc(alias = "sb_wat")]
    #[must_use]
    pub const fn wat(&self) -> usize {
        self.wat
    }

    /// The limit in storage, bytes.
    #[doc(alias = "sb_mbmax")]
    #[inline]
    #[must_use]
    pub const fn mbmax(&self) -> usize {
        self.mbmax
    }

    /// Bytes that there must be before a reader, or space before a writer, is told.
    #[doc(alias = "sb_lowat")]
    #[inline]
    #[must_use]
    pub const fn lowat(&self) -> usize {
        self.lowat
    }

    /// Bytes that may still be added by whichever limit is nearer; negative beyond one.
    #[doc(alias = "sbspace")]
    #[inline]
    #[must_use]
    pub fn space(&self, held: Held) -> isize {
        let left = |limit: usize, used: usize| {
            let limit = isize::try_from(limit).unwrap_or(isize::MAX);
            limit.saturating_sub_unsigned(used)
        };
        left(self.hiwat, held.bytes).min(left(self.mbmax, held.storage))
    }

    /// Sets the limits, whatever they are; the low-water mark follows downwards. They may be lower than
    /// what is in use.
    pub fn set_limits(&mut self, hiwat: usize, mbmax: usize) {
        self.hiwat = hiwat;
        self.mbmax = mbmax;
        self.lowat = self.lowat.min(hiwat);
    }

    /// Sets the limit to `bytes`, and that of storage by the factor.
    ///
    /// # Errors
    /// [`SizeError::Impossible`] when that is 0 or more than [`SB_MAX`]; unchanged then.
    #[doc(alias = "sbreserve")]
    pub fn reserve(&mut self, bytes: usize) -> Result<(), SizeError> {
        if bytes == 0 || bytes > SB_MAX {
            return Err(SizeError::Impossible {
                asked: bytes,
                max: SB_MAX,
            });
        }
        self.set_limits(bytes, storage_for(bytes, self.factor));
        Ok(())
    }

    /// How much storage is allowed for each byte from the next [`reserve`](Self::reserve) on; 1 at least.
    ///
    /// How much is really held is what [`StorageUse`](crate::StorageUse) says.
    pub fn set_storage_factor(&mut self, factor: usize) {
        self.factor = factor.max(1);
    }

    /// Whether a buffer may have `bytes` now: while memory is low, none may have more than `usual`.
    ///
    /// # Errors
    /// [`SizeError::LowMemory`].
    #[doc(alias = "sbcheckreserve")]
    pub fn check_reserve(bytes: usize, usual: usize, memory: &Pressure) -> Result<(), SizeError> {
        if bytes > usual && memory.is_low() {
            return Err(SizeError::LowMemory {
                asked: bytes,
                usual,
            });
        }
        Ok(())
    }

    /// What the user asks for: sets both the limit and the size that sizing by traffic starts from.
    /// Less than 1 counts as 1.
    ///
    /// # Errors
    /// [`SizeError`]; unchanged then.
    #[doc(alias = "SO_SNDBUF")]
    #[doc(alias = "SO_RCVBUF")]
    pub fn set_size(&mut self, bytes: i64, memory: &Pressure) -> Result<(), SizeError> {
        let asked = usize::try_from(bytes.max(1)).unwrap_or(usize::MAX);
        if self.shut {
            return Err(SizeError::Shut { asked });
        }
        Self::check_reserve(asked, self.wat, memory)?;
        self.reserve(asked)?;
        self.wat = asked;
        Ok(())
    }

    /// Sets the low-water mark: 1 at least, the limit at most.
    #[doc(alias = "SO_SNDLOWAT")]
    #[doc(alias = "SO_RCVLOWAT")]
    pub fn set_lowat(&mut self, bytes: i64) {
        let asked = usize::try_from(bytes.max(1)).unwrap_or(usize::MAX);
        self.lowat = asked.min(self.hiwat);
    }

    /// No more goes in, or comes out, on this side.
    #[doc(alias = "socantsendmore")]
    #[doc(alias = "socantrcvmore")]
    pub fn shut_down(&mut self) {
        self.shut = true;
    }

    /// Whether it was shut down.
    #[doc(alias = "SS_CANTSENDMORE")]
    #[doc(alias = "SS_CANTRCVMORE")]
    #[inline]
    #[must_use]
    pub const fn is_shut(&self) -> bool {
        self.shut
    }

    /// Says whether whoever appends has more that follows at once.
    #[doc(alias = "SS_ISSENDING")]
    #[inline]
    pub fn set_more_to_come(&mut self, more: bool) {
        self.more = more;
    }

    /// Whether more follows at once: a reason to wait with a small segment.
    #[doc(alias = "SS_ISSENDING")]
    #[inline]
    #[must_use]
    pub const fn more_to_come(&self) -> bool {
        self.more
    }
}

/// Sets the limits of both sides of a socket, or of none; low-water marks that are 0 get their usual
/// value.
///
/// # Errors
/// [`SizeError::Impossible`] of the first side that cannot; both are unchanged then.
///
/// ```
/// use sockbuf::{Side, reserve_both};
/// let (mut send, mut receive) = (Side::default(), Side::default());
/// assert!(reserve_both((&mut send, 1000), (&mut receive, 0)).is_err());
/// assert_eq!(send, Side::default(), "undone");
/// reserve_both((&mut send, 1000), (&mut receive, 2000))?;
/// assert_eq!((send.lowat(), receive.lowat()), (1000, 1));
/// # Ok::<(), sockbuf::SizeError>(())
/// ```
#[doc(alias = "soreserve")]
pub fn reserve_both(
    send: (&mut Side, usize),
    receive: (&mut Side, usize),
) -> Result<(), SizeError> {
    let before = *send.0;
    send.0.reserve(send.1)?;
    if let Err(refused) = receive.0.reserve(receive.1) {
        *send.0 = before;
        return Err(refused);
    }
    for (side, usual) in [(send.0, SEND_LOWAT), (receive.0, 1)] {
        if side.lowat == 0 {
            side.lowat = usual.min(side.hiwat);
        }
        (side.wat, side.lowat) = (side.hiwat, side.lowat.min(side.hiwat));
    }
    Ok(())
}

const fn storage_for(bytes: usize, factor: usize) -> usize {
    let storage = bytes.saturating_mul(factor);
    if storage < LEAST_STORAGE {
        LEAST_STORAGE
    } else {
        storage
    }
}

const fn least(a: usize, b: usize) -> usize {
    if a < b { a } else { b }
}
