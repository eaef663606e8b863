//! A simulated NIC: descriptor rings, offloads, completion by bulk free.
//!
//! ```text
//!   stack ──► TxQueue / RemoteQueue ──► descriptors ──► Backend: Null, or
//!                  ▲    handles                         Hardware ──► FrameSink: Collect, Each,
//!                  └─── drain: bulk free                (TSO, sums)  Reassembler, PcapFile, Tee
//!
//!   capture ──► pcap::tcp_streams ──► rx: receive clusters ──► stack
//! ```
//!
//! - A [`TxQueue`] and its device share a thread: [`send`](TxQueue::send) posts,
//!   [`run_device`](TxQueue::run_device) transmits, [`drain`](TxQueue::drain) frees. Completed
//!   slots go to bulk free as they lie in the ring.
//! - A [`RemoteQueue`]'s device has a thread of its own, which transmits and frees.
//! - [`TxConfig`] holds the limits: ring size, pieces per packet and bytes per piece, contiguous
//!   headers, frame length, TSO, checksums, thresholds, free strategy.
//! - [`Hardware`] does what [`mbuf::TxOffload`] asks for and sends real frames.
//! - `tap`, with the feature of that name, is a Linux TAP device: frames to the kernel and back.
//!
//! It knows Ethernet, IP and TCP headers as hardware does, and nothing of connections.

#![deny(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod assemble;
mod backend;
pub mod checksum;
mod config;
mod descriptor;
mod device;
pub mod ether;
mod header;
pub mod pcap;
mod plain;
mod post;
mod remote;
pub mod rx;
mod segment;
mod stats;
#[cfg(all(feature = "tap", target_os = "linux"))]
pub mod tap;
mod tx;
mod wire;

pub use assemble::Assembler;
pub use backend::{Backend, BadPacket, Delivered, Hardware, Null, ReadMode};
pub use config::{ConfigError, TxConfig};
pub use descriptor::{DescFlags, Descriptor, DescriptorFault, Fault, Gather, Pieces};
pub use header::{FlowKey, Link, NotTcp, TcpSegment};
pub use plain::PlainQueue;
pub use remote::{RemoteError, RemoteQueue};
pub use rx::RxFill;
pub use segment::{SegmentError, Segmenter};
pub use stats::{DeviceStats, TxStats};
pub use tx::TxQueue;
pub use wire::{Collect, Each, FrameSink, Reassembler, Tee};
