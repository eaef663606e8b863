//! The send side of TCP: send decision, copy policy, segment building.
//!
//! BSD's `tcp_output` is one function of a thousand lines; here it is four steps, each of which can
//! be called, tested and measured alone:
//!
//! ```text
//! decide(&Tcb, &SendView, now) ─► Decision         pure: whether to send, how much, flags, window
//!     SendPlan over the SockBuf ─► CopyPolicy      reference the payload's mbufs, or copy them
//!         build(…, &BufferSet)  ─► Mbuf            headers in place, payload, checksum, offload wishes
//!             Tcb::advance                         the state moves past what left
//! ```
//!
//! [`Sender`] runs them in a loop, as long as there is something to send. No clock and no I/O in
//! here: the time is an argument, packets go out through [`Output`], a closure for instance.
//!
//! The decision knows every state, SYN, FIN and RST, all options, urgent data, ECN, and the holes that
//! a [`Scoreboard`] lists; the [timers](timer) are data that the caller's clock is compared with. What
//! arrives is read and judged in [`input`], and a [`Connection`](connection::Connection) puts both
//! sides together. Whoever has a receiving side of his own sets the fields of the [`Tcb`], or hands
//! acknowledgments to [`Sender::on_ack`].
//!
//! ```
//! use mbuf::{BufferSet, Mbuf, Packet};
//! use sockbuf::SockBuf;
//! use tcp_output::policy::Threshold;
//! use tcp_output::{Ack, Endpoints, Sender, Seq, Tcb, TcbFlags, Time};
//!
//! let ends = Endpoints::V4 {
//!     source: [10, 0, 0, 1].into(),
//!     dest: [10, 0, 0, 2].into(),
//!     source_port: 5000,
//!     dest_port: 80,
//! };
//! let set = BufferSet::bsd(256, 16)?;
//! let mut sb = SockBuf::new(65536);
//! sb.write(&[42; 10_000], &set)?;
//!
//! let tcb = Tcb::new(ends, 1460, TcbFlags::TIMESTAMPS, Seq(1), Seq(1))?;
//! let mut sender = Sender::new(tcb, Threshold { factor: 5 });
//! let mut wire = Vec::new();
//! let sent = sender.output(&sb, &set, Time(0), &mut |packet: Mbuf| {
//!     wire.push(packet);
//!     Ok(())
//! })?;
//! assert_eq!((sent.packets, sent.bytes), (2, 10_000));
//! assert_eq!(wire[0].pkt_len(), 52 + 6 * 1448, "one frame for the NIC to cut, then the rest");
//!
//! let acked = sender.on_ack(&Ack::new(Seq(1) + 8688, 65535), Time(20), &mut sb)?;
//! assert_eq!((acked.bytes, sb.len()), (8688, 1312));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod ack;
pub mod build;
mod check;
pub mod checksum;
mod commit;
pub mod connection;
pub mod decide;
mod endpoints;
mod error;
mod flags;
pub mod input;
pub mod options;
pub mod plan;
pub mod policy;
mod rtt;
mod scoreboard;
mod sender;
mod seq;
mod state;
mod stats;
mod tcb;
mod time;
pub mod timer;
pub mod wire;

pub use ack::{Ack, AckEffect};
pub use check::BrokenRule;
pub use checksum::{ChecksumMode, PseudoLength};
pub use decide::{Decision, Pass, Segment, SendView, decide};
pub use endpoints::Endpoints;
pub use error::{AckError, BuildError, Cause, Dropped, OutputError, SendError};
pub use flags::TcbFlags;
pub use plan::{SendPlan, Shape};
pub use policy::{CopyPolicy, How, Placement};
pub use rtt::{MAX_BACKOFF, MAX_RTO, MIN_RTO, Rtt};
pub use scoreboard::{BadHole, Hole, LOSS_THRESHOLD, MAX_HOLES, Scoreboard};
pub use sender::{Acked, Output, Sender, Sent};
pub use seq::Seq;
pub use state::State;
pub use stats::Stats;
pub use tcb::{BadSegmentSize, ReceiveState, SendState, Tcb};
pub use time::Time;
pub use timer::{Expired, Timer, Timers};

/// Bytes left free in front of each packet for link headers, as BSD leaves them. A multiple of 8,
/// since data that is placed at the end of its storage is rounded down to one.
#[doc(alias = "max_linkhdr")]
pub const MAX_LINK_HEADER: usize = 64;

/// Most bytes of link headers, IP packet and all, that are put into one TSO frame.
#[doc(alias = "IP_MAXPACKET")]
pub const MAX_PACKET: usize = 65536;

const _: () = assert!(MAX_LINK_HEADER.is_multiple_of(8));
