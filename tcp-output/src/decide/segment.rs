//! What the segment says once it is clear that one goes: options, final length, flags, sequence
//! number, window.

use super::{Cut, SendView};
use crate::flags::TcbFlags;
use crate::options::{Options, Timestamps};
use crate::seq::Seq;
use crate::tcb::{SendState, Tcb};
use crate::time::Time;
use crate::wire::{TCP_HEADER_LEN, TcpFlags};
use crate::{MAX_LINK_HEADER, MAX_PACKET};

/// Why a segment goes, for the counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// New data.
    Data,
    /// Data that went before.
    Retransmission,
    /// One byte into a closed window.
    Probe,
    /// No data, an acknowledgment that was owed.
    Ack,
    /// No data, a larger window.
    WindowUpdate,
}

/// A segment or TSO frame to be built and sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Sequence number of the first byte.
    pub seq: Seq,
    /// Where its data stands in the send buffer, bytes from the front.
    pub off: usize,
    /// Bytes of data.
    pub len: usize,
    /// Data in each frame that the hardware shall cut, or none when this is one segment.
    pub tso_mss: Option<u16>,
    /// Control bits.
    pub flags: TcpFlags,
    /// Options.
    pub options: Options,
    /// The acknowledgment number.
    pub ack: Seq,
    /// The window field, scaled down.
    pub window: u16,
    /// The window as the peer will see it, bytes.
    pub window_bytes: u32,
    /// Why it goes.
    pub kind: Kind,
    /// Another pass may find more to send.
    pub again: bool,
    /// A forced probe under the persist timer: does not move the next sequence number.
    pub(crate) probing: bool,
    /// The send buffer holds something.
    pub(crate) queued: bool,
}

impl Segment {
    /// Bytes of IP and TCP header with options.
    #[must_use]
    pub fn header_len(&self, tcb: &Tcb) -> usize {
        tcb.ends.ip_header_len() + TCP_HEADER_LEN + self.options.len()
    }
}

/// The largest window that a field with this shift can express, bytes.
pub(super) fn max_window(scale: u8) -> u32 {
    65535 << scale.min(14)
}

/// Puts the segment together.
pub(super) fn compose(
    tcb: &Tcb,
    view: &SendView,
    next: &SendState,
    cut: Cut,
    now: Time,
) -> Segment {
    let options = options(tcb, now);
    let cut = fit(tcb, cut, options.len());
    let mut flags = TcpFlags::ACK;
    if cut.len > 0 && cut.off + cut.len >= view.queued && !view.more_coming {
        flags |= TcpFlags::PSH;
    }
    // A packet without data takes the highest number, so that a peer beyond a retransmission
    // accepts it; under the persist timer the peer may have seen none of what we sent.
    let seq = if cut.len > 0 || next.persist.is_some() {
        next.nxt
    } else {
        next.max
    };
    let (window, window_bytes) = window(tcb);
    Segment {
        seq,
        off: cut.off,
        len: cut.len,
        tso_mss: cut.tso.then_some(tcb.max_segment() as u16),
        flags,
        options,
        ack: tcb.rcv.nxt,
        window,
        window_bytes,
        kind: kind(tcb, view, next, cut.len),
        again: cut.again,
        probing: view.force && next.persist.is_some(),
        queued: view.queued > 0,
    }
}

fn options(tcb: &Tcb, now: Time) -> Options {
    let mut options = Options::default();
    if tcb.flags.contains(TcbFlags::TIMESTAMPS) {
        let value = tcb.timestamp(now);
        options.set_timestamps(Timestamps {
            value,
            echo: tcb.ts_recent,
        });
    }
    if tcb.flags.contains(TcbFlags::SACK) && tcb.rcv.sacks > 0 {
        options.set_sack(tcb.rcv.owed_sacks());
    }
    options
}

/// Cuts the data to what the options leave of a segment, or to what a packet can hold when it is a
/// TSO frame. BSD leaves a short frame inside a TSO packet here; we cut at a whole segment.
fn fit(tcb: &Tcb, cut: Cut, options_len: usize) -> Cut {
    let room = tcb.max_opd() as usize - options_len;
    if !cut.tso {
        return if cut.len > room {
            Cut {
                len: room,
                again: true,
                ..cut
            }
        } else {
            cut
        };
    }
    let headers = tcb.ends.ip_header_len() + TCP_HEADER_LEN + options_len;
    let most = MAX_PACKET - headers - MAX_LINK_HEADER;
    if cut.len <= most {
        return cut;
    }
    let mss = tcb.max_segment() as usize;
    match most / mss {
        0 | 1 => Cut {
            len: mss,
            tso: false,
            again: true,
            ..cut
        },
        whole => Cut {
            len: whole * mss,
            again: true,
            ..cut
        },
    }
}

fn kind(tcb: &Tcb, view: &SendView, next: &SendState, len: usize) -> Kind {
    match len {
        0 if tcb.flags.contains(TcbFlags::ACK_NOW) => Kind::Ack,
        0 => Kind::WindowUpdate,
        1 if view.force => Kind::Probe,
        _ if next.nxt.lt(next.max) => Kind::Retransmission,
        _ => Kind::Data,
    }
}

/// The window to announce: the field, and the bytes that the peer makes of it.
fn window(tcb: &Tcb) -> (u16, u32) {
    let rcv = &tcb.rcv;
    let scale = rcv.scale.min(14);
    let mut bytes = rcv.space;
    // Receiver's silly window avoidance: too little room is none.
    if bytes < rcv.hiwat / 4 && bytes < tcb.max_segment() {
        bytes = 0;
    }
    // What was offered is never taken back.
    let offered = rcv.nxt.distance(rcv.adv).max(0) as u32;
    bytes = bytes
        .min(max_window(scale))
        .max(offered.min(max_window(scale)));
    let field = (bytes >> scale) as u16;
    (field, u32::from(field) << scale)
}
