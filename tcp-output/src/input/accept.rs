//! Whether an arriving segment is believed, and which part of it is new (RFC 9293, 3.10.7.4, with
//! RFC 5961 against blind attacks and RFC 7323 against old duplicates).
//!
//! Each check is a function of numbers; the connection calls them in the order of the RFCs.

use crate::seq::Seq;
use crate::time::Time;

/// What the receiver expects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expected {
    /// Next sequence number.
    #[doc(alias = "rcv_nxt")]
    pub nxt: Seq,
    /// Bytes from there that are taken: the window last offered, or the buffer's room if it is more.
    #[doc(alias = "rcv_wnd")]
    pub window: u32,
}

/// Which part of a segment's payload is new and within the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Kept {
    /// Bytes to be cut off its front.
    pub front: u32,
    /// Bytes to be cut off its end.
    pub back: u32,
    /// Its FIN counts.
    pub fin: bool,
    /// Something was cut off: an acknowledgment is owed at once.
    pub owes_ack: bool,
}

impl Expected {
    /// Cuts a segment of `len` bytes at `seq`, with a FIN behind them or not, to the window.
    ///
    /// `None`: it lies outside, an acknowledgment is owed and nothing else of it counts. A
    /// duplicate is kept with nothing left of it, since what it acknowledges still counts, and so
    /// is a probe of a closed window. A FIN takes no room: it counts where all before it does.
    ///
    /// ```
    /// use tcp_output::Seq;
    /// use tcp_output::input::{Expected, Kept};
    ///
    /// let expected = Expected { nxt: Seq(100), window: 50 };
    /// let cut = |front, back| Some(Kept { front, back, fin: false, owes_ack: true });
    /// assert_eq!(expected.cut(Seq(100), 50, false), Some(Kept::default()));
    /// assert_eq!(expected.cut(Seq(90), 70, false), cut(10, 10));
    /// assert_eq!(expected.cut(Seq(90), 10, false), cut(10, 0));
    /// assert_eq!(expected.cut(Seq(150), 1, false), None);
    /// ```
    #[must_use]
    pub fn cut(&self, seq: Seq, len: u32, fin: bool) -> Option<Kept> {
        // In 64 bits, since a hostile distance plus a length may leave 32.
        let offset = i64::from(self.nxt.distance(seq));
        let before = (-offset).max(0) as u32;
        let front = before.min(len);
        let beyond = offset + i64::from(len) - i64::from(self.window);
        let kept = Kept {
            front,
            back: 0,
            fin: fin && before <= len,
            owes_ack: before > 0,
        };
        if beyond <= 0 {
            return Some(kept);
        }
        let left = len - front;
        let back = beyond.min(i64::from(left)) as u32;
        let probe = self.window == 0 && seq.leq(self.nxt);
        (back < left || probe).then_some(Kept {
            back,
            fin: false,
            owes_ack: true,
            ..kept
        })
    }

    /// What a RST at `seq` does (RFC 5961, 3.2).
    #[must_use]
    pub fn on_reset(&self, seq: Seq) -> OnReset {
        let offset = self.nxt.distance(seq);
        if offset == 0 {
            OnReset::Close
        } else if offset > 0 && (offset as u32) < self.window {
            OnReset::Challenge
        } else {
            OnReset::Ignore
        }
    }
}

/// What a RST does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnReset {
    /// It is where it must be: the connection ends.
    Close,
    /// It is near: the peer, if it was the peer, answers a challenge with a better one.
    Challenge,
    /// It is nowhere.
    Ignore,
}

/// What an acknowledgment number is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckNumber {
    /// Acknowledges something new.
    New,
    /// Acknowledges what was before; window and SACK blocks may be news.
    Old,
    /// Acknowledges what was never sent, or what no peer could still be at (RFC 5961, 5.2): the
    /// segment is dropped, a challenge acknowledgment may go.
    Absurd,
}

