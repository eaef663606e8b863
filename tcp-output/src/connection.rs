//! A whole connection: sender, receiver, both socket buffers and the timers, driven by its caller.
//!
//! ```text
//! packet ─► Incoming::parse ─► on_segment ┐
//!             clock ─► on_timer ──────────┼─► state, buffers ─► poll_output ─► packets
//!              user ─► write, read, close ┘                     next_timeout ─► clock
//! ```
//!
//! Nothing but [`poll_output`](Connection::poll_output) sends. Call it after each of the others.

mod arrive;
mod check;
mod config;
mod judge;
mod payload;
mod user;

pub use config::{AcceptError, Config};
pub use user::CannotWrite;

use bitflags::bitflags;
use mbuf::BufferSet;
use sockbuf::SockBuf;

use crate::error::{Dropped, SendError};
use crate::input::{ChallengeLimit, CongestionControl, Incoming, Reassembly, Recent, Reno, Resend};
use crate::policy::CopyPolicy;
use crate::sender::{Output, Sender, Sent};
use crate::seq::Seq;
use crate::state::State;
use crate::tcb::{BadSegmentSize, Tcb};
use crate::time::Time;
use crate::timer::{Expired, KEEP_IDLE, Timers};

bitflags! {
    /// What has changed for the user.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Events: u8 {
        /// Both sides have agreed: data may flow.
        const CONNECTED = 0x01;
        /// There is more to be read.
        const READABLE = 0x02;
        /// There is more space to be written to.
        const WRITABLE = 0x04;
        /// The peer sends no more; what is in the receive buffer is the rest.
        const PEER_CLOSED = 0x08;
        /// The peer has reset the connection.
        const RESET = 0x10;
        /// There is no connection any more.
        const CLOSED = 0x20;
        /// The segment belongs to no connection: answer it with
        /// [`answer_with_reset`](crate::input::answer_with_reset).
        const UNWANTED = 0x40;
        /// The segment is the SYN of a new connection between the same ends, and this one, which only
        /// waited for strays, has made way: [`accept`](Connection::accept) it.
        const REPLACED = 0x80;
    }
}

/// One connection.
///
/// ```
/// use mbuf::{BufferSet, Mbuf};
/// use tcp_output::connection::{Config, Connection, Events};
/// use tcp_output::input::Incoming;
/// use tcp_output::policy::Reference;
/// use tcp_output::{ChecksumMode, Endpoints, Seq, Time};
///
/// let set = BufferSet::standard(256, 64)?;
/// let ends = Endpoints::V4 {
///     source: [10, 0, 0, 1].into(),
///     dest: [10, 0, 0, 2].into(),
///     source_port: 5000,
///     dest_port: 80,
/// };
/// let config = Config { checksum: ChecksumMode::Software, ..Config::default() };
/// let mut client = Connection::connect(ends, &config, Reference, Seq(1), Time(0))?;
/// let mut wire: Vec<Mbuf> = Vec::new();
/// client.poll_output(&set, Time(0), &mut |packet| { wire.push(packet); Ok(()) })?;
///
/// let syn = Incoming::parse(&wire[0])?;
/// let server = Connection::accept(&syn, &config, Reference, Seq(7), Time(0))?;
/// assert_eq!(server.state(), tcp_output::State::SynReceived);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[doc(alias = "tcpcb")]
pub struct Connection<P, C = Reno> {
    sender: Sender<P>,
    control: C,
    /// What the user wrote and the peer has not acknowledged.
    snd: SockBuf,
    /// What arrived in order and the user has not read.
    rcv: SockBuf,
    queue: Reassembly,
    /// The sequence number of the peer's FIN, once it has arrived.
    fin_at: Option<Seq>,
    recent: Recent,
    /// Sequence number of the segment that brought the peer's window.
    wl1: Seq,
    /// What our last segment acknowledged.
    last_ack_sent: Seq,
    /// Until this is acknowledged, another congestion echo is about the same window of data.
    echo_until: Seq,
    challenges: ChallengeLimit,
    resend: Option<Resend>,
    /// The next output is a probe of a closed window.
    force: bool,
    /// The next output asks a silent peer whether it is there.
    keep_alive: bool,
    /// The connection ended here: the next output tells the peer.
    reset_due: bool,
    /// The user closed before the connection stood: a FIN follows as soon as it does.
    closing: bool,
    /// Nobody will read what arrives.
    left: bool,
}

