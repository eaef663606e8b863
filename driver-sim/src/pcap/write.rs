//! A capture file as the far end of the wire.

use std::io::{self, Write};
use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, PcapError as FileError};

use crate::header::Link;
use crate::wire::FrameSink;

/// Writing a capture file failed.
#[derive(Debug, thiserror::Error)]
#[error("capture file not written: {lost} frames lost, first error: {source}")]
pub struct WriteError {
    /// Frames that are not in the file.
    pub lost: u64,
    /// What went wrong first.
    pub source: io::Error,
}

/// Writes every frame that it is handed into a capture file.
///
/// Time stamps count one microsecond per frame from 0, so that two runs with the same traffic
/// give the same file.
///
/// ```
/// use driver_sim::{FrameSink, Link, pcap::PcapFile};
///
/// let mut file = PcapFile::new(Vec::new(), Link::Raw)?;
/// file.frame(&[0x45; 40]);
/// let bytes = file.finish()?;
/// assert_eq!(bytes.len(), 24 + 16 + 40);
/// # Ok::<(), driver_sim::pcap::WriteError>(())
/// ```
#[derive(Debug)]
pub struct PcapFile<W: Write> {
    writer: PcapWriter<W>,
    frames: u64,
    lost: u64,
    error: Option<io::Error>,
}

/// Longest frame that the file announces; TSO left off, a frame may be as long as an IP packet.
const SNAP_LENGTH: u32 = 262_144;

impl<W: Write> PcapFile<W> {
    /// Writes the file header. `link` says what the frames start with: [`Link::Raw`] (link type
    /// 101) when the stack sends bare IP packets, [`Link::Ethernet`] behind [`crate::ether`].
    ///
    /// # Errors
    ///
    /// [`WriteError`] with 0 frames lost when the header cannot be written.
    pub fn new(to: W, link: Link) -> Result<Self, WriteError> {
        let header = PcapHeader {
            snaplen: SNAP_LENGTH,
            datalink: match link {
                Link::Raw => DataLink::RAW,
                Link::Ethernet => DataLink::ETHERNET,
                Link::LinuxSll => DataLink::LINUX_SLL,
                Link::LinuxSll2 => DataLink::LINUX_SLL2,
            },
            ..PcapHeader::default()
        };
        let writer = PcapWriter::with_header(to, header).map_err(|e| WriteError {
            lost: 0,
            source: into_io(e),
        })?;
        Ok(Self {
            writer,
            frames: 0,
            lost: 0,
            error: None,
        })
    }

    /// Frames in the file.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Ends the file and gives back what was written to, flushed.
    ///
    /// # Errors
    ///
    /// [`WriteError`] when any frame, or the last flush, failed.
    pub fn finish(self) -> Result<W, WriteError> {
        let mut to = self.writer.into_writer();
        let flushed = to.flush().err();
        match self.error.or(flushed) {
            Some(source) => Err(WriteError {
                lost: self.lost,
                source,
            }),
            None => Ok(to),
        }
    }

    fn write(&mut self, frame: &[u8]) -> Result<(), io::Error> {
        let length = u32::try_from(frame.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "frame too long"))?;
        let stamp = Duration::from_micros(self.frames);
        self.writer
            .write_packet(&PcapPacket::new(stamp, length, frame))
            .map_err(into_io)?;
        Ok(())
    }
}

impl<W: Write> FrameSink for PcapFile<W> {
    /// Once a frame could not be written whole the file is damaged behind it, so later frames are
    /// only counted as lost; [`finish`](Self::finish) says so.
    fn frame(&mut self, frame: &[u8]) {
        if self.error.is_none() {
            match self.write(frame) {
                Ok(()) => {
                    self.frames += 1;
                    return;
                }
                Err(e) => self.error = Some(e),
            }
        }
        self.lost += 1;
    }
}

fn into_io(e: FileError) -> io::Error {
    match e {
        FileError::IoError(e) => e,
        other => io::Error::other(other),
    }
}