impl AckNumber {
    /// Judges `ack`, when `una..max` is outstanding and the peer's window was never above `max_window`.
    ///
    /// ```
    /// use tcp_output::Seq;
    /// use tcp_output::input::AckNumber;
    ///
    /// let judge = |ack| AckNumber::judge(Seq(ack), Seq(1000), Seq(3000), 500);
    /// assert_eq!(judge(3000), AckNumber::New);
    /// assert_eq!([judge(1000), judge(500)], [AckNumber::Old; 2]);
    /// assert_eq!([judge(3001), judge(499)], [AckNumber::Absurd; 2]);
    /// ```
    #[must_use]
    pub fn judge(ack: Seq, una: Seq, max: Seq, max_window: u32) -> AckNumber {
        let ahead = una.distance(ack);
        if ahead > 0 && ack.leq(max) {
            AckNumber::New
        } else if ahead <= 0 && ahead.unsigned_abs() <= max_window {
            AckNumber::Old
        } else {
            AckNumber::Absurd
        }
    }
}

/// Whether a segment's window is later news than the one we have (RFC 9293, 3.10.7.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowNews {
    /// Sequence number of the segment that brought the window.
    #[doc(alias = "snd_wl1")]
    pub seq: Seq,
    /// Its acknowledgment number.
    #[doc(alias = "snd_wl2")]
    pub ack: Seq,
    /// The window, bytes.
    #[doc(alias = "snd_wnd")]
    pub window: u32,
}

impl WindowNews {
    /// Whether `self` replaces `known`. Of two segments with equal numbers, the larger window counts.
    #[must_use]
    pub fn replaces(&self, known: &WindowNews) -> bool {
        known.seq.lt(self.seq)
            || (known.seq == self.seq
                && (known.ack.lt(self.ack)
                    || (known.ack == self.ack && known.window < self.window)))
    }
}

/// Longest that the peer's timestamp stays comparable: beyond, its clock may have wrapped (RFC 7323,
/// 5.5), ms.
const PAWS_IDLE: u64 = 24 * 24 * 60 * 60 * 1000;

/// The peer's latest timestamp, and when it came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recent {
    /// The timestamp, echoed in what we send.
    #[doc(alias = "ts_recent")]
    pub value: u32,
    /// When it was taken over; none before the first.
    #[doc(alias = "ts_recent_age")]
    pub at: Option<Time>,
}

impl Recent {
    /// Whether a segment with this timestamp is an old duplicate (PAWS; RFC 7323, 5.3, R1).
    #[doc(alias = "tcps_pawsdrop")]
    #[must_use]
    pub fn is_old(&self, timestamp: u32, now: Time) -> bool {
        let comparable = self.at.is_some_and(|at| now - at <= PAWS_IDLE);
        comparable && (timestamp.wrapping_sub(self.value) as i32) < 0
    }