impl<P: CopyPolicy> Connection<P> {
    /// Opens a connection with Reno's congestion control. Its SYN goes with the first output.
    ///
    /// # Errors
    /// [`BadSegmentSize`] when the configured one cannot be.
    pub fn connect(
        ends: crate::Endpoints,
        config: &Config,
        policy: P,
        iss: Seq,
        now: Time,
    ) -> Result<Self, BadSegmentSize> {
        Self::connect_with(ends, config, policy, Reno, iss, now)
    }

    /// Answers a SYN, with Reno's congestion control.
    ///
    /// # Errors
    /// [`AcceptError`] when it is no SYN, or the configured segment size cannot be.
    pub fn accept(
        syn: &Incoming,
        config: &Config,
        policy: P,
        iss: Seq,
        now: Time,
    ) -> Result<Self, AcceptError> {
        Self::accept_with(syn, config, policy, Reno, iss, now)
    }
}

impl<P: CopyPolicy, C: CongestionControl> Connection<P, C> {
    /// As [`connect`](Connection::connect), with congestion control of the caller's.
    ///
    /// # Errors
    /// As there.
    pub fn connect_with(
        ends: crate::Endpoints,
        config: &Config,
        policy: P,
        control: C,
        iss: Seq,
        now: Time,
    ) -> Result<Self, BadSegmentSize> {
        let tcb = config.tcb(ends, iss, now)?;
        Ok(Self::of(tcb, config, policy, control))
    }

    /// As [`accept`](Connection::accept), with congestion control of the caller's.
    ///
    /// # Errors
    /// As there.
    pub fn accept_with(
        syn: &Incoming,
        config: &Config,
        policy: P,
        control: C,
        iss: Seq,
        now: Time,
    ) -> Result<Self, AcceptError> {
        config::check_syn(syn.flags)?;
        let mut tcb = config.tcb(syn.ends.reversed(), iss, now)?;
        tcb.state = State::SynReceived;
        let mut connection = Self::of(tcb, config, policy, control);
        connection.take_syn(syn, now);
        Ok(connection)
    }

    fn of(tcb: Tcb, config: &Config, policy: P, control: C) -> Self {
        let iss = tcb.una;
        let sender = Sender::new(tcb, policy)
            .with_checksum(config.checksum)
            .with_tso(config.tso);
        Connection {
            sender,
            control,
            snd: SockBuf::new(config.send_buffer as usize),
            rcv: SockBuf::new(config.receive_buffer as usize),
            queue: Reassembly::new(config.reassembly),
            fin_at: None,
            recent: Recent::default(),
            wl1: Seq(0),
            last_ack_sent: Seq(0),
            echo_until: iss,
            challenges: ChallengeLimit::new(config.challenges_per_second),
            resend: None,
            force: false,
            keep_alive: false,
            reset_due: false,
            closing: false,
            left: false,
        }
    }

    /// Sends what is due. Packets of the receiving side's making, acknowledgments and resets, go
    /// here too.
    ///
    /// # Errors
    /// [`SendError`], after which the state is consistent and a later call goes on.
    #[doc(alias = "tcp_output")]
    pub fn poll_output(
        &mut self,
        set: &BufferSet,
        now: Time,
        out: &mut impl Output,
    ) -> Result<Sent, SendError> {
        if self.state() == State::Closed && !std::mem::take(&mut self.reset_due) {
            return Ok(Sent::default());
        }
        let sent = if std::mem::take(&mut self.force) {
            self.sender.output_forced(&self.snd, set, now, out)
        } else if std::mem::take(&mut self.keep_alive) {
            self.sender.keep_alive(&self.snd, set, now, out)
        } else if let Some(resend) = self.resend.take() {
            self.send_again(resend, set, now, out)
        } else {
            self.send_within_limits(set, now, out)
        };
        // What left before output was stopped has told the peer as well.
        let packets = sent
            .as_ref()
            .map_or_else(|stopped| stopped.packets, |all| all.packets);
        if packets > 0 {
            self.last_ack_sent = self.tcb().rcv.nxt;
        }
        self.debug_check();
        sent
    }

    /// The first two duplicate acknowledgments let a new segment out each, so that there are enough
    /// of them for the third (RFC 3042).
    fn send_within_limits(
        &mut self,
        set: &BufferSet,
        now: Time,
        out: &mut impl Output,
    ) -> Result<Sent, SendError> {
        let tcb = self.sender.tcb_mut();
        let extra = match tcb.in_recovery() {
            true => 0,
            false => tcb.dup_acks * tcb.max_segment(),
        };
        let cwnd = tcb.send.cwnd;
        tcb.send.cwnd = cwnd.saturating_add(extra);
        let raised = tcb.send.cwnd;
        let sent = self.sender.output(&self.snd, set, now, out);
        let tcb = self.sender.tcb_mut();
        // Output itself may have closed the window, for want of memory.
        if tcb.send.cwnd == raised {
            tcb.send.cwnd = cwnd;
        }
        sent
    }

