//! Whether what a header says of its packet is so.

use crate::header::HeaderPtr;
use crate::packet::Packet;
use crate::pool::MbufPool;
use crate::segment::{Segment, Storage};
use crate::word::{self, resting_of};
use thiserror::Error;

/// References beyond which a count is taken for garbage.
const MOST_OWNERS: u64 = i32::MAX as u64;

/// The first rule that a packet breaks. Segments are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Broken {
    /// The head has an owner for each handle; segments behind it have the head alone.
    #[error("segment {segment} counts {count} references, at most {most} can be")]
    Count {
        /// Which segment.
        segment: usize,
        /// What it counts.
        count: u64,
        /// What is possible.
        most: u64,
    },
    /// The free word says "has next" exactly when there is a next segment.
    #[error("segment {segment}: free word {word:#x} and its next segment disagree")]
    Link {
        /// Which segment.
        segment: usize,
        /// Its free word.
        word: u64,
    },
    /// The free word says which storage there is besides the mbuf's own room: a cluster, external, or none.
    #[error("segment {segment}: free word {word:#x} and its storage disagree")]
    Storage {
        /// Which segment.
        segment: usize,
        /// Its free word.
        word: u64,
    },
    /// Data lies in its storage.
    #[error("segment {segment}: {len} bytes at {lead} reach past a storage of {capacity}")]
    Outside {
        /// Which segment.
        segment: usize,
        /// Start of its data.
        lead: usize,
        /// Bytes of its data.
        len: usize,
        /// Bytes of its storage.
        capacity: usize,
    },
    /// The packet's length is the sum of its segments'.
    #[error("packet of {said} bytes by its header, {counted} in its segments")]
    Length {
        /// What the header says.
        said: usize,
        /// What is there.
        counted: usize,
    },
    /// The header knows how many segments there are.
    #[error("packet of {said} segments by its header, {counted} in its chain")]
    Segments {
        /// What the header says.
        said: usize,
        /// What is there; one more than `said` when there were too many to count.
        counted: usize,
    },
    /// Asked of a fresh mbuf only: it rests.
    #[error("mbuf with free word {word:#x} does not rest with {resting:#x}")]
    NotResting {
        /// Its free word.
        word: u64,
        /// Its pool's resting word.
        resting: u64,
    },
    /// Asked of a fresh mbuf only: it belongs to the pool it is said to.
    #[error("mbuf of another pool")]
    OtherPool,
}

fn segment_is_whole(seg: Segment<'_>, segment: usize) -> Result<(), Broken> {
    // SAFETY: the segment is reachable from a handle that is borrowed.
    let word = unsafe { seg.ptr().word() }.load();
    let (count, most) = (
        word::count(word),
        if segment == 0 { MOST_OWNERS } else { 1 },
    );
    if count == 0 || count > most {
        return Err(Broken::Count {
            segment,
            count,
            most,
        });
    }
    if (word & word::NEXT != 0) != seg.next().is_some() {
        return Err(Broken::Link { segment, word });
    }
    let kind = match seg.storage() {
        Storage::Inline => 0,
        Storage::Cluster { .. } => word::CLUSTER,
        Storage::External { .. } => word::EXTERN,
    };
    if word & (word::CLUSTER | word::EXTERN) != kind {
        return Err(Broken::Storage { segment, word });
    }
    let (lead, len, capacity) = (seg.lead(), seg.len(), seg.capacity());
    if lead + len > capacity {
        return Err(Broken::Outside {
            segment,
            lead,
            len,
            capacity,
        });
    }
    Ok(())
}

/// [`Packet::check`].
pub(crate) fn packet<P: Packet + ?Sized>(packet: &P) -> Result<(), Broken> {
    let (mut bytes, mut counted) = (0, 0);
    let said = packet.nsegs();
    for seg in packet.segments() {
        if counted > said {
            break; // a ring would never end
        }
        segment_is_whole(seg, counted)?;
        bytes += seg.len();
        counted += 1;
    }
    if counted != said {
        return Err(Broken::Segments { said, counted });
    }
    let (said, counted) = (packet.pkt_len(), bytes);
    if said != counted {
        return Err(Broken::Length { said, counted });
    }
    Ok(())
}

