//! What the tests share.
#![allow(dead_code)] // each binary uses its part

use mbuf::{BufferSet, Mbuf};
use sockbuf::SockBuf;

/// BSD's sizes, and plenty of them.
pub fn pools() -> BufferSet {
    BufferSet::bsd(4096, 64).expect("pools")
}

/// A cluster with these bytes behind some headroom, as a NIC's receive ring would leave it.
pub fn received(set: &BufferSet, bytes: &[u8], lead: usize) -> Mbuf {
    let mut m = set.header_with(lead + bytes.len()).expect("cluster");
    m.set_lead(lead).expect("lead");
    m.append(bytes.len()).expect("room").copy_from_slice(bytes);
    m
}

/// The bytes, in as many mbufs as there are slices.
pub fn pieces(set: &BufferSet, parts: &[&[u8]]) -> Mbuf {
    let mut parts = parts.iter().map(|part| received(set, part, 0));
    let mut m = parts.next().expect("at least one");
    parts.for_each(|part| m.cat(part));
    m
}

pub fn content(sb: &SockBuf) -> Vec<u8> {
    let mut bytes = vec![0; sb.len()];
    sb.copy_to(0, &mut bytes).expect("all of it");
    bytes
}

/// Says which run it was when one fails.
pub struct Seed(pub u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.0);
        }
    }
}
