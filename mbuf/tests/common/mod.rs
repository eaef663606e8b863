//! Random packets and the checks that every test file shares.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod owner;

use fastrand::Rng;
use mbuf::{BufferSet, Mbuf, Packet};
use std::sync::Arc;

/// A small set whose pools go straight to their backends, so that counts are exact at once.
pub fn uncached() -> BufferSet {
    BufferSet::bsd_builder(512, 64)
        .configure(|b| b.cache(0))
        .build()
        .unwrap()
}

/// A packet of 1 to `max` segments of all kinds: inline, clusters, external storage, empty ones, odd
/// leads, and its bytes. Some storage is shared with a packet in `keep`.
pub fn random_packet(
    rng: &mut Rng,
    set: &BufferSet,
    max: usize,
    keep: &mut Vec<Mbuf>,
) -> (Mbuf, Vec<u8>) {
    let mut packet: Option<Mbuf> = None;
    let mut model = Vec::new();
    for at in 0..rng.usize(1..=max) {
        let (m, bytes) = random_segment(rng, set, at == 0, keep);
        model.extend(bytes);
        match &mut packet {
            None => packet = Some(m),
            Some(p) => p.cat(m),
        }
    }
    (packet.unwrap(), model)
}

fn random_segment(
    rng: &mut Rng,
    set: &BufferSet,
    head: bool,
    keep: &mut Vec<Mbuf>,
) -> (Mbuf, Vec<u8>) {
    let capacity = match rng.u8(0..5) {
        0 => 0,
        1 => 2048,
        2 => 4096,
        3 => 9000,
        _ => 100,
    };
    let mut m = if head {
        set.header_with(capacity)
    } else {
        set.plain_with(capacity)
    }
    .unwrap();
    match rng.u8(0..12) {
        0 if capacity == 0 => return read_only_segment(rng, m),
        1 if capacity == 0 => m.attach_empty(vec![0; 600]).unwrap(),
        2 => assert!(m.wipe_on_free()),
        _ => {}
    }
    let room = m.capacity();
    let lead = rng.usize(0..=room.min(200));
    m.set_lead(lead).unwrap();
    let len = if rng.u8(0..6) == 0 {
        0
    } else {
        rng.usize(0..=(room - lead).min(300))
    };
    let bytes: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
    m.append(len).unwrap().copy_from_slice(&bytes);
    if rng.u8(0..4) == 0 && len > 0 {
        keep.push(m.ref_copy(0, len, set).unwrap());
    }
    (m, bytes)
}

fn read_only_segment(rng: &mut Rng, mut m: Mbuf) -> (Mbuf, Vec<u8>) {
    let bytes: Vec<u8> = (0..rng.usize(1..400)).map(|_| rng.u8(..)).collect();
    m.attach(Arc::<[u8]>::from(&bytes[..])).unwrap();
    (m, bytes)
}

/// What the packet holds equals the model, and its header agrees with a recount.
#[track_caller]
pub fn assert_is(packet: &impl Packet, model: &[u8]) {
    packet.check().unwrap();
    assert_eq!(packet.pkt_len(), model.len());
    assert!(packet.to_vec() == model, "bytes differ from the model");
}
