//! What a transmitted packet asks of the hardware.

use crate::meta::named;
use bitflags::bitflags;
use std::fmt;
use thiserror::Error;

bitflags! {
    /// Offload requests of a packet to be sent.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct OffloadFlags: u16 {
        /// Fill in the IPv4 header checksum.
        const IPV4_CSUM = 1;
        /// Finish the TCP checksum; the field holds the pseudo-header sum.
        const TCP_CSUM = 1 << 1;
        /// Finish the UDP checksum; the field holds the pseudo-header sum.
        const UDP_CSUM = 1 << 2;
        /// Cut into frames of [`TxOffload::tso_mss`] payload bytes each.
        const TSO = 1 << 3;
        /// The packet is IPv4.
        const IPV4 = 1 << 4;
        /// The packet is IPv6.
        const IPV6 = 1 << 5;
        /// Fill in the checksum of the IPv4 header of a tunnel, in front of the packet's own.
        const OUTER_IPV4_CSUM = 1 << 6;
        /// The tunnel is in IPv4.
        const OUTER_IPV4 = 1 << 7;
        /// The tunnel is in IPv6.
        const OUTER_IPV6 = 1 << 8;
    }
}

impl fmt::Display for OffloadFlags {
    /// Names with `|` between them, `0` for none.
    #[doc(alias = "rte_get_tx_ol_flag_list")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        named(self.iter_names().map(|(name, _)| name), f)
    }
}

/// Offload requests that contradict each other or lack what they need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OffloadError {
    /// A packet is of one IP version.
    #[error("both IPv4 and IPv6 in {flags}")]
    TwoVersions {
        /// What is asked.
        flags: OffloadFlags,
    },
    /// A transport checksum or segmentation needs to know which IP it goes in.
    #[error("neither IPv4 nor IPv6 in {flags}")]
    NoVersion {
        /// What is asked.
        flags: OffloadFlags,
    },
    /// A packet has one transport header; TSO is for TCP.
    #[error("both TCP and UDP in {flags}")]
    TwoTransports {
        /// What is asked.
        flags: OffloadFlags,
    },
    /// Only IPv4 has a header checksum.
    #[error("IPv4 header checksum of a packet that is not IPv4 in {flags}")]
    NotIpv4 {
        /// What is asked.
        flags: OffloadFlags,
    },
    /// The headers of cut frames differ, so that each needs its own checksum.
    #[error("TSO over IPv4 without its header checksum in {flags}")]
    TsoWithoutIpv4Csum {
        /// What is asked.
        flags: OffloadFlags,
    },
    /// Frames without payload would never end.
    #[error("TSO into frames of 0 payload bytes")]
    TsoNoMss,
    /// Only IPv4 has a header checksum.
    #[error("outer IPv4 header checksum of a tunnel that is not in IPv4 in {flags}")]
    OuterNotIpv4 {
        /// What is asked.
        flags: OffloadFlags,
    },
}

/// Offload requests and the header lengths that they need. The default asks for nothing.
#[doc(alias = "rte_mbuf_tx_offload")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TxOffload {
    /// What is asked.
    pub flags: OffloadFlags,
    /// Bytes of link header in front.
    pub l2_len: u16,
    /// Bytes of IP header, options included.
    pub l3_len: u16,
    /// Bytes of TCP or UDP header, options included.
    pub l4_len: u16,
    /// Payload bytes per frame under TSO.
    #[doc(alias = "ph_mss")]
    #[doc(alias = "tso_segsz")]
    pub tso_mss: u16,
}

impl TxOffload {
    /// Whether the requests make sense together. Header lengths are not looked at: only the
    /// packet's bytes could tell.
    ///
    /// # Errors
    /// The first contradiction.
    ///
    /// ```
    /// use mbuf::{OffloadError, OffloadFlags, TxOffload};
    /// let mut ask = TxOffload {
    ///     flags: OffloadFlags::TSO | OffloadFlags::IPV4 | OffloadFlags::IPV4_CSUM,
    ///     ..TxOffload::default()
    /// };
    /// assert_eq!(ask.validate(), Err(OffloadError::TsoNoMss));
    /// ask.tso_mss = 1448;
    /// assert_eq!(ask.validate(), Ok(()));
    /// ```
    #[doc(alias = "rte_validate_tx_offload")]
    pub fn validate(&self) -> Result<(), OffloadError> {
        use OffloadFlags as F;
        let flags = self.flags;
        let tso = flags.contains(F::TSO);
        if flags.contains(F::OUTER_IPV4_CSUM) && !flags.contains(F::OUTER_IPV4) {
            return Err(OffloadError::OuterNotIpv4 { flags });
        }
        if flags.contains(F::IPV4 | F::IPV6) || flags.contains(F::OUTER_IPV4 | F::OUTER_IPV6) {
            return Err(OffloadError::TwoVersions { flags });
        }
        if flags.contains(F::IPV4_CSUM) && !flags.contains(F::IPV4) {
            return Err(OffloadError::NotIpv4 { flags });
        }
        if !flags.intersects(F::TCP_CSUM | F::UDP_CSUM | F::TSO) {
            return Ok(());
        }
        if flags.contains(F::UDP_CSUM) && flags.intersects(F::TCP_CSUM | F::TSO) {
            return Err(OffloadError::TwoTransports { flags });
        }
        if !flags.intersects(F::IPV4 | F::IPV6) {
            return Err(OffloadError::NoVersion { flags });
        }
        if tso && self.tso_mss == 0 {
            return Err(OffloadError::TsoNoMss);
        }
        if tso && flags.contains(F::IPV4) && !flags.contains(F::IPV4_CSUM) {
            return Err(OffloadError::TsoWithoutIpv4Csum { flags });
        }
        Ok(())
    }
}
