//! Small clusters merged early: while the drain is backed up there is time to copy them into large
//! ones, which are cheaper to send, and to free.

use mbuf::{BufferSet, Chain, Mbuf, Packet};

/// Clusters that hold more are left as they are, bytes.
const SMALL: usize = 2048;

/// Fewer mbufs than these are not worth a copy.
const RUN: usize = 4;

/// Whether small clusters are merged on their way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Gather {
    /// Never: no byte is copied.
    #[default]
    Off,
    /// While the drain holds more than half of its limit: runs of mbufs with 2 KB or less each are
    /// copied into clusters of the largest class.
    WhenBackedUp,
}

impl Gather {
    /// Whether to merge what goes to a drain that holds `held` of `limit` bytes.
    pub(super) fn applies(self, held: usize, limit: usize) -> bool {
        self == Self::WhenBackedUp && held > limit / 2
    }
}

/// The same bytes in fewer mbufs, as far as there are clusters for that.
pub(super) fn gathered(packet: Mbuf, set: &BufferSet) -> Option<Mbuf> {
    let largest = set.largest_class().unwrap_or(0);
    let mut rest = Chain::new();
    rest.push_back(packet);
    let mut done = Chain::new();
    while let Some(run) = rest.take_whole(largest).or_else(|| rest.take_segs(1)) {
        done.push_back(merged(&run, set).unwrap_or(run));
    }
    done.into_packet()
}

/// A copy of `run` in one cluster; `None` when that is not worth it, or there is no cluster.
fn merged(run: &Mbuf, set: &BufferSet) -> Option<Mbuf> {
    let small = run
        .segments()
        .all(|seg| seg.len() <= SMALL && !seg.is_wiped_on_free());
    if run.nsegs() < RUN || !small {
        return None;
    }
    run.byte_copy(0, run.pkt_len(), 0, set).ok()
}
