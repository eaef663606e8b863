//! The measured loop, and one policy's connections that go through it.

use super::conn::{Conn, Input, Step};
use super::nic::Nic;
use super::probe::{Probe, probe};
use super::{NOW, OPEN, WINDOW};
use crate::clock;
use crate::placement::{self, Body, Entry, PLACEMENTS};
use mbuf::{BufferSet, FreeStrategy, Mbuf, free_bulk_with};
use std::collections::VecDeque;
use std::marker::PhantomData;
use tcp_output::{Ack, CopyPolicy, Seq, Tcb};

/// What a pass is run on.
pub(crate) struct Work<'a, P, N> {
    pub(crate) conns: &'a mut [Conn<P>],
    pub(crate) steps: &'a [Step],
    pub(crate) nic: &'a mut N,
    pub(crate) set: &'a BufferSet,
    pub(crate) pending: &'a mut VecDeque<Pending>,
    /// How the mbufs that an acknowledgment releases are freed.
    pub(crate) strategy: FreeStrategy,
    /// Whether the sender's own time is taken too, which costs the pass two stamps a step.
    pub(crate) stamp: bool,
}

/// A step whose packets may be in flight.
pub(crate) struct Pending {
    conn: usize,
    /// Acknowledges all that the step sent.
    ack: Seq,
    /// Packets of the pass up to and with this step's.
    packets: u64,
}

/// What a pass took, in ticks, and did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pass {
    pub(crate) wall: u64,
    /// Inside of output and hand-over; 0 without stamps.
    pub(crate) sender: u64,
    pub(crate) bytes: usize,
    pub(crate) packets: u64,
}

/// One pass.
///
/// # Errors
/// What went wrong; buffers may be left anywhere then.
#[inline(always)]
pub(crate) fn pass<P: CopyPolicy, N: Nic>(work: Work<'_, P, N>) -> Result<Pass, String> {
    let mut done = Pass::default();
    let start = clock::start();
    for step in work.steps {
        let conn = &mut work.conns[step.conn];
        conn.receive(step.frames, work.set).map_err(cold)?;
        let at = if work.stamp { clock::start() } else { 0 };
        let (nic, set) = (&mut *work.nic, work.set);
        let out = &mut |packet: Mbuf| {
            nic.put(packet, set);
            Ok(())
        };
        let sent = conn
            .sender
            .output(&conn.queued, set, NOW, out)
            .map_err(cold)?;
        if work.stamp {
            done.sender += clock::stop() - at;
        }
        done.bytes += sent.bytes;
        done.packets += sent.packets as u64;
        work.pending.push_back(Pending {
            conn: step.conn,
            ack: conn.sender.tcb().send.max,
            packets: done.packets,
        });
        work.nic.settle(WINDOW);
        let gone = done.packets - work.nic.in_flight() as u64;
        acknowledge(work.conns, work.pending, gone, work.strategy)?;
    }
    work.nic.settle(1);
    acknowledge(work.conns, work.pending, done.packets, work.strategy)?;
    done.wall = clock::stop() - start;
    Ok(done)
}

/// Acknowledges the steps of which all packets are gone, and frees what held their bytes.
#[inline(always)]
fn acknowledge<P: CopyPolicy>(
    conns: &mut [Conn<P>],
    pending: &mut VecDeque<Pending>,
    gone: u64,
    strategy: FreeStrategy,
) -> Result<(), String> {
    while let Some(step) = pending.front()
        && step.packets <= gone
    {
        let conn = &mut conns[step.conn];
        let ack = Ack::new(step.ack, OPEN);
        let acked = conn
            .sender
            .on_ack(&ack, NOW, &mut conn.queued)
            .map_err(cold)?;
        free_bulk_with(strategy, &mut [acked.freed]);
        pending.pop_front();
    }
    Ok(())
}

#[cold]
#[inline(never)]
fn cold(error: impl std::error::Error) -> String {
    error.to_string()
}

/// The loop as something that can be placed.
struct Path<P, N>(PhantomData<(P, N)>);

