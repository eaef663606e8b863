//! Packets that are made with something in them: headroom, zeros, bytes.

use crate::chain::Chain;
use crate::error::AllocError;
use crate::handle::Mbuf;
use crate::packet::Packet;
use crate::set::BufferSet;

impl BufferSet {
    /// An empty header mbuf with `lead` bytes of headroom and at least `len` bytes behind them.
    ///
    /// # Errors
    /// [`AllocError`]; nothing is taken then.
    #[doc(alias = "rte_pktmbuf_headroom")]
    pub fn header_with_lead(&self, lead: usize, len: usize) -> Result<Mbuf, AllocError> {
        let mut m = self.header_with(lead.saturating_add(len))?;
        let led = m.set_lead(lead).is_ok();
        debug_assert!(led, "room for {lead} bytes was asked for");
        Ok(m)
    }

    /// A plain mbuf whose room is full of zeros.
    ///
    /// # Errors
    /// [`AllocError::Exhausted`].
    #[doc(alias = "m_getclr")]
    pub fn plain_zeroed(&self) -> Result<Mbuf, AllocError> {
        let mut m = self.plain()?;
        let room = m.capacity();
        if let Ok(data) = m.append(room) {
            data.fill(0);
        }
        Ok(m)
    }

    /// A packet of `bytes` with `lead` bytes of headroom: in one storage, or, when there is no
    /// such cluster, in as many mbufs as it takes. No bytes give an empty packet.
    ///
    /// # Errors
    /// [`AllocError`]; nothing is taken then.
    ///
    /// ```
    /// # let set = mbuf::BufferSet::bsd(64, 8)?;
    /// use mbuf::Packet;
    /// let m = set.copy_in(b"from the device", 16)?;
    /// assert_eq!((m.first().headroom(), m.to_vec().as_slice()), (16, &b"from the device"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "m_devget")]
    pub fn copy_in(&self, bytes: &[u8], lead: usize) -> Result<Mbuf, AllocError> {
        match self.header_with_lead(lead, bytes.len()) {
            Ok(mut m) => {
                fill(&mut m, bytes);
                Ok(m)
            }
            Err(e) if bytes.is_empty() => Err(e),
            Err(_) => self.copy_in_small(bytes, lead),
        }
    }

    #[cold]
    fn copy_in_small(&self, mut bytes: &[u8], lead: usize) -> Result<Mbuf, AllocError> {
        let mut chain = Chain::new();
        let mut m = self.header_with_lead(lead, 0)?;
        loop {
            bytes = &bytes[fill(&mut m, bytes)..];
            chain.push_back(m);
            if bytes.is_empty() {
                break;
            }
            m = self.plain()?;
        }
        match chain.into_packet() {
            Some(packet) => Ok(packet),
            None => self.header(),
        }
    }
}

/// Copies as many of `bytes` as fit behind the data of `m`; how many that were.
fn fill(m: &mut Mbuf, bytes: &[u8]) -> usize {
    let n = bytes.len().min(m.first().tailroom());
    if let Ok(room) = m.append(n) {
        room.copy_from_slice(&bytes[..n]);
    }
    n
}
