//! Chains of numbered bytes.

use mbuf::{BufferSet, Mbuf, Packet, Storage};

pub const MHLEN: usize = 144;
pub const MLEN: usize = 224;

pub fn set() -> BufferSet {
    let builder = BufferSet::bsd_builder(400, 16);
    builder.configure(|b| b.cache(0)).build().unwrap()
}

pub fn numbered(from: usize, n: usize) -> Vec<u8> {
    (from..from + n).map(|at| at as u8).collect()
}

/// Segments of these lengths, the first a header mbuf; over the inline room in a cluster. Bytes are numbered.
pub fn chain(set: &BufferSet, lens: &[usize]) -> Mbuf {
    let mut m: Option<Mbuf> = None;
    for &len in lens {
        let from = m.as_ref().map_or(0, Packet::pkt_len);
        let mut seg = match m {
            None => set.header_with(len).unwrap(),
            Some(_) => set.plain_with(len).unwrap(),
        };
        let bytes = numbered(from, len);
        seg.append(len).unwrap().copy_from_slice(&bytes);
        match &mut m {
            None => m = Some(seg),
            Some(m) => m.cat(seg),
        }
    }
    m.unwrap()
}

#[track_caller]
pub fn holds(m: &Mbuf, len: usize, lens: &[usize]) {
    m.check().unwrap();
    assert!(m.to_vec() == numbered(0, len), "bytes");
    let now: Vec<_> = m.segments().map(|s| s.len()).collect();
    assert_eq!(now, lens);
}

pub fn clustered(m: &Mbuf) -> Vec<usize> {
    let class = |s: mbuf::Segment<'_>| match s.storage() {
        Storage::Inline => 0,
        _ => s.capacity(),
    };
    m.segments().map(class).collect()
}

pub fn address(m: &Mbuf, index: usize) -> *const u8 {
    m.segments().nth(index).unwrap().data().as_ptr()
}
