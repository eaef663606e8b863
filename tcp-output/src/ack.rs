//! What an arriving acknowledgment does to the sending side.

use crate::flags::TcbFlags;
use crate::seq::Seq;
use crate::tcb::Tcb;
use crate::time::Time;

/// What of an arriving segment concerns the sending side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ack {
    /// The acknowledgment number.
    pub ack: Seq,
    /// The peer's window in bytes, scaled up.
    pub window: u32,
    /// Our timestamp, echoed by the peer.
    pub echo: Option<u32>,
}

impl Ack {
    /// Without a timestamp.
    #[must_use]
    pub fn new(ack: Seq, window: u32) -> Ack {
        Ack {
            ack,
            window,
            echo: None,
        }
    }

    /// With our timestamp as the peer echoes it. Each such acknowledgment of new data is a round
    /// trip sample, also while data is being sent again.
    #[must_use]
    pub fn echoing(self, timestamp: u32) -> Ack {
        Ack {
            echo: Some(timestamp),
            ..self
        }
    }
}

/// What an acknowledgment turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckEffect {
    /// It acknowledges what was never sent: ignored, one is owed to the peer.
    Beyond,
    /// It acknowledges nothing new. A window that it carries was taken over if it is not older than
    /// the one we have.
    Old,
    /// It acknowledges this many bytes, to be dropped from the send buffer.
    New(u32),
}

impl Tcb {
    /// Processes an acknowledgment.
    ///
    /// Moves `una`, takes a round trip sample (from the echoed timestamp, else if the timed byte is covered), opens the congestion
    /// window (slow start, congestion avoidance), and stops or restarts the retransmission timer.
    pub fn on_ack(&mut self, arrived: &Ack, now: Time) -> AckEffect {
        let Ack { ack, window, .. } = *arrived;
        if self.send.max.lt(ack) {
            return AckEffect::Beyond;
        }
        self.rcv.last = now;
        let effect = if self.una.lt(ack) {
            let acked = ack - self.una;
            self.take_sample(arrived, now);
            self.open_congestion_window();
            self.una = ack;
            self.up = self.up.max(ack);
            self.send.nxt = self.send.nxt.max(ack);
            self.restart_rexmt(now);
            AckEffect::New(acked)
        } else {
            AckEffect::Old
        };
        if self.wl2.leq(ack) {
            self.wnd = window;
            self.max_wnd = self.max_wnd.max(window);
            self.wl2 = ack;
        }
        effect
    }

    pub(crate) fn take_sample(&mut self, arrived: &Ack, now: Time) {
        let Some(ms) = self.measured(arrived, now) else {
            return;
        };
        self.rtt.sample(ms);
        self.soft_error = None;
        // The persist timer counts its own backoff in the same place.
        if self.send.persist.is_none() {
            self.send.backoff = 0;
        }
    }

    /// The round trip that this acknowledgment measures, in ms.
    fn measured(&self, arrived: &Ack, now: Time) -> Option<u64> {
        if let Some(echo) = arrived.echo
            && self.flags.contains(TcbFlags::TIMESTAMPS)
        {
            // A timestamp from the future is none of ours.
            let ms = self.timestamp(now).wrapping_sub(echo) as i32;
            return u64::try_from(ms).ok();
        }
        let (seq, at) = self.rtt.timed?;
        seq.lt(arrived.ack).then(|| now - at)
    }

    /// Our timestamp at `now`.
    pub(crate) fn timestamp(&self, now: Time) -> u32 {
        (now.0 as u32).wrapping_add(self.ts_offset)
    }

    fn open_congestion_window(&mut self) {
        let mss = self.max_segment();
        let cwnd = self.send.cwnd;
        let more = if cwnd <= self.ssthresh {
            mss
        } else {
            (u64::from(mss) * u64::from(mss) / u64::from(cwnd)).max(1) as u32
        };
        self.send.cwnd = cwnd
            .saturating_add(more)
            .min(65535 << self.wnd_scale.min(14));
    }

    pub(crate) fn restart_rexmt(&mut self, now: Time) {
        if !self.outstanding() {
            self.send.rexmt = None;
        } else if self.send.persist.is_none() {
            self.send.rexmt = Some(now + self.rtt.rto);
        }
    }
}
