//! The stack's side of the wire: frames of a TAP device in and out, ARP, loss.

use std::io;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use driver_sim::ether::{Carried, EtherAddrs, decap, encap};
use driver_sim::tap::Tap;
use mbuf::{BufferSet, Mbuf, Packet};
use tcp_output::connection::{Connection, Events};
use tcp_output::input::{Incoming, answer_with_reset};
use tcp_output::{ChecksumMode, CopyPolicy, Output, OutputError, Time};

/// The kernel's addresses on the link.
pub(super) const KERNEL: (Ipv4Addr, [u8; 6]) = (Ipv4Addr::new(10, 99, 0, 1), [0x02, 0, 0, 0, 0, 1]);
/// Ours.
pub(super) const OURS: (Ipv4Addr, [u8; 6]) = (Ipv4Addr::new(10, 99, 0, 2), [0x02, 0, 0, 0, 0, 2]);

const ADDRS: EtherAddrs = EtherAddrs {
    dst: KERNEL.1,
    src: OURS.1,
};

/// Frames taken from the device at a time.
const BURST: usize = 32;

/// A TAP device with an address.
pub(super) struct Link {
    tap: Tap,
    set: BufferSet,
    /// Who sums what is not cut.
    pub(super) checksum: ChecksumMode,
    started: Instant,
    /// Of a received burst, what was not looked at yet.
    burst: [Option<Mbuf>; BURST],
    at: usize,
    weather: fastrand::Rng,
    pub(super) loss_percent: f64,
    /// Frames lost on purpose, both ways.
    pub(super) lost: u64,
}

impl Link {
    pub(super) fn new(tap: Tap, set: BufferSet, checksum: ChecksumMode) -> Self {
        Link {
            tap,
            set,
            checksum,
            started: Instant::now(),
            burst: [const { None }; BURST],
            at: BURST,
            weather: fastrand::Rng::with_seed(7),
            loss_percent: 0.0,
            lost: 0,
        }
    }

    /// From now on so many of a hundred frames are lost, either way.
    pub(super) fn set_loss(&mut self, percent: f64) {
        (self.loss_percent, self.lost) = (percent, 0);
    }

    pub(super) fn set(&self) -> &BufferSet {
        &self.set
    }

    pub(super) fn tap(&mut self) -> &mut Tap {
        &mut self.tap
    }

    pub(super) fn now(&self) -> Time {
        Time(self.started.elapsed().as_millis() as u64)
    }

    /// Waits until something arrives, or until `timeout`, at most a tenth of a second.
    pub(super) fn wait(&self, timeout: Option<Time>) -> io::Result<()> {
        let left = timeout.map_or(100, |at| (at - self.now()).min(100));
        self.tap.wait(Some(Duration::from_millis(left))).map(drop)
    }

    /// The next TCP segment that arrived. Others' questions for our address are answered on the way,
    /// everything else is let go.
    pub(super) fn next(&mut self) -> Option<(Incoming, Mbuf)> {
        loop {
            if self.burst.get(self.at).is_none_or(Option::is_none) {
                self.at = 0;
                if self.tap.receive(&mut self.burst, &self.set).unwrap_or(0) == 0 {
                    return None;
                }
            }
            let frame = self.burst[self.at].take();
            self.at += 1;
            if let Some(found) = frame.and_then(|frame| self.judge(frame)) {
                return Some(found);
            }
        }
    }

    fn judge(&mut self, frame: Mbuf) -> Option<(Incoming, Mbuf)> {
        match decap(frame).ok()? {
            (Carried::Arp, question) => {
                self.answer_arp(&question);
                None
            }
            _ if self.is_lost() => None,
            (_, packet) => Some((Incoming::parse(&packet).ok()?, packet)),
        }
    }

    /// Who has our address? We have (RFC 826).
    fn answer_arp(&mut self, question: &Mbuf) -> Option<()> {
        let mut arp = [0; 28];
        question.copy_to(0, &mut arp).ok()?;
        let for_us = arp[..8] == [0, 1, 8, 0, 6, 4, 0, 1] && arp[24..] == OURS.0.octets();
        for_us.then_some(())?;
        let (mac, ip) = (OURS.1, OURS.0.octets());
        let asker = &arp[8..18];
        let answer = [&[0, 1, 8, 0, 6, 4, 0, 2], &mac[..], &ip[..], asker].concat();
        let header = [asker.get(..6)?, &mac[..], &[8, 6]].concat();
        let frame = self.set.copy_in(&[header, answer].concat(), 0).ok()?;
        self.tap.send(&mut [Some(frame)]);
        Some(())
    }

    fn is_lost(&mut self) -> bool {
        let lost = self.loss_percent > 0.0 && self.weather.f64() * 100.0 < self.loss_percent;
        self.lost += u64::from(lost);
        lost
    }
}

impl Output for Link {
    fn output(&mut self, packet: Mbuf) -> Result<(), OutputError> {
        if self.is_lost() {
            return Ok(());
        }
        let frame = encap(packet, ADDRS, &self.set).map_err(|_| OutputError::NoBuffers)?;
        match self.tap.send(&mut [Some(frame)]) {
            1 => Ok(()),
            _ => Err(OutputError::NoBuffers),
        }
    }
}

/// Segments taken in before the user gets his turn.
const TURN: usize = 64;

/// What arrived and what the clock says go to the connection, and its output to the wire.
pub(super) fn drive<P: CopyPolicy>(link: &mut Link, tcp: &mut Connection<P>) -> Events {
    let set = link.set.clone();
    let now = link.now();
    let mut events = Events::empty();
    for _ in 0..TURN {
        let Some((segment, packet)) = link.next() else {
            break;
        };
        let what = match segment.ends.reversed() == tcp.tcb().ends {
            true => tcp.on_segment(&segment, packet, now),
            false => Events::UNWANTED,
        };
        if what.contains(Events::UNWANTED) {
            // Who sent it asks again if this cannot be sent.
            let _ = answer_with_reset(&segment, &set, link.checksum, link);
        }
        events |= what - Events::UNWANTED;
        output(link, tcp);
    }
    if tcp.next_timeout().is_some_and(|at| at <= now) {
        events |= tcp.on_timer(now);
        output(link, tcp);
    }
    events
}

/// Sends what is due; what cannot be sent now has a timer.
pub(super) fn output<P: CopyPolicy>(link: &mut Link, tcp: &mut Connection<P>) -> usize {
    let (set, now) = (link.set.clone(), link.now());
    match tcp.poll_output(&set, now, link) {
        Ok(sent) => sent.packets,
        Err(stopped) => stopped.packets,
    }
}