    /// What recovery wants again goes once, whatever the window says.
    fn send_again(
        &mut self,
        resend: Resend,
        set: &BufferSet,
        now: Time,
        out: &mut impl Output,
    ) -> Result<Sent, SendError> {
        let tcb = self.sender.tcb_mut();
        let (nxt, cwnd, opd) = (tcb.send.nxt, tcb.send.cwnd, tcb.max_opd());
        if resend == Resend::First {
            tcb.send.nxt = tcb.una;
            tcb.send.cwnd = tcb.max_segment();
        }
        let sent = self.sender.output(&self.snd, set, now, out);
        let tcb = self.sender.tcb_mut();
        // A path that turned out to be narrower took none of what is outstanding: all of it goes again.
        if tcb.max_opd() == opd {
            tcb.send.nxt = tcb.send.nxt.max(nxt);
        }
        match sent {
            // It did not leave. The window stays as output closed it.
            Err(stopped) if !stopped.cause.counts_as_sent() => self.resend = Some(resend),
            _ => tcb.send.cwnd = cwnd,
        }
        sent
    }

    /// Handles the timers that have expired at `now`; output follows.
    /// [`next_timeout`](Self::next_timeout) says when to call.
    pub fn on_timer(&mut self, now: Time) -> Events {
        let mut events = Events::empty();
        while self.next_timeout().is_some_and(|at| at <= now) {
            events |= self.on_one_timer(now);
        }
        self.debug_check();
        events
    }

    fn on_one_timer(&mut self, now: Time) -> Events {
        let tcb = self.sender.tcb_mut();
        let (cwnd, ssthresh, flight) = (tcb.send.cwnd, tcb.ssthresh, tcb.flight_limit());
        match tcb.on_timer(now) {
            Some(Expired::Retransmit) => {
                // The algorithm is shown the window that was too much.
                (tcb.send.cwnd, tcb.ssthresh) = (cwnd, ssthresh);
                let control = &mut self.control;
                tcb.congest(|window| control.on_timeout(window, flight));
                self.resend = None;
            }
            Some(Expired::Persist) => self.force = true,
            Some(Expired::KeepAlive) => self.keep_alive = true,
            Some(Expired::GiveUp) => {
                self.reset_due = true;
                return self.ended();
            }
            Some(Expired::Closed) => return self.ended(),
            Some(Expired::DelayedAck) | None => {}
        }
        Events::empty()
    }

    /// The path takes packets of `mtu` bytes at most, as a router on it reports: segments become
    /// smaller, and what is outstanding goes again with the next output. Says whether that changed
    /// anything. Whether the report quotes a segment of ours is for the caller to judge.
    #[doc(alias = "tcp_mtudisc")]
    pub fn on_path_mtu(&mut self, mtu: u32) -> bool {
        self.state().synchronized() && self.sender.tcb_mut().shrink_to(mtu)
    }

    /// When the first timer expires, if one runs.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Time> {
        self.tcb().next_timeout()
    }

    /// Where the connection is in its life.
    #[must_use]
    pub fn state(&self) -> State {
        self.tcb().state
    }

    /// The control block, for looking at.
    #[must_use]
    pub fn tcb(&self) -> &Tcb {
        self.sender.tcb()
    }

    /// Why the connection was given up, if it was.
    #[must_use]
    pub fn dropped(&self) -> Option<Dropped> {
        self.tcb().dropped
    }

    /// The connection is over: nothing waits any more. What has arrived can still be read.
    fn ended(&mut self) -> Events {
        let tcb = self.sender.tcb_mut();
        tcb.state = State::Closed;
        (tcb.send.rexmt, tcb.send.persist) = (None, None);
        tcb.timers = Timers::default();
        tcb.scoreboard.clear();
        (self.force, self.keep_alive, self.resend) = (false, false, None);
        self.queue.clear();
        drop(self.snd.take_all());
        Events::CLOSED
    }

    /// Both sides have agreed.
    fn established(&mut self, now: Time) -> Events {
        let tcb = self.sender.tcb_mut();
        tcb.state = match self.closing {
            true => State::FinWait1,
            false => State::Established,
        };
        tcb.timers.keep_alive = Some(now + KEEP_IDLE);
        Events::CONNECTED | Events::WRITABLE
    }
}
