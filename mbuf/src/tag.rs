//! Tags: small typed blobs on a packet, found by id.
//!
//! BSD allocates each and frees them with the packet. Here they lie in the
//! [private area](crate::PrivateArea) of the packet's first segment, as many as its pool has room for:
//! adding one cannot fail for want of memory elsewhere, and an mbuf with tags is freed like any.

use crate::error::NoRoom;
use crate::handle::Mbuf;
use crate::packet::Packet;
use crate::plain_value::PlainValue;
use crate::private::{self, PrivateMut};
use thiserror::Error;

/// Bytes of id and length in front of a tag's data.
const FRONT: usize = 4;

/// Bytes of data that a tag has at most.
pub const MAX_TAG: usize = 80;

/// A tag could not be added, or tags not copied; the packet is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TagError {
    /// Tags are small.
    #[error("tag of {len} bytes, possible are {max}")]
    TooLong {
        /// Bytes of data.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// The private area is full, or the pool has none.
    #[error("room for tags in the private area: {0}")]
    NoRoom(#[from] NoRoom),
}

/// A tag of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag<'a> {
    /// Which kind; several of a packet's may be of one kind.
    pub id: u16,
    /// What it says.
    pub data: &'a [u8],
}

impl Tag<'_> {
    /// The data as a value; `None` when it is of another size.
    pub fn value<T: PlainValue>(&self) -> Option<T> {
        (self.data.len() == T::LEN).then(|| T::read_from(self.data))
    }
}

/// Bytes that a tag with `len` bytes of data takes.
const fn stride(len: usize) -> usize {
    FRONT + len.next_multiple_of(4)
}

const fn bit(id: u16) -> u32 {
    1 << (id % 32)
}

/// The tags of a packet, newest first. Made by [`Packet::tags`].
#[derive(Clone)]
pub struct Tags<'a>(&'a [u8]);

impl<'a> Tags<'a> {
    /// The first tag of this kind from here on; the next call goes on behind it.
    #[doc(alias = "m_tag_find")]
    pub fn find_id(&mut self, id: u16) -> Option<Tag<'a>> {
        self.find(|tag| tag.id == id)
    }
}

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    #[doc(alias = "m_tag_next")]
    fn next(&mut self) -> Option<Tag<'a>> {
        let (front, rest) = self.0.split_first_chunk::<FRONT>()?;
        let [id0, id1, len0, len1] = *front;
        let len = u16::from_ne_bytes([len0, len1]) as usize;
        let data = rest.get(..len)?;
        self.0 = self.0.get(stride(len)..).unwrap_or_default();
        let id = u16::from_ne_bytes([id0, id1]);
        Some(Tag { id, data })
    }
}

pub(crate) fn tags<P: Packet + ?Sized>(packet: &P) -> Tags<'_> {
    Tags(private::view(packet).map_or(&[], |area| area.tags))
}

pub(crate) fn find<P: Packet + ?Sized>(packet: &P, id: u16) -> Option<Tag<'_>> {
    let area = private::view(packet)?;
    if area.tag_ids & bit(id) == 0 {
        return None;
    }
    Tags(area.tags).find_id(id)
}

impl PrivateMut<'_> {
    /// The tags that are there.
    fn used(&self) -> &[u8] {
        &self.tags[self.tags.len() - self.head.tags_used as usize..]
    }

    /// Removes `len` bytes of tags that start `at` bytes behind the first.
    fn close_gap(&mut self, at: usize, len: usize) {
        let start = self.tags.len() - self.head.tags_used as usize;
        self.tags.copy_within(start..start + at, start + len);
        self.head.tags_used -= len as u16;
        self.head.tag_ids = Tags(self.used()).fold(0, |ids, tag| ids | bit(tag.id));
    }
}

impl Mbuf {
    /// Adds a tag in front of the others.
    ///
    /// ```
    /// use mbuf::{BufferSet, Packet, PrivateArea};
    /// let set = BufferSet::standard_builder(64, 8)
    ///     .private(PrivateArea { fields: 0, tags: 96 })
    ///     .build()?;
    /// let mut m = set.header()?;
    /// m.add_tag(7, b"ipsec in")?;
    /// m.add_tag(9, &443u16.to_ne_bytes())?;
    /// assert_eq!(m.tag(7).unwrap().data, b"ipsec in");
    /// assert_eq!(m.tag(9).unwrap().value(), Some(443u16));
    /// assert!(m.tag(8).is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`TagError`] when the data is too long, or the private area has no room.
    #[doc(alias = "m_tag_get")]
    #[doc(alias = "m_tag_prepend")]
    pub fn add_tag(&mut self, id: u16, data: &[u8]) -> Result<(), TagError> {
        let len = data.len();
        if len > MAX_TAG {
            return Err(TagError::TooLong { len, max: MAX_TAG });
        }
        let asked = stride(len);
        let Some(PrivateMut { head, tags, .. }) = private::view_mut(self) else {
            return Err(NoRoom::TooSmall { asked, have: 0 }.into());
        };
        let have = tags.len() - head.tags_used as usize;
        if asked > have {
            return Err(NoRoom::TooSmall { asked, have }.into());
        }
        let new = &mut tags[have - asked..have];
        new[..2].copy_from_slice(&id.to_ne_bytes());
        new[2..FRONT].copy_from_slice(&(len as u16).to_ne_bytes());
        new[FRONT..FRONT + len].copy_from_slice(data);
        head.tags_used += asked as u16;
        head.tag_ids |= bit(id);
        Ok(())
    }

    /// Removes the newest tag of this kind; false when there is none.
    #[doc(alias = "m_tag_delete")]
    #[doc(alias = "m_tag_unlink")]
    pub fn remove_tag(&mut self, id: u16) -> bool {
        if self.tag(id).is_none() {
            return false;
        }
        let Some(mut area) = private::view_mut(self) else {
            return false;
        };
        let mut at = 0;
        for tag in Tags(area.used()) {
            let len = stride(tag.data.len());
            if tag.id == id {
                area.close_gap(at, len);
                return true;
            }
            at += len;
        }
        false
    }

    /// Removes all tags.
    #[doc(alias = "m_tag_delete_chain")]
    pub fn clear_tags(&mut self) {
        if self.tags().next().is_some()
            && let Some(area) = private::view_mut(self)
        {
            area.head.tags_used = 0;
            area.head.tag_ids = 0;
        }
    }

    /// Replaces this packet's tags by those of `from`, in the same order.
    ///
    /// # Errors
    /// [`TagError::NoRoom`] when they do not all fit.
    #[doc(alias = "m_tag_copy_chain")]
    #[doc(alias = "m_tag_copy")]
    pub fn copy_tags_from(&mut self, from: &(impl Packet + ?Sized)) -> Result<(), TagError> {
        let theirs = from.tags().0;
        if theirs.is_empty() {
            self.clear_tags();
            return Ok(());
        }
        let (asked, ids) = (theirs.len(), from.tags().fold(0, |s, t| s | bit(t.id)));
        let Some(PrivateMut { head, tags, .. }) = private::view_mut(self) else {
            return Err(NoRoom::TooSmall { asked, have: 0 }.into());
        };
        let have = tags.len();
        let Some(start) = have.checked_sub(asked) else {
            return Err(NoRoom::TooSmall { asked, have }.into());
        };
        tags[start..].copy_from_slice(theirs);
        head.tags_used = asked as u16;
        head.tag_ids = ids;
        Ok(())
    }
}
