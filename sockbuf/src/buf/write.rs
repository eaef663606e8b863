//! Bytes copied in from a user's slice.

use mbuf::{AllocError, BufferSet, Mbuf, Packet, Segment};

use super::SockBuf;
use crate::error::WriteError;

impl SockBuf {
    /// Copies bytes in, as many as there is space for, and says how many that were.
    ///
    /// The last mbuf's tail room is filled first, then plain mbufs and clusters of the smallest class
    /// that takes what is left; all are filled from their start, so that the next write finds the
    /// tail room. Tail room of what is in flight is not used: its storage is shared. An empty slice
    /// writes 0 bytes.
    ///
    /// # Errors
    /// [`WriteError`] when not one byte could be written; nothing has changed then. When memory runs
    /// out later, what was written until then counts.
    #[doc(alias = "sosend")]
    #[doc(alias = "m_getuio")]
    pub fn write(&mut self, data: &[u8], set: &BufferSet) -> Result<usize, WriteError> {
        let space = self.space();
        let accepted = data.len().min(usize::try_from(space).unwrap_or(0));
        if accepted == 0 && !data.is_empty() {
            return Err(WriteError::Full {
                queued: self.len(),
                space,
            });
        }
        Ok(self.fill(&data[..accepted], set)?)
    }

    /// Copies bytes in, whatever the limits. When memory runs out on the way, what was copied until then
    /// counts; when not one byte could be copied, nothing has changed.
    pub(crate) fn fill(&mut self, data: &[u8], set: &BufferSet) -> Result<usize, AllocError> {
        let mut done = self.fill_tail(data);
        while done < data.len() {
            let flying = self.chain.last().is_some_and(Segment::is_shared);
            match filled(&data[done..], flying, set) {
                Ok(m) => {
                    done += m.pkt_len();
                    self.chain.push_back(m);
                }
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        self.check("fill");
        Ok(done)
    }

    /// Copies as many bytes as the last mbuf has room for.
    pub(crate) fn fill_tail(&mut self, data: &[u8]) -> usize {
        self.chain.append_bytes(data)
    }
}

/// Plain mbufs that bytes are spread over rather than taking a cluster, after ones that are in flight.
const SMALL: usize = 2;

/// A new mbuf with as much of `data` as it takes, from the start of its storage. Where what was
/// written before is in flight already, this will be before more is written, and a cluster would not
/// get any fuller: little data goes to plain mbufs then.
fn filled(data: &[u8], flying: bool, set: &BufferSet) -> Result<Mbuf, AllocError> {
    let plain = set.plain_room();
    let largest = if flying && data.len() <= SMALL * plain {
        plain
    } else {
        set.largest_class().unwrap_or(0).max(plain)
    };
    let mut m = set.plain_with(data.len().min(largest))?;
    let n = data.len().min(m.first().tailroom());
    // A new mbuf's tail room was just asked for.
    if let Ok(room) = m.append(n) {
        room.copy_from_slice(&data[..n]);
    }
    Ok(m)
}
