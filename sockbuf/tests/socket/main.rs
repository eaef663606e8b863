//! Sockets: BSD's sosend and soreceive, edge by edge.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/socket.rs"]
mod sockets;

mod errors;
mod polled;
mod receive;
mod records;
mod send;
mod urgent;
mod waits;
