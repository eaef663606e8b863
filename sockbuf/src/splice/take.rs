//! Taking mbufs out of the source: whole ones, never copied, and by reference a part of one where it
//! must be.

use mbuf::{BufferSet, Kind, Mbuf, Packet, Segment};

use super::verdict::Verdict;
use crate::buf::SockBuf;

/// What was taken.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) whole: Option<Mbuf>,
    /// The front of the mbuf behind those, which shares its storage with what stays.
    pub(super) part: Option<Mbuf>,
}

impl Taken {
    pub(super) fn bytes(&self) -> usize {
        let both = [&self.whole, &self.part];
        both.into_iter().flatten().map(Packet::pkt_len).sum()
    }
}

/// Removes addresses and control messages from the front. Nobody behind a splice reads them.
pub(super) fn skip_aside(source: &mut SockBuf) -> Option<Mbuf> {
    let aside = source.segments().take_while(|seg| is_aside(*seg));
    let bytes: usize = aside.map(Segment::len).sum();
    if bytes == 0 {
        return None;
    }
    source.take_whole(bytes)
}

fn is_aside(seg: Segment<'_>) -> bool {
    seg.kind() != Kind::Data
}

/// Removes `len` bytes of data from the front: as many whole mbufs as there are in them and, if `cut`
/// allows it, a part of the next one. Stops before what is not data, and leaves that part where it is
/// when there is no mbuf for it.
///
/// # Errors
/// [`Verdict::Loop`] when one of the mbufs was passed on `most_hops` times; nothing is taken then.
pub(super) fn take(
    source: &mut SockBuf,
    len: usize,
    cut: bool,
    most_hops: u8,
    set: &BufferSet,
) -> Result<Taken, Verdict> {
    let mut whole = 0;
    let mut next = 0;
    for seg in source.segments() {
        if whole == len || is_aside(seg) {
            break;
        }
        let hops = seg.hops();
        if hops >= most_hops {
            return Err(Verdict::Loop { hops });
        }
        if seg.len() > len - whole {
            next = len - whole;
            break;
        }
        whole += seg.len();
    }
    let mut taken = Taken::default();
    if cut && next > 0 {
        taken.part = source.ref_copy(whole, next, set).ok();
    }
    if whole > 0 {
        taken.whole = source.take_whole(whole);
    }
    if taken.part.is_some() {
        // Less than the first mbuf, so that none is handed out.
        let cut = source.cut(next);
        debug_assert!(matches!(cut, Ok(None)));
    }
    for packet in [&mut taken.whole, &mut taken.part].into_iter().flatten() {
        packet.pass_on();
    }
    Ok(taken)
}
