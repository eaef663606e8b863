//! Socket buffers: streams of mbufs with byte and storage accounting, and splicing.
//!
//! A [`SockBuf`] is what a connection keeps between the user and the protocol: bytes in a chain of
//! mbufs, appended behind, dropped in front. Two limits bound it: one on bytes, one on the storage
//! that these bytes hold down, so that many small packets in large clusters cannot eat the pools.
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
//! Its own rules: counters always equal a recount (debug builds recount after every call); dropping
//! past the end is an error that changes nothing; what is cut off is handed out, so that it can be
//! freed in bulk and outside of a lock.

#![forbid(unsafe_code)]

mod buf;
mod compress;
mod control;
mod error;
mod pressure;
mod records;
mod side;
pub mod splice;
mod usage;

pub use buf::SockBuf;
pub use control::{Message, Messages};
pub use error::{AppendError, ControlError, PastEnd, SizeError, WriteError};
pub use pressure::Pressure;
pub use records::{OwnedRecord, Record, RecordBuf, Records};
pub use side::{Held, RECEIVE_STEP, SB_MAX, STORAGE_PER_BYTE, Side, Sizing, reserve_both};
pub use usage::StorageUse;
