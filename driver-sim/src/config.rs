//! What a transmit queue is like: its size, its limits, when it completes.

use mbuf::FreeStrategy;

/// Parameters of a transmit queue; the default is a 1024-slot queue without a segment limit that
/// does TSO and checksums.
///
/// ```
/// use driver_sim::TxConfig;
///
/// let nic = TxConfig { max_segs: Some(32), ..TxConfig::default() };
/// assert!(nic.check().is_ok());
/// let odd = TxConfig { ring_size: 2, ..nic };
/// assert!(odd.check().is_err());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TxConfig {
    /// Descriptors in the ring, [`MIN_RING`](Self::MIN_RING) to [`MAX_RING`](Self::MAX_RING); any
    /// number, not only powers of two. All of them can be in use.
    pub ring_size: usize,
    /// Data descriptors that one packet may take; `None`: as many as the ring has room for.
    pub max_segs: Option<usize>,
    /// Bytes that one descriptor may point to; a longer piece takes several.
    pub max_piece: Option<usize>,
    /// Whether all headers that an offload touches must lie in the packet's first segment.
    pub contiguous_header: bool,
    /// Bytes of the longest frame, link header included; `None`: no limit. Under TSO it is the
    /// frames that count, not the packet.
    pub max_frame: Option<usize>,
    /// Whether the hardware cuts TSO packets.
    pub tso: bool,
    /// Whether the hardware fills in checksums.
    pub csum: bool,
    /// A report is asked for when this many descriptors were written since the last one.
    #[doc(alias = "tx_rs_thresh")]
    pub rs_interval: usize,
    /// A send with fewer free descriptors than this drains first.
    #[doc(alias = "tx_free_thresh")]
    pub free_thresh: usize,
    /// How completed packets are freed.
    pub strategy: FreeStrategy,
}

impl Default for TxConfig {
    fn default() -> Self {
        TxConfig {
            ring_size: 1024,
            max_segs: None,
            max_piece: None,
            contiguous_header: false,
            max_frame: None,
            tso: true,
            csum: true,
            rs_interval: 32,
            free_thresh: 32,
            strategy: FreeStrategy::Direct,
        }
    }
}

/// A configuration that no queue can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Ring size out of range.
    #[error("ring of {asked} descriptors, {min} to {max} are possible")]
    RingSize {
        /// Asked for.
        asked: usize,
        /// Fewest.
        min: usize,
        /// Most.
        max: usize,
    },
    /// A limit of 0, or one that the ring cannot hold.
    #[error("{name} of {asked}, 1 to {max} are possible")]
    Limit {
        /// Which field of the configuration.
        name: &'static str,
        /// Asked for.
        asked: usize,
        /// Most.
        max: usize,
    },
    /// TSO without checksums: each frame that the hardware makes needs its own.
    #[error("TSO needs checksums done by the hardware")]
    TsoWithoutChecksum,
}

impl TxConfig {
    /// Fewest descriptors in a ring: a context and a piece must fit.
    pub const MIN_RING: usize = 4;
    /// Most descriptors in a ring.
    pub const MAX_RING: usize = 1 << 20;

    /// The default for a ring of `ring_size` descriptors: thresholds of 32, or a quarter of a ring
    /// that is smaller than four times that.
    ///
    /// ```
    /// use driver_sim::TxConfig;
    ///
    /// let small = TxConfig::with_ring(16);
    /// assert_eq!((small.rs_interval, small.free_thresh), (4, 4));
    /// assert!(small.check().is_ok());
    /// ```
    pub fn with_ring(ring_size: usize) -> Self {
        let threshold = (ring_size / 4).clamp(1, 32);
        TxConfig {
            ring_size,
            rs_interval: threshold,
            free_thresh: threshold,
            ..TxConfig::default()
        }
    }

    /// Checks every field.
    ///
    /// # Errors
    ///
    /// The first field that is out of range, with the range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let (min, max) = (Self::MIN_RING, Self::MAX_RING);
        if !(min..=max).contains(&self.ring_size) {
            return Err(ConfigError::RingSize {
                asked: self.ring_size,
                min,
                max,
            });
        }
        let limit = |name, asked: usize, max| match asked {
            0 => Err(ConfigError::Limit { name, asked, max }),
            n if n > max => Err(ConfigError::Limit { name, asked, max }),
            _ => Ok(()),
        };
        limit("max_segs", self.max_segs.unwrap_or(1), usize::MAX)?;
        let longest = u32::MAX as usize;
        limit("max_piece", self.max_piece.unwrap_or(longest), longest)?;
        limit("max_frame", self.max_frame.unwrap_or(1), usize::MAX)?;
        limit("rs_interval", self.rs_interval, self.ring_size)?;
        limit("free_thresh", self.free_thresh, self.ring_size)?;
        if self.tso && !self.csum {
            return Err(ConfigError::TsoWithoutChecksum);
        }
        Ok(())
    }
}
