//! One pass: what may be moved now is moved, and it is said what to wait for.

use std::time::Instant;

use mbuf::{BufferSet, Mbuf};

use super::gather::gathered;
use super::progress::Progress;
use super::take::{Taken, skip_aside, take};
use super::verdict::End;
use crate::buf::SockBuf;
use crate::socket::SocketError;

/// Bytes that go in beyond the limit when one of them is urgent.
const URGENT_SPACE: isize = 1024;

/// What a pass has to know of the two sockets besides their buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// What the source's protocol reported.
    pub source_error: Option<SocketError>,
    /// What the drain's protocol reported.
    pub drain_error: Option<SocketError>,
    /// Whether the drain is connected.
    pub drain_ready: bool,
    /// Whether the source's urgent byte is in the stream: the one at the mark. One that was taken out is
    /// not sent on, and remains to be asked for.
    #[doc(alias = "SO_OOBINLINE")]
    pub urgent_inline: bool,
}

impl Ends {
    /// Nothing is wrong, and an urgent byte is in the stream.
    pub const READY: Self = Self {
        source_error: None,
        drain_error: None,
        drain_ready: true,
        urgent_inline: true,
    };
}

/// What a pass did. The protocols are to be told: first the source's that there is room, so that a
/// window update goes out before the data, then the drain's.
#[derive(Debug)]
#[must_use]
pub struct Step {
    /// Bytes moved.
    pub moved: usize,
    /// The last of them is urgent.
    pub urgent: bool,
    /// Bytes that went out of the source besides.
    pub skipped: usize,
    /// These bytes, to be freed outside of locks.
    pub aside: Option<Mbuf>,
    /// How it goes on.
    pub then: Then,
}

/// How a splice goes on after a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// There is more to be moved, as soon as others had their turn.
    Again,
    /// With something to wait for.
    Wait(Wait),
    /// Not any more.
    End(End),
}

/// What a splice waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// More in the source, or its end.
    Data,
    /// Space in the drain.
    Space {
        /// So many bytes, or an empty drain.
        need: usize,
    },
    /// A connection of the drain.
    Connection,
    /// An mbuf.
    Memory,
}

/// Moves once from the front of `source`, a receive buffer, behind what `drain` holds, a send buffer.
/// Mbufs for parts of others come from `set`.
///
/// In this order:
/// 1. errors: the source's; a drain that is shut; the drain's, unless it is another splice's verdict on it;
/// 2. nothing moves before the drain is connected;
/// 3. how much: all data of the source, no more than [`Progress`] allows, up to and including an urgent
///    byte, no more than the drain has space for; and nothing while that is less than its low-water mark;
/// 4. mbufs are moved whole. A part of one is only taken when the splice ends there, when an urgent
///    byte does, or when the drain is empty, so that something moves;
/// 5. the drain is told whether more follows.
///
/// ```
/// use std::time::Instant;
/// use mbuf::BufferSet;
/// use sockbuf::SockBuf;
/// use sockbuf::splice::{End, Ends, Progress, SpliceOptions, Then, Verdict, pass};
///
/// let set = BufferSet::bsd(64, 8)?;
/// let (mut received, mut to_send) = (SockBuf::new(65536), SockBuf::new(65536));
/// received.write(&[7; 251], &set)?;
/// let now = Instant::now();
/// let options = SpliceOptions { max: Some(61), ..SpliceOptions::default() };
/// let mut progress = Progress::new(options, now);
/// let step = pass(&mut received, &mut to_send, Ends::READY, &mut progress, now, &set);
/// assert_eq!((step.moved, received.len(), to_send.len()), (61, 190, 61));
/// assert_eq!(step.then, Then::End(End::Verdict(Verdict::MaxReached { max: 61 })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "somove")]
pub fn pass(
    source: &mut SockBuf,
    drain: &mut SockBuf,
    ends: Ends,
    progress: &mut Progress,
    now: Instant,
    set: &BufferSet,
) -> Step {
    let mut step = Step {
        moved: 0,
        urgent: false,
        skipped: 0,
        aside: None,
        then: Then::Wait(Wait::Connection),
    };
    if let Some(end) = broken(source, drain, ends) {
        step.then = Then::End(end);
        return step;
    }
    if ends.drain_ready {
        let before = source.len();
        step.aside = skip_aside(source);
        step.skipped = before - source.len();
        step.then = match amount(source, drain, ends.urgent_inline, progress) {
            Ok(amount) => move_some(amount, (source, drain), progress, now, set, &mut step),
            Err(wait) => Then::Wait(wait),
        };
    }
    if let Then::Wait(_) = step.then
        && source.is_empty()
        && source.side().is_shut()
    {
        step.then = Then::End(End::Finished);
    }
    step
}

