//! What one send does, counted on its packet: the operation counts that do not change from send to
//! send, and whether the packet holds the bytes that it should.

use super::conn::{Conn, Step};
use super::nic::Nic;
use super::{HEADERS, NOW, OPEN};
use mbuf::{BufferSet, Mbuf, Packet};
use tcp_output::{Ack, CopyPolicy};

/// Counts of one send.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Probe {
    /// Mbufs that the packet takes, and its copy if the driver makes one.
    pub(crate) mbufs: usize,
    /// References to clusters of the send buffer.
    pub(crate) references: usize,
    /// Payload bytes that the CPU copies, the driver's copy included.
    pub(crate) copied: usize,
    /// Bytes of storage held for the send when most of it is there: the send buffer's charge, the
    /// packet's objects, and the driver's copy.
    pub(crate) peak: usize,
}

/// Sends one step's packet, and returns when it is acknowledged.
///
/// # Errors
/// Where the packet is not as it must be.
pub(crate) fn probe<P: CopyPolicy, N: Nic>(
    conn: &mut Conn<P>,
    step: Step,
    nic: &mut N,
    set: &BufferSet,
) -> Result<Probe, String> {
    conn.receive(step.frames, set).map_err(|e| e.to_string())?;
    let off = conn.sender.tcb().send.nxt - conn.sender.tcb().una;
    let empty = held(set);
    let packet = output(conn, set)?;
    let mut seen = look(&packet);
    seen.peak = conn.queued.charge() + held(set) - empty;
    compare(&packet, conn, off as usize)?;

    let before = nic.stats();
    nic.put(packet, set);
    let after = nic.stats();
    if after.defrags > before.defrags {
        let copied = (after.defrag_bytes - before.defrag_bytes) as usize;
        let storage = set.class_for(copied).unwrap_or(copied) + set.room().charge;
        (seen.mbufs, seen.copied) = (seen.mbufs + 1, seen.copied + copied);
        seen.peak += storage;
    }
    nic.settle(1);
    let ack = Ack::new(conn.sender.tcb().send.max, OPEN);
    let acked = conn.sender.on_ack(&ack, NOW, &mut conn.queued);
    drop(acked.map_err(|e| e.to_string())?.freed);
    Ok(seen)
}

fn output<P: CopyPolicy>(conn: &mut Conn<P>, set: &BufferSet) -> Result<Mbuf, String> {
    let mut packets = Vec::new();
    let sent = conn.sender.output(&conn.queued, set, NOW, &mut |packet| {
        packets.push(packet);
        Ok(())
    });
    sent.map_err(|e| e.to_string())?;
    match (packets.pop(), packets.len()) {
        (Some(packet), 0) => Ok(packet),
        (last, more) => Err(format!(
            "{} packets instead of 1",
            more + usize::from(last.is_some())
        )),
    }
}

fn look(packet: &Mbuf) -> Probe {
    let shared = packet.segments().filter(|seg| seg.is_shared());
    let (references, referenced) =
        shared.fold((0, 0), |(n, bytes), seg| (n + 1, bytes + seg.len()));
    Probe {
        mbufs: packet.nsegs(),
        references,
        copied: packet.pkt_len() - HEADERS - referenced,
        peak: 0,
    }
}

fn compare<P: CopyPolicy>(packet: &Mbuf, conn: &Conn<P>, off: usize) -> Result<(), String> {
    let payload = &packet.to_vec()[HEADERS..];
    let mut want = vec![0; payload.len()];
    conn.queued
        .copy_to(off, &mut want)
        .map_err(|e| e.to_string())?;
    match want == payload {
        true => Ok(()),
        false => Err("the packet's payload is not the send buffer's".into()),
    }
}

/// Bytes of all objects that are out.
fn held(set: &BufferSet) -> usize {
    set.pools()
        .map(|pool| pool.in_use() * pool.object_size())
        .sum()
}