impl<P: CopyPolicy + 'static, N: Nic> Body for Path<P, N> {
    type Args<'a> = Work<'a, P, N>;
    type Out = Result<Pass, String>;

    #[inline(always)]
    fn run(work: Work<'_, P, N>) -> Self::Out {
        pass(work)
    }
}

type Copies<P, N> = [for<'a> fn(Work<'a, P, N>) -> Result<Pass, String>; PLACEMENTS];

/// One policy's connections before the NIC `N`.
pub(crate) struct Lane<P, N> {
    conns: Vec<Conn<P>>,
    pending: VecDeque<Pending>,
    copies: Copies<P, N>,
}

impl<P: CopyPolicy + Copy + 'static, N: Nic> Lane<P, N> {
    pub(crate) fn new(tcbs: &[Tcb], policy: P) -> Self {
        let conn = |tcb: &Tcb| Conn::new(tcb.clone(), policy);
        Lane {
            conns: tcbs.iter().map(conn).collect(),
            pending: VecDeque::with_capacity(4096),
            copies: placement::table::<Path<P, N>>().map(|entry: Entry<Path<P, N>>| entry),
        }
    }
}

/// A [`Lane`], whatever its policy.
pub(crate) trait Variant<N> {
    /// Fills all buffers for a pass.
    ///
    /// # Errors
    /// For want of buffers.
    fn prepare(&mut self, input: &dyn Input, set: &BufferSet, lead: usize) -> Result<(), String>;

    /// A pass at one placement. Checks that no byte is left.
    ///
    /// # Errors
    /// What went wrong.
    fn pass(&mut self, placement: usize, on: On<'_, N>) -> Result<Pass, String>;

    /// Sends the first step alone, looking at its packet, and then the rest as a pass does.
    ///
    /// # Errors
    /// What went wrong, bytes that are not the send buffer's among it.
    fn probe(&mut self, on: On<'_, N>) -> Result<Probe, String>;

    /// Frees the receive rings.
    fn close(&mut self);
}

/// What a [`Variant`] runs on.
pub(crate) struct On<'a, N> {
    pub(crate) steps: &'a [Step],
    pub(crate) nic: &'a mut N,
    pub(crate) set: &'a BufferSet,
    pub(crate) strategy: FreeStrategy,
    pub(crate) stamp: bool,
}

impl<P: CopyPolicy + 'static, N: Nic> Lane<P, N> {
    fn work<'a>(&'a mut self, on: On<'a, N>) -> Work<'a, P, N> {
        let On {
            steps,
            nic,
            set,
            strategy,
            stamp,
        } = on;
        Work {
            conns: &mut self.conns,
            steps,
            nic,
            set,
            pending: &mut self.pending,
            strategy,
            stamp,
        }
    }

    fn check(&self) -> Result<(), String> {
        match self.conns.iter().map(Conn::left).sum() {
            0 => Ok(()),
            left => Err(format!("{left} bytes are left in the buffers")),
        }
    }
}

impl<P: CopyPolicy + 'static, N: Nic> Variant<N> for Lane<P, N> {
    fn prepare(&mut self, input: &dyn Input, set: &BufferSet, lead: usize) -> Result<(), String> {
        self.pending.clear();
        for (i, conn) in self.conns.iter_mut().enumerate() {
            conn.prepare(i, input, set, lead)
                .map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    fn pass(&mut self, placement: usize, on: On<'_, N>) -> Result<Pass, String> {
        let copy = self.copies[placement];
        let pass = copy(self.work(on))?;
        self.check().map(|()| pass)
    }

    fn probe(&mut self, on: On<'_, N>) -> Result<Probe, String> {
        let Some((first, rest)) = on.steps.split_first() else {
            return Err("a pass without steps".into());
        };
        let seen = probe(&mut self.conns[first.conn], *first, on.nic, on.set)?;
        self.pass(0, On { steps: rest, ..on })?;
        Ok(seen)
    }

    fn close(&mut self) {
        self.conns.iter_mut().for_each(Conn::close);
    }
}