    /// Takes over the timestamp of a segment that begins at `seq` when it is the one to be echoed:
    /// of the segment at or before the last acknowledgment sent (RFC 7323, 4.3).
    pub fn update(&mut self, timestamp: u32, seq: Seq, last_ack_sent: Seq, now: Time) {
        if seq.leq(last_ack_sent) && !self.is_old(timestamp, now) {
            (self.value, self.at) = (timestamp, Some(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where sequence numbers are awkward.
    const EDGES: [u32; 4] = [1000, 0x7fff_fff8, 0xffff_fff8, 0];

    #[test]
    fn fault_u4_what_is_cut_is_what_a_set_of_numbers_says() {
        for base in EDGES.map(Seq) {
            for (window, from, len) in every(0..7, 0..16, 0..16) {
                let expected = Expected {
                    nxt: base + 8,
                    window,
                };
                for fin in [false, true] {
                    let cut = expected.cut(base + from, len, fin);
                    let inside = |n: &u32| (8..8 + window).contains(n);
                    let want: Vec<u32> = (from..from + len).filter(inside).collect();
                    let Some(kept) = cut else {
                        assert!(want.is_empty() && from + len > 8 + window);
                        continue;
                    };
                    let got: Vec<u32> = (from + kept.front..from + len - kept.back).collect();
                    assert_eq!(got, want, "{len} at {from}, window {window}");
                    let fin_at = from + len;
                    assert_eq!(kept.fin, fin && (8..=8 + window).contains(&fin_at));
                    assert_eq!(kept.owes_ack, from < 8 || fin_at > 8 + window);
                }
            }
        }
    }

    fn every(
        a: std::ops::Range<u32>,
        b: std::ops::Range<u32>,
        c: std::ops::Range<u32>,
    ) -> impl Iterator<Item = (u32, u32, u32)> {
        a.flat_map(move |x| {
            let c = c.clone();
            b.clone()
                .flat_map(move |y| c.clone().map(move |z| (x, y, z)))
        })
    }

    #[test]
    fn numbers_far_away_are_outside() {
        let expected = Expected {
            nxt: Seq(5),
            window: 65535 << 14,
        };
        assert_eq!(
            expected.cut(Seq(5) + 0x7fff_ffff, u32::MAX >> 1, true),
            None
        );
        let old = expected
            .cut(Seq(5) + 0x8000_0001, 1000, true)
            .expect("a duplicate");
        assert_eq!((old.front, old.back, old.fin), (1000, 0, false));
    }

    #[test]
    fn a_probe_of_a_closed_window_is_heard() {
        let closed = Expected {
            nxt: Seq(100),
            window: 0,
        };
        let probe = closed.cut(Seq(100), 1, false).expect("heard");
        assert_eq!((probe.back, probe.owes_ack), (1, true));
        assert_eq!(closed.cut(Seq(101), 1, false), None);
        let fin = closed.cut(Seq(100), 0, true).expect("takes no room");
        assert!(fin.fin && !fin.owes_ack);
    }

    #[test]
    fn a_reset_closes_only_where_it_must_be() {
        for base in EDGES.map(Seq) {
            let expected = Expected {
                nxt: base,
                window: 10,
            };
            let verdicts = [0, 1, 9, 10, u32::MAX].map(|n| expected.on_reset(base + n));
            use OnReset::*;
            assert_eq!(verdicts, [Close, Challenge, Challenge, Ignore, Ignore]);
        }
    }

    #[test]
    fn acknowledgments_are_judged_across_the_wrap() {
        for base in EDGES.map(Seq) {
            let judge = |n: u32| AckNumber::judge(base + n, base + 20, base + 30, 10);
            use AckNumber::*;
            assert_eq!([9, 10, 20].map(judge), [Absurd, Old, Old]);
            assert_eq!([21, 30, 31].map(judge), [New, New, Absurd]);
            assert_eq!(judge(0x8000_0000), Absurd);
        }
    }

    #[test]
    fn a_window_is_replaced_by_later_news_only() {
        let news = |seq, ack, window| WindowNews {
            seq: Seq(seq),
            ack: Seq(ack),
            window,
        };
        let known = news(u32::MAX, 100, 500);
        assert!(news(0, 50, 1).replaces(&known), "a later segment");
        assert!(
            news(u32::MAX, 101, 1).replaces(&known),
            "a later acknowledgment"
        );
        assert!(news(u32::MAX, 100, 501).replaces(&known), "a larger window");
        assert!(
            !news(u32::MAX, 100, 499).replaces(&known),
            "reordered, perhaps"
        );
        assert!(!news(u32::MAX - 1, 101, 501).replaces(&known), "older");
    }

    #[test]
    fn old_timestamps_are_found_out_until_the_clock_may_have_wrapped() {
        let mut recent = Recent::default();
        assert!(!recent.is_old(0, Time(0)), "nothing to compare with");
        recent.update(10, Seq(100), Seq(100), Time(0));
        assert!(recent.is_old(9, Time(1)) && !recent.is_old(10, Time(1)));
        assert!(!recent.is_old(10 + 0x7fff_ffff, Time(1)));
        assert!(recent.is_old(9, Time(PAWS_IDLE)) && !recent.is_old(9, Time(PAWS_IDLE + 1)));
        recent.update(11, Seq(101), Seq(100), Time(2));
        assert_eq!(recent.value, 10, "out of order: not to be echoed");
        recent.update(9, Seq(100), Seq(100), Time(2));
        assert_eq!(recent.value, 10, "old");
        recent.update(12, Seq(90), Seq(100), Time(2));
        assert_eq!(recent.value, 12);
    }
}
