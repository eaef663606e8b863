//! What the header says of the packet as a whole, taken from one packet to another.

use super::storage::reborrow;
use crate::handle::Mbuf;
use crate::header::SegFlags;
use crate::meta::META;
use crate::packet::Packet;
use crate::private;

/// What of the flags speaks of the packet rather than of its first segment.
const OF_PACKET: SegFlags = SegFlags::OFFLOAD
    .union(SegFlags::USER)
    .union(META)
    .union(SegFlags::PRIVATE);

impl Mbuf {
    /// Takes over what the header of `from` says of its packet: offload requests and user word, how it
    /// was received, VLAN tag, timestamp, flow and priority, named fields and tags. Lengths and
    /// storage are each packet's own.
    ///
    /// Where the private area is smaller than that of `from`, it takes as many bytes of the fields
    /// as it holds, and no tags unless all fit; [`copy_tags_from`](Self::copy_tags_from) says so.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::bsd(64, 8)?;
    /// use mbuf::Packet;
    /// let (mut a, mut b) = (set.header()?, set.header()?);
    /// a.set_user(7);
    /// b.copy_header_from(&a);
    /// assert_eq!((a.user(), b.user()), (7, 7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "m_dup_pkthdr")]
    pub fn copy_header_from(&mut self, from: &(impl Packet + ?Sized)) {
        let said = from.first().fields().flags & OF_PACKET;
        self.reset_header();
        if said.contains(SegFlags::OFFLOAD) {
            self.set_offload(from.offload());
        }
        if said.contains(SegFlags::USER) {
            self.set_user(from.user());
        }
        self.copy_metadata_from(from);
        if said.contains(SegFlags::PRIVATE) {
            private::copy_fields(self, from);
            if self.copy_tags_from(from).is_err() {
                self.clear_tags();
            }
        }
    }

    /// As [`copy_header_from`](Self::copy_header_from); `from` says nothing any more.
    #[doc(alias = "m_move_pkthdr")]
    #[doc(alias = "M_MOVE_PKTHDR")]
    pub fn move_header_from(&mut self, from: &mut Mbuf) {
        self.copy_header_from(from);
        from.reset_header();
    }

    /// Says that the packet goes on to another connection: clears what each segment's header says, as
    /// any may head a packet there, and counts one more of [`Segment::hops`]. Those stop at 255.
    ///
    /// Packets that run in a circle are known by it.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::bsd(64, 8)?;
    /// use mbuf::Packet;
    /// let mut m = set.copy_in(b"to and fro", 0)?;
    /// m.set_vlan(Some(7));
    /// m.pass_on();
    /// m.pass_on();
    /// assert_eq!((m.first().hops(), m.vlan()), (2, None));
    /// assert_eq!(m.ref_copy(3, 3, &set)?.first().hops(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`Segment::hops`]: crate::Segment::hops
    #[doc(alias = "ph_loopcnt")]
    pub fn pass_on(&mut self) {
        self.for_each_segment(|mut seg| {
            let fields = seg.fields();
            fields.flags.remove(OF_PACKET);
            fields.hops = fields.hops.saturating_add(1);
            true
        });
    }

    /// Of the first segment.
    #[inline]
    pub(crate) fn set_hops(&mut self, hops: u8) {
        self.first_raw().fields().hops = hops;
    }

    /// Clears what the header says of the packet; lengths, storage and hops stay.
    #[doc(alias = "m_resethdr")]
    pub fn reset_header(&mut self) {
        self.first_raw().fields().flags.remove(OF_PACKET);
    }

    /// Fills all storage of the packet with zeros, not the data only, where it is not shared.
    /// Lengths stay. Returns how many segments were left as they were, because they are shared.
    #[doc(alias = "m_zero")]
    pub fn zero(&mut self) -> usize {
        let mut left = 0;
        self.for_each_segment(|mut seg| {
            if !seg.view().is_writable() {
                left += 1;
                return true;
            }
            let fields = seg.fields();
            let (off, len) = (fields.off, fields.len);
            (fields.off, fields.len) = (0, fields.capacity);
            if let Some(storage) = reborrow(&mut seg).into_data() {
                storage.fill(0);
            }
            let fields = seg.fields();
            (fields.off, fields.len) = (off, len);
            true
        });
        left
    }
}
