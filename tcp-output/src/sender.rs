//! Drives the parts: decide, build, hand over, take note, again.

use mbuf::{BufferSet, Mbuf};
use sockbuf::SockBuf;

use crate::ack::{Ack, AckEffect};
use crate::build::{Built, Payload, build};
use crate::checksum::ChecksumMode;
use crate::decide::{Segment, SendView, decide};
use crate::error::{AckError, Cause, OutputError, SendError};
use crate::policy::CopyPolicy;
use crate::tcb::Tcb;
use crate::time::Time;
use crate::timer::Expired;

/// Where packets go.
///
/// Every `FnMut(Mbuf) -> Result<(), OutputError>` is one.
#[doc(alias = "ip_output")]
pub trait Output {
    /// Takes a packet, for good: it is freed by whoever took it, also on failure.
    ///
    /// # Errors
    /// [`OutputError`], which says whether the packet counts as sent.
    fn output(&mut self, packet: Mbuf) -> Result<(), OutputError>;
}

impl<F: FnMut(Mbuf) -> Result<(), OutputError>> Output for F {
    fn output(&mut self, packet: Mbuf) -> Result<(), OutputError> {
        self(packet)
    }
}

/// What one call sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Packets, TSO frames counted as one.
    pub packets: usize,
    /// Bytes of payload in them.
    pub bytes: usize,
}

/// What an acknowledgment released.
#[derive(Debug, Default)]
pub struct Acked {
    /// Bytes newly acknowledged.
    pub bytes: usize,
    /// The mbufs that held them, to be freed where it suits the caller.
    pub freed: Option<Mbuf>,
}

/// The sending side of one connection.
///
/// The send buffer is handed to each call, so that whoever owns it decides how it is locked.
#[derive(Clone, Debug)]
pub struct Sender<P> {
    tcb: Tcb,
    policy: P,
    mode: ChecksumMode,
    tso: bool,
    more_coming: bool,
}

impl<P: CopyPolicy> Sender<P> {
    /// A sender that leaves checksums to the NIC and makes frames for it to cut.
    #[must_use]
    pub fn new(tcb: Tcb, policy: P) -> Self {
        Sender {
            tcb,
            policy,
            mode: ChecksumMode::default(),
            tso: true,
            more_coming: false,
        }
    }

    /// Who makes the TCP checksum. Frames that the NIC cuts get theirs from it in any case.
    #[must_use]
    pub fn with_checksum(mut self, mode: ChecksumMode) -> Self {
        self.mode = mode;
        self
    }

    /// Whether frames are made that the NIC cuts.
    #[must_use]
    pub fn with_tso(mut self, tso: bool) -> Self {
        self.tso = tso;
        self
    }

    /// Says whether a write is going on that will append more: a tail that it may still fill is
    /// held back until it ends.
    #[doc(alias = "SS_ISSENDING")]
    pub fn set_more_coming(&mut self, more_coming: bool) {
        self.more_coming = more_coming;
    }

    /// The connection's state.
    #[must_use]
    pub fn tcb(&self) -> &Tcb {
        &self.tcb
    }

    /// The connection's state, for the receiving side to change.
    pub fn tcb_mut(&mut self) -> &mut Tcb {
        &mut self.tcb
    }

    /// The copy policy.
    #[must_use]
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// Sends what may be sent now.
    ///
    /// # Errors
    /// [`SendError`], after which the state is consistent and a later call goes on.
    #[doc(alias = "tcp_output")]
    pub fn output(
        &mut self,
        sb: &SockBuf,
        set: &BufferSet,
        now: Time,
        out: &mut impl Output,
    ) -> Result<Sent, SendError> {
        self.run(sb, set, now, out, false)
    }

    /// Sends even into a closed window: one byte, to make the peer say what its window is. What the
    /// persist timer does when it expires.
    ///
    /// # Errors
    /// As [`output`](Self::output).
    pub fn output_forced(
        &mut self,
        sb: &SockBuf,
        set: &BufferSet,
        now: Time,
        out: &mut impl Output,
    ) -> Result<Sent, SendError> {
        self.run(sb, set, now, out, true)
    }

