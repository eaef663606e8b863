//! Packets to send, and what several test files ask of a queue.

use driver_sim::{Backend, Collect, Hardware, TxConfig, TxQueue};
use mbuf::{BufferSet, Mbuf, Packet};

pub type CollectQueue = TxQueue<Hardware<Collect>>;

/// A set large enough for every test here, unless it is about shortage.
pub fn set() -> BufferSet {
    BufferSet::standard(2048, 64).expect("a small set can be made")
}

/// A queue that collects frames and reports every packet.
pub fn queue(ring_size: usize) -> CollectQueue {
    let config = TxConfig {
        ring_size,
        rs_interval: 1,
        free_thresh: 1,
        ..TxConfig::default()
    };
    collecting(config)
}

pub fn collecting(config: TxConfig) -> CollectQueue {
    TxQueue::new(config, Hardware::new(Collect::default())).expect("a valid configuration")
}

/// A chain with one segment per length, bytes counted through with `first` at the start.
pub fn packet(lengths: &[usize], first: u8, set: &BufferSet) -> Mbuf {
    let total: usize = lengths.iter().sum();
    let bytes: Vec<u8> = (0..total)
        .map(|i| first.wrapping_add((i % 251) as u8))
        .collect();
    chain(&bytes, lengths, set)
}

/// `bytes` as a chain with one segment per length; the lengths add up to the bytes.
pub fn chain(bytes: &[u8], lengths: &[usize], set: &BufferSet) -> Mbuf {
    let mut rest = bytes;
    let mut packet: Option<Mbuf> = None;
    for &len in lengths {
        let (now, later) = rest.split_at(len);
        rest = later;
        let mut m = match packet {
            None => set.header_with(len),
            Some(_) => set.plain_with(len),
        }
        .expect("enough buffers");
        m.append(len).expect("room as asked").copy_from_slice(now);
        packet = Some(match packet {
            None => m,
            Some(mut head) => {
                head.cat(m);
                head
            }
        });
    }
    assert!(rest.is_empty(), "lengths must add up");
    packet.expect("at least one segment")
}

/// Sends one packet, which the queue must take.
pub fn send<B: Backend>(queue: &mut TxQueue<B>, m: Mbuf, set: &BufferSet) {
    assert_eq!(
        queue.send(&mut [Some(m)], set),
        1,
        "no room: {:?}",
        queue.stats()
    );
}

/// The counters add up, and the ring holds exactly the packets in flight.
#[track_caller]
pub fn check_law<B: Backend>(queue: &TxQueue<B>) {
    let s = queue.stats();
    let in_flight = queue.in_flight() as u64;
    assert_eq!(s.given, s.posted + s.dropped(), "{s:?}");
    assert_eq!(s.posted, s.completed + s.reset + in_flight, "{s:?}");
    let held = queue.slots().iter().flatten().count() as u64;
    assert_eq!(held, in_flight, "{s:?}");
    let pieces: usize = queue.slots().iter().flatten().map(pieces).sum();
    assert!(queue.config().ring_size - queue.room() >= pieces);
}

fn pieces(m: &impl Packet) -> usize {
    m.segments().filter(|s| !s.is_empty()).count()
}
