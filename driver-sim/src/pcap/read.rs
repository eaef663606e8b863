//! The payload of every TCP stream in a capture, each byte once and in order.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use pcap_file::PcapError as FileError;
use pcap_file::pcap::PcapReader;

use crate::assemble::Assembler;
use crate::header::{FlowKey, Link, TcpSegment};

/// Why a capture could not be read.
#[derive(Debug, thiserror::Error)]
pub enum PcapError {
    /// The file cannot be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It does not start with a capture header.
    #[error("not a capture file: {0}")]
    Header(#[source] FileError),
    /// A frame's record is damaged or cut off.
    #[error("frame {frame} cannot be read: {source}")]
    Frame {
        /// Which frame, the first being 1.
        frame: usize,
        /// What is wrong with it.
        source: FileError,
    },
    /// Frames of a link layer that is not known here.
    #[error("link type {number} is neither Ethernet nor raw IP nor Linux cooked")]
    LinkType {
        /// The capture's link type number.
        number: u32,
    },
}

/// One direction of one TCP connection, as a receiver would see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// Who sends to whom.
    pub key: FlowKey,
    /// The bytes from the start (behind the SYN; without one the lowest sequence number seen)
    /// up to the first gap, each once.
    pub payload: Vec<u8>,
    /// Segments with payload that the capture holds.
    pub segments: usize,
    /// Bytes that came again.
    pub repeated: u64,
    /// Bytes captured beyond a gap and therefore not in `payload`.
    pub beyond_gap: u64,
}

/// Reads a file as [`tcp_streams_in`] does.
///
/// # Errors
///
/// [`PcapError`], also for a file that cannot be opened.
///
/// ```no_run
/// for stream in driver_sim::pcap::tcp_streams("capture.pcap")? {
///     println!("{}: {} bytes", stream.key, stream.payload.len());
/// }
/// # Ok::<(), driver_sim::pcap::PcapError>(())
/// ```
pub fn tcp_streams(path: impl AsRef<Path>) -> Result<Vec<Stream>, PcapError> {
    let path = path.as_ref();
    let file = File::open(path).map_err(|source| PcapError::Open {
        path: path.to_owned(),
        source,
    })?;
    tcp_streams_in(BufReader::new(file))
}

/// The TCP streams of a capture (classic pcap, either byte order, micro- or nanoseconds), in the
/// order of their first segments.
///
/// Frames that are not TCP, IP fragments, and frames whose headers are cut off are passed over.
/// A SYN with another sequence number on the same addresses and ports starts a new stream.
/// Streams without payload are left out.
///
/// # Errors
///
/// [`PcapError`] when the file itself is damaged; nothing in a frame is an error.
pub fn tcp_streams_in(reader: impl Read) -> Result<Vec<Stream>, PcapError> {
    let mut reader = PcapReader::new(reader).map_err(PcapError::Header)?;
    let number = u32::from(reader.header().datalink);
    let link = Link::from_linktype(number).ok_or(PcapError::LinkType { number })?;
    let mut flows = Flows::default();
    let mut frame = 0;
    // Raw records: a capture whose snap length is smaller than its frames is common enough.
    while let Some(next) = reader.next_raw_packet() {
        frame += 1;
        let record = next.map_err(|source| PcapError::Frame { frame, source })?;
        if let Ok(segment) = TcpSegment::parse(&record.data, link) {
            flows.take(&segment);
        }
    }
    Ok(flows.finish())
}

#[derive(Default)]
struct Flows {
    all: Vec<Flow>,
    /// Index of the newest stream of each direction.
    newest: HashMap<FlowKey, usize>,
}

impl Flows {
    fn take(&mut self, segment: &TcpSegment<'_>) {
        let known = self.newest.get(&segment.key).copied();
        let index = match known {
            Some(i) if !self.all[i].restarted_by(segment) => i,
            _ => {
                self.all.push(Flow::new(segment));
                self.newest.insert(segment.key, self.all.len() - 1);
                self.all.len() - 1
            }
        };
        self.all[index].take(segment);
    }

    fn finish(self) -> Vec<Stream> {
        self.all
            .into_iter()
            .filter(|flow| !flow.pieces.is_empty())
            .map(Flow::finish)
            .collect()
    }
}

/// Segments of one stream as they came; put in order at the end, when the start is known.
struct Flow {
    key: FlowKey,
    isn: Option<u32>,
    last_seq: u32,
    /// `last_seq`, counted without wrapping.
    last: i64,
    pieces: Vec<(i64, Vec<u8>)>,
    /// Offset of the first byte behind the SYN.
    start: Option<i64>,
}

impl Flow {
    fn new(segment: &TcpSegment<'_>) -> Self {
        Flow {
            key: segment.key,
            isn: None,
            last_seq: segment.seq,
            last: 0,
            pieces: Vec::new(),
            start: None,
        }
    }

    fn restarted_by(&self, segment: &TcpSegment<'_>) -> bool {
        segment.is_syn() && self.isn.is_some_and(|isn| isn != segment.seq)
    }

    fn take(&mut self, segment: &TcpSegment<'_>) {
        // Sequence numbers wrap; their distance to the previous one is a signed 32-bit number.
        let step = segment.seq.wrapping_sub(self.last_seq) as i32;
        self.last += i64::from(step);
        self.last_seq = segment.seq;
        let syn = i64::from(segment.is_syn());
        if segment.is_syn() {
            self.isn = Some(segment.seq);
            self.start = Some(self.last + 1);
        }
        if !segment.payload.is_empty() {
            self.pieces
                .push((self.last + syn, segment.payload.to_vec()));
        }
    }

    fn finish(self) -> Stream {
        let lowest = self.pieces.iter().map(|(at, _)| *at).min().unwrap_or(0);
        let start = self.start.unwrap_or(lowest);
        let mut bytes = Assembler::default();
        for (at, piece) in &self.pieces {
            // Keep-alive probes repeat the byte before the stream's first.
            let early = usize::try_from(start - at).unwrap_or(0).min(piece.len());
            bytes.insert((at + early as i64 - start).max(0) as u64, &piece[early..]);
        }
        Stream {
            key: self.key,
            segments: self.pieces.len(),
            repeated: bytes.repeated(),
            beyond_gap: bytes.beyond_gap(),
            payload: bytes.into_bytes(),
        }
    }
}
