//! Control messages: what goes with the data of a record, each behind a header of its own.
//!
//! ```text
//!  0           4       8       12        16                       length
//!  ┌───────────┬───────┬───────┬─────────┬────────────────────────┬─────────┐
//!  │ length    │ level │ kind  │ padding │ data ................. │ padding │ to a multiple of 8
//!  └───────────┴───────┴───────┴─────────┴────────────────────────┴─────────┘
//! ```
//!
//! Numbers are in the machine's own order, as they never leave it.

use mbuf::{BufferSet, Kind, Mbuf};

use crate::error::ControlError;

/// Bytes in front of a message's data.
const HEADER: usize = 16;

/// A message, header and padding included, is no longer than the smallest cluster.
#[doc(alias = "MCLBYTES")]
const LONGEST: usize = 2048;

/// A control message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[doc(alias = "cmsghdr")]
pub struct Message<'a> {
    /// Whose message it is.
    pub level: i32,
    /// What it says, among those of its level.
    pub kind: i32,
    /// What goes with that.
    pub data: &'a [u8],
}

impl Message<'_> {
    /// An mbuf with this message, of [`Kind::Control`].
    ///
    /// # Errors
    /// [`ControlError`]: more than 2048 bytes with its header, or no mbuf.
    ///
    /// ```
    /// use mbuf::{BufferSet, Packet};
    /// use sockbuf::{Message, Messages};
    /// let set = BufferSet::bsd(64, 8)?;
    /// let said = Message { level: 0, kind: 7, data: &[192, 0, 2, 1] };
    /// let m = said.to_mbuf(&set)?;
    /// assert!(Messages::new(m.first().data()).eq([said]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "sbcreatecontrol")]
    pub fn to_mbuf(&self, set: &BufferSet) -> Result<Mbuf, ControlError> {
        let length = self.data.len().saturating_add(HEADER);
        let padded = length.checked_next_multiple_of(8).unwrap_or(usize::MAX);
        if padded > LONGEST {
            return Err(ControlError::TooLong {
                asked: padded,
                max: LONGEST,
            });
        }
        let mut m = set.plain_with(padded)?;
        // As much was asked for.
        if let Ok(room) = m.append(padded) {
            room.fill(0);
            room[..4].copy_from_slice(&(length as u32).to_ne_bytes());
            room[4..8].copy_from_slice(&self.level.to_ne_bytes());
            room[8..12].copy_from_slice(&self.kind.to_ne_bytes());
            room[HEADER..length].copy_from_slice(self.data);
        }
        m.set_kind(Kind::Control);
        Ok(m)
    }
}

/// The control messages in a row of bytes. Ends before one whose length cannot be.
#[derive(Clone, Debug)]
#[doc(alias = "CMSG_NXTHDR")]
pub struct Messages<'a>(&'a [u8]);

impl<'a> Messages<'a> {
    /// Those in the bytes of a control mbuf.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Messages(bytes)
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let (header, _) = self.0.split_first_chunk::<HEADER>()?;
        let word = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
        let length = usize::try_from(u32::from_ne_bytes(word(0))).ok()?;
        let data = self.0.get(HEADER..length)?;
        let end = length.next_multiple_of(8).min(self.0.len());
        self.0 = &self.0[end..];
        Some(Message {
            level: i32::from_ne_bytes(word(4)),
            kind: i32::from_ne_bytes(word(8)),
            data,
        })
    }
}
