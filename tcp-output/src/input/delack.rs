//! When data that arrived is acknowledged (RFC 9293, 3.8.6.3; RFC 5681, 4.2).

use crate::flags::TcbFlags;
use crate::tcb::Tcb;
use crate::time::Time;
use crate::timer::DELAYED_ACK;

impl Tcb {
    /// `len` bytes arrived in order: their acknowledgment waits for a second segment, for data to
    /// ride on or for 200 ms, whatever is first. What a receive offload has merged counts as the
    /// segments it was.
    ///
    /// ```
    /// # use tcp_output::{Endpoints, Seq, Tcb, TcbFlags, Time};
    /// # let ends = Endpoints::V4 { source: [10, 0, 0, 1].into(), dest: [10, 0, 0, 2].into(), source_port: 1, dest_port: 2 };
    /// let mut tcb = Tcb::new(ends, 1460, TcbFlags::empty(), Seq(0), Seq(0))?;
    /// tcb.acknowledge_soon(1460, Time(0));
    /// assert_eq!(tcb.next_timeout(), Some(Time(200)), "the first waits");
    /// tcb.acknowledge_soon(1460, Time(1));
    /// assert!(tcb.flags.contains(TcbFlags::ACK_NOW), "the second does not");
    /// # Ok::<(), tcp_output::BadSegmentSize>(())
    /// ```
    #[doc(alias = "TCP_SETUP_ACK")]
    pub fn acknowledge_soon(&mut self, len: u32, now: Time) {
        if self.timers.delayed_ack.is_some() || len >= 2 * self.max_segment() {
            self.timers.delayed_ack = None;
            self.flags |= TcbFlags::ACK_NOW;
        } else {
            self.timers.delayed_ack = Some(now + DELAYED_ACK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Endpoints, Expired, Seq};

    fn tcb() -> Tcb {
        let ends = Endpoints::V4 {
            source: [10, 0, 0, 1].into(),
            dest: [10, 0, 0, 2].into(),
            source_port: 1,
            dest_port: 2,
        };
        Tcb::new(ends, 1460, TcbFlags::TIMESTAMPS, Seq(0), Seq(0)).expect("size")
    }

    fn owed(tcb: &mut Tcb) -> bool {
        let owed = tcb.flags.contains(TcbFlags::ACK_NOW);
        tcb.flags.remove(TcbFlags::ACK_NOW);
        owed
    }

    #[test]
    fn every_second_segment_and_every_large_one_is_acknowledged_at_once() {
        let mut tcb = tcb();
        tcb.acknowledge_soon(2896, Time(0));
        assert!(owed(&mut tcb), "two in one");
        for i in 0..10 {
            tcb.acknowledge_soon(1448, Time(i));
            assert_eq!(owed(&mut tcb), i % 2 == 1);
        }
    }

    #[test]
    fn row_j9_a_lone_segment_is_acknowledged_after_200_ms() {
        let mut tcb = tcb();
        tcb.acknowledge_soon(1, Time(50));
        assert_eq!(tcb.on_timer(Time(249)), None);
        assert_eq!(tcb.on_timer(Time(250)), Some(Expired::DelayedAck));
        assert!(owed(&mut tcb) && tcb.on_timer(Time(1000)).is_none());
    }
}
