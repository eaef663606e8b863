//! Appending so that small mbufs do not pile up: their bytes go where there is room, and they are freed.

use mbuf::{Chain, Mbuf, Packet, Segment, Storage};

/// What counts as the size of storage that is not a cluster: an mbuf's own room takes what fits.
const INLINE_SIZE: usize = 2048;

/// Appends `packet`. Where `joined`, the chain's last segment belongs to the same record.
///
/// For each segment, in this order:
/// 1. the end of a sender's record is remembered;
/// 2. an empty segment is freed, unless it is all there is to carry that end;
/// 3. a segment of at most a quarter of our last one's storage is copied behind that one's data, if
///    there is room, both are of one kind, and no sender's record ends there;
/// 4. any other is linked;
/// 5. the last segment carries the remembered end.
pub(crate) fn compress(chain: &mut Chain, packet: Mbuf, mut joined: bool) {
    let mut eor = false;
    let mut rest = Some(packet);
    while let Some(packet) = rest {
        let (mut first, behind) = packet.split_first();
        rest = behind;
        let seg = first.first();
        eor |= seg.is_eor();
        let last = chain.last().filter(|_| joined);
        if seg.is_empty() && (!eor || carried(seg, rest.as_ref(), last)) {
            continue;
        }
        if last.is_some_and(|last| takes(last, seg)) {
            let copied = chain.append_bytes(seg.data());
            debug_assert_eq!(copied, seg.len(), "room does not shrink");
            continue;
        }
        first.set_eor(false);
        chain.push_back(first);
        joined = true;
    }
    if eor && joined {
        chain.set_eor();
    }
}

/// Whether the segment behind `empty`, or else the one before it, can say that a record ends.
fn carried(empty: Segment<'_>, behind: Option<&Mbuf>, last: Option<Segment<'_>>) -> bool {
    let other = behind.map(Packet::first).or(last);
    other.is_some_and(|other| other.kind() == empty.kind())
}

/// Whether the bytes of `seg` are to be copied behind those of `last`. Not those that are to be wiped, nor
/// away from the hops that they have made.
fn takes(last: Segment<'_>, seg: Segment<'_>) -> bool {
    let size = match last.storage() {
        Storage::Inline => INLINE_SIZE,
        _ => last.capacity(),
    };
    seg.len() <= size / 4
        && last.kind() == seg.kind()
        && !last.is_eor()
        && !seg.is_wiped_on_free()
        && last.hops() == seg.hops()
        && seg.len() <= last.tailroom()
}
