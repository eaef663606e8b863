//! The urgent mark: a place in the stream that readers are told of.
//!
//! It is kept as a position among all bytes that ever passed, so that dropping bytes has nothing to do for it.

use super::SockBuf;

impl SockBuf {
    /// Puts the mark before the byte at `off`, which may be beyond what has arrived.
    ///
    /// ```
    /// use mbuf::BufferSet;
    /// use sockbuf::SockBuf;
    /// let set = BufferSet::bsd(64, 8)?;
    /// let mut sb = SockBuf::new(65536);
    /// sb.write(b"plain!urgent", &set)?;
    /// sb.set_urgent(6);
    /// assert_eq!(sb.until_mark(100), 6);
    /// sb.drop_front(6)?;
    /// assert!(sb.at_mark());
    /// assert_eq!(sb.until_mark(100), 100, "a read that begins at the mark goes on");
    /// sb.drop_front(1)?;
    /// assert_eq!((sb.at_mark(), sb.urgent()), (false, None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "so_oobmark")]
    pub fn set_urgent(&mut self, off: usize) {
        self.urgent = self.chain.position().checked_add(off);
    }

    /// Takes the mark away.
    pub fn clear_urgent(&mut self) {
        self.urgent = None;
    }

    /// Bytes in front of the mark; `None` when there is no mark, or its byte is gone.
    #[doc(alias = "so_oobmark")]
    #[must_use]
    pub fn urgent(&self) -> Option<usize> {
        self.urgent?.checked_sub(self.chain.position())
    }

    /// Whether the next byte is the one at the mark.
    #[doc(alias = "SS_RCVATMARK")]
    #[doc(alias = "SIOCATMARK")]
    #[must_use]
    pub fn at_mark(&self) -> bool {
        self.urgent() == Some(0)
    }

    /// How many of `max` bytes one read may take: it stops at the mark, unless it begins there.
    #[must_use]
    pub fn until_mark(&self, max: usize) -> usize {
        match self.urgent() {
            Some(before) if before > 0 => max.min(before),
            _ => max,
        }
    }
}
