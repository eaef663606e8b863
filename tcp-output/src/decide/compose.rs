//! What the segment says once it is clear that one goes: options, final length, control bits,
//! sequence number, window, urgent pointer.

use super::segment::{Kind, Segment};
use super::{Cut, SendView};
use crate::flags::TcbFlags;
use crate::options::{Options, Timestamps};
use crate::seq::Seq;
use crate::state::State;
use crate::tcb::{SendState, Tcb};
use crate::time::Time;
use crate::wire::{TCP_HEADER_LEN, TcpFlags};
use crate::{MAX_LINK_HEADER, MAX_PACKET};

/// Most that an urgent pointer says, and a window field.
const FIELD_MAX: u32 = 65535;

/// The largest window that a field with this shift can express, bytes.
pub(super) fn max_window(scale: u8) -> u32 {
    FIELD_MAX << scale.min(14)
}

/// Puts the segment together. Inlined into both of its callers: the segment is then made where it is
/// to stand, and not copied there.
#[inline(always)]
pub(super) fn compose(
    tcb: &Tcb,
    view: &SendView,
    next: &mut SendState,
    mut cut: Cut,
    now: Time,
) -> Segment {
    let mut flags = tcb.state.offers() - TcpFlags::FIN;
    let options = options(tcb, flags, now);
    fit(tcb, &mut cut, options.len());
    if cut.fin {
        flags |= TcpFlags::FIN;
        pull_back_for_fin(tcb, cut, next);
    }
    if cut.len > 0 && cut.off + cut.len >= view.queued && !view.more_coming {
        flags |= TcpFlags::PSH;
    }
    let seq = sequence_number(tcb, next, cut, flags);
    let urgent = urgent_pointer(tcb, seq);
    if urgent > 0 {
        flags |= TcpFlags::URG;
    }
    let probing = cut.len > 0 && cut.hole.is_none() && view.force && next.persist.is_some();
    let kind = kind(tcb, next, cut, flags, probing);
    let ect = tcb.flags.intersects(ECN) && ecn(tcb, kind, &mut flags);
    let (window, window_bytes) = window(tcb, flags);
    let ack = if flags.contains(TcpFlags::ACK) {
        tcb.rcv.nxt
    } else {
        Seq(0)
    };
    Segment {
        seq,
        off: cut.off,
        len: cut.len,
        tso_mss: cut.tso.then_some(tcb.max_segment() as u16),
        flags,
        options,
        ack,
        window,
        window_bytes,
        urgent,
        ect,
        kind,
        again: cut.again,
        hole: cut.hole,
        probing,
        queued: view.queued > 0,
    }
}

impl Segment {
    /// The question whether the peer is still there: an acknowledgment that bears the number in front
    /// of the first unacknowledged one, which the peer must answer (RFC 9293, 3.8.4).
    #[must_use]
    pub fn keep_alive(tcb: &Tcb, now: Time) -> Segment {
        let flags = TcpFlags::ACK;
        let (window, window_bytes) = window(tcb, flags);
        Segment {
            seq: tcb.una + u32::MAX,
            off: 0,
            len: 0,
            tso_mss: None,
            flags,
            options: options(tcb, flags, now),
            ack: tcb.rcv.nxt,
            window,
            window_bytes,
            urgent: 0,
            ect: false,
            kind: Kind::KeepAlive,
            again: false,
            hole: None,
            probing: false,
            queued: false,
        }
    }
}

/// The options of a segment with these control bits.
#[inline]
fn options(tcb: &Tcb, flags: TcpFlags, now: Time) -> Options {
    let rare = TcbFlags::NO_OPTIONS.union(TcbFlags::SIGNATURE);
    let common = tcb.flags & rare.union(TcbFlags::TIMESTAMPS) == TcbFlags::TIMESTAMPS;
    if common && tcb.rcv.sacks == 0 && flags == TcpFlags::ACK {
        Options::only_timestamps(timestamps(tcb, now))
    } else {
        rare_options(tcb, flags, now)
    }
}

fn timestamps(tcb: &Tcb, now: Time) -> Timestamps {
    Timestamps {
        value: tcb.timestamp(now),
        echo: tcb.ts_recent,
    }
}

/// Options of SYN and RST, of connections without timestamps or with a signature, and SACK blocks. A
/// SYN asks for what we want; one that answers asks for what the peer wants too.
#[cold]
fn rare_options(tcb: &Tcb, flags: TcpFlags, now: Time) -> Options {
    let asks = flags.contains(TcpFlags::SYN) && !flags.contains(TcpFlags::ACK);
    let wants = |asked: TcbFlags, agreed: TcbFlags| {
        tcb.flags.contains(agreed) || (asks && tcb.flags.contains(asked))
    };
    let mut options = Options::default();
    if tcb.flags.contains(TcbFlags::SIGNATURE) {
        options.set_signature();
    }
    if tcb.flags.contains(TcbFlags::NO_OPTIONS) {
        return options;
    }
    if flags.contains(TcpFlags::SYN) {
        options.set_max_segment(tcb.our_mss);
        if wants(TcbFlags::ASK_SACK, TcbFlags::SACK) {
            options.set_sack_permitted();
        }
        if wants(TcbFlags::ASK_SCALE, TcbFlags::SCALE) {
            options.set_window_scale(tcb.rcv.scale.min(14));
        }
    }
    let reset = flags.contains(TcpFlags::RST);
    if !reset && wants(TcbFlags::ASK_TIMESTAMPS, TcbFlags::TIMESTAMPS) {
        options.set_timestamps(timestamps(tcb, now));
    }
    // What arrived out of order is told while neither side has closed.
    if tcb.flags.contains(TcbFlags::SACK) && tcb.state == State::Established {
        options.set_sack(tcb.rcv.owed_sacks());
    }
    options
}