    /// Handles the timer that has expired, if one has, and sends what is to follow.
    /// [`next_timeout`](Tcb::next_timeout) says when to call.
    ///
    /// # Errors
    /// As [`output`](Self::output).
    pub fn on_timer(
        &mut self,
        sb: &SockBuf,
        set: &BufferSet,
        now: Time,
        out: &mut impl Output,
    ) -> Result<(Option<Expired>, Sent), SendError> {
        let expired = self.tcb.on_timer(now);
        let sent = match expired {
            None | Some(Expired::GiveUp | Expired::Closed | Expired::KeepAlive) => Sent::default(),
            Some(Expired::Retransmit | Expired::DelayedAck) => {
                self.run(sb, set, now, out, false)?
            }
            Some(Expired::Persist) => self.run(sb, set, now, out, true)?,
        };
        Ok((expired, sent))
    }

    /// Takes in an acknowledgment and cuts what it covers off the send buffer.
    ///
    /// # Errors
    /// [`AckError`]; nothing has changed then.
    pub fn on_ack(
        &mut self,
        arrived: &Ack,
        now: Time,
        sb: &mut SockBuf,
    ) -> Result<Acked, AckError> {
        let (ack, max, una) = (arrived.ack, self.tcb.send.max, self.tcb.una);
        if max.lt(ack) {
            return Err(AckError::Beyond { ack, max });
        }
        let covered = if una.lt(ack) { (ack - una) as usize } else { 0 };
        let freed = sb.cut(covered)?;
        match self.tcb.on_ack(arrived, now) {
            AckEffect::New(bytes) => Ok(Acked {
                bytes: bytes as usize,
                freed,
            }),
            effect => {
                debug_assert!(effect != AckEffect::Beyond, "was refused above");
                Ok(Acked { bytes: 0, freed })
            }
        }
    }

    fn run(
        &mut self,
        sb: &SockBuf,
        set: &BufferSet,
        now: Time,
        out: &mut impl Output,
        force: bool,
    ) -> Result<Sent, SendError> {
        let view = SendView {
            queued: sb.len(),
            hiwat: sb.hiwat(),
            more_coming: self.more_coming,
            force,
            tso: self.tso,
        };
        let mut sent = Sent::default();
        let mut pass = None;
        loop {
            let decision = decide(&self.tcb, &view, now, pass);
            self.tcb.send = decision.next;
            let Some(segment) = decision.segment else {
                return Ok(sent);
            };
            if let Err(cause) = self.send(&segment, sb, set, now, out) {
                return Err(SendError {
                    packets: sent.packets,
                    bytes: sent.bytes,
                    cause,
                });
            }
            sent.packets += 1;
            sent.bytes += segment.len;
            if !segment.again {
                return Ok(sent);
            }
            pass = Some(decision.pass);
        }
    }

    /// One segment: counted, built, handed over, taken note of.
    fn send(
        &mut self,
        segment: &Segment,
        sb: &SockBuf,
        set: &BufferSet,
        now: Time,
        out: &mut impl Output,
    ) -> Result<(), Cause> {
        self.tcb.count(segment);
        let built = build(&self.tcb, segment, sb, &self.policy, set, self.mode);
        let Built { packet, payload } = match built {
            Ok(built) => built,
            Err(error) => {
                self.tcb.could_not_send(segment, now);
                return Err(error.into());
            }
        };
        self.count_payload(payload, segment.len);
        self.take_ip_ids(segment);
        match out.output(packet) {
            Ok(()) => {
                self.tcb.advance(segment, now);
                self.tcb.note_sent(segment);
                Ok(())
            }
            Err(error @ (OutputError::NoBuffers | OutputError::TooLong { .. })) => {
                self.tcb.could_not_send(segment, now);
                Err(error.into())
            }
            Err(error) => {
                self.tcb.advance(segment, now);
                Err(error.into())
            }
        }
    }

    fn count_payload(&mut self, payload: Payload, len: usize) {
        let stats = &mut self.tcb.stats;
        match payload {
            Payload::None => {}
            Payload::Referenced => stats.referenced_packets += 1,
            Payload::Inline => {
                stats.inline_packets += 1;
                stats.copied_bytes += len as u64;
            }
            Payload::Copied => {
                stats.copied_packets += 1;
                stats.copied_bytes += len as u64;
            }
        }
    }

    /// Each frame that the hardware cuts gets an identification of its own, counted up from ours.
    fn take_ip_ids(&mut self, segment: &Segment) {
        let frames = segment
            .tso_mss
            .map_or(1, |mss| segment.len.div_ceil(usize::from(mss.max(1))));
        self.tcb.ip_id = self.tcb.ip_id.wrapping_add(frames as u16);
    }
}
