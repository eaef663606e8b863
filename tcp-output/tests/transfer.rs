//! Whole transfers: loss, timers, windows, and every allocation failing once.

mod common;

use common::{failing_set, pattern, piece, see, spliced, v4};
use mbuf::{BufferSet, Mbuf};
use sockbuf::SockBuf;
use tcp_output::policy::{Copy, Reference, Threshold};
use tcp_output::*;

const FIRST: Seq = Seq(u32::MAX - 30_000);

fn tcb() -> Tcb {
    Tcb::new(
        v4(),
        1460,
        TcbFlags::TIMESTAMPS | TcbFlags::SACK,
        FIRST,
        Seq(1),
    )
    .expect("size")
}

/// A receiver that takes what is next in order and forgets the rest.
#[derive(Default)]
struct Receiver {
    stream: Vec<u8>,
    /// The sender's clock, to be echoed.
    clock: u32,
}

impl Receiver {
    fn take(&mut self, packet: &Mbuf) {
        let seen = see(packet);
        self.clock = seen.clock.expect("timestamps");
        let at = (Seq(seen.seq) - FIRST) as usize;
        let have = self.stream.len();
        if at <= have && at + seen.payload.len() > have {
            self.stream.extend(&seen.payload[have - at..]);
        }
    }

    fn ack(&self, window: u32) -> Ack {
        Ack::new(FIRST + self.stream.len() as u32, window).echoing(self.clock)
    }
}

/// What happens to a transfer on its way.
struct Weather {
    rng: fastrand::Rng,
    loss_percent: u8,
    refusal_percent: u8,
}

/// Sends all of `sb` on a virtual clock, and says what arrived. Failed calls are repeated.
fn transfer<P: CopyPolicy>(
    sender: &mut Sender<P>,
    sb: &mut SockBuf,
    set: &BufferSet,
    weather: &mut Weather,
) -> Vec<u8> {
    let mut receiver = Receiver::default();
    let total = sb.len();
    let mut now = Time(0);
    for _ in 0..20_000 {
        let mut out = |packet: Mbuf| {
            if weather.rng.u8(0..100) < weather.refusal_percent {
                return Err(OutputError::NoBuffers);
            }
            if weather.rng.u8(0..100) >= weather.loss_percent {
                receiver.take(&packet);
            }
            Ok(())
        };
        let result = match sender.tcb().next_timeout() {
            Some(at) if at <= now => {
                sender
                    .on_timer(sb, set, now, &mut out)
                    .map(|(expired, sent)| {
                        assert_ne!(expired, Some(Expired::GiveUp));
                        sent
                    })
            }
            _ => sender.output(sb, set, now, &mut out),
        };
        if !sb.is_empty() {
            assert!(
                sender.tcb().next_timeout().is_some(),
                "data waits and no timer runs: {result:?}"
            );
        }
        now = now + 10;
        let window = weather.rng.u32(0..60_000);
        let acked = sender
            .on_ack(&receiver.ack(window), now, sb)
            .expect("in range");
        drop(acked.freed);
        if receiver.stream.len() == total {
            return receiver.stream;
        }
        // Nothing moved: let the clock run to the timer.
        if acked.bytes == 0
            && let Some(at) = sender.tcb().next_timeout()
        {
            now = now.max(at);
        }
    }
    panic!("{} of {total} bytes arrived", receiver.stream.len());
}

fn calm() -> Weather {
    Weather {
        rng: fastrand::Rng::with_seed(1),
        loss_percent: 0,
        refusal_percent: 0,
    }
}

#[test]
fn every_byte_arrives_once_and_in_order_whatever_is_lost() {
    let policies: [Box<dyn CopyPolicy>; 3] = [
        Box::new(Reference),
        Box::new(Copy),
        Box::new(Threshold { factor: 5 }),
    ];
    let set = BufferSet::bsd(1024, 128).expect("pools");
    for policy in &policies {
        for seed in 0..20 {
            let mut weather = Weather {
                rng: fastrand::Rng::with_seed(seed),
                loss_percent: [0, 5, 30][seed as usize % 3],
                refusal_percent: [0, 0, 10][seed as usize % 3],
            };
            let mut sb = spliced(&set, 100, 1000 + weather.rng.usize(0..449));
            let want = pattern(0, sb.len());
            let mut sender = Sender::new(tcb(), policy).with_tso(seed % 2 == 0);
            let got = transfer(&mut sender, &mut sb, &set, &mut weather);
            assert!(got == want, "seed {seed}");
            assert!(set.is_full(), "seed {seed} leaks");
        }
    }
}

/// Every allocation of every pool fails once, each in a transfer of its own.
fn each_allocation_fails<P: CopyPolicy + Clone>(policy: P) {
    let (set, switches) = failing_set(128, 32);
    let mut failures = 0;
    let pools = switches.iter().enumerate();
    for ((pool, switch), tso) in pools.flat_map(|pool| [(pool, false), (pool, true)]) {
        for k in 1.. {
            let mut sb = spliced(&set, 20, 1448);
            sb.append_stream(piece(&set, 0, false, &pattern(20 * 1448, 100)));
            let want = pattern(0, sb.len());
            switch.fail_at(k);
            let before = switch.gets();
            let mut sender = Sender::new(tcb(), policy.clone()).with_tso(tso);
            let got = transfer(&mut sender, &mut sb, &set, &mut calm());
            let failed = switch.gets() - before >= k;
            assert!(got == want, "pool {pool}, allocation {k}");
            assert!(set.is_full(), "pool {pool}, allocation {k} leaks");
            // Each failure either costs a packet or is got around, and is counted as that.
            let stats = sender.tcb().stats;
            let (lost, rescued) = (stats.no_buffers, stats.fallbacks);
            assert_eq!(
                lost + rescued,
                u64::from(failed),
                "pool {pool}, allocation {k}"
            );
            if !failed {
                break;
            }
            failures += 1;
        }
        println!("pool {pool}, TSO {tso}: {failures} allocations failed so far");
        switch.fail_at(0);
    }
    assert!(failures > 10, "{failures} allocations failed");
}

#[test]
fn row_g1_reference_survives_each_failed_allocation() {
    each_allocation_fails(Reference);
}

#[test]
fn row_g2_copy_survives_each_failed_allocation() {
    each_allocation_fails(Copy);
}

#[test]
fn row_g5_threshold_survives_each_failed_allocation() {
    each_allocation_fails(Threshold { factor: 5 });
}