/// Cuts the data to what the options leave of a segment, or to what a packet can hold when it is a
/// TSO frame. BSD leaves a short frame inside a TSO packet here; we cut at a whole segment.
#[inline]
fn fit(tcb: &Tcb, cut: &mut Cut, options_len: usize) {
    if cut.tso {
        let headers = tcb.ends.ip_header_len() + TCP_HEADER_LEN + options_len;
        let most = MAX_PACKET - headers - MAX_LINK_HEADER;
        if cut.len > most {
            fit_frame(tcb.max_segment() as usize, most, cut);
        }
        return;
    }
    let room = tcb.max_opd() as usize - options_len;
    if cut.len > room {
        cut.shorten(room);
    }
}

#[cold]
fn fit_frame(mss: usize, most: usize, cut: &mut Cut) {
    let whole = (most / mss).max(1);
    cut.tso = whole > 1;
    cut.shorten(whole * mss);
}

/// A FIN that was sent and is not to be sent again on its own account bears its old number.
fn pull_back_for_fin(tcb: &Tcb, cut: Cut, next: &mut SendState) {
    let sent = tcb.flags.contains(TcbFlags::FIN_SENT) && next.nxt == next.max;
    if sent && cut.hole.is_none() {
        next.nxt += u32::MAX;
    }
}

/// A packet without data takes the highest number, so that a peer beyond a retransmission accepts
/// it; under the persist timer the peer may have seen none of what we sent.
#[inline]
fn sequence_number(tcb: &Tcb, next: &SendState, cut: Cut, flags: TcpFlags) -> Seq {
    if cut.hole.is_some() {
        return tcb.una + cut.off as u32;
    }
    let numbered = flags.intersects(TcpFlags::SYN.union(TcpFlags::FIN));
    if cut.len > 0 || numbered || next.persist.is_some() {
        next.nxt
    } else {
        next.max
    }
}

/// How far urgent data reaches beyond `seq`, 0 if it does not.
#[inline]
fn urgent_pointer(tcb: &Tcb, seq: Seq) -> u16 {
    if seq.lt(tcb.up) && tcb.state.synchronized() {
        (tcb.up - seq).min(FIELD_MAX) as u16
    } else {
        0
    }
}

#[inline]
fn kind(tcb: &Tcb, next: &SendState, cut: Cut, flags: TcpFlags, probing: bool) -> Kind {
    if cut.len == 0 {
        return kind_without_data(tcb, flags);
    }
    if cut.hole.is_some() {
        Kind::HoleFilled
    } else if probing && cut.len == 1 {
        Kind::Probe
    } else if next.nxt.lt(next.max) {
        Kind::Retransmission
    } else {
        Kind::Data
    }
}

fn kind_without_data(tcb: &Tcb, flags: TcpFlags) -> Kind {
    let control = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST;
    if tcb.flags.contains(TcbFlags::ACK_NOW) {
        Kind::Ack
    } else if flags.intersects(control) {
        Kind::Control
    } else if flags.contains(TcpFlags::URG) {
        Kind::Urgent
    } else {
        Kind::WindowUpdate
    }
}

/// Without any of these there is no ECN.
const ECN: TcbFlags = TcbFlags::ECN
    .union(TcbFlags::ASK_ECN)
    .union(TcbFlags::CE_SEEN);

/// Adds the bits of ECN (RFC 3168), and says whether the packet may be marked on its way: new data
/// may, nothing else.
fn ecn(tcb: &Tcb, kind: Kind, flags: &mut TcpFlags) -> bool {
    let agreed = tcb.flags.contains(TcbFlags::ECN);
    if flags.contains(TcpFlags::RST) {
        return false;
    }
    if flags.contains(TcpFlags::SYN) {
        let asks = !flags.contains(TcpFlags::ACK) && tcb.flags.contains(TcbFlags::ASK_ECN);
        if asks {
            *flags |= TcpFlags::ECE | TcpFlags::CWR;
        } else if agreed && flags.contains(TcpFlags::ACK) {
            *flags |= TcpFlags::ECE;
        }
        return false;
    }
    if tcb.flags.contains(TcbFlags::CE_SEEN) {
        *flags |= TcpFlags::ECE;
    }
    let new_data = agreed && kind == Kind::Data;
    if new_data && tcb.flags.contains(TcbFlags::CWR_DUE) {
        *flags |= TcpFlags::CWR;
    }
    new_data
}

/// The window to announce: the field, and the bytes that the peer makes of it.
#[inline]
fn window(tcb: &Tcb, flags: TcpFlags) -> (u16, u32) {
    if flags.contains(TcpFlags::RST) {
        return (0, 0);
    }
    let rcv = &tcb.rcv;
    // The window of a SYN is never scaled.
    let scale = if flags.contains(TcpFlags::SYN) {
        0
    } else {
        rcv.scale.min(14)
    };
    let mut bytes = rcv.space;
    // Receiver's silly window avoidance: too little room is none.
    if bytes < rcv.hiwat / 4 && bytes < tcb.max_segment() {
        bytes = 0;
    }
    // What was offered is never taken back.
    let offered = rcv.nxt.distance(rcv.adv).max(0) as u32;
    let most = max_window(scale);
    bytes = bytes.min(most).max(offered.min(most));
    let field = (bytes >> scale) as u16;
    (field, u32::from(field) << scale)
}
