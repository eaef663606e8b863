//! The way of bytes from a receive ring or a send buffer to the wire and back into the pools, as the
//! groups `tcp-copy`, `splice` and `pipeline` measure it.
//!
//! One *pass* is a list of steps. A step lets a connection take frames from its receive ring (none in
//! `tcp-copy`), splice them into its send buffer, send what may be sent, and hand the packet to the
//! NIC. Up to [`WINDOW`] packets are in flight. What the device is through with, the peer has
//! acknowledged: then the send buffer's mbufs are freed. A pass ends when nothing is in flight and
//! every send buffer is empty, and all of that is in its time.
//!
//! Filling receive buffers and send buffers is outside of it, since that is the card's work or an
//! earlier owner's; the receive ring's *replacement* buffers are allocated inside. The filled bytes
//! were written by this core shortly before and come from its caches.
//!
//! A measured loop exists in several placements ([`crate::placement`]). What the compiler keeps out
//! of line under it has one address, so a placement also shifts the payload in its storage: copying
//! depends on how source and destination are aligned to each other.

mod cell;
mod conn;
mod lane;
mod nic;
mod policies;
mod probe;

pub(crate) use cell::{Metric, PathCell, Plan};
pub(crate) use conn::{Buffers, Input, MSS, Step, fill, tcb};
pub(crate) use lane::{Lane, On, Variant};
pub(crate) use nic::{Local, Nic, Remote};
pub(crate) use policies::{POLICIES, lane_of, policies};

use crate::cell::{CellRun, Env, Skip};
use driver_sim::{Null, ReadMode, TxConfig};
use std::rc::Rc;
use tcp_output::Time;

/// Packets in flight at most: a device with less to do than this is not waited for.
pub(crate) const WINDOW: usize = 4;

/// The one moment at which everything happens: no timer ever runs out.
pub(crate) const NOW: Time = Time(1);

/// The peer's window and ours, bytes; never what limits a send.
pub(crate) const OPEN: u32 = 1 << 28;

/// Bytes of IPv4 and TCP header with timestamps.
pub(crate) const HEADERS: usize = 52;

/// Which core the device runs on, where it also frees what it is through with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Drain {
    /// The sender's: device and completion run whenever the window is full.
    Same,
    /// Another one, all the time.
    Other,
}

impl Drain {
    pub(crate) const BOTH: [Drain; 2] = [Drain::Same, Drain::Other];

    /// The name in ids and parameters.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Drain::Same => "same",
            Drain::Other => "other",
        }
    }

    /// What a cell with this needs.
    pub(crate) fn needs(self) -> crate::Needs {
        match self {
            Drain::Same => crate::Needs::ONE_CPU,
            Drain::Other => crate::Needs::TWO_CPUS,
        }
    }
}

/// The name of a NIC's limit on segments per packet.
pub(crate) fn limit_name(limit: Option<usize>) -> String {
    limit.map_or_else(|| "none".to_owned(), |n| n.to_string())
}

/// The NIC of these groups: 1024 descriptors, TSO and checksums, a report for each packet as BSD's
/// drivers ask for.
pub(crate) fn nic_config(limit: Option<usize>) -> TxConfig {
    TxConfig {
        max_segs: limit,
        rs_interval: 1,
        ..TxConfig::default()
    }
}

/// Builds the cell for `plan` before a device that swallows packets.
pub(crate) fn build(
    plan: Plan,
    input: Rc<dyn Input>,
    set: mbuf::BufferSet,
    config: TxConfig,
    (drain, read): (Drain, ReadMode),
    env: &Env,
) -> Result<Box<dyn CellRun>, Skip> {
    let null = Null::new(read);
    Ok(match drain {
        Drain::Same => {
            let nic = Local::new(config, null).map_err(Skip::new)?;
            Box::new(PathCell::new(plan, input, set, nic, env))
        }
        Drain::Other => {
            let nic = Remote::new(config, null, env).map_err(Skip::new)?;
            Box::new(PathCell::new(plan, input, set, nic, env))
        }
    })
}
