//! What is said of a packet: received, VLAN, time, flow, priority, offload requests, history.

use fastrand::Rng;
use mbuf::{
    BufferSet, Checksum, Flow, LifeEvent, Mbuf, OffloadError, OffloadFlags as F, Packet,
    PacketType, PlainBurst, Received, TxOffload, free_bulk,
};

fn set() -> BufferSet {
    BufferSet::bsd_builder(64, 8)
        .configure(|b| b.cache(0))
        .build()
        .unwrap()
}

fn any_checksum(rng: &mut Rng) -> Checksum {
    [Checksum::Unknown, Checksum::Good, Checksum::Bad][rng.usize(0..3)]
}

/// All that can be said, at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Said {
    offload: TxOffload,
    user: u64,
    received: Option<Received>,
    vlan: Option<u16>,
    timestamp: Option<u64>,
    flow: Option<Flow>,
    priority: Option<u8>,
}

impl Said {
    fn random(rng: &mut Rng) -> Self {
        let offload = TxOffload {
            flags: F::from_bits_truncate(rng.u16(..)),
            l2_len: rng.u16(..),
            l3_len: rng.u16(..),
            l4_len: rng.u16(..),
            tso_mss: rng.u16(..),
        };
        let received = Received {
            port: rng.u16(..),
            queue: rng.u16(..),
            packet_type: PacketType::from_bits_truncate(rng.u16(..)),
            ip_checksum: any_checksum(rng),
            l4_checksum: any_checksum(rng),
        };
        let flow = match rng.bool() {
            true => Flow::Hash(rng.u32(..)),
            false => Flow::Id(rng.u32(..)),
        };
        Self {
            offload,
            user: rng.u64(..),
            received: rng.bool().then_some(received),
            vlan: rng.bool().then(|| rng.u16(..)),
            timestamp: rng.bool().then(|| rng.u64(..)),
            flow: rng.bool().then_some(flow),
            priority: rng.bool().then(|| rng.u8(..)),
        }
    }

    fn say(&self, m: &mut Mbuf) {
        m.set_offload(self.offload);
        m.set_user(self.user);
        if let Some(received) = self.received {
            m.set_received(received);
        }
        m.set_vlan(self.vlan);
        m.set_timestamp(self.timestamp);
        m.set_flow(self.flow);
        m.set_priority(self.priority);
    }

    fn of(m: &impl Packet) -> Self {
        Self {
            offload: m.offload(),
            user: m.user(),
            received: m.received(),
            vlan: m.vlan(),
            timestamp: m.timestamp(),
            flow: m.flow(),
            priority: m.priority(),
        }
    }
}

#[test]
fn dpdk_b24_all_fields_survive_for_random_values() {
    let set = set();
    let mut rng = Rng::with_seed(24);
    for _ in 0..20_000 {
        let mut m = set.header().unwrap();
        let said = Said::random(&mut rng);
        said.say(&mut m);
        m.append(100).unwrap().fill(0xff);
        assert_eq!(Said::of(&m), said);
        let shared = m.into_shared();
        assert_eq!(Said::of(&shared.clone()), said, "the same on every handle");
    }
}

#[test]
fn a_fresh_mbuf_says_nothing_whatever_was_said_of_its_last_packet() {
    let set = BufferSet::bsd_builder(1, 1)
        .configure(|b| b.cache(0))
        .build()
        .unwrap();
    let mut rng = Rng::with_seed(1);
    for _ in 0..100 {
        let mut m = set.header().unwrap();
        assert_eq!(Said::of(&m), Said::default());
        Said::random(&mut rng).say(&mut m);
    }
    let mut burst = [Some(set.header().unwrap())];
    assert_eq!(Said::of(burst[0].as_ref().unwrap()), Said::default());
    free_bulk(&mut burst);
}

#[test]
fn what_is_taken_back_is_said_no_more() {
    let mut m = set().header().unwrap();
    m.set_flow(Some(Flow::Hash(7)));
    m.set_flow(Some(Flow::Id(8)));
    assert_eq!(m.flow(), Some(Flow::Id(8)), "no longer a hash");
    (0..2).for_each(|_| m.set_flow(None));
    m.set_vlan(Some(5));
    m.set_vlan(None);
    m.set_timestamp(Some(5));
    m.set_timestamp(None);
    m.set_priority(Some(5));
    m.set_priority(None);
    assert_eq!(Said::of(&m), Said::default());
}

