//! Exchanging a segment's storage under it: the element stays where it is in its packet, with all
//! that its header says; bytes, room and charge are another's from then on.

use crate::error::AllocError;
use crate::handle::Mbuf;
use crate::header::{Fields, SegFlags};
use crate::packet::Packet;
use crate::segment::{RawSegmentMut, Segment};
use crate::set::BufferSet;
use crate::{wipe, word};

impl BufferSet {
    /// A packet of one segment with `len` bytes of data, whose storage `seg` can [`adopt`]: a
    /// cluster, or inline room when `seg` has the same. Keeps the lead of `seg` where there is
    /// room for it, else its alignment to 8 bytes.
    pub(super) fn storage_for(&self, seg: Segment<'_>, len: usize) -> Result<Mbuf, AllocError> {
        let mut fresh = if seg.is_header() {
            self.header()?
        } else {
            self.plain()?
        };
        // Before any byte is in it: even if it is not needed in the end, it is wiped.
        if wipe::asked_of(seg) {
            fresh.wipe_on_free();
        }
        // Pools are compared by address; elements of both are out, so both live.
        let same_room = fresh.first().fields().pool == seg.fields().pool;
        if len > fresh.capacity() || !same_room {
            self.attach_cluster(&mut fresh, len)?;
        }
        let spare = fresh.capacity() - len;
        let lead = [seg.lead(), seg.lead() % 8]
            .into_iter()
            .find(|&lead| lead <= spare);
        let mut first = fresh.first_raw();
        let fields = first.fields();
        fields.off = lead.unwrap_or(0) as u32;
        fields.len = len as u32;
        fields.pkt_len = len;
        Ok(fresh)
    }
}

/// Makes the bytes of `fresh`, which [`BufferSet::storage_for`] made for this segment, those of
/// `seg`. The lengths of the packet around `seg` are the caller's to keep. What `seg` had is
/// returned, empty, to be dropped when the edit is done: an owner of external storage may unwind.
pub(super) fn adopt(seg: &mut RawSegmentMut<'_>, mut fresh: Mbuf) -> Mbuf {
    let (ours, theirs) = (*seg.view().fields(), *fresh.first().fields());
    take_storage(seg, &theirs);
    if theirs.storage.is_none() {
        // Same pool and same kind, so the same room; `seg` has just become inline.
        debug_assert!(ours.pool == theirs.pool);
        debug_assert_eq!(seg.view().is_header(), fresh.first().is_header());
        if let Some(data) = reborrow(seg).into_data() {
            data.copy_from_slice(fresh.first().data());
        }
    }
    let mut first = fresh.first_raw();
    take_storage(&mut first, &ours);
    let fields = first.fields();
    (fields.off, fields.len, fields.pkt_len) = (0, 0, 0);
    fresh
}

/// Gives `seg` the storage that `from` describes, with its data. The reference to what `seg` had is
/// the caller's, and that to the new one was.
fn take_storage(seg: &mut RawSegmentMut<'_>, from: &Fields) {
    const KIND: SegFlags = SegFlags::EXTERNAL.union(SegFlags::READ_ONLY);
    let counted = |fields: &Fields| fields.storage.map_or(0, |_| fields.capacity);
    let fields = seg.fields();
    fields.charge = fields.charge - counted(fields) + counted(from);
    fields.storage = from.storage;
    fields.capacity = from.capacity;
    fields.off = from.off;
    fields.len = from.len;
    fields.flags = (fields.flags - KIND) | (from.flags & KIND);
    let kind = match from.storage {
        None => 0,
        Some(_) if from.flags.contains(SegFlags::EXTERNAL) => word::EXTERN,
        Some(_) => word::CLUSTER,
    };
    // SAFETY: the segment is borrowed, by its exclusive owner.
    let word = unsafe { seg.view().ptr().word() };
    word.set(word.load() & !(word::CLUSTER | word::EXTERN) | kind);
}

/// Moves the bytes of `seg`, which is writable, so that they start at `lead` of its storage,
/// where they fit.
pub(super) fn slide(seg: &mut RawSegmentMut<'_>, lead: usize) {
    let (from, len, capacity) = {
        let view = seg.view();
        (view.lead(), view.len(), view.capacity())
    };
    debug_assert!(lead + len <= capacity && seg.view().is_writable());
    let low = from.min(lead);
    let span = from.max(lead) + len - low;
    (seg.fields().off, seg.fields().len) = (low as u32, span as u32);
    if let Some(data) = reborrow(seg).into_data() {
        data.copy_within(from - low..from - low + len, lead - low);
    }
    (seg.fields().off, seg.fields().len) = (lead as u32, len as u32);
}

/// The same segment, for a shorter time.
pub(super) fn reborrow<'a>(seg: &'a mut RawSegmentMut<'_>) -> RawSegmentMut<'a> {
    // SAFETY: `seg` is exclusive and cannot be used while this view lives.
    unsafe { RawSegmentMut::new(seg.view().ptr()) }
}
