//! Where a packet's bytes are to stand: what the copy policy wants, or what can be had.

use mbuf::{AllocError, BufferSet, CopyError, Mbuf, Packet};

use super::Payload;
use crate::MAX_LINK_HEADER;
use crate::error::BuildError;
use crate::plan::SendPlan;
use crate::policy::{CopyPolicy, How};

/// Memory for one packet.
pub(super) struct Storage {
    /// Empty, with room for the headers; for the payload too when there is no tail.
    pub(super) packet: Mbuf,
    /// References to the payload.
    pub(super) tail: Option<Mbuf>,
    /// Bytes of payload that there is room for: all of it, or whole segments.
    pub(super) len: usize,
    /// What that makes of the payload.
    pub(super) payload: Payload,
    /// It is not what the policy chose.
    pub(super) fell_back: bool,
}

impl Storage {
    fn whole(packet: Mbuf, tail: Option<Mbuf>, len: usize, payload: Payload) -> Storage {
        Storage {
            packet,
            tail,
            len,
            payload,
            fell_back: false,
        }
    }
}

/// Finds memory for the plan's payload: as the policy chooses, else what [`fall_back`] finds.
///
/// Whoever got the room copies: that is how the large cluster selects copying in the original, and
/// how a few bytes ride in the header mbuf.
#[inline(always)]
pub(super) fn find<P: CopyPolicy>(
    plan: &SendPlan<'_>,
    tso_mss: Option<u16>,
    policy: &P,
    set: &BufferSet,
) -> Result<Storage, BuildError> {
    // Without a header mbuf there is no packet of any kind.
    let mut packet = set.header()?;
    let len = plan.len();
    let need = MAX_LINK_HEADER + plan.header_len();
    let how = match policy.choose(plan) {
        How::Copy if holds(set, need + len) => How::Copy,
        _ => How::Reference,
    };
    let want = if how == How::Copy { need + len } else { need };
    if want > packet.capacity()
        && let Err(error) = set.attach_cluster(&mut packet, want)
    {
        return fall_back(packet, plan, tso_mss, how, set, error);
    }
    if packet.capacity() >= need + len {
        let payload = match how {
            How::Copy => Payload::Copied,
            How::Reference => Payload::Inline,
        };
        return Ok(Storage::whole(packet, None, len, payload));
    }
    match plan.refer(set) {
        Ok(tail) => Ok(Storage::whole(packet, Some(tail), len, Payload::Referenced)),
        Err(CopyError::Alloc(error)) => fall_back(packet, plan, tso_mss, how, set, error),
        Err(CopyError::Range(range)) => Err(range.into()),
    }
}

/// Whether one storage of this set can hold `bytes`.
fn holds(set: &BufferSet, bytes: usize) -> bool {
    bytes <= set.header_room() || set.largest_class().is_some_and(|largest| bytes <= largest)
}

/// The ladder down from what could not be had: a copy in the class that fits, in the next larger
/// one, references, a copy of fewer segments, of one; without what was tried already. `error` is what
/// comes back when the last rung breaks too.
#[cold]
fn fall_back(
    packet: Mbuf,
    plan: &SendPlan<'_>,
    tso_mss: Option<u16>,
    tried: How,
    set: &BufferSet,
    error: AllocError,
) -> Result<Storage, BuildError> {
    let mut ladder = Ladder {
        packet,
        need: MAX_LINK_HEADER + plan.header_len(),
        tso_mss: tso_mss.map(usize::from),
        set,
    };
    let len = plan.len();
    let (tail, len) = if ladder.copy_all(len, tried) {
        (None, len)
    } else if tried == How::Copy
        && let Some(tail) = ladder.refer(plan)?
    {
        (Some(tail), len)
    } else {
        (None, ladder.copy_some(len).ok_or(error)?)
    };
    let payload = match tail {
        Some(_) => Payload::Referenced,
        None => Payload::Copied,
    };
    Ok(Storage {
        fell_back: true,
        ..Storage::whole(ladder.packet, tail, len, payload)
    })
}

/// A header mbuf that goes down the ladder.
struct Ladder<'a> {
    packet: Mbuf,
    /// Bytes in front of the payload.
    need: usize,
    tso_mss: Option<usize>,
    set: &'a BufferSet,
}

impl Ladder<'_> {
    /// Room for everything: in the class that fits, unless that was tried, or in the next.
    fn copy_all(&mut self, len: usize, tried: How) -> bool {
        let Some(exact) = self.set.class_for(self.need + len) else {
            return false;
        };
        (tried == How::Reference && self.attach(exact)) || self.attach(exact + 1)
    }

    /// References. What is wrong with the range would be wrong on every rung.
    fn refer(&mut self, plan: &SendPlan<'_>) -> Result<Option<Mbuf>, BuildError> {
        if self.packet.capacity() < self.need && !self.attach(self.need) {
            return Ok(None);
        }
        match plan.refer(self.set) {
            Ok(tail) => Ok(Some(tail)),
            Err(CopyError::Alloc(_)) => Ok(None),
            Err(CopyError::Range(range)) => Err(range.into()),
        }
    }

    /// Room for as many whole segments as fit the largest class that has a cluster left; says how
    /// many bytes that is.
    fn copy_some(&mut self, len: usize) -> Option<usize> {
        if self.packet.first().storage() != mbuf::Storage::Inline {
            return self.whole_segments(self.packet.capacity(), len);
        }
        let classes = self.set.cluster_pools().iter().rev();
        for class in classes.map(|pool| pool.class()) {
            // Where everything would fit was asked before.
            if class >= self.need + len {
                continue;
            }
            let fits = self.whole_segments(class, len)?;
            if self.attach(class) {
                return Some(fits);
            }
        }
        None
    }

    fn attach(&mut self, capacity: usize) -> bool {
        self.set.attach_cluster(&mut self.packet, capacity).is_ok()
    }

    /// Payload that fits into `capacity`: all `len` bytes, or whole segments of a frame.
    fn whole_segments(&self, capacity: usize, len: usize) -> Option<usize> {
        let room = capacity.saturating_sub(self.need);
        if len <= room {
            return Some(len);
        }
        let mss = self.tso_mss?;
        let whole = room / mss * mss;
        (whole > 0).then_some(whole)
    }
}