/// [`Packet::check_fresh`].
pub(crate) fn fresh<P: Packet + ?Sized>(m: &P, pool: &MbufPool) -> Result<(), Broken> {
    let ptr: HeaderPtr = m.raw().0;
    // SAFETY: the handle that is borrowed holds the element.
    let (word, own) = unsafe { (ptr.word().load(), ptr.fields().pool) };
    if own != pool.raw().pool_ref() {
        return Err(Broken::OtherPool);
    }
    let resting = resting_of(word);
    if word != resting {
        return Err(Broken::NotResting { word, resting });
    }
    packet(m)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::header::Fields;
    use crate::{BufferSet, Mbuf};

    /// A packet of two segments, the second in a cluster, after `spoil` was at one of its headers;
    /// what `check` says then. The header is mended again, and all comes back.
    fn spoiled(
        at: usize,
        spoil: impl FnOnce(HeaderPtr, &mut Fields, u64) -> u64,
    ) -> Result<(), Broken> {
        let set = BufferSet::bsd_builder(16, 4).build().unwrap();
        let mut m = set.header().unwrap();
        m.append(10).unwrap();
        let mut next = set.plain_with(2048).unwrap();
        next.append(20).unwrap();
        m.cat(next);
        assert_eq!(m.check(), Ok(()));
        let ptr = m.segments().nth(at).unwrap().ptr();
        // SAFETY: the packet is this test's, and no view of it is alive.
        let (word, fields) = unsafe { (ptr.word(), *ptr.fields()) };
        let good = word.load();
        // SAFETY: as above.
        word.set(spoil(ptr, unsafe { ptr.fields_mut() }, good));
        let result = m.check();
        word.set(good);
        // SAFETY: as above.
        unsafe { *ptr.fields_mut() = fields };
        assert_eq!(m.check(), Ok(()));
        drop(m);
        assert!(set.is_full());
        result
    }

    #[test]
    fn dpdk_b22_check_names_the_first_broken_rule_with_its_numbers() {
        let counts = [
            (0, 0, MOST_OWNERS),
            (0, u32::MAX.into(), MOST_OWNERS),
            (1, 2, 1),
        ];
        for (segment, count, most) in counts {
            let counted = spoiled(segment, |_, _, word| (word - word::count(word)) + count);
            let broken = Broken::Count {
                segment,
                count,
                most,
            };
            assert_eq!(counted, Err(broken));
        }
        for (segment, bit) in [(0, word::NEXT), (1, word::NEXT)] {
            let linked = spoiled(segment, |_, _, word| word ^ bit);
            assert!(matches!(linked, Err(Broken::Link { segment: s, .. }) if s == segment));
        }
        let bits = [word::CLUSTER, word::EXTERN];
        for (segment, bit) in [0, 1].into_iter().flat_map(|at| bits.map(|bit| (at, bit))) {
            let stored = spoiled(segment, |_, _, word| word ^ bit);
            assert!(matches!(stored, Err(Broken::Storage { segment: s, .. }) if s == segment));
        }
        let outside = spoiled(1, |_, fields, word| {
            fields.off = 2040;
            word
        });
        let (lead, len, capacity) = (2040, 20, 2048);
        let broken = Broken::Outside {
            segment: 1,
            lead,
            len,
            capacity,
        };
        assert_eq!(outside, Err(broken));
        let short = spoiled(0, |_, fields, word| {
            fields.pkt_len = 29;
            word
        });
        let (said, counted) = (29, 30);
        assert_eq!(short, Err(Broken::Length { said, counted }));
        for said in [1, 3] {
            let miscounted = spoiled(0, |_, fields, word| {
                fields.nsegs = said;
                word
            });
            let said = said as usize;
            assert_eq!(miscounted, Err(Broken::Segments { said, counted: 2 }));
        }
    }

    #[test]
    fn a_ring_of_segments_is_reported_rather_than_walked_for_ever() {
        let ring = spoiled(1, |own, fields, word| {
            fields.next = Some(own);
            word | word::NEXT
        });
        let (said, counted) = (2, 3);
        assert_eq!(ring, Err(Broken::Segments { said, counted }));
    }

    #[test]
    fn dpdk_b15_a_fresh_mbuf_rests_in_the_pool_it_came_from() {
        let (a, b) = (
            BufferSet::bsd(16, 4).unwrap(),
            BufferSet::bsd(16, 4).unwrap(),
        );
        let mut m: Mbuf = a.header().unwrap();
        assert_eq!(m.check_fresh(a.mbuf_pool()), Ok(()));
        assert_eq!(m.check_fresh(b.mbuf_pool()), Err(Broken::OtherPool));
        m.cat(a.plain().unwrap());
        let chained = m.check_fresh(a.mbuf_pool());
        assert!(matches!(chained, Err(Broken::NotResting { .. })));
    }
}
