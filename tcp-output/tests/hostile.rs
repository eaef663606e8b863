//! A connection under hostile segments, a careless user and a jumping clock.

#[path = "common/alone.rs"]
mod alone;
mod common;

use alone::Alone;
use tcp_output::connection::Config;
use tcp_output::input::TcpOption;
use tcp_output::wire::*;
use tcp_output::*;

/// A SACK option for one range.
fn sack(start: Seq, end: Seq) -> Vec<u8> {
    [&[5, 10][..], &start.0.to_be_bytes(), &end.0.to_be_bytes()].concat()
}

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..len).map(|_| rng.u8(..)).collect()
}

#[test]
fn hostile_segments_neither_panic_nor_leak_nor_break_the_rules() {
    let mut ended = 0;
    for seed in 0..400 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut alone = Alone::new(Config {
            flags: TcbFlags::ASK_SACK,
            ..Config::default()
        });
        for _ in 0..150 {
            hostile_step(&mut alone, &mut rng);
            let tcb = alone.tcp.tcb();
            assert!(tcb.send.rexmt.is_none() || tcb.send.persist.is_none());
            assert!(tcb.una.leq(tcb.send.nxt) && tcb.send.nxt.leq(tcb.send.max));
            let queued = alone.tcp.send_buffer().len() as u32;
            let open = tcb.state != State::Closed;
            assert!(
                !open || tcb.send.max - tcb.una <= queued + 1,
                "a FIN at most"
            );
            assert!(tcb.scoreboard.holes().len() <= MAX_HOLES);
        }
        ended += u32::from(alone.tcp.state() == State::Closed);
        let Alone { set, tcp, .. } = alone;
        drop(tcp);
        assert!(set.is_full(), "seed {seed}");
    }
    assert!((10..390).contains(&ended), "{ended} ended");
}

/// Something that a peer, an attacker, the user or the clock could do, near enough to be believed at
/// times.
fn hostile_step(alone: &mut Alone, rng: &mut fastrand::Rng) {
    let tcb = alone.tcp.tcb();
    let near = |rng: &mut fastrand::Rng, of: Seq| match rng.u8(0..8) {
        0 => Seq(rng.u32(..)),
        1 => of + rng.u32(0..3000),
        2 => Seq(of.0.wrapping_sub(rng.u32(0..3000))),
        _ => of,
    };
    let seq = near(rng, tcb.rcv.nxt);
    let (una, max) = (tcb.una, tcb.send.max);
    let ack = una + rng.u32(0..=max - una);
    let ack = near(rng, ack);
    let mut flags = TcpFlags::ACK;
    for (flag, odds) in [
        (TcpFlags::FIN, 30),
        (TcpFlags::SYN, 20),
        (TcpFlags::RST, 60),
        (TcpFlags::URG, 10),
        (TcpFlags::ECE, 10),
        (TcpFlags::ACK, 20),
    ] {
        if rng.u8(0..odds) == 0 {
            flags ^= flag;
        }
    }
    let (start, end) = (near(rng, una), near(rng, max));
    let blocks = sack(start, end);
    let blocks = [TcpOption::Other {
        kind: 5,
        data: &blocks[2..],
    }];
    let options = if rng.bool() { &blocks[..] } else { &[] };
    let data = bytes(1, rng.usize(0..1500) * usize::from(rng.bool()));
    alone.window = rng.u16(..) * u16::from(rng.u8(0..4) > 0);
    alone.arrive(seq, ack, flags, options, &data);
    match rng.u8(0..12) {
        0..3 => {
            let _ = alone.tcp.write(&bytes(2, rng.usize(0..9000)), &alone.set);
        }
        3 => drop(alone.tcp.take()),
        4 => {
            alone.now = alone.now + rng.u32(0..3000);
            alone.tcp.on_timer(alone.now);
        }
        5 if rng.u8(0..20) == 0 => {
            alone.tcp.close();
        }
        _ => {}
    }
    if rng.bool() {
        alone.output();
    }
}
