//! The state of one connection, as far as sending needs it.

use thiserror::Error;

use crate::endpoints::Endpoints;
use crate::error::{Dropped, OutputError};
use crate::flags::TcbFlags;
use crate::options::{MAX_SACK_BLOCKS, SIGNATURE_LEN, SackBlock, TIMESTAMPS_LEN};
use crate::rtt::Rtt;
use crate::scoreboard::Scoreboard;
use crate::seq::Seq;
use crate::state::State;
use crate::stats::Stats;
use crate::time::Time;
use crate::timer::Timers;
use crate::wire::TCP_HEADER_LEN;

/// The part of the state that deciding changes: small, `Copy`, and handed back by
/// [`decide`](crate::decide()) as a whole, which is what keeps that function pure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendState {
    /// Next sequence number to send. Behind `max` while lost data is sent again.
    #[doc(alias = "snd_nxt")]
    pub nxt: Seq,
    /// One past the highest sequence number ever sent.
    #[doc(alias = "snd_max")]
    pub max: Seq,
    /// Congestion window, bytes.
    #[doc(alias = "snd_cwnd")]
    pub cwnd: u32,
    /// A write was still going on when the connection was last found idle; its tail counts as idle too.
    #[doc(alias = "TF_LASTIDLE")]
    pub last_idle: bool,
    /// Times that the running timer has backed off.
    #[doc(alias = "t_rxtshift")]
    pub backoff: u8,
    /// When the retransmission timer expires. Never armed together with `persist`.
    pub rexmt: Option<Time>,
    /// When the persist timer expires.
    pub persist: Option<Time>,
}

impl SendState {
    /// Stops the persist timer and forgets its backoff, if it runs.
    pub(crate) fn stop_persist(&mut self) {
        if self.persist.take().is_some() {
            self.backoff = 0;
        }
    }

    /// Arms the retransmission timer in place of the persist timer.
    pub(crate) fn start_rexmt(&mut self, rtt: &Rtt, now: Time) {
        self.stop_persist();
        self.rexmt = Some(now + rtt.rto);
    }

    /// Arms the persist timer and backs it off for the next time.
    #[doc(alias = "tcp_setpersist")]
    pub(crate) fn start_persist(&mut self, rtt: &Rtt, now: Time) {
        debug_assert!(
            self.rexmt.is_none(),
            "retransmission and persist timers are exclusive"
        );
        self.persist = Some(now + rtt.persist_interval(self.backoff));
        self.backoff = (self.backoff + 1).min(crate::rtt::MAX_BACKOFF);
    }

    /// Neither timer runs.
    pub(crate) fn no_timer(&self) -> bool {
        self.rexmt.is_none() && self.persist.is_none()
    }
}

/// What of the receiving side shows in the segments that we send.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveState {
    /// Next sequence number expected.
    #[doc(alias = "rcv_nxt")]
    pub nxt: Seq,
    /// One past the highest sequence number that the peer was told it may send.
    #[doc(alias = "rcv_adv")]
    pub adv: Seq,
    /// Shift of the window field that we announce.
    #[doc(alias = "rcv_scale")]
    pub scale: u8,
    /// Free bytes in the receive buffer.
    pub space: u32,
    /// Size of the receive buffer, bytes.
    pub hiwat: u32,
    /// When something last arrived.
    pub last: Time,
    /// Ranges that arrived out of order; the first `sacks` are valid.
    pub sack_blocks: [SackBlock; MAX_SACK_BLOCKS],
    /// How many of them.
    pub sacks: u8,
}

impl ReceiveState {
    /// The valid blocks.
    #[must_use]
    pub fn owed_sacks(&self) -> &[SackBlock] {
        &self.sack_blocks[..usize::from(self.sacks).min(MAX_SACK_BLOCKS)]
    }
}

/// The segment size asked for cannot be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("a segment size of {asked} bytes is outside {least}..={most}")]
pub struct BadSegmentSize {
    /// The size asked for, TCP options included.
    pub asked: u32,
    /// The least that is allowed.
    pub least: u32,
    /// The most that fits an IP packet.
    pub most: u32,
}

