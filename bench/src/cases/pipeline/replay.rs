//! The capture once through everything, with a device that makes real frames, and the digests of what
//! went in and what came out.

use super::capture::{Capture, FIRST};
use crate::cases::send_path::{Input, Local, Nic, On, lane_of, nic_config};
use driver_sim::pcap::PcapFile;
use driver_sim::{FlowKey, FrameSink, Hardware, Link, Reassembler};
use mbuf::FreeStrategy;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// What became of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Who sends to whom.
    pub key: FlowKey,
    /// Bytes of payload that went in.
    pub bytes: usize,
    /// SHA-256 of what went in.
    pub sent: [u8; 32],
    /// SHA-256 of what was put together from the frames on the wire.
    pub received: [u8; 32],
}

/// Sends the streams of the built-in capture by `policy` through a device that cuts TSO packets and
/// makes checksums. With `file`, writes the frames there as a capture of link type "raw",
/// replacing what the file held.
///
/// Frames with bad checksums, packets that the device refused, buffers that did not come back are
/// errors; that the bytes are the same is for the caller to look at.
///
/// ```
/// for stream in bench::cases::pipeline::replay("threshold5", None)? {
///     assert_eq!(stream.sent, stream.received, "{}", stream.key);
/// }
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// What went wrong, in plain words.
pub fn replay(policy: &str, file: Option<&Path>) -> Result<Vec<Replayed>, String> {
    let capture = Capture::read()?;
    let wire = Wire::new(&capture, file)?;
    let wire = send(policy, &capture, wire)?;
    let streams = wire.finish()?;
    let replayed = capture.streams.iter().map(|stream| {
        let received = streams.stream(&stream.key).map_or(&[][..], |s| s.bytes());
        Replayed {
            key: stream.key,
            bytes: stream.payload.len(),
            sent: Sha256::digest(&stream.payload).into(),
            received: Sha256::digest(received).into(),
        }
    });
    Ok(replayed.collect())
}

fn send(policy: &str, capture: &Capture, wire: Wire) -> Result<Wire, String> {
    let set = capture.set(1).map_err(|e| e.to_string())?;
    let mut nic = Local::new(nic_config(None), Hardware::new(wire))?;
    let steps = capture.steps();
    let mut lane = lane_of(policy, &capture.connections())
        .ok_or_else(|| format!("no policy is called {policy}"))?;
    lane.prepare(capture, &set, 0)?;
    let on = On {
        steps: &steps,
        nic: &mut nic,
        set: &set,
        strategy: FreeStrategy::Direct,
        stamp: false,
    };
    let pass = lane.pass(0, on)?;
    lane.close();
    nic.close()?;
    if pass.bytes != capture.bytes() {
        return Err(format!("{} bytes sent of {}", pass.bytes, capture.bytes()));
    }
    match set.in_use() {
        0 => Ok(nic.into_backend().into_sink()),
        out => Err(format!("{out} objects are not back in their pools")),
    }
}

/// The far end: puts streams together, and writes a file if there is one.
struct Wire {
    streams: Reassembler,
    file: Option<PcapFile<BufWriter<File>>>,
}

impl Wire {
    fn new(capture: &Capture, file: Option<&Path>) -> Result<Self, String> {
        let mut streams = Reassembler::new(Link::Raw);
        for stream in &capture.streams {
            streams.start(stream.key, FIRST.0);
        }
        let create = |path: &Path| {
            let to = File::create(path).map_err(|e| format!("{}: {e}", path.display()))?;
            PcapFile::new(BufWriter::new(to), Link::Raw).map_err(|e| e.to_string())
        };
        Ok(Wire {
            streams,
            file: file.map(create).transpose()?,
        })
    }

    fn finish(self) -> Result<Reassembler, String> {
        if let Some(file) = self.file {
            file.finish().map_err(|e| e.to_string())?;
        }
        match (self.streams.bad(), self.streams.not_tcp()) {
            (0, 0) => Ok(self.streams),
            (bad, not_tcp) => Err(format!(
                "of {} frames {bad} have a bad checksum and {not_tcp} are not TCP",
                self.streams.frames()
            )),
        }
    }
}

impl FrameSink for Wire {
    fn frame(&mut self, frame: &[u8]) {
        self.streams.frame(frame);
        if let Some(file) = &mut self.file {
            file.frame(frame);
        }
    }
}
