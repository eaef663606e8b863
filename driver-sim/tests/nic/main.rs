//! Tests of the simulated NIC as its users see it.

mod ether;
mod faults;
mod limits;
mod offload;
mod oracle;
mod pcap;
mod plain;
mod remote;
mod ring;
mod rx;
mod support;
#[cfg(all(feature = "tap", target_os = "linux"))]
mod tap;
#[cfg(all(feature = "tap", target_os = "linux"))]
mod tap_kernel;
mod tshark;