/// The state of a connection: what BSD keeps in its control block, in groups.
///
/// The fields are public because whoever drives the receiving side sets them; methods keep what
/// must fit together.
///
/// ```
/// use tcp_output::{Endpoints, Seq, Tcb, TcbFlags};
///
/// let ends = Endpoints::V4 {
///     source: [10, 0, 0, 1].into(),
///     dest: [10, 0, 0, 2].into(),
///     source_port: 5000,
///     dest_port: 80,
/// };
/// let tcb = Tcb::new(ends, 1460, TcbFlags::TIMESTAMPS, Seq(1), Seq(1))?;
/// assert_eq!(tcb.max_segment(), 1448, "timestamps take 12 bytes of each segment");
/// # Ok::<(), tcp_output::BadSegmentSize>(())
/// ```
#[derive(Clone, Debug)]
#[doc(alias = "tcpcb")]
pub struct Tcb {
    /// Addresses and ports.
    pub ends: Endpoints,
    /// Where the connection is in its life.
    pub state: State,
    /// Agreements and wishes.
    pub flags: TcbFlags,
    /// Oldest sequence number not yet acknowledged: the first byte of the send buffer, but for a SYN
    /// in front of it.
    #[doc(alias = "snd_una")]
    pub una: Seq,
    /// The sequence number of our SYN.
    pub iss: Seq,
    /// One past the last urgent byte. Nothing is urgent when it is not beyond `una`.
    #[doc(alias = "snd_up")]
    pub up: Seq,
    /// The peer's window, bytes.
    #[doc(alias = "snd_wnd")]
    pub wnd: u32,
    /// The largest window the peer ever offered.
    #[doc(alias = "max_sndwnd")]
    pub max_wnd: u32,
    /// Slow start below, congestion avoidance above, bytes.
    #[doc(alias = "snd_ssthresh")]
    pub ssthresh: u32,
    /// Shift of the peer's window field; bounds the congestion window.
    #[doc(alias = "snd_scale")]
    pub wnd_scale: u8,
    /// Acknowledgment number that last updated the window.
    #[doc(alias = "snd_wl2")]
    pub wl2: Seq,
    /// What deciding changes.
    pub send: SendState,
    /// The receiving side.
    pub rcv: ReceiveState,
    /// Duplicate acknowledgments in a row.
    #[doc(alias = "t_dupacks")]
    pub dup_acks: u32,
    /// End of what was outstanding when loss was last found: recovery lasts until it is acknowledged.
    #[doc(alias = "snd_last")]
    pub recover: Seq,
    /// What the peer lacks below something that it holds.
    pub scoreboard: Scoreboard,
    /// The timers that the send decision does not move.
    pub timers: Timers,
    /// Round trip estimate and timeouts.
    pub rtt: Rtt,
    /// The peer's latest timestamp, echoed.
    pub ts_recent: u32,
    /// Added to the clock to make our timestamps.
    pub ts_offset: u32,
    /// Time to live or hop limit of what we send.
    pub ttl: u8,
    /// IPv4 identification of the next packet.
    pub ip_id: u16,
    /// Segment size that our SYN announces to the peer, bytes.
    pub our_mss: u16,
    /// The peer could not be reached last time; tells why, should the connection time out.
    #[doc(alias = "t_softerror")]
    pub soft_error: Option<OutputError>,
    /// Why the connection was given up, if it was.
    pub dropped: Option<Dropped>,
    /// Counters.
    pub stats: Stats,
    max_opd: u16,
}

/// Smallest segment size that leaves room for data behind the most options.
const MIN_OPD: u32 = 64;

