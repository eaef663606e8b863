//! What a burst looks like.

use mbuf::Room;

/// One element as DPDK has it by default: 128 bytes of headroom and 2048 of data.
pub(in crate::cases) const ROOM: Room = Room {
    header: 2176,
    plain: 2176,
    charge: 2304,
};

/// What is in the array that is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One pool, no oddities.
    Flat,
    /// Every fourth slot is null.
    Nulls,
    /// Two pools, one packet of each in turn.
    TwoPools,
    /// Two pools, eight packets of each in turn.
    Blocks,
    /// Chains of two segments.
    Chain2,
    /// Chains of eight segments.
    Chain8,
    /// Every fourth packet has another owner.
    Shared,
    /// Every packet has another owner.
    Clones,
    /// All packets of a burst refer to one cluster, which goes with the last.
    OneCluster,
    /// Every packet refers to memory of the caller's own, which stays.
    External,
    /// A mixture in random order, see [`MIXTURE`].
    Mixed,
}

/// What one slot of a mixture holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Plain,
    OtherPool,
    Shared,
    Chain(usize),
    Cluster,
}

/// What 32 slots of a mixture hold, before they are shuffled.
pub(super) const MIXTURE: [(Kind, usize); 7] = [
    (Kind::Null, 2),
    (Kind::Plain, 18),
    (Kind::OtherPool, 4),
    (Kind::Shared, 3),
    (Kind::Chain(2), 2),
    (Kind::Chain(4), 1),
    (Kind::Cluster, 2),
];
/// Its slots.
pub(super) const MIXED_SLOTS: usize = 32;
/// Its mbufs.
const MIXED_MBUFS: usize = 18 + 4 + 3 + 2 * 2 + 4 + 2;
/// Its packets that have another owner.
const MIXED_SHARED: usize = 3;

impl Shape {
    /// Those that are measured hot, cold, and as pairs.
    pub(crate) const ALL: [Shape; 7] = [
        Shape::Flat,
        Shape::Nulls,
        Shape::TwoPools,
        Shape::Blocks,
        Shape::Chain2,
        Shape::Chain8,
        Shape::Shared,
    ];

    /// Those that are measured hot alone.
    pub(crate) const RARE: [Shape; 4] = [
        Shape::Clones,
        Shape::OneCluster,
        Shape::External,
        Shape::Mixed,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Shape::Flat => "flat",
            Shape::Nulls => "nulls4",
            Shape::TwoPools => "two-pools",
            Shape::Blocks => "two-pools-by-8",
            Shape::Chain2 => "chain2",
            Shape::Chain8 => "chain8",
            Shape::Shared => "shared4",
            Shape::Clones => "clones",
            Shape::OneCluster => "one-cluster",
            Shape::External => "external",
            Shape::Mixed => "mixed",
        }
    }

    /// Segments of a packet.
    pub(crate) fn segments(self) -> usize {
        match self {
            Shape::Chain2 => 2,
            Shape::Chain8 => 8,
            _ => 1,
        }
    }

    /// Mbufs that a burst of `slots` slots holds.
    pub(crate) fn mbufs(self, slots: usize) -> usize {
        match self {
            Shape::Nulls => slots - slots / 4,
            Shape::Mixed => slots / MIXED_SLOTS * MIXED_MBUFS,
            _ => slots * self.segments(),
        }
    }

    /// Packets of a burst of `slots` slots that have another owner.
    pub(crate) fn owners(self, slots: usize) -> usize {
        match self {
            Shape::Shared => slots / 4,
            Shape::Clones => slots,
            Shape::Mixed => slots / MIXED_SLOTS * MIXED_SHARED,
            _ => 0,
        }
    }

    /// Whether there is a second pool.
    pub(super) fn two_pools(self) -> bool {
        matches!(self, Shape::TwoPools | Shape::Blocks | Shape::Mixed)
    }

    /// Which of the two pools slot `at` is from; `None` for a null.
    #[inline(always)]
    pub(crate) fn lane(self, at: usize) -> Option<usize> {
        match self {
            Shape::Nulls if at % 4 == 3 => None,
            Shape::TwoPools => Some(at % 2),
            Shape::Blocks => Some(at / 8 % 2),
            _ => Some(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mixture_has_as_many_mbufs_and_owners_as_its_kinds_say() {
        let sum = |per: fn(Kind) -> usize| -> usize {
            MIXTURE.iter().map(|&(kind, n)| per(kind) * n).sum()
        };
        assert_eq!(sum(|_| 1), MIXED_SLOTS);
        assert_eq!(sum(|kind| usize::from(kind == Kind::Shared)), MIXED_SHARED);
        let mbufs = sum(|kind| match kind {
            Kind::Null => 0,
            Kind::Chain(n) => n,
            _ => 1,
        });
        assert_eq!(mbufs, MIXED_MBUFS);
        assert_eq!(Shape::Mixed.mbufs(64), 2 * MIXED_MBUFS);
    }
}
