//! The movement alone: whole mbufs, from one buffer behind what another one holds.

use crate::buf::SockBuf;

/// Moves whole mbufs from the front of `from` behind what `to` holds: no more than `max` bytes, no
/// more than `to` has space for. Returns the bytes moved.
///
/// An mbuf that would go beyond either bound stays where it is, so the result may be 0 while both
/// buffers could go on: the drain has to shrink first, or `max` is inside an mbuf.
///
/// ```
/// use mbuf::BufferSet;
/// use sockbuf::{splice, SockBuf};
///
/// let set = BufferSet::bsd(64, 8)?;
/// let (mut received, mut to_send) = (SockBuf::new(65536), SockBuf::new(65536));
/// received.write(&[7; 3000], &set)?;
/// assert_eq!(splice::move_whole(&mut received, &mut to_send, usize::MAX), 3000);
/// assert_eq!((received.len(), to_send.len()), (0, 3000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "somove")]
pub fn move_whole(from: &mut SockBuf, to: &mut SockBuf, max: usize) -> usize {
    let space = usize::try_from(to.space()).unwrap_or(0);
    let before = from.len();
    match from.take_whole(space.min(max)) {
        Some(packet) => {
            to.append_stream(packet);
            before - from.len()
        }
        None => 0,
    }
}