impl Tcb {
    /// An established connection that has sent and received nothing.
    ///
    /// `max_opd` is the segment size agreed on: data plus options, in bytes (1460 on an Ethernet
    /// over IPv4). `una` is our first sequence number and `rcv_nxt` the peer's. The peer's window
    /// starts at 65535, the congestion window at RFC 6928's ten segments.
    ///
    /// # Errors
    /// [`BadSegmentSize`] if `max_opd` is below 64 or does not fit an IP packet.
    pub fn new(
        ends: Endpoints,
        max_opd: u32,
        flags: TcbFlags,
        una: Seq,
        rcv_nxt: Seq,
    ) -> Result<Tcb, BadSegmentSize> {
        let max_opd = Self::check_opd(&ends, max_opd)?;
        let space = 65536;
        let mut tcb = Tcb {
            ends,
            state: State::Established,
            flags,
            una,
            iss: una + u32::MAX,
            up: una,
            wnd: 65535,
            max_wnd: 65535,
            ssthresh: u32::MAX,
            wnd_scale: 0,
            wl2: una,
            send: SendState {
                nxt: una,
                max: una,
                cwnd: 0,
                last_idle: false,
                backoff: 0,
                rexmt: None,
                persist: None,
            },
            rcv: ReceiveState {
                nxt: rcv_nxt,
                adv: rcv_nxt + 65535,
                scale: 0,
                space,
                hiwat: space,
                last: Time::default(),
                sack_blocks: [SackBlock::default(); MAX_SACK_BLOCKS],
                sacks: 0,
            },
            dup_acks: 0,
            recover: una,
            scoreboard: Scoreboard::default(),
            timers: Timers::default(),
            rtt: Rtt::default(),
            ts_recent: 0,
            ts_offset: 0,
            ttl: 64,
            ip_id: 1,
            our_mss: max_opd,
            soft_error: None,
            dropped: None,
            stats: Stats::default(),
            max_opd,
        };
        let mss = tcb.max_segment();
        tcb.send.cwnd = (10 * mss).min((2 * mss).max(14600));
        Ok(tcb)
    }

    /// A connection that is about to be opened with the sequence number `iss`: its SYN goes with the
    /// first output. `flags` says what it asks for; `max_opd` is what it announces, and holds for
    /// what we send until the peer has announced less.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[doc(alias = "tcp_connect")]
    pub fn connecting(
        ends: Endpoints,
        max_opd: u32,
        flags: TcbFlags,
        iss: Seq,
    ) -> Result<Tcb, BadSegmentSize> {
        let mut tcb = Tcb::new(ends, max_opd, flags, iss, Seq(0))?;
        (tcb.state, tcb.iss) = (State::SynSent, iss);
        (tcb.wnd, tcb.max_wnd) = (0, 0);
        Ok(tcb)
    }

    /// Changes the agreed segment size, data plus options (a smaller path MTU, for example).
    ///
    /// # Errors
    /// As [`new`](Self::new); nothing changes then.
    pub fn set_max_opd(&mut self, max_opd: u32) -> Result<(), BadSegmentSize> {
        self.max_opd = Self::check_opd(&self.ends, max_opd)?;
        Ok(())
    }

    fn check_opd(ends: &Endpoints, asked: u32) -> Result<u16, BadSegmentSize> {
        // IPv6 does not count its own header in the length field; one bound for both is simpler.
        let most = 65535 - (ends.ip_header_len() + TCP_HEADER_LEN) as u32;
        if (MIN_OPD..=most).contains(&asked) {
            Ok(asked as u16)
        } else {
            Err(BadSegmentSize {
                asked,
                least: MIN_OPD,
                most,
            })
        }
    }

    /// Data plus options of a full segment, bytes.
    #[doc(alias = "t_maxopd")]
    #[must_use]
    pub fn max_opd(&self) -> u32 {
        u32::from(self.max_opd)
    }

    /// Data of a full segment without SACK blocks, bytes.
    #[doc(alias = "t_maxseg")]
    #[inline]
    #[must_use]
    pub fn max_segment(&self) -> u32 {
        self.max_opd() - self.steady_options_len()
    }

    /// Bytes of the options that every segment with data carries.
    #[inline]
    fn steady_options_len(&self) -> u32 {
        let mut len = 0;
        if self.flags.contains(TcbFlags::TIMESTAMPS) {
            len += TIMESTAMPS_LEN as u32;
        }
        if self.flags.contains(TcbFlags::SIGNATURE) {
            len += SIGNATURE_LEN as u32;
        }
        len
    }

    /// Whether anything sent awaits its acknowledgment.
    #[must_use]
    pub fn outstanding(&self) -> bool {
        self.una.lt(self.send.max)
    }
}
