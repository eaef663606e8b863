//! Drives every operation on packets from a string of bytes, beside a `Vec<u8>` for each packet.
//!
//! The bytes come from a seeded generator (`tests/model`) or from a fuzzer (`fuzz`). After every
//! step all packets that live are compared with their models: what one operation does is seen in all
//! others. An operation that fails must leave its packet as it was, to the last pointer.

mod copies;
mod edits;
mod source;

use mbuf::{BufferSet, Chain, EditError, Mbuf, Packet, SharedMbuf, Storage, TxOffload};
pub use source::Source;
use std::collections::BTreeMap;

/// Packets at a time: enough to share, few enough that pools run dry now and then only.
const PACKETS: usize = 6;
/// A packet that has grown beyond this is cut, so that comparing stays cheap.
const LONGEST: usize = 40_000;

/// The pools of a run: small, so that they run dry, and uncached, so that counts are exact.
pub fn pools() -> BufferSet {
    BufferSet::bsd_builder(64, 6)
        .configure(|b| b.cache(0))
        .build()
        .expect("pools")
}

/// A packet, and what it must be.
struct Live {
    m: Mbuf,
    bytes: Vec<u8>,
    user: u64,
    offload: TxOffload,
}

impl Live {
    /// `bytes` and the header of `m` as it is.
    fn new(m: Mbuf, bytes: Vec<u8>) -> Self {
        Self {
            user: m.user(),
            offload: m.offload(),
            m,
            bytes,
        }
    }
}

/// All that lives at one time.
struct World<'s> {
    set: &'s BufferSet,
    live: Vec<Live>,
    frozen: Vec<(SharedMbuf, Vec<u8>)>,
    chain: Chain,
    chain_bytes: Vec<u8>,
    /// The last step lacked buffers.
    short: bool,
}

/// How often each operation was run, and how often of these it lacked buffers.
pub type Tally = BTreeMap<&'static str, (usize, usize)>;

/// Does what `decisions` say until they end; then everything must be back in the pools.
///
/// # Panics
/// When anything differs from the model.
pub fn run(set: &BufferSet, decisions: &[u8], tally: &mut Tally) {
    let mut source = Source::new(decisions);
    let mut world = World {
        set,
        live: Vec::new(),
        frozen: Vec::new(),
        chain: Chain::new(),
        chain_bytes: Vec::new(),
        short: false,
    };
    while !source.is_empty() {
        world.short = false;
        let what = world.step(&mut source);
        let (runs, short) = tally.entry(what).or_default();
        *runs += 1;
        *short += usize::from(world.short);
        world.compare(what);
    }
    drop(world);
    assert!(set.is_full(), "{} objects leaked", set.in_use());
}

