//! Socket buffers: streams and records of mbufs with byte and storage accounting, and splicing.
//!
//! What a socket keeps between the user and the protocol, in one direction: bytes in a chain of mbufs,
//! appended behind, dropped in front.
//!
//! | type | holds | for |
//! |---|---|---|
//! | [`SockBuf`] | one stream of bytes, an urgent mark | TCP |
//! | [`RecordBuf`] | records: address, control messages, data | datagrams, messages with an end |
//! | [`Side`] | limits, low-water mark, whether it is shut | both |
//! | [`Socket`], [`RecordSocket`] | two buffers, and those who wait for them | users; the protocol has a [`ProtocolEnd`] |
//!
//! ```text
//!          drop_front / cut                                        append_stream / write
//!                 ◄──── ┌────────┐   ┌────────┐   ┌────────┐   ┌──────── ◄────
//!                       │ 1448   │──►│ 1448   │──►│ 1448   │──►│ 200 │ tail room
//!                       └────────┘   └────────┘   └────────┘   └────────
//!   offset 0 ───────────▲                 ▲
//!                              ref_copy / copy_to (off, len): what TCP sends, and sends again
//! ```
//!
//! Two limits bound a buffer: one on bytes, one on the storage that these bytes hold down, so that many
//! small packets in large clusters cannot eat the pools. What the bytes cost is
//! [`StorageUse`]; how short memory is for all buffers together is [`Pressure`].
//!
//! Its own rules:
//!
//! - Counters always equal a recount: debug builds recount after every call.
//! - Dropping past the end is an error that changes nothing.
//! - What is cut off is handed out, so that it can be freed in bulk and outside of a lock.
//! - An offset is found from where an earlier read ended: sending goes on at the same cost in a buffer
//!   of any length, and sending again does not disturb it.
//! - Each direction of a socket has a lock of its own. Much is copied, and everything is freed, without it.
//! - Only one who waits for as much as there is costs a wake, and only one.
//! - Storage is filled from its front, so that the next small write finds room: 64 KB of limit take 64 KB
//!   by writes of any size.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod buf;
mod compress;
mod control;
mod error;
#[cfg(all(test, loom))]
mod loom_tests;
mod pressure;
mod records;
mod side;
mod socket;
pub mod splice;
mod sync;
mod usage;
mod wait;

pub use buf::SockBuf;
pub use control::{Message, Messages};
pub use error::{AppendError, ControlError, PastEnd, SizeError, WriteError};
pub use pressure::Pressure;
pub use records::{OwnedRecord, Record, RecordBuf, Records};
pub use side::{Held, RECEIVE_STEP, SB_MAX, STORAGE_PER_BYTE, Side, Sizing, reserve_both};
pub use socket::{
    Buffer, Outgoing, Protocol, ProtocolEnd, ReceiveFlags, Received, RecordSocket, SendFlags,
    Shutdown, Socket, SocketError, Unsent, Urgent, UserEnd, Waits,
};
pub use usage::StorageUse;
