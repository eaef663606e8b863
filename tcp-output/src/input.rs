//! What of TCP input drives output: arriving segments read, judged and put in order.
//!
//! ```text
//! Mbuf ─► Incoming::parse        headers checked, options read, checksum verified
//!     Expected, AckNumber, …     is it believed, which part of it is new
//!         Reassembly             payload in order, and what SACK blocks tell of the rest
//!         CongestionControl      what an acknowledgment or a loss does to the window
//!         Scoreboard::on_sack    which holes the peer's SACK blocks leave
//!         Tcb::acknowledge_soon  when what arrived is acknowledged
//! ```
//!
//! Each part is a value of its own with no clock and no I/O in it.

mod accept;
mod challenge;
mod congestion;
mod delack;
mod negotiate;
mod options;
mod parse;
mod reassembly;
mod recovery;
mod reset;
mod sack;

pub use accept::{AckNumber, Expected, Kept, OnReset, Recent, WindowNews};
pub use challenge::ChallengeLimit;
pub use congestion::{CongestionControl, CongestionWindow, Reno, initial_window};
pub use options::{
    BadOption, MAX_BLOCKS_HEARD, MAX_WINDOW_SHIFT, PeerOptions, TcpOption, TcpOptions, WireBlock,
};
pub use parse::{Incoming, ParseError, Summed};
pub use reassembly::{Limits, QueueFull, Reassembly};
pub use recovery::Resend;
pub use reset::answer_with_reset;
pub use sack::{Outstanding, SackNews};
