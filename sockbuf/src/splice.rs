//! Splicing: what one socket receives another one sends, without a user in between, and without copying.
//!
//! ```text
//!    source                                                drain
//!   ┌──────────────────┐        one pass          ┌──────────────────┐
//!   │ receive buffer   │ ───── whole mbufs ─────► │ send buffer      │
//!   └──────────────────┘                          └──────────────────┘
//!     ▲ received(bytes)     told in this order      send / send_urgent ▼
//! ```
//!
//! | part | is |
//! |---|---|
//! | [`pass`] | one pass, over two buffers and a small state: no lock, no clock, no thread |
//! | [`Progress`] | that state: bytes moved, the most that may be, when it has been idle for too long |
//! | [`Socket::splice`](crate::Socket::splice) | ties two sockets together until one of them ends, or the splice does |
//! | [`Splicer`] | makes the passes: on a thread of its own, or whenever it is told to |
//! | [`move_whole`] | the movement alone, for who needs nothing else |
//!
//! A splice ends when the source has no more, when the drain takes no more, after as many bytes as were
//! asked for, when nothing moved for too long, when packets run in a circle, or by an error of
//! either end. The count stays readable, and both sockets are the user's again.

mod gather;
mod link;
mod of_socket;
mod options;
mod pass;
mod progress;
mod splicer;
mod take;
mod verdict;
mod whole;

pub use gather::Gather;
pub(crate) use link::Spliced;
pub use of_socket::SpliceState;
pub use options::SpliceOptions;
pub use pass::{Ends, Step, Then, Wait, pass};
pub use progress::Progress;
pub use splicer::Splicer;
pub use verdict::{End, SpliceError, Verdict};
pub use whole::move_whole;