impl World<'_> {
    /// One operation; its name.
    fn step(&mut self, src: &mut Source<'_>) -> &'static str {
        if self.live.is_empty() || (self.live.len() < PACKETS && src.one_in(6)) {
            self.make(src);
            return "make";
        }
        let i = src.below(self.live.len());
        if self.live[i].bytes.len() > LONGEST {
            let n = self.live[i].bytes.len() - 100;
            self.live[i].m.trim_back(n).expect("as many are there");
            self.live[i].bytes.truncate(100);
            return "trim_back";
        }
        match src.below(3) {
            0 => self.copy(i, src),
            _ => self.edit(i, src),
        }
    }

    /// Adds a packet, if there are buffers.
    fn make(&mut self, src: &mut Source<'_>) {
        let mut packet: Option<Live> = None;
        for at in 0..=src.below(5) {
            let Some((m, bytes)) = segment(self.set, at == 0, src) else {
                break;
            };
            match &mut packet {
                None => packet = Some(Live::new(m, bytes)),
                Some(p) => {
                    p.m.cat(m);
                    p.bytes.extend(bytes);
                }
            }
        }
        if let Some(mut packet) = packet {
            if src.one_in(2) {
                packet.user = src.byte().into();
                packet.m.set_user(packet.user);
            }
            if src.one_in(2) {
                packet.offload.l4_len = src.byte().into();
                packet.m.set_offload(packet.offload);
            }
            self.live.push(packet);
        }
    }

    /// Runs `f` on packet `i`; true when it worked. It may lack buffers, and then nothing has
    /// changed; anything else it has no reason for.
    fn attempt(
        &mut self,
        i: usize,
        f: impl FnOnce(&mut Mbuf, &BufferSet) -> Result<(), EditError>,
    ) -> bool {
        let m = &mut self.live[i].m;
        let before = shape(m);
        match f(m, self.set) {
            Ok(()) => true,
            Err(EditError::Alloc(_)) => {
                assert_eq!(shape(m), before, "a failed edit changed the packet");
                self.short = true;
                false
            }
            Err(e) => panic!("a range within the packet was refused: {e}"),
        }
    }

    /// Runs `f`, which asks packet `i` for what it cannot give: refused, and nothing has changed.
    fn refused<T>(
        &mut self,
        i: usize,
        f: impl FnOnce(&mut Mbuf, &BufferSet) -> Result<T, EditError>,
    ) {
        let m = &mut self.live[i].m;
        let before = shape(m);
        let range = matches!(f(m, self.set), Err(EditError::Range(_)));
        assert!(range, "a range beyond the end was not refused as such");
        assert_eq!(shape(m), before, "a refused edit changed the packet");
    }

    /// Everything is as the models say.
    fn compare(&self, what: &str) {
        for live in &self.live {
            same(&live.m, &live.bytes, what);
            assert_eq!(live.m.user(), live.user, "{what}: user word");
            assert_eq!(live.m.offload(), live.offload, "{what}: offload");
        }
        for (m, bytes) in &self.frozen {
            same(m, bytes, what);
        }
        let mut bytes = vec![0; self.chain.len()];
        self.chain.copy_to(0, &mut bytes).expect("all of it");
        assert!(bytes == self.chain_bytes, "{what}: bytes of the queue");
    }
}

fn same(m: &impl Packet, bytes: &[u8], what: &str) {
    if let Err(why) = m.check() {
        panic!("{what}: {why}");
    }
    assert_eq!(m.pkt_len(), bytes.len(), "{what}: length");
    let mut rest = bytes;
    for seg in m.segments() {
        let (now, later) = rest.split_at(seg.len());
        assert!(seg.data() == now, "{what}: bytes differ from the model");
        rest = later;
        let cluster = match seg.storage() {
            Storage::Inline => 0,
            _ => seg.capacity(),
        };
        assert_eq!(seg.charge(), 256 + cluster, "{what}: charge");
    }
}

/// Where each segment's bytes are, and all that is said of them.
fn shape(m: &Mbuf) -> Vec<[usize; 5]> {
    let of = |seg: mbuf::Segment<'_>| {
        let at = seg.data().as_ptr() as usize;
        [at, seg.lead(), seg.len(), seg.capacity(), seg.charge()]
    };
    let counts = [m.pkt_len(), m.nsegs(), m.user() as usize, 0, 0];
    std::iter::once(counts)
        .chain(m.segments().map(of))
        .collect()
}

/// One segment of any kind with any lead, often empty.
fn segment(set: &BufferSet, head: bool, src: &mut Source<'_>) -> Option<(Mbuf, Vec<u8>)> {
    const CAPACITIES: [usize; 12] = [
        0, 0, 0, 100, 2048, 2048, 2050, 4096, 8192, 9344, 16384, 65536,
    ];
    let capacity = CAPACITIES[src.below(CAPACITIES.len())];
    let m = if head {
        set.header_with(capacity)
    } else {
        set.plain_with(capacity)
    };
    let mut m = m.ok()?;
    let room = m.capacity();
    let lead = match src.below(4) {
        0 => 0,
        1 => room,
        _ => src.below(room.min(300)),
    };
    m.set_lead(lead).expect("empty and not shared");
    let len = match src.below(5) {
        0 => 0,
        1 => (room - lead).min(2500),
        _ => src.below((room - lead).min(300) + 1),
    };
    let bytes = src.bytes(len);
    let data = m.append(len).expect("room was counted");
    data.copy_from_slice(&bytes);
    Some((m, bytes))
}
