//! Payload that arrived out of order, until what lies before it has come.
//!
//! It is kept as *runs*: ranges without a gap, each a chain of mbufs. A segment that joins a run
//! makes it longer, so that there are as many runs as gaps, which are few however much is kept, and
//! the runs are just what SACK blocks tell the peer.

use mbuf::{Chain, Mbuf, Packet};
use thiserror::Error;

use crate::options::SackBlock;
use crate::seq::Seq;

/// How much is kept out of order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Storage, bytes as charged: a small segment in a large cluster counts as the cluster.
    pub storage: usize,
    /// Mbufs.
    pub mbufs: usize,
    /// Runs, that is, gaps.
    pub runs: usize,
}

impl Default for Limits {
    /// 1 MiB in 1024 mbufs with 64 gaps.
    fn default() -> Self {
        Limits {
            storage: 1 << 20,
            mbufs: 1024,
            runs: 64,
        }
    }
}

/// A segment was not kept: it is freed and the peer will send it again. What was kept before still is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error(
    "{asked} bytes out of order not kept: {storage} bytes in {mbufs} mbufs and {runs} runs are"
)]
pub struct QueueFull {
    /// Bytes of the segment.
    pub asked: usize,
    /// Storage in use, bytes.
    pub storage: usize,
    /// Mbufs in use.
    pub mbufs: usize,
    /// Runs in use.
    pub runs: usize,
}

/// A range that has arrived without a gap.
#[derive(Debug)]
struct Run {
    start: Seq,
    bytes: Chain,
    /// When it last grew, in arrivals.
    touched: u64,
}

impl Run {
    fn end(&self) -> Seq {
        self.start + self.bytes.len() as u32
    }
}

/// The payload kept out of order.
///
/// ```
/// use mbuf::{BufferSet, Packet};
/// use tcp_output::input::Reassembly;
/// use tcp_output::Seq;
///
/// let set = BufferSet::standard(64, 8)?;
/// let mut queue = Reassembly::default();
/// assert!(queue.arrive(Seq(103), set.copy_in(b"def", 0)?, Seq(100))?.is_none());
/// assert_eq!(queue.blocks().next().map(|block| block.start), Some(Seq(103)));
/// let whole = queue.arrive(Seq(100), set.copy_in(b"abcd", 0)?, Seq(100))?;
/// assert_eq!(whole.map(|data| data.to_vec()), Some(b"abcdef".to_vec()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "tcpqehead")]
#[derive(Debug, Default)]
pub struct Reassembly {
    /// In sequence, none touching the next.
    runs: Vec<Run>,
    limits: Limits,
    storage: usize,
    mbufs: usize,
    arrivals: u64,
}

