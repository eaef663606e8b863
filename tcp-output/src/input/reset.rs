//! The answer to a segment that nobody expects.

use mbuf::BufferSet;
use sockbuf::SockBuf;

use super::parse::Incoming;
use crate::checksum::ChecksumMode;
use crate::error::SendError;
use crate::flags::TcbFlags;
use crate::policy::Reference;
use crate::sender::{Output, Sender};
use crate::seq::Seq;
use crate::state::State;
use crate::tcb::Tcb;
use crate::time::Time;
use crate::wire::TcpFlags;

/// Segment size of a connection that sends no data.
const ANY_SIZE: u32 = 536;

/// Answers `segment` with a reset that its sender believes (RFC 9293, 3.10.7.1). A reset is never
/// answered.
///
/// # Errors
/// [`SendError`] when it could not be built or sent.
#[doc(alias = "tcp_respond")]
pub fn answer_with_reset(
    segment: &Incoming,
    set: &BufferSet,
    mode: ChecksumMode,
    out: &mut impl Output,
) -> Result<(), SendError> {
    if segment.flags.contains(TcpFlags::RST) {
        return Ok(());
    }
    let seq = if segment.flags.contains(TcpFlags::ACK) {
        segment.ack
    } else {
        Seq(0)
    };
    let ack = segment.seq + segment.seq_len();
    let ends = segment.ends.reversed();
    let Ok(mut none) = Tcb::new(ends, ANY_SIZE, TcbFlags::empty(), seq, ack) else {
        return Ok(());
    };
    none.state = State::Closed;
    Sender::new(none, Reference)
        .with_checksum(mode)
        .output(&SockBuf::new(0), set, Time::default(), out)
        .map(drop)
}
