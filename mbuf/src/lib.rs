//! Packet buffers: headers with inline room, reference-counted clusters, chains, and bulk free.
//!
//! A *packet* is a chain of one or more *segments*. A segment is one pool element:
//!
//! ```text
//!  0            64           128 (+ private)                          element end
//!  ┌────────────┬────────────┬─────────────────────────────────────────┐
//!  │ line 0     │ line 1     │ inline room                             │
//!  │ free word  │ metadata,  │  headroom │ data ......... │ tailroom   │
//!  │ next, pool │ offload,   │                                         │
//!  │ off, len … │ own room   │                                         │
//!  └─────┬──────┴────────────┴─────────────────────────────────────────┘
//!        │ storage = cluster
//!        ▼
//!        ┌────────────┬────────────────────────────────────────────────┐
//!        │ count,pool │ 2 KB to 64 KB of data, shared by its holders   │
//!        └────────────┴────────────────────────────────────────────────┘
//! ```
//!
//! All that freeing has to know lies in line 0, and most of it in its first eight bytes, the
//! *free word* (reference count, "has next", storage kind, wish to be wiped, pool id): an mbuf may go
//! back to its pool as it stands exactly when that word equals the pool's resting word.
//!
//! Storage may also be memory of the caller's own: attached to one mbuf after another
//! ([`External`]), or tied to the mbufs of a pool for good ([`PinnedArea`]).
//!
//! Three handles, each one pointer wide, so that `&mut [Option<Mbuf>]` *is* an array of pool
//! pointers and a run in it can go to the pool without being copied first:
//!
//! | handle | owns | may write |
//! |---|---|---|
//! | [`Mbuf`] | the packet alone | yes, where the storage is not shared |
//! | [`SharedMbuf`] | one reference of a shared packet, `Clone` | no |
//! | [`TxMbuf`] | what a transmit ring holds, made from either | no |
//!
//! ```
//! use mbuf::{BufferSet, Packet};
//!
//! let set = BufferSet::standard(1024, 256)?;
//! let mut m = set.header_with(1500)?;
//! m.set_lead(64)?;
//! m.append(5)?.copy_from_slice(b"hello");
//! m.prepend(4)?.copy_from_slice(b"ip: ");
//! let copy = m.ref_copy(4, 5, &set)?;
//! assert_eq!(copy.to_vec(), b"hello");
//! assert!(m.data_mut().is_none(), "its cluster is shared now, so it is read-only");
//!
//! let mut burst = [Some(m), None, Some(copy)];
//! mbuf::free_bulk(&mut burst);
//! assert!(set.is_full());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Beside its bytes a packet carries what was said of it ([`Packet::received`],
//! [`Packet::vlan`], …), and where its pool has a [`PrivateArea`], named fields ([`FieldRegistry`])
//! and tags ([`Mbuf::add_tag`]). Packets stand in a [`PacketList`] or, between threads, in a
//! [`PacketQueue`], without memory of its own for either. `std::io` reads and writes them
//! ([`Packet::reader`], [`Mbuf::writer`]).
//!
//! Features, both off: `bytes` makes readers `Buf`, lends tailroom as `BufMut` and segments of
//! shared packets as `Bytes`; `smoltcp` is for the example of that name.
//!
//! `unsafe` is confined to `header`, `cluster`, `external`, `owner`, `attach`, `wipe`, `handle`, `segment`,
//! `chain`, `chain::marks`, `list`, `private`, `meta`, `history`, `check`, `packet`, `plain`, `plain_ring`, `prefetch`, `buf`, `pool`, `pinned`, `free`, and
//! of the edits to `edit`, `edit::surgery` and `edit::storage`; `DESIGN.md` beside this crate's sources holds the argument as a whole.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod alloc;
mod attach;
#[cfg(feature = "bytes")]
mod buf;
mod chain;
mod check;
mod cluster;
mod copy;
mod count;
mod dump;
mod edit;
mod error;
mod external;
mod fields;
mod free;
mod handle;
mod header;
mod history;
mod io;
mod kind;
mod list;
mod meta;
mod offload;
mod owner;
mod packet;
mod pinned;
mod plain;
mod plain_ring;
mod plain_value;
mod pool;
mod prefetch;
mod private;
mod queue;
mod segment;
mod set;
mod stats;
mod sync;
mod tag;
mod wipe;
mod word;

#[cfg(feature = "bytes")]
pub use buf::TailBuf;
pub use chain::Chain;
pub use check::Broken;
pub use copy::ByteSlices;
pub use dump::{Dump, Hexdump};
pub use error::{
    AllocError, AttachError, Buffers, CopyError, CreateError, EditError, NoRoom, OutOfRange,
    ReadError,
};
pub use external::External;
pub use fields::{Field, FieldError, FieldFlag, FieldRegistry, Place};
pub use free::{FreeStrategy, free_bulk, free_bulk_with, raw};
pub use handle::{Mbuf, SharedMbuf, TxMbuf};
pub use history::{LifeEvent, LifeEvents};
pub use io::{Covered, IoSlices, PacketReader, PacketWriter};
pub use kind::Kind;
pub use list::{PacketList, PacketListIntoIter, PacketListIter};
pub use meta::{Checksum, Flow, PacketType, Received};
pub use offload::{OffloadError, OffloadFlags, TxOffload};
pub use packet::Packet;
pub use pinned::PinnedArea;
pub use plain::{PlainBurst, PlainMut};
pub use plain_ring::{OtherPool, PlainRing};
pub use plain_value::PlainValue;
pub use pool::{ClusterPool, MbufPool, Room};
pub use private::PrivateArea;
pub use queue::{PacketQueue, QueueStats};
pub use segment::{Segment, SegmentMut, Segments, Storage};
pub use set::{BufferSet, BufferSetBuilder};
pub use stats::{Event, MbufStats, Usage};
pub use tag::{MAX_TAG, Tag, TagError, Tags};