#[test]
fn metadata_is_copied_without_offload_requests_and_user_word() {
    let set = set();
    let mut rng = Rng::with_seed(3);
    for _ in 0..1000 {
        let (mut from, mut to) = (set.header().unwrap(), set.header().unwrap());
        let (theirs, ours) = (Said::random(&mut rng), Said::random(&mut rng));
        theirs.say(&mut from);
        ours.say(&mut to);
        to.copy_metadata_from(&from);
        let expected = Said {
            offload: ours.offload,
            user: ours.user,
            ..theirs
        };
        assert_eq!(Said::of(&to), expected);
        assert_eq!(Said::of(&from), theirs);
        to.clear_metadata();
        let expected = Said {
            offload: ours.offload,
            user: ours.user,
            ..Said::default()
        };
        assert_eq!(Said::of(&to), expected);
    }
}

#[test]
fn a_plain_burst_can_say_it_too() {
    let set = set();
    let mut burst = PlainBurst::<4>::new();
    burst.fill(set.mbuf_pool(), 2).unwrap();
    let received = Received {
        port: 9,
        ..Received::default()
    };
    let mut first = burst.get_mut(0).unwrap();
    first.set_received(received);
    first.set_vlan(Some(1));
    first.set_timestamp(Some(2));
    first.set_flow(Some(Flow::Hash(3)));
    let said = Said {
        received: Some(received),
        vlan: Some(1),
        timestamp: Some(2),
        flow: Some(Flow::Hash(3)),
        ..Said::default()
    };
    assert_eq!(
        (Said::of(&burst[0]), Said::of(&burst[1])),
        (said, Said::default())
    );
}

#[test]
fn bsd_microtime_is_the_timestamp_or_now() {
    let mut m = set().header().unwrap();
    assert_eq!(m.timestamp().unwrap_or(77), 77);
    m.set_timestamp(Some(5));
    assert_eq!(m.timestamp().unwrap_or(77), 5);
}

#[test]
fn dpdk_b25_flags_have_names() {
    assert_eq!(F::empty().to_string(), "0");
    assert_eq!((F::TSO | F::IPV4).to_string(), "TSO|IPV4");
    for (name, flag) in F::all().iter_names() {
        assert_eq!(flag.to_string(), name, "each known flag, its name");
    }
    assert_eq!(
        F::from_bits_retain(1 << 15).to_string(),
        "0",
        "unknown ones have none"
    );
    assert_eq!(PacketType::empty().to_string(), "0");
    for (name, kind) in PacketType::all().iter_names() {
        assert_eq!(kind.to_string(), name);
    }
}

#[test]
fn dpdk_b26_transmit_flags_are_validated() {
    let ask = |flags, tso_mss| {
        let ask = TxOffload {
            flags,
            tso_mss,
            ..TxOffload::default()
        };
        ask.validate()
    };
    let flags = F::IPV4_CSUM | F::IPV6;
    assert_eq!(ask(flags, 0), Err(OffloadError::NotIpv4 { flags }));
    for flags in [F::TCP_CSUM, F::UDP_CSUM] {
        assert_eq!(ask(flags, 0), Err(OffloadError::NoVersion { flags }));
    }
    assert_eq!(
        ask(F::TSO, 512),
        Err(OffloadError::NoVersion { flags: F::TSO })
    );
    assert_eq!(ask(F::TCP_CSUM | F::IPV6, 0), Ok(()));
    assert_eq!(ask(F::UDP_CSUM | F::IPV6, 0), Ok(()));
    assert_eq!(
        ask(F::TSO | F::IPV4 | F::IPV4_CSUM, 0),
        Err(OffloadError::TsoNoMss)
    );
    assert_eq!(ask(F::TSO | F::IPV4, 0), Err(OffloadError::TsoNoMss));
    let flags = F::TSO | F::IPV4;
    let without = OffloadError::TsoWithoutIpv4Csum { flags };
    assert_eq!(ask(flags, 512), Err(without));
    assert_eq!(ask(flags | F::IPV4_CSUM, 512), Ok(()));
    assert_eq!(ask(F::TSO | F::IPV6, 512), Ok(()));
    let flags = F::OUTER_IPV4_CSUM;
    assert_eq!(ask(flags, 0), Err(OffloadError::OuterNotIpv4 { flags }));
    assert_eq!(ask(flags | F::OUTER_IPV4, 0), Ok(()));
    assert_eq!(ask(F::empty(), 0), Ok(()));
}

#[test]
fn contradictions_beyond_dpdks_are_refused() {
    let ask = |flags| {
        let ask = TxOffload {
            flags,
            tso_mss: 1448,
            ..TxOffload::default()
        };
        ask.validate()
    };
    for flags in [F::IPV4 | F::IPV6, F::OUTER_IPV4 | F::OUTER_IPV6] {
        assert_eq!(ask(flags), Err(OffloadError::TwoVersions { flags }));
    }
    for both in [F::TCP_CSUM | F::UDP_CSUM, F::TSO | F::UDP_CSUM] {
        let flags = both | F::IPV6;
        assert_eq!(ask(flags), Err(OffloadError::TwoTransports { flags }));
    }
    let error = ask(F::TSO).unwrap_err().to_string();
    assert_eq!(error, "neither IPv4 nor IPv6 in TSO");
}

