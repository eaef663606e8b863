//! A connection with its buffers, and what is put into them before a pass.

use super::{NOW, OPEN};
use driver_sim::RxFill;
use mbuf::{AllocError, BufferSet, Mbuf};
use sockbuf::{SockBuf, splice};
use tcp_output::{Endpoints, Sender, Seq, Tcb, TcbFlags};

/// Limit of the buffers, bytes: never what stops a send.
const HIWAT: usize = 8 << 20;

/// Receive buffers, and their clusters' size.
const RX: RxFill = RxFill {
    mss: 1448,
    cluster: 2048,
    lead: 0,
};

/// Payload bytes of a frame.
pub(crate) const MSS: usize = RX.mss;

/// One step of a pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Which connection.
    pub(crate) conn: usize,
    /// Frames that it takes from its receive ring and splices first.
    pub(crate) frames: usize,
}

/// What a pass works on. All of it is sent in a pass.
pub(crate) trait Input {
    /// The steps, in order.
    fn steps(&self) -> Vec<Step>;

    /// The connections; each send buffer is its own.
    fn connections(&self) -> Vec<Tcb>;

    /// Slots of the receive ring of connection `i`.
    fn ring(&self, i: usize) -> usize;

    /// Payload bytes that a pass sends; what counts as already sent is not among them.
    fn bytes(&self) -> usize;

    /// Fills the buffers of connection `i` for one pass, data shifted by `lead` bytes in its storage
    /// where there is room.
    ///
    /// # Errors
    /// For want of buffers.
    fn prepare(
        &self,
        i: usize,
        buffers: Buffers<'_>,
        set: &BufferSet,
        lead: usize,
    ) -> Result<(), AllocError>;
}

/// What [`Input::prepare`] fills.
pub(crate) struct Buffers<'a> {
    /// The send buffer, empty.
    pub(crate) queued: &'a mut SockBuf,
    /// The receive ring: empty buffers, to be filled from the front.
    pub(crate) ring: &'a mut [Option<Mbuf>],
    /// The connection's state.
    pub(crate) tcb: &'a mut Tcb,
}

/// A connection.
pub(crate) struct Conn<P> {
    pub(crate) sender: Sender<P>,
    pub(crate) queued: SockBuf,
    received: SockBuf,
    ring: Vec<Option<Mbuf>>,
    /// Next slot of the ring to be taken.
    next: usize,
}

impl<P: tcp_output::CopyPolicy> Conn<P> {
    pub(crate) fn new(tcb: Tcb, policy: P) -> Self {
        Conn {
            sender: Sender::new(tcb, policy),
            queued: SockBuf::new(HIWAT),
            received: SockBuf::new(HIWAT),
            ring: Vec::new(),
            next: 0,
        }
    }

    pub(crate) fn prepare(
        &mut self,
        i: usize,
        input: &dyn Input,
        set: &BufferSet,
        lead: usize,
    ) -> Result<(), AllocError> {
        while self.ring.len() < input.ring(i) {
            self.ring.push(Some(set.header_with(RX.cluster)?));
        }
        self.next = 0;
        let buffers = Buffers {
            queued: &mut self.queued,
            ring: &mut self.ring,
            tcb: self.sender.tcb_mut(),
        };
        input.prepare(i, buffers, set, lead)
    }

    /// Takes `frames` filled buffers from the ring, leaves fresh ones there, and splices.
    #[inline(always)]
    pub(crate) fn receive(&mut self, frames: usize, set: &BufferSet) -> Result<(), AllocError> {
        if frames == 0 {
            return Ok(());
        }
        let end = self.ring.len().min(self.next + frames);
        for slot in &mut self.ring[self.next..end] {
            let fresh = set.header_with(RX.cluster)?;
            if let Some(frame) = slot.replace(fresh) {
                self.received.append_stream(frame);
            }
        }
        self.next = end;
        splice::move_whole(&mut self.received, &mut self.queued, usize::MAX);
        Ok(())
    }

    /// Bytes that are still in one of the buffers.
    pub(crate) fn left(&self) -> usize {
        self.queued.len() + self.received.len()
    }

    /// Frees the receive ring.
    pub(crate) fn close(&mut self) {
        self.ring.clear();
    }
}

/// An established connection number `i` that nothing but its data limits.
pub(crate) fn tcb(i: usize, first: Seq) -> Result<Tcb, tcp_output::BadSegmentSize> {
    let ends = Endpoints::V4 {
        source: [10, 1, 0, 1].into(),
        dest: [10, 1, 0, 2].into(),
        source_port: 10_000 + i as u16,
        dest_port: 80,
    };
    let flags = TcbFlags::TIMESTAMPS | TcbFlags::NODELAY;
    let mut tcb = Tcb::new(ends, MSS as u32 + 12, flags, first, Seq(1))?;
    tcb.wnd = OPEN;
    tcb.max_wnd = OPEN;
    tcb.wnd_scale = 14;
    tcb.send.cwnd = OPEN;
    tcb.rcv.last = NOW;
    Ok(tcb)
}

/// Writes `data` into an empty buffer, `lead` bytes from its start or as far as there is room.
pub(crate) fn fill(m: &mut Mbuf, lead: usize, data: &[u8]) {
    let room = m.capacity().saturating_sub(data.len());
    if m.set_lead(lead.min(room)).is_ok()
        && let Ok(bytes) = m.append(data.len())
    {
        bytes.copy_from_slice(data);
    }
}
