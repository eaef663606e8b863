//! Turning a packet into descriptors, by the rules and within the limits of a device.

use mbuf::{BufferSet, OffloadFlags, Packet, TxMbuf, TxOffload};

use crate::config::TxConfig;
use crate::descriptor::{DescFlags, Descriptor};
use crate::stats::TxStats;

/// Why a packet was not described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// No room now; later there may be.
    Full,
    /// Will never fit as it is: too many pieces, or headers that do not lie together.
    Scattered,
    /// It has no bytes.
    Empty,
}

/// What [`Poster::post`] did with a packet.
pub(crate) enum Outcome {
    /// It was described by so many descriptors; the ring holds the handle now.
    Posted { handle: TxMbuf, descriptors: usize },
    /// It was dropped and counted.
    Dropped,
    /// No room; the caller keeps it.
    Full,
}

/// The driver's knowledge of one device.
#[derive(Debug)]
pub(crate) struct Poster {
    config: TxConfig,
    max_pieces: usize,
    max_piece: usize,
    /// The device's offload settings, as far as descriptors were really handed over.
    context: Option<TxOffload>,
    /// Descriptors since the last one that asked for a report.
    unreported: usize,
    pub(crate) stats: TxStats,
}

/// What describing a packet came to.
struct Described {
    descriptors: usize,
    report: bool,
}

impl Poster {
    pub(crate) fn new(config: TxConfig) -> Self {
        // One descriptor is kept for the context, so that what is within the limit always fits
        // into an empty ring.
        let most = config.ring_size - 1;
        Poster {
            max_pieces: config.max_segs.unwrap_or(most).min(most),
            max_piece: config.max_piece.unwrap_or(u32::MAX as usize),
            config,
            context: None,
            unreported: 0,
            stats: TxStats::default(),
        }
    }

    pub(crate) fn config(&self) -> &TxConfig {
        &self.config
    }

    pub(crate) fn config_mut(&mut self) -> &mut TxConfig {
        &mut self.config
    }

    /// Forgets what the device knows.
    pub(crate) fn reset(&mut self) {
        self.context = None;
        self.unreported = 0;
    }

    /// Describes the packet in `slot` through `put(i, descriptor)`, `i` counting from the ring's
    /// tail, in at most `room` descriptors. What was put does not count unless it says `Posted`.
    #[inline]
    pub(crate) fn post<P: Packet + Into<TxMbuf>>(
        &mut self,
        slot: &mut Option<P>,
        room: usize,
        set: &BufferSet,
        mut put: impl FnMut(usize, Descriptor),
    ) -> Outcome {
        let Some(packet) = slot.as_ref() else {
            return Outcome::Dropped;
        };
        let ask = packet.offload();
        let bytes = packet.pkt_len();
        if self.refuses(&ask, bytes) {
            self.stats.given += 1;
            *slot = None;
            return Outcome::Dropped;
        }
        match self.describe(packet, &ask, room, &mut put) {
            Ok(described) => match slot.take() {
                Some(packet) => self.posted(packet.into(), &ask, bytes, described),
                None => Outcome::Dropped,
            },
            Err(Refusal::Full) => Outcome::Full,
            Err(refusal) => self.second_try(slot, refusal, &ask, room, set, &mut put),
        }
    }

    /// Whether the device cannot do what is asked; counted.
    #[inline]
    fn refuses(&mut self, ask: &TxOffload, bytes: usize) -> bool {
        let tso = ask.flags.contains(OffloadFlags::TSO);
        let sums = OffloadFlags::IPV4_CSUM | OffloadFlags::TCP_CSUM | OffloadFlags::UDP_CSUM;
        if (tso && !self.config.tso) || (!self.config.csum && ask.flags.intersects(sums)) {
            self.stats.dropped_unsupported += 1;
            return true;
        }
        let frame = match tso {
            true => bytes.min(header_len(ask) + usize::from(ask.tso_mss)),
            false => bytes,
        };
        if self.config.max_frame.is_some_and(|max| frame > max) {
            self.stats.dropped_oversize += 1;
            return true;
        }
        false
    }

