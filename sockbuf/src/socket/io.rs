//! A stream socket as `std` has readers and writers.

use std::io::{IoSlice, IoSliceMut, Read, Result, Write};

use super::Socket;
use super::flags::{ReceiveFlags, SendFlags};

/// Waits, unless the socket does not.
///
/// ```
/// use std::io::Read;
/// use mbuf::BufferSet;
/// use sockbuf::{Side, Socket};
/// let set = BufferSet::bsd(64, 8)?;
/// let socket = Socket::new(&set, (Side::sending(1000), Side::receiving(1000)), ());
/// let end = socket.protocol_end();
/// end.append(set.copy_in(b"hello", 0)?);
/// end.peer_closed();
/// let mut text = String::new();
/// (&socket).read_to_string(&mut text)?;
/// assert_eq!(text, "hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Read for &Socket {
    fn read(&mut self, room: &mut [u8]) -> Result<usize> {
        Ok(self.receive(room, ReceiveFlags::empty())?)
    }

    fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> Result<usize> {
        Ok(self.receive_vectored(slices, ReceiveFlags::empty())?)
    }
}

/// Waits until all is in the send buffer, unless the socket does not wait. There is nothing to flush.
impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        Ok(self.send(bytes, SendFlags::empty())?)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> Result<usize> {
        Ok(self.send_vectored(slices, SendFlags::empty())?)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Read for Socket {
    fn read(&mut self, room: &mut [u8]) -> Result<usize> {
        (&*self).read(room)
    }

    fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> Result<usize> {
        (&*self).read_vectored(slices)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        (&*self).write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> Result<usize> {
        (&*self).write_vectored(slices)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
