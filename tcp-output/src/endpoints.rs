//! The two ends of a connection.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Addresses and ports of a connection, as they go into the headers of what we send.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Endpoints {
    /// Over IPv4.
    V4 {
        /// Our address.
        source: Ipv4Addr,
        /// The peer's address.
        dest: Ipv4Addr,
        /// Our port.
        source_port: u16,
        /// The peer's port.
        dest_port: u16,
    },
    /// Over IPv6.
    V6 {
        /// Our address.
        source: Ipv6Addr,
        /// The peer's address.
        dest: Ipv6Addr,
        /// Our port.
        source_port: u16,
        /// The peer's port.
        dest_port: u16,
    },
}

impl Endpoints {
    /// The same two ends as the other one sees them.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Endpoints::V4 {
                source,
                dest,
                source_port,
                dest_port,
            } => Endpoints::V4 {
                source: dest,
                dest: source,
                source_port: dest_port,
                dest_port: source_port,
            },
            Endpoints::V6 {
                source,
                dest,
                source_port,
                dest_port,
            } => Endpoints::V6 {
                source: dest,
                dest: source,
                source_port: dest_port,
                dest_port: source_port,
            },
        }
    }

    /// Length of the IP header, in bytes: 20 or 40.
    #[must_use]
    pub const fn ip_header_len(&self) -> usize {
        match self {
            Endpoints::V4 { .. } => 20,
            Endpoints::V6 { .. } => 40,
        }
    }

    /// Our port and the peer's.
    #[must_use]
    pub const fn ports(&self) -> (u16, u16) {
        match *self {
            Endpoints::V4 {
                source_port,
                dest_port,
                ..
            }
            | Endpoints::V6 {
                source_port,
                dest_port,
                ..
            } => (source_port, dest_port),
        }
    }

    /// Whether this is IPv6.
    #[must_use]
    pub const fn is_v6(&self) -> bool {
        matches!(self, Endpoints::V6 { .. })
    }
}
