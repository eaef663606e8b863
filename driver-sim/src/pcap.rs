//! Capture files: reading the TCP streams in one, writing frames into one.

mod read;
mod write;

pub use read::{PcapError, Stream, tcp_streams, tcp_streams_in};
pub use write::{PcapFile, WriteError};