impl Reassembly {
    /// Empty, with limits of the caller's.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Reassembly {
            limits,
            ..Self::default()
        }
    }

    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Bytes kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.runs.iter().map(|run| run.bytes.len()).sum()
    }

    /// Storage held down, bytes, and mbufs.
    #[must_use]
    pub fn held(&self) -> (usize, usize) {
        (self.storage, self.mbufs)
    }

    /// What is kept, the run that grew last first (RFC 2018, 4): what to put into SACK blocks.
    pub fn blocks(&self) -> impl Iterator<Item = SackBlock> {
        let mut below = u64::MAX;
        std::iter::from_fn(move || {
            let older = self.runs.iter().filter(|run| run.touched < below);
            let run = older.max_by_key(|run| run.touched)?;
            below = run.touched;
            Some(SackBlock {
                start: run.start,
                end: run.end(),
            })
        })
    }

    /// Frees everything.
    pub fn clear(&mut self) {
        self.runs.clear();
        (self.storage, self.mbufs) = (0, 0);
    }

    /// Takes in payload that begins at `seq`, while `next` is expected. Gives out all that is in
    /// order now, from `next` on.
    ///
    /// Bytes that are known keep the copy that came first when they are the segment's front, and
    /// take the segment's when they are its end, as in BSD. What lies before `next` is dropped. The
    /// caller has cut off what lies beyond the window.
    ///
    /// # Errors
    /// [`QueueFull`] when it is out of order and there is no room. What is in order is always taken.
    #[doc(alias = "tcp_reass")]
    pub fn arrive(
        &mut self,
        seq: Seq,
        mut data: Mbuf,
        next: Seq,
    ) -> Result<Option<Mbuf>, QueueFull> {
        if !trim_to(&mut data, seq, next) {
            return Ok(None);
        }
        let start = seq.max(next);
        if start == next {
            return Ok(Some(self.complete(next, data)));
        }
        self.keep(start, data).map(|()| None)
    }

    /// `data` begins at `next`: it, and the runs that it reaches.
    fn complete(&mut self, next: Seq, data: Mbuf) -> Mbuf {
        if self.runs.is_empty() {
            return data;
        }
        let end = next + data.pkt_len() as u32;
        let mut whole = Chain::new();
        whole.push_back(data);
        while self.runs.first().is_some_and(|run| run.start.leq(end)) {
            let run = self.take_run(0);
            append_beyond(&mut whole, next, run);
        }
        // It holds at least `data`.
        whole.into_packet().expect("a chain that was pushed to")
    }

    /// Out of order: into the run that it joins, or as a run of its own.
    fn keep(&mut self, start: Seq, mut data: Mbuf) -> Result<(), QueueFull> {
        let end = start + data.pkt_len() as u32;
        // The first run that ends at or behind our start. Most segments follow the last run.
        let at = match self.runs.last() {
            Some(last) if last.end().lt(start) => self.runs.len(),
            _ => self.runs.partition_point(|run| run.end().lt(start)),
        };
        let joins = self.runs.get(at).is_some_and(|run| run.start.leq(start));
        if joins && !trim_to(&mut data, start, self.runs[at].end()) {
            self.touch(at);
            return Ok(());
        }
        self.room_for(&data, at, end)?;
        let mut run = if joins {
            self.take_run(at)
        } else {
            Run {
                start,
                bytes: Chain::new(),
                touched: 0,
            }
        };
        run.bytes.push_back(data);
        while self
            .runs
            .get(at)
            .is_some_and(|behind| behind.start.leq(end))
        {
            let behind = self.take_run(at);
            append_beyond(&mut run.bytes, run.start, behind);
        }
        self.storage += run.bytes.charge();
        self.mbufs += run.bytes.segs();
        self.runs.insert(at, run);
        self.touch(at);
        Ok(())
    }

    fn touch(&mut self, at: usize) {
        self.arrivals += 1;
        self.runs[at].touched = self.arrivals;
    }

    fn take_run(&mut self, at: usize) -> Run {
        let run = self.runs.remove(at);
        self.storage -= run.bytes.charge();
        self.mbufs -= run.bytes.segs();
        run
    }

    /// Whether `data` may be kept. It needs a run of its own if it reaches none that is there.
    fn room_for(&self, data: &Mbuf, at: usize, end: Seq) -> Result<(), QueueFull> {
        let charge: usize = data.segments().map(|seg| seg.charge()).sum();
        let reaches = self.runs.get(at).is_some_and(|run| run.start.leq(end));
        let fits = self.storage + charge <= self.limits.storage
            && self.mbufs + data.nsegs() <= self.limits.mbufs
            && (reaches || self.runs.len() < self.limits.runs);
        fits.then_some(()).ok_or_else(|| QueueFull {
            asked: data.pkt_len(),
            storage: self.storage,
            mbufs: self.mbufs,
            runs: self.runs.len(),
        })
    }
}

/// Drops what of `data`, which begins at `seq`, lies before `from`. Whether something is left.
fn trim_to(data: &mut Mbuf, seq: Seq, from: Seq) -> bool {
    let known = usize::try_from(seq.distance(from)).unwrap_or(0);
    known < data.pkt_len() && data.trim_front(known).is_ok()
}

/// Puts what of `run` lies behind `whole`, which begins at `start`, to its end.
fn append_beyond(whole: &mut Chain, start: Seq, mut run: Run) {
    let end = start + whole.len() as u32;
    let known = usize::try_from(run.start.distance(end)).unwrap_or(0);
    if known < run.bytes.len()
        && run.bytes.cut(known).is_ok()
        && let Some(rest) = run.bytes.into_packet()
    {
        whole.push_back(rest);
    }
}
