//! Reference the payload's mbufs, or copy their bytes? Policies that answer.

use crate::plan::SendPlan;

/// How a packet gets its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// A header mbuf, and behind it mbufs that refer to the send buffer's clusters.
    Reference,
    /// One cluster with headers and payload, copied.
    Copy,
}

/// Where headers (and copied payload) stand in their storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// Behind [`MAX_LINK_HEADER`](crate::MAX_LINK_HEADER) free bytes.
    Front,
    /// At the storage's end, rounded down to 8, with at least as many free bytes in front.
    #[doc(alias = "m_align")]
    End,
}

/// Chooses for each packet with payload.
///
/// A payload that fits behind the headers in the header mbuf is copied there whatever the policy
/// says, as BSD does. When no cluster class is large enough for a copy, the packet refers.
///
/// A choice is carried out if memory allows. If not, these are tried in turn: a copy in the next
/// larger class, references, a copy of fewer segments in the largest class to be had, a copy of one
/// segment.
pub trait CopyPolicy {
    /// The choice for this packet.
    fn choose(&self, plan: &SendPlan<'_>) -> How;

    /// Where the policy wants headers and copied payload.
    fn placement(&self) -> Placement {
        Placement::Front
    }
}

impl<P: CopyPolicy + ?Sized> CopyPolicy for &P {
    fn choose(&self, plan: &SendPlan<'_>) -> How {
        (**self).choose(plan)
    }
    fn placement(&self) -> Placement {
        (**self).placement()
    }
}

impl<P: CopyPolicy + ?Sized> CopyPolicy for Box<P> {
    fn choose(&self, plan: &SendPlan<'_>) -> How {
        (**self).choose(plan)
    }
    fn placement(&self) -> Placement {
        (**self).placement()
    }
}

/// Always refers: what BSD did all along.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reference;

impl CopyPolicy for Reference {
    #[inline]
    fn choose(&self, _: &SendPlan<'_>) -> How {
        How::Reference
    }
}

/// Always copies, where a class is large enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Copy;

impl CopyPolicy for Copy {
    #[inline]
    fn choose(&self, _: &SendPlan<'_>) -> How {
        How::Copy
    }
}

/// Copies when the send buffer's *first* mbuf is small against the payload: capacity × factor is
/// less than its length. Headers stand at the end of their storage in either case.
///
/// The rule of the "tcp output copy data" proposal for OpenBSD, where the factor is 5. It looks at
/// one mbuf only, at its capacity and not its bytes, and that mbuf need not be in the range.
///
/// ```
/// use mbuf::BufferSet;
/// use sockbuf::SockBuf;
/// use tcp_output::policy::Threshold;
/// use tcp_output::{CopyPolicy, How, SendPlan};
///
/// let set = BufferSet::bsd(256, 16)?;
/// let mut sb = SockBuf::new(65536);
/// sb.write(&[0; 2048], &set)?;
/// let policy = Threshold { factor: 5 };
/// assert_eq!(policy.choose(&SendPlan::new(&sb, 0, 10_240, 52, true)), How::Reference);
/// assert_eq!(policy.choose(&SendPlan::new(&sb, 0, 10_241, 52, true)), How::Copy);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Threshold {
    /// What the first mbuf's capacity is multiplied by.
    pub factor: usize,
}

impl CopyPolicy for Threshold {
    #[inline]
    fn choose(&self, plan: &SendPlan<'_>) -> How {
        match plan.first_capacity() {
            Some(capacity) if capacity.saturating_mul(self.factor) < plan.len() => How::Copy,
            _ => How::Reference,
        }
    }

    fn placement(&self) -> Placement {
        Placement::End
    }
}
