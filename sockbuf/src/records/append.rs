//! Ways into a record buffer.

use mbuf::{BufferSet, Kind, Mbuf, Packet};

use super::{RecordBuf, is_aside};
use crate::compress::compress;
use crate::error::AppendError;

impl RecordBuf {
    /// Adds a packet to the last record; or begins a new one, if the sender's record ends there or
    /// there is none yet. Small mbufs are copied where there is room, as
    /// [`SockBuf::append_packed`](crate::SockBuf::append_packed) has it. A packet without a byte is freed
    /// unless it says that the sender's record ends.
    ///
    /// Does not look at the limits: whoever appends has asked for [`space`](Self::space).
    #[doc(alias = "sbappend")]
    pub fn append(&mut self, packet: Mbuf) {
        if self.chain.last().is_some_and(|last| last.is_eor()) {
            return self.append_record(packet);
        }
        self.count_aside(&packet);
        compress(&mut self.chain, packet, true);
        self.check("append");
    }

    /// Adds a packet as a new record, also if it is empty. Does not look at the limits.
    ///
    /// Its first mbuf is linked as it is; those behind it are copied where there is room.
    #[doc(alias = "sbappendrecord")]
    pub fn append_record(&mut self, packet: Mbuf) {
        self.begin_record();
        self.count_aside(&packet);
        let (mut first, behind) = packet.split_first();
        let moves = first.first().is_eor() && behind.is_some();
        if moves {
            first.set_eor(false);
        }
        self.chain.push_back(first);
        if let Some(behind) = behind {
            compress(&mut self.chain, behind, true);
        }
        if moves {
            self.chain.set_eor();
        }
        self.check("append_record");
    }

    /// Adds a record of an address, control messages and data.
    ///
    /// # Errors
    /// [`AppendError`]: no space for the sum, an address longer than a plain mbuf, or no mbuf for it.
    #[doc(alias = "sbappendaddr")]
    pub fn append_address(
        &mut self,
        address: &[u8],
        data: Option<Mbuf>,
        control: Option<Mbuf>,
        set: &BufferSet,
    ) -> Result<(), AppendError> {
        let parts = [&control, &data].into_iter().flatten();
        self.needs(address.len() + parts.map(Packet::pkt_len).sum::<usize>())?;
        let (asked, max) = (address.len(), set.plain_room());
        if asked > max {
            return Err(AppendError::AddressTooLong { asked, max });
        }
        let mut from = set.plain()?;
        // It has room for as much.
        if let Ok(room) = from.append(asked) {
            room.copy_from_slice(address);
        }
        from.set_kind(Kind::Address);
        self.push_parts([Some(from), as_control(control), data]);
        self.check("append_address");
        Ok(())
    }

    /// Adds a record of control messages and data.
    ///
    /// # Errors
    /// [`AppendError::NoSpace`] for the sum.
    #[doc(alias = "sbappendcontrol")]
    pub fn append_control(&mut self, control: Mbuf, data: Option<Mbuf>) -> Result<(), AppendError> {
        self.needs(control.pkt_len() + data.as_ref().map_or(0, Packet::pkt_len))?;
        self.push_parts([as_control(Some(control)), data, None]);
        self.check("append_control");
        Ok(())
    }

    fn needs(&self, asked: usize) -> Result<(), AppendError> {
        let space = self.space();
        if isize::try_from(asked).is_ok_and(|asked| asked <= space) {
            return Ok(());
        }
        Err(AppendError::NoSpace { asked, space })
    }

    /// Links the parts as one record.
    fn push_parts(&mut self, parts: [Option<Mbuf>; 3]) {
        self.begin_record();
        for part in parts.into_iter().flatten() {
            self.count_aside(&part);
            self.chain.push_back(part);
        }
    }

    /// What is linked next is not of the last record.
    fn begin_record(&mut self) {
        self.complete += usize::from(!self.chain.is_empty());
        self.chain.end_record();
    }

    /// A packet is about to be linked or copied.
    fn count_aside(&mut self, packet: &Mbuf) {
        let aside = packet.segments().filter(|&seg| is_aside(seg));
        self.aside += aside.map(|seg| seg.len()).sum::<usize>();
    }
}

/// Control messages, whatever their mbufs said of themselves.
fn as_control(packet: Option<Mbuf>) -> Option<Mbuf> {
    let mut packet = packet;
    if let Some(packet) = &mut packet {
        packet.set_kind(Kind::Control);
    }
    packet
}