/// Events of one mbuf over two lives, newest first; none outside of checked mode.
#[test]
fn dpdk_b19_history_keeps_the_last_sixteen_events() {
    use LifeEvent::{Alloc, Free, Posted, Received, Sent, User1};
    let set = BufferSet::builder(2)
        .configure(|b| b.cache(0))
        .build()
        .unwrap();
    let m = set.header().unwrap();
    m.note(Received);
    let mut chain = m;
    chain.cat(set.plain().unwrap());
    chain.note(Posted);
    let shared = chain.into_shared();
    shared.note(Sent);
    let behind: Vec<_> = shared.history().collect();
    drop(shared);
    let all = [set.header().unwrap(), set.header().unwrap()];
    let lives: Vec<Vec<_>> = all.iter().map(|m| m.history().collect()).collect();
    if !mempool::CHECKED {
        assert!(behind.is_empty() && lives.iter().all(Vec::is_empty));
        return;
    }
    assert_eq!(behind, [Sent, Posted, Received, Alloc]);
    assert!(lives.contains(&vec![Alloc, Free, Sent, Posted, Received, Alloc]));
    assert!(
        lives.contains(&vec![Alloc, Free, Sent, Posted, Alloc]),
        "each segment"
    );
    (0..20).for_each(|_| all[0].note(User1));
    assert_eq!(all[0].history().collect::<Vec<_>>(), [User1; 16]);
    assert!(all[0].dump().to_string().contains("history: user1 < user1"));
}

#[test]
fn every_way_of_freeing_and_taking_is_noted() {
    use LifeEvent::{Alloc, Free};
    if !mempool::CHECKED {
        return;
    }
    let set = BufferSet::builder(1)
        .configure(|b| b.cache(0))
        .build()
        .unwrap();
    for how in mbuf::FreeStrategy::ALL {
        let mut one: [Option<Mbuf>; 1] = [None];
        set.header_bulk(&mut one).unwrap();
        mbuf::free_bulk_with(how, &mut one);
        let events: Vec<_> = set.plain().unwrap().history().take(3).collect();
        assert_eq!(events, [Alloc, Free, Alloc], "{how}");
    }
    let mut burst = PlainBurst::<1>::new();
    burst.fill(set.mbuf_pool(), 1).unwrap();
    drop(burst);
    let events: Vec<_> = set.header().unwrap().history().take(3).collect();
    assert_eq!(events, [Alloc, Free, Alloc]);
}

#[test]
fn hops_are_each_segments_and_begin_at_0_with_each_allocation() {
    let set = BufferSet::bsd_builder(8, 4)
        .configure(|b| b.cache(0))
        .build()
        .unwrap();
    let hops = |m: &Mbuf| m.segments().map(|seg| seg.hops()).collect::<Vec<_>>();
    for _ in 0..3 {
        let mut m = set.copy_in(&[1; 3000], 0).unwrap();
        assert_eq!(hops(&m), [0]);
        m.pass_on();
        m.cat(set.copy_in(b"inline", 0).unwrap());
        m.pass_on();
        assert_eq!(hops(&m), [2, 1]);
        let both = m.ref_copy(2000, 1003, &set).unwrap();
        assert_eq!(
            hops(&both),
            [2, 1],
            "by reference, and a copy of inline bytes"
        );
        let one = m.byte_copy(2000, 1003, 0, &set).unwrap();
        assert_eq!(hops(&one), [2], "the most of those");
        m.reset_header();
        assert_eq!(hops(&m), [2, 1], "kept as the packet's header is reset");
        for _ in 0..300 {
            m.pass_on();
        }
        assert_eq!(hops(&m), [255, 255], "and not 0 again");
    }
    assert!(set.is_full());
}

#[test]
fn passing_on_clears_what_every_segment_says() {
    let set = set();
    let mut rng = Rng::with_seed(2);
    let said = Said::random(&mut rng);
    let mut packets = [set.header().unwrap(), set.header().unwrap()];
    packets.iter_mut().for_each(|m| said.say(m));
    let [mut first, second] = packets;
    first.cat(second);
    first.pass_on();
    let (first, second) = first.split_first();
    assert_eq!(Said::of(&first), Said::default());
    assert_eq!(
        Said::of(&second.unwrap()),
        Said::default(),
        "it may head a packet now"
    );
}
