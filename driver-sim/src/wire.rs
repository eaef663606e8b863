//! Where finished frames go: collected, handed to a closure, put in order per stream.

use std::collections::BTreeMap;

use crate::assemble::Assembler;
use crate::header::{FlowKey, Link, TcpSegment};

/// The far end of the wire: takes frames as they leave the hardware.
pub trait FrameSink {
    /// Takes one frame, from its first header byte to its last payload byte.
    fn frame(&mut self, frame: &[u8]);
}

impl<S: FrameSink + ?Sized> FrameSink for &mut S {
    fn frame(&mut self, frame: &[u8]) {
        (**self).frame(frame);
    }
}

impl<S: FrameSink + ?Sized> FrameSink for Box<S> {
    fn frame(&mut self, frame: &[u8]) {
        (**self).frame(frame);
    }
}

/// Keeps every frame.
#[derive(Debug, Default, Clone)]
pub struct Collect {
    /// The frames so far, oldest first.
    pub frames: Vec<Vec<u8>>,
}

impl FrameSink for Collect {
    fn frame(&mut self, frame: &[u8]) {
        self.frames.push(frame.to_vec());
    }
}

/// Calls a closure with each frame.
///
/// ```
/// use driver_sim::{Each, FrameSink};
///
/// let mut bytes = 0;
/// Each(|frame: &[u8]| bytes += frame.len()).frame(&[0; 60]);
/// assert_eq!(bytes, 60);
/// ```
#[derive(Debug)]
pub struct Each<F>(pub F);

impl<F: FnMut(&[u8])> FrameSink for Each<F> {
    fn frame(&mut self, frame: &[u8]) {
        (self.0)(frame);
    }
}

/// Hands each frame to both.
#[derive(Debug)]
pub struct Tee<A, B>(pub A, pub B);

impl<A: FrameSink, B: FrameSink> FrameSink for Tee<A, B> {
    fn frame(&mut self, frame: &[u8]) {
        self.0.frame(frame);
        self.1.frame(frame);
    }
}

/// Puts the TCP payload of frames back in order, per direction of each connection.
///
/// A receiver at its simplest: frames with a wrong checksum are counted and not used; bytes that
/// come again are used once; what lies beyond a gap waits. A stream starts behind its SYN, else
/// where [`start`](Self::start) said, else with its first frame.
///
/// ```
/// use driver_sim::{FrameSink, Link, Reassembler};
///
/// let mut wire = Reassembler::new(Link::Raw);
/// wire.frame(b"no IP packet");
/// assert_eq!((wire.frames(), wire.not_tcp()), (1, 1));
/// ```
#[derive(Debug)]
pub struct Reassembler {
    link: Link,
    flows: BTreeMap<FlowKey, Flow>,
    frames: u64,
    bad: u64,
    not_tcp: u64,
}

#[derive(Debug)]
struct Flow {
    /// Sequence number of the stream's first byte.
    start: u32,
    bytes: Assembler,
}

impl Reassembler {
    /// For frames that start with `link`.
    pub fn new(link: Link) -> Self {
        Reassembler {
            link,
            flows: BTreeMap::new(),
            frames: 0,
            bad: 0,
            not_tcp: 0,
        }
    }

    /// Says that the stream of `key` begins with sequence number `seq`, and forgets what of it
    /// came before.
    pub fn start(&mut self, key: FlowKey, seq: u32) {
        let bytes = Assembler::default();
        self.flows.insert(key, Flow { start: seq, bytes });
    }

    /// Frames taken.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// TCP frames with a wrong checksum or cut short.
    pub fn bad(&self) -> u64 {
        self.bad
    }

    /// Frames that are not TCP.
    pub fn not_tcp(&self) -> u64 {
        self.not_tcp
    }

    /// What arrived of one stream, up to its first gap, and how often bytes came again.
    pub fn stream(&self, key: &FlowKey) -> Option<&Assembler> {
        self.flows.get(key).map(|flow| &flow.bytes)
    }

    /// All streams, ordered by addresses and ports.
    pub fn streams(&self) -> impl Iterator<Item = (FlowKey, &Assembler)> {
        self.flows.iter().map(|(key, flow)| (*key, &flow.bytes))
    }

    fn take(&mut self, segment: &TcpSegment<'_>) {
        if segment.is_syn() {
            self.start(segment.key, segment.seq.wrapping_add(1));
        }
        let flow = self.flows.entry(segment.key).or_insert_with(|| Flow {
            start: segment.seq,
            bytes: Assembler::default(),
        });
        let first = segment.seq.wrapping_add(u32::from(segment.is_syn()));
        flow.take(first, segment.payload);
    }
}

impl Flow {
    fn take(&mut self, seq: u32, payload: &[u8]) {
        // Relative to the next byte expected, a sequence number is at most 2^31 away.
        let have = self.bytes.bytes().len() as u64;
        let next = self.start.wrapping_add(have as u32);
        let at = have as i64 + i64::from(seq.wrapping_sub(next) as i32);
        let early = usize::try_from(-at).unwrap_or(0).min(payload.len());
        self.bytes.insert(at.max(0) as u64, &payload[early..]);
    }
}

impl FrameSink for Reassembler {
    fn frame(&mut self, frame: &[u8]) {
        self.frames += 1;
        match TcpSegment::parse(frame, self.link) {
            Err(_) => self.not_tcp += 1,
            Ok(segment) if !segment.checksums_good() => self.bad += 1,
            Ok(segment) => self.take(&segment),
        }
    }
}
