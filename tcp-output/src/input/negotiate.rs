//! What the two SYNs agree on.

use super::congestion::initial_window;
use super::parse::Incoming;
use crate::flags::TcbFlags;
use crate::tcb::Tcb;
use crate::wire::TcpFlags;

/// What a peer takes that says nothing (RFC 9293, MUST-15 and MUST-16), bytes.
const DEFAULT_MSS: [u16; 2] = [536, 1220];

/// The least that a peer may ask for, bytes: an absurd size makes us send crumbs.
#[doc(alias = "tcp_minmss")]
const LEAST_MSS: u16 = 216;

impl Tcb {
    /// Takes in the peer's SYN, with or without an ACK: sequence numbers, segment size, options that
    /// both sides want, the initial congestion window.
    ///
    /// The window in a SYN is never scaled (RFC 7323, 2.2).
    #[doc(alias = "tcp_dooptions")]
    #[doc(alias = "tcp_mss")]
    pub fn on_syn(&mut self, syn: &Incoming) {
        self.rcv.nxt = syn.seq + 1;
        self.rcv.adv = self.rcv.nxt;
        self.agree_on_options(syn);
        self.agree_on_ecn(syn.flags);
        let default = DEFAULT_MSS[usize::from(self.ends.is_v6())];
        let theirs = syn.options.max_segment.unwrap_or(default).max(LEAST_MSS);
        let agreed = self.max_opd().min(u32::from(theirs));
        // Never above what was allowed before, nor below the least that is.
        let fits = self.set_max_opd(agreed);
        debug_assert!(fits.is_ok(), "{fits:?}");
        self.send.cwnd = initial_window(self.max_segment());
        (self.wnd, self.max_wnd) = (u32::from(syn.window), u32::from(syn.window));
    }

    /// The window that a segment of the peer's offers, bytes.
    #[doc(alias = "tiwin")]
    #[must_use]
    pub fn window_of(&self, segment: &Incoming) -> u32 {
        let scaled = !segment.flags.contains(TcpFlags::SYN);
        let shift = if scaled { self.wnd_scale.min(14) } else { 0 };
        u32::from(segment.window) << shift
    }

    fn agree_on_options(&mut self, syn: &Incoming) {
        let options = &syn.options;
        let both = |asked, offered, agreed| match self.flags.contains(asked) && offered {
            true => agreed,
            false => TcbFlags::empty(),
        };
        let agreed = both(
            TcbFlags::ASK_TIMESTAMPS,
            options.timestamps.is_some(),
            TcbFlags::TIMESTAMPS,
        ) | both(TcbFlags::ASK_SACK, options.sack_permitted, TcbFlags::SACK)
            | both(
                TcbFlags::ASK_SCALE,
                options.window_scale.is_some(),
                TcbFlags::SCALE,
            );
        self.flags |= agreed;
        if agreed.contains(TcbFlags::SCALE) {
            self.wnd_scale = options.window_scale.unwrap_or(0);
        } else {
            (self.wnd_scale, self.rcv.scale) = (0, 0);
        }
    }

    /// A SYN asks with both bits, a SYN with ACK agrees with one (RFC 3168, 6.1.1).
    fn agree_on_ecn(&mut self, flags: TcpFlags) {
        let both = TcpFlags::ECE | TcpFlags::CWR;
        let wanted = if flags.contains(TcpFlags::ACK) {
            TcpFlags::ECE
        } else {
            both
        };
        if self.flags.contains(TcbFlags::ASK_ECN) && flags & both == wanted {
            self.flags |= TcbFlags::ECN;
        }
    }
}
