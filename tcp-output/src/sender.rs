//! Drives the parts: decide, build, hand over, take note, again.

use mbuf::{BufferSet, Mbuf};
use sockbuf::SockBuf;

use crate::ack::{Ack, AckEffect};
use crate::build::{Built, Payload, build};
use crate::checksum::ChecksumMode;
use crate::decide::{Segment, SendView, decide, follow};
use crate::error::{AckError, Cause, OutputError, SendError};
use crate::flags::TcbFlags;
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

impl Sent {
    fn add(&mut self, segment: &Segment) {
        self.packets += 1;
        self.bytes += segment.len;
    }

    #[cold]
    fn stopped_by(&self, cause: Cause) -> SendError {
        SendError {
            packets: self.packets,
            bytes: self.bytes,
            cause,
        }
    }
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
            None | Some(Expired::Closed) => Sent::default(),
            Some(Expired::Retransmit | Expired::DelayedAck) => {
                self.run(sb, set, now, out, false)?
            }
            Some(Expired::Persist) => self.run(sb, set, now, out, true)?,
            Some(Expired::KeepAlive) => self.keep_alive(sb, set, now, out)?,
            // The connection is over whether or not its reset gets through.
            Some(Expired::GiveUp) => self.run(sb, set, now, out, false).unwrap_or_default(),
        };
        Ok((expired, sent))
    }

    pub(crate) fn keep_alive(
        &mut self,
        sb: &SockBuf,
        set: &BufferSet,
        now: Time,
        out: &mut impl Output,
    ) -> Result<Sent, SendError> {
        let mut question = Segment::keep_alive(&self.tcb, now);
        let mut sent = Sent::default();
        self.send(&mut question, sb, set, now, out, &mut sent)?;
        Ok(sent)
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
        // A FIN takes a number and no byte.
        let fin = usize::from(self.tcb.flags.contains(TcbFlags::FIN_SENT) && ack == max);
        let covered = covered.saturating_sub(fin);
        let freed = sb.cut(covered)?;
        match self.tcb.on_ack(arrived, now) {
            AckEffect::New(_) => Ok(Acked {
                bytes: covered,
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
        if self.tcb.flags.contains(TcbFlags::BLOCKED) {
            self.tcb.flags |= TcbFlags::NEED_OUTPUT;
            return Ok(Sent::default());
        }
        self.tcb.flags -= TcbFlags::NEED_OUTPUT;
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
            let mut decision = decide(&self.tcb, &view, now, pass);
            self.tcb.send = decision.next;
            let Some(segment) = &mut decision.segment else {
                return Ok(sent);
            };
            loop {
                if !self.send(segment, sb, set, now, out, &mut sent)? {
                    return Ok(sent);
                }
                if !follow(&self.tcb, &view, now, decision.pass, segment) {
                    break;
                }
            }
            pass = Some(decision.pass);
        }
    }

    /// One segment: built, counted, handed over, taken note of. Says whether another pass is asked for.
    fn send(
        &mut self,
        segment: &mut Segment,
        sb: &SockBuf,
        set: &BufferSet,
        now: Time,
        out: &mut impl Output,
        sent: &mut Sent,
    ) -> Result<bool, SendError> {
        let built = build(&self.tcb, segment, sb, &self.policy, set, self.mode);
        self.tcb.count(segment);
        let Built {
            packet,
            payload,
            fell_back,
        } = match built {
            Ok(built) => built,
            Err(error) => {
                self.tcb.could_not_send(segment, now);
                return Err(sent.stopped_by(error.into()));
            }
        };
        self.count_payload(payload, fell_back, segment.len);
        self.take_ip_ids(segment);
        if let Err(error) = out.output(packet) {
            return self.refused(segment, error, now, sent);
        }
        self.tcb.advance(segment, now);
        self.tcb.note_sent(segment);
        sent.add(segment);
        Ok(segment.again)
    }

    /// The way out did not take a packet. Soft errors are kept, and a path that turned out to be
    /// narrower is tried again at once.
    #[cold]
    fn refused(
        &mut self,
        segment: &Segment,
        error: OutputError,
        now: Time,
        sent: &mut Sent,
    ) -> Result<bool, SendError> {
        let soft = self.tcb.refused(segment, error, now);
        match error {
            OutputError::TooLong { mtu } if self.tcb.shrink_to(mtu) => Ok(true),
            _ if soft => {
                sent.add(segment);
                Ok(false)
            }
            _ => Err(sent.stopped_by(error.into())),
        }
    }

    fn count_payload(&mut self, payload: Payload, fell_back: bool, len: usize) {
        let stats = &mut self.tcb.stats;
        stats.fallbacks += u64::from(fell_back);
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
