//! What holds for both directions: the connection, and an error that waits to be told.
//!
//! It is read under the lock of either direction and changed under neither: whoever changes it wakes
//! both directions afterwards, which takes their locks, so nobody sleeps on what he saw before.

use super::error::SocketError;
use crate::sync::{AtomicU32, Mutex, Ordering};

const CONNECTED: u32 = 1;
const CONNECTING: u32 = 2;
const ERROR: u32 = 4;
const LISTENING: u32 = 8;

#[derive(Debug)]
pub(crate) struct Status {
    word: AtomicU32,
    error: Mutex<Option<SocketError>>,
}

impl Status {
    pub(super) fn new() -> Self {
        Self {
            word: AtomicU32::new(0),
            error: Mutex::new(None),
        }
    }

    pub(super) fn set_connected(&self) {
        // In this order: at no time is there neither.
        self.word.fetch_or(CONNECTED, Ordering::AcqRel);
        self.word.fetch_and(!CONNECTING, Ordering::AcqRel);
    }

    pub(super) fn set_connecting(&self) {
        self.word.fetch_or(CONNECTING, Ordering::AcqRel);
    }

    pub(super) fn set_listening(&self) {
        self.word.fetch_or(LISTENING, Ordering::AcqRel);
    }

    pub(crate) fn is_listening(&self) -> bool {
        self.word.load(Ordering::Acquire) & LISTENING != 0
    }

    pub(super) fn set_disconnected(&self) {
        self.word
            .fetch_and(!(CONNECTED | CONNECTING), Ordering::AcqRel);
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.word.load(Ordering::Acquire) & CONNECTED != 0
    }

    /// Connected, or about to be.
    pub(crate) fn has_peer(&self) -> bool {
        self.word.load(Ordering::Acquire) & (CONNECTED | CONNECTING) != 0
    }

    /// An error to be told to whoever calls next. An earlier one that nobody was told is replaced.
    pub(crate) fn report(&self, error: SocketError) {
        let mut slot = self.error.lock();
        *slot = Some(error);
        self.word.fetch_or(ERROR, Ordering::Release);
    }

    #[inline]
    fn has_error(&self) -> bool {
        self.word.load(Ordering::Acquire) & ERROR != 0
    }

    /// Takes the error out: it is told once.
    #[inline]
    pub(super) fn take_error(&self) -> Option<SocketError> {
        if self.has_error() { self.take() } else { None }
    }

    #[cold]
    fn take(&self) -> Option<SocketError> {
        let mut slot = self.error.lock();
        self.word.fetch_and(!ERROR, Ordering::Release);
        slot.take()
    }

    /// The error, which stays.
    #[inline]
    pub(crate) fn error(&self) -> Option<SocketError> {
        if self.has_error() {
            *self.error.lock()
        } else {
            None
        }
    }
}
