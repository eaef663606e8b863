//! One direction of a socket: a buffer, and when there is something in it for those who wait.

use mbuf::Mbuf;

use crate::buf::SockBuf;
use crate::records::RecordBuf;
use crate::side::Side;
use crate::splice::Spliced;
use crate::wait::Available;

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::SockBuf {}
    impl Sealed for crate::RecordBuf {}
}

/// What a socket keeps its bytes in: [`SockBuf`] or [`RecordBuf`].
pub trait Buffer: sealed::Sealed + Send + Sync + Sized + 'static {
    /// An empty one with these limits.
    fn with_side(side: Side) -> Self;
    /// The limits, and what else was said of this side.
    fn side(&self) -> &Side;
    /// The same, to be changed.
    fn side_mut(&mut self) -> &mut Side;
    /// Bytes that may still be added.
    fn space(&self) -> isize;
    /// Whether there is nothing in it.
    fn is_empty(&self) -> bool;
    /// Bytes that a reader may be told of; `usize::MAX` when there is what ends any wait.
    fn readable(&self) -> usize;
    /// Removes everything.
    fn take_all(&mut self) -> Option<Mbuf>;
    /// Adds what a protocol received.
    fn append(&mut self, packet: Mbuf);
}

impl Buffer for SockBuf {
    fn with_side(side: Side) -> Self {
        Self::with_side(side)
    }
    fn side(&self) -> &Side {
        self.side()
    }
    fn side_mut(&mut self) -> &mut Side {
        self.side_mut()
    }
    fn space(&self) -> isize {
        self.space()
    }
    fn is_empty(&self) -> bool {
        self.is_empty()
    }
    /// Nobody waits for what is beyond an urgent byte, or for more than the buffer can hold.
    fn readable(&self) -> usize {
        let marked = self
            .urgent()
            .is_some_and(|before| before > 0 && before <= self.len());
        if marked || (self.space() <= 0 && !self.is_empty()) {
            return usize::MAX;
        }
        self.len()
    }
    fn take_all(&mut self) -> Option<Mbuf> {
        self.take_all()
    }
    fn append(&mut self, packet: Mbuf) {
        self.append_packed(packet);
    }
}

impl Buffer for RecordBuf {
    fn with_side(side: Side) -> Self {
        Self::with_side(side)
    }
    fn side(&self) -> &Side {
        self.side()
    }
    fn side_mut(&mut self) -> &mut Side {
        self.side_mut()
    }
    fn space(&self) -> isize {
        self.space()
    }
    fn is_empty(&self) -> bool {
        self.is_empty()
    }
    /// A record without a byte is one too.
    fn readable(&self) -> usize {
        if self.is_empty() { 0 } else { usize::MAX }
    }
    fn take_all(&mut self) -> Option<Mbuf> {
        self.take_all()
    }
    /// As a record of its own.
    fn append(&mut self, packet: Mbuf) {
        self.append_record(packet);
    }
}

/// What the user appends to and the protocol sends from.
#[derive(Debug)]
pub(crate) struct Sending<B>(pub(crate) B);

/// What the protocol appends to and the user reads from.
#[derive(Debug)]
pub(crate) struct Receiving<B> {
    pub(crate) buf: B,
    pub(crate) urgent: Urgent,
    /// Where what is received goes, rather than to the user.
    pub(crate) spliced: Spliced,
}

/// Where the byte is that was announced as urgent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Urgent {
    /// In the stream, among the others; or it was read.
    #[default]
    #[doc(alias = "SO_OOBINLINE")]
    Inline,
    /// Taken out of the stream, and not there yet.
    Awaited,
    /// Taken out of the stream, this one.
    Aside(u8),
}

impl<B: Buffer> Available for Sending<B> {
    /// Whoever waits for space goes on in an empty buffer, whatever his low-water mark.
    fn available(&self) -> usize {
        if self.0.side().is_shut() || self.0.is_empty() {
            return usize::MAX;
        }
        usize::try_from(self.0.space()).unwrap_or(0)
    }
}

impl<B: Buffer> Available for Receiving<B> {
    fn available(&self) -> usize {
        if self.buf.side().is_shut() {
            return usize::MAX;
        }
        self.buf.readable()
    }
}
