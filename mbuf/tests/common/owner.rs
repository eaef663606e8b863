//! An owner of bytes that is watched.

use mbuf::{BufferSet, External, Mbuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes inside of the owner; counts how often it is dropped.
struct Inside {
    bytes: [u8; 64],
    dropped: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Inside {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

pub fn inside() -> (External, Arc<AtomicUsize>) {
    let dropped = Arc::new(AtomicUsize::new(0));
    let bytes = std::array::from_fn(|at| at as u8);
    let owner = Inside {
        bytes,
        dropped: dropped.clone(),
    };
    (External::from_owner(owner), dropped)
}

pub fn times(count: &AtomicUsize) -> usize {
    count.load(Ordering::Relaxed)
}

pub fn with(set: &BufferSet, storage: impl Into<External>) -> Mbuf {
    let mut m = set.header().unwrap();
    m.attach(storage).unwrap();
    m
}
