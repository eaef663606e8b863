//! A record for reading, and the parts of one that was taken out.

use mbuf::{Kind, Mbuf, OutOfRange, Packet, Segment};

use crate::control::{Message, Messages};

/// One record of a buffer, for reading.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    first: Segment<'a>,
}

impl<'a> From<Segment<'a>> for Record<'a> {
    /// The record that begins with this segment.
    fn from(first: Segment<'a>) -> Self {
        Record { first }
    }
}

impl<'a> Record<'a> {
    /// Its segments, first to last.
    pub fn segments(&self) -> impl Iterator<Item = Segment<'a>> + use<'a> {
        let mut next = Some(self.first);
        std::iter::from_fn(move || {
            let seg = next?;
            next = if seg.ends_record() { None } else { seg.next() };
            Some(seg)
        })
    }

    /// Those of its segments that hold bytes of this kind.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = Segment<'a>> + use<'a> {
        self.segments().filter(move |seg| seg.kind() == kind)
    }

    /// Whom it is from; `None` when nobody said.
    #[doc(alias = "MT_SONAME")]
    #[must_use]
    pub fn address(&self) -> Option<&'a [u8]> {
        let first = self.first;
        (first.kind() == Kind::Address).then(|| first.data())
    }

    /// The control messages that go with it.
    #[doc(alias = "MT_CONTROL")]
    pub fn control(&self) -> impl Iterator<Item = Message<'a>> + use<'a> {
        self.of_kind(Kind::Control)
            .flat_map(|seg| Messages::new(seg.data()))
    }

    /// Bytes of data.
    #[must_use]
    pub fn data_len(&self) -> usize {
        self.of_kind(Kind::Data).map(Segment::len).sum()
    }

    /// Whether the sender's record ends with it.
    #[doc(alias = "MSG_EOR")]
    #[must_use]
    pub fn is_eor(&self) -> bool {
        self.segments().any(Segment::is_eor)
    }

    /// Copies the data at `off` into `dst`, all of it.
    ///
    /// # Errors
    /// [`OutOfRange`] when it is not all in this record; `dst` is unchanged then.
    pub fn copy_to(&self, off: usize, mut dst: &mut [u8]) -> Result<(), OutOfRange> {
        let (have, len) = (self.data_len(), dst.len());
        if off.checked_add(len).is_none_or(|end| end > have) {
            return Err(OutOfRange {
                offset: off,
                len,
                have,
            });
        }
        let mut skip = off;
        for seg in self.of_kind(Kind::Data) {
            let data = &seg.data()[skip.min(seg.len())..];
            skip -= seg.len() - data.len();
            let (here, rest) = dst.split_at_mut(data.len().min(dst.len()));
            here.copy_from_slice(&data[..here.len()]);
            dst = rest;
        }
        Ok(())
    }
}

/// Iterator over the records of a buffer, first to last.
#[derive(Clone, Debug)]
pub struct Records<'a>(Option<Segment<'a>>);

impl<'a> Records<'a> {
    pub(super) fn new(first: Option<Segment<'a>>) -> Self {
        Records(first)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let record = Record { first: self.0? };
        self.0 = record.segments().last().and_then(Segment::next);
        Some(record)
    }
}

/// The parts of a record that was taken out of its buffer.
#[derive(Debug, Default)]
pub struct OwnedRecord {
    /// Whom it is from.
    pub address: Option<Mbuf>,
    /// The control messages that go with it.
    pub control: Option<Mbuf>,
    /// The data.
    pub data: Option<Mbuf>,
}

impl From<Mbuf> for OwnedRecord {
    /// Takes a record apart: what stands in front of the first mbuf with data, and the rest.
    fn from(record: Mbuf) -> Self {
        let mut parts = OwnedRecord::default();
        let mut rest = Some(record);
        while let Some(record) = rest {
            let part = match record.first().kind() {
                Kind::Data => {
                    parts.data = Some(record);
                    break;
                }
                Kind::Address => &mut parts.address,
                Kind::Control => &mut parts.control,
            };
            let (first, behind) = record.split_first();
            rest = behind;
            match part {
                Some(part) => part.cat(first),
                None => *part = Some(first),
            }
        }
        parts
    }
}
