//! What of TCP input drives output: arriving segments read, judged and put in order.

mod options;
mod parse;
mod reassembly;

pub use options::{
    BadOption, MAX_BLOCKS_HEARD, MAX_WINDOW_SHIFT, PeerOptions, TcpOption, TcpOptions, WireBlock,
};
pub use parse::{Incoming, ParseError, Summed};
pub use reassembly::{Limits, QueueFull, Reassembly};