    #[inline]
    fn describe<P: Packet>(
        &self,
        packet: &P,
        ask: &TxOffload,
        room: usize,
        put: &mut impl FnMut(usize, Descriptor),
    ) -> Result<Described, Refusal> {
        let offload = *ask != TxOffload::default();
        let context = usize::from(offload && self.context != Some(*ask));
        if offload && self.config.contiguous_header && packet.first().len() < header_len(ask) {
            return Err(Refusal::Scattered);
        }
        let mut flags = DescFlags::empty();
        flags.set(DescFlags::OFFLOAD, offload);
        // A piece is written when the next one is seen, since the last one is marked.
        let mut held: Option<(usize, u32)> = None;
        let mut pieces = 0;
        for segment in packet.segments() {
            let mut data = segment.data();
            while !data.is_empty() {
                if let Some((addr, len)) = held {
                    put(context + pieces - 1, Descriptor::Data { addr, len, flags });
                }
                if pieces == self.max_pieces {
                    return Err(Refusal::Scattered);
                }
                if context + pieces >= room {
                    return Err(Refusal::Full);
                }
                pieces += 1;
                let (piece, rest) = data.split_at(data.len().min(self.max_piece));
                held = Some((piece.as_ptr().addr(), piece.len() as u32));
                data = rest;
            }
        }
        let Some((addr, len)) = held else {
            return Err(Refusal::Empty);
        };
        let descriptors = context + pieces;
        let report = self.unreported + descriptors >= self.config.rs_interval;
        flags |= DescFlags::END;
        flags.set(DescFlags::REPORT, report);
        put(descriptors - 1, Descriptor::Data { addr, len, flags });
        if context == 1 {
            put(0, Descriptor::Context(*ask));
        }
        Ok(Described {
            descriptors,
            report,
        })
    }

    #[inline]
    fn posted(
        &mut self,
        handle: TxMbuf,
        ask: &TxOffload,
        bytes: usize,
        described: Described,
    ) -> Outcome {
        let Described {
            descriptors,
            report,
        } = described;
        if *ask != TxOffload::default() && self.context != Some(*ask) {
            self.context = Some(*ask);
            self.stats.contexts += 1;
        }
        self.unreported = if report {
            0
        } else {
            self.unreported + descriptors
        };
        self.stats.reports += u64::from(report);
        self.stats.given += 1;
        self.stats.posted += 1;
        self.stats.bytes += bytes as u64;
        self.stats.descriptors += descriptors as u64;
        Outcome::Posted {
            handle,
            descriptors,
        }
    }

    /// For what did not fit: drops what has no bytes, copies the rest into one storage.
    #[doc(alias = "m_defrag")]
    #[cold]
    #[inline(never)]
    fn second_try<P: Packet + Into<TxMbuf>>(
        &mut self,
        slot: &mut Option<P>,
        refusal: Refusal,
        ask: &TxOffload,
        room: usize,
        set: &BufferSet,
        put: &mut impl FnMut(usize, Descriptor),
    ) -> Outcome {
        let Some(packet) = slot.as_ref() else {
            return Outcome::Dropped;
        };
        if refusal == Refusal::Empty {
            return self.drop_packet(slot, |stats| &mut stats.dropped_empty);
        }
        // Looked at before anything is copied: a full ring must leave the packet as it was.
        let bytes = packet.pkt_len();
        let pieces = bytes.div_ceil(self.max_piece);
        if pieces <= self.max_pieces && pieces + 1 > room {
            return Outcome::Full;
        }
        let copied = match pieces > self.max_pieces {
            true => None,
            // Its offload request went into the descriptors already.
            false => packet.byte_copy(0, bytes, 0, set).ok(),
        };
        let described = copied
            .as_ref()
            .and_then(|copy| self.describe(copy, ask, room, put).ok());
        match (copied, described) {
            (Some(copy), Some(described)) => {
                self.stats.defrags += 1;
                self.stats.defrag_bytes += bytes as u64;
                *slot = None;
                self.posted(copy.into(), ask, bytes, described)
            }
            _ => self.drop_packet(slot, |stats| &mut stats.dropped_defrag),
        }
    }

    fn drop_packet<P>(
        &mut self,
        slot: &mut Option<P>,
        counter: fn(&mut TxStats) -> &mut u64,
    ) -> Outcome {
        *counter(&mut self.stats) += 1;
        self.stats.given += 1;
        *slot = None;
        Outcome::Dropped
    }
}

fn header_len(ask: &TxOffload) -> usize {
    usize::from(ask.l2_len) + usize::from(ask.l3_len) + usize::from(ask.l4_len)
}
