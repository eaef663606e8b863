//! The capture as the input of a pass.

use crate::cases::send_path::{Buffers, Input, MSS, Step, WINDOW, fill, tcb};
use driver_sim::pcap::{Stream, tcp_streams_in};
use mbuf::{AllocError, BufferSet, CreateError};
use std::net::SocketAddr;
use tcp_output::{Endpoints, Seq, Tcb};

/// In the program, so that it runs anywhere.
const BYTES: &[u8] = include_bytes!("../../../data/linux-loss-sack-ts-ws.pcap");

/// Frames of a step: a full TSO packet.
const FRAMES: usize = 45;

/// Sequence number of each stream's first byte: it wraps on the way.
pub(super) const FIRST: Seq = Seq(u32::MAX - 200_000);

/// The streams of the capture, in both directions.
pub(super) struct Capture {
    pub(super) streams: Vec<Stream>,
    tcbs: Vec<Tcb>,
}

impl Capture {
    /// Reads it.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(super) fn read() -> Result<Self, String> {
        let streams = tcp_streams_in(BYTES).map_err(|e| e.to_string())?;
        let tcbs = streams.iter().enumerate().map(connection);
        Ok(Capture {
            tcbs: tcbs.collect::<Result<_, _>>()?,
            streams,
        })
    }

    fn frames(&self, i: usize) -> usize {
        self.streams[i].payload.len().div_ceil(MSS)
    }

    /// Pools for the receive rings of `lanes` policies, as much again in the sockets, what is in
    /// flight, and all of it twice, since a quarter may lie in the cache of either core. On huge
    /// pages where there are some.
    pub(super) fn set(&self, lanes: usize) -> Result<BufferSet, CreateError> {
        let all: usize = (0..self.streams.len()).map(|i| self.frames(i)).sum();
        let flying = (WINDOW + 2) * (FRAMES + 2);
        let clusters = lanes * all + flying;
        BufferSet::bsd_builder(2 * (clusters + flying), 4 * (WINDOW + 2))
            .class(2048, 2 * clusters)
            .configure(|pool| pool.huge_pages(true))
            .build()
    }
}

/// A connection with a stream's addresses.
fn connection((i, stream): (usize, &Stream)) -> Result<Tcb, String> {
    let (SocketAddr::V4(src), SocketAddr::V4(dst)) = (stream.key.src, stream.key.dst) else {
        return Err(format!("{} is not over IPv4", stream.key));
    };
    let mut tcb = tcb(i, FIRST).map_err(|e| e.to_string())?;
    tcb.ends = Endpoints::V4 {
        source: *src.ip(),
        dest: *dst.ip(),
        source_port: src.port(),
        dest_port: dst.port(),
    };
    Ok(tcb)
}

impl Input for Capture {
    /// The streams in turn, as long as they have frames.
    fn steps(&self) -> Vec<Step> {
        let mut left: Vec<usize> = (0..self.streams.len()).map(|i| self.frames(i)).collect();
        // The longest first, so that the send that is looked at is a full one.
        let mut order: Vec<usize> = (0..left.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(left[i]));
        let mut steps = Vec::new();
        while left.iter().any(|&n| n > 0) {
            for &conn in &order {
                let frames = left[conn].min(FRAMES);
                left[conn] -= frames;
                if frames > 0 {
                    steps.push(Step { conn, frames });
                }
            }
        }
        steps
    }

    fn connections(&self) -> Vec<Tcb> {
        self.tcbs.clone()
    }

    fn ring(&self, i: usize) -> usize {
        self.frames(i)
    }

    fn bytes(&self) -> usize {
        self.streams.iter().map(|s| s.payload.len()).sum()
    }

    fn prepare(
        &self,
        i: usize,
        buffers: Buffers<'_>,
        _: &BufferSet,
        lead: usize,
    ) -> Result<(), AllocError> {
        let frames = self.streams[i].payload.chunks(MSS);
        for (m, frame) in buffers.ring.iter_mut().flatten().zip(frames) {
            fill(m, lead, frame);
        }
        Ok(())
    }
}
