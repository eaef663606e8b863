//! Sockets under an asynchronous runtime: a call that cannot go on leaves the task's waker.
//!
//! A waker is told once. It need not be a task's: anything that is [`Wake`](std::task::Wake) can be told, and
//! so be called back.

use std::io::{IoSlice, IoSliceMut};
use std::task::{Context, Poll};

use super::error::SocketError;
use super::flags::{ReceiveFlags, SendFlags};
use super::half::Buffer;
use super::records::Outgoing;
use super::sink;
use super::source;
use super::{RecordSocket, Socket, UserEnd};
use crate::records::OwnedRecord;
use crate::wait::{Available, Patience};

/// What would have waited is pending.
fn poll<T>(result: Result<T, SocketError>) -> Poll<Result<T, SocketError>> {
    match result {
        Err(SocketError::WouldBlock { .. }) => Poll::Pending,
        done => Poll::Ready(done),
    }
}

impl<B: Buffer> UserEnd<B> {
    /// Whether a send would do something: there is as much space as the low-water mark says, or there is
    /// something to be told.
    #[doc(alias = "sowriteable")]
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        let shared = self.shared();
        let ready = shared.send.poll(cx.waker(), |half| {
            let need = half.0.side().lowat();
            let connected = !shared.needs_connection || shared.status.is_connected();
            let space = connected && half.available() >= need;
            let told = half.0.side().is_shut() || shared.status.error().is_some();
            (!space && !told).then_some(need)
        });
        if ready {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Whether a receive would do something: there is as much as the low-water mark says, or there is
    /// something to be told.
    #[doc(alias = "soreadable")]
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        let shared = self.shared();
        let ready = shared.receive.poll(cx.waker(), |half| {
            if half.spliced.is_active() {
                return Some(usize::MAX);
            }
            let need = half.buf.side().lowat().max(1);
            let told = shared.status.error().is_some();
            (half.available() < need && !told).then_some(need)
        });
        if ready {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Socket {
    /// As [`send`](Self::send), and pending where that would wait before the first byte went in.
    ///
    /// # Errors
    /// As there.
    pub fn poll_send(
        &self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        flags: SendFlags,
    ) -> Poll<Result<usize, SocketError>> {
        let slices = [IoSlice::new(bytes)];
        let patience = Patience::Task(cx.waker());
        poll(self.send_source(&mut source::Slices::new(&slices), flags, patience))
    }

    /// As [`receive`](Self::receive), and pending where that would wait before it had a byte.
    ///
    /// # Errors
    /// As there.
    pub fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        room: &mut [u8],
        flags: ReceiveFlags,
    ) -> Poll<Result<usize, SocketError>> {
        let mut slices = [IoSliceMut::new(room)];
        let patience = Patience::Task(cx.waker());
        poll(self.receive_sink(&mut sink::Slices::new(&mut slices), flags, patience))
    }
}

impl RecordSocket {
    /// As [`receive_record`](Self::receive_record), and pending where that would wait.
    ///
    /// # Errors
    /// As there.
    pub fn poll_receive_record(
        &self,
        cx: &mut Context<'_>,
        flags: ReceiveFlags,
    ) -> Poll<Result<Option<OwnedRecord>, SocketError>> {
        let patience = Patience::Task(cx.waker());
        poll(self.take_record_with(flags, patience)).map_ok(|r| r.map(OwnedRecord::from))
    }

    /// As [`send`](Self::send), and pending where that would wait. The bytes are copied at each call.
    ///
    /// # Errors
    /// As there.
    pub fn poll_send(
        &self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        flags: SendFlags,
    ) -> Poll<Result<usize, SocketError>> {
        let patience = Patience::Task(cx.waker());
        let record = self.copied(bytes).map(|data| Outgoing {
            data: Some(data),
            ..Outgoing::default()
        });
        poll(record.and_then(|record| self.send_record_with(record, flags, patience)))
    }
}