/// What ends the splice before anything is moved.
fn broken(source: &SockBuf, drain: &SockBuf, ends: Ends) -> Option<End> {
    if let Some(error) = ends.source_error {
        return Some(End::SourceFailed(error));
    }
    if drain.side().is_shut() {
        let left = source.len();
        return Some(End::DrainShut { left });
    }
    // A drain is a source in its own right: of what goes the other way.
    let error = ends.drain_error?;
    (!matches!(error, SocketError::Spliced(_))).then_some(End::DrainFailed(error))
}

/// How much may be moved, and what bounds it.
struct Amount {
    bytes: usize,
    /// What it would be if the drain had space.
    wanted: usize,
    /// The last of the bytes is urgent.
    urgent: bool,
    /// The splice ends with the last of them.
    last: bool,
}

/// What may be moved now.
fn amount(
    source: &SockBuf,
    drain: &SockBuf,
    urgent_inline: bool,
    progress: &Progress,
) -> Result<Amount, Wait> {
    let all = progress.allowed(source.len());
    if all == 0 {
        return Err(Wait::Data);
    }
    let mark = source
        .urgent()
        .filter(|before| urgent_inline && *before < all);
    let wanted = mark.map_or(all, |before| before + 1);
    let extra = if mark.is_some() { URGENT_SPACE } else { 0 };
    let space = usize::try_from(drain.space().saturating_add(extra)).unwrap_or(0);
    if space < wanted && (space == 0 || space < drain.side().lowat()) {
        return Err(for_space(source, drain, wanted));
    }
    let bytes = wanted.min(space);
    Ok(Amount {
        bytes,
        wanted,
        urgent: mark.is_some() && bytes == wanted,
        last: progress.reached_by(bytes),
    })
}

/// Until the first mbuf fits and the low-water mark is reached, or all fits that is wanted.
#[cold]
fn for_space(source: &SockBuf, drain: &SockBuf, wanted: usize) -> Wait {
    let first = source.first().map_or(0, |seg| seg.len());
    let need = drain.side().lowat().max(first).min(wanted);
    Wait::Space { need }
}

/// Moves what may be moved, and says so in `step`.
fn move_some(
    amount: Amount,
    (source, drain): (&mut SockBuf, &mut SockBuf),
    progress: &mut Progress,
    now: Instant,
    set: &BufferSet,
    step: &mut Step,
) -> Then {
    let cut = amount.last || amount.urgent || drain.is_empty();
    let taken = match take(source, amount.bytes, cut, progress.most_hops(), set) {
        Ok(taken) => taken,
        Err(verdict) => return Then::End(End::Verdict(verdict)),
    };
    step.moved = taken.bytes();
    match step.moved {
        0 if cut => return Then::Wait(Wait::Memory),
        0 => return Then::Wait(for_space(source, drain, amount.wanted)),
        moved => step.urgent = amount.urgent && moved == amount.bytes,
    }
    progress.moved(step.moved, now);
    let reached = progress.reached();
    let more = reached.is_none() && !source.is_empty();
    drain.side_mut().set_more_to_come(more);
    append(drain, taken, progress, set);
    if step.urgent {
        drain.set_urgent(drain.len() - 1);
    }
    match reached {
        Some(verdict) => Then::End(End::Verdict(verdict)),
        None if more => Then::Again,
        None => Then::Wait(Wait::Data),
    }
}

fn append(drain: &mut SockBuf, taken: Taken, progress: &Progress, set: &BufferSet) {
    let gathers = progress.gather().applies(drain.len(), drain.hiwat());
    let whole = match taken.whole {
        Some(whole) if gathers => gathered(whole, set),
        whole => whole,
    };
    for packet in [whole, taken.part].into_iter().flatten() {
        drain.append_stream(packet);
    }
}
