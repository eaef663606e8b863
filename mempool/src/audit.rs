//! A look at every object: free + cached + out = capacity, each object once.

use crate::backend::AnyBackend;
use crate::checked::End;
use crate::inner::Inner;
use crate::pool::RawPool;
use crate::{wait, worker};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// Where a pool's objects are. The three add up to the capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Audit {
    /// Objects in the backend.
    pub backend: usize,
    /// Objects in threads' caches.
    pub cached: usize,
    /// Objects that somebody holds.
    pub out: usize,
}

/// What an audit found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The counts do not add up: somebody used the pool meanwhile, or it is broken.
    #[error("{backend} objects in the backend and {away} out of it, but {capacity} in all")]
    Counts {
        /// Objects found in the backend.
        backend: usize,
        /// Objects that were counted out of it.
        away: usize,
        /// Objects of the pool.
        capacity: usize,
    },
    /// Something in the pool is not an object of it.
    #[error("{address:#x} is free, but no object of the pool")]
    Foreign {
        /// Its address.
        address: usize,
    },
    /// An object is free twice.
    #[error("object {index} is free twice")]
    Twice {
        /// Its index.
        index: usize,
    },
    /// Somebody wrote past an end of an object (in checked mode).
    #[error("somebody wrote past an end of object {index} ({end:?})")]
    Damaged {
        /// Its index.
        index: usize,
        /// Which end.
        end: End,
    },
    /// More objects are marked as held than are out (in checked mode). Fewer may be: those in a
    /// [`LocalCache`](crate::LocalCache) are out, but free.
    #[error("{marked} objects marked as held, {out} out")]
    Held {
        /// Objects that are marked.
        marked: usize,
        /// Objects that are out by the counts.
        out: usize,
    },
}

impl RawPool {
    /// Looks at every free object within reach, and at all counts.
    ///
    /// The backend is emptied and filled again for that, so a get on another thread may fail
    /// meanwhile: for tests, and for times when the pool's users stand still. Objects in other threads' caches
    /// are counted, not looked at; so are all of a single-producer single-consumer backend. In
    /// checked mode ([`CHECKED`](crate::CHECKED)) the guards of all objects are looked at.
    ///
    /// ```
    /// let pool = mempool::RawPool::builder(64).capacity(100).cache(16).build()?;
    /// let object = pool.get()?;
    /// let audit = pool.audit()?;
    /// assert_eq!(audit.out, 1);
    /// assert_eq!(audit.backend + audit.cached, 99);
    /// # unsafe { pool.pool_ref().put(object) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AuditError`] says what is wrong.
    #[doc(alias = "rte_mempool_audit")]
    pub fn audit(&self) -> Result<Audit, AuditError> {
        let inner = self.inner();
        let mut seen = vec![false; inner.capacity];
        let backend = inner.audit_backend(&mut seen)?;
        self.audit_own_cache(&mut seen)?;
        let away = inner.units.0.away();
        if backend + away != inner.capacity {
            return Err(AuditError::Counts {
                backend,
                away,
                capacity: inner.capacity,
            });
        }
        let cached = inner.cached();
        let out = away.saturating_sub(cached);
        for index in 0..inner.capacity {
            if let Some(end) = inner.checks.damage(inner, index) {
                return Err(AuditError::Damaged { index, end });
            }
        }
        match inner.checks.held() {
            Some(marked) if marked > out => Err(AuditError::Held { marked, out }),
            _ => Ok(Audit {
                backend,
                cached,
                out,
            }),
        }
    }

    fn audit_own_cache(&self, seen: &mut [bool]) -> Result<(), AuditError> {
        // SAFETY: the handle keeps the pool alive; the slot at our own offset is ours, its first
        // `len` entries are written, and it is given back as it was.
        unsafe {
            let Some(slot) = self.pool_ref().slot_at(worker::current()) else {
                return Ok(());
            };
            let Some(taken) = slot.take() else {
                return Ok(());
            };
            let found = self.inner().mark(taken.slice(0, taken.len), seen);
            slot.restore(taken.len, taken.limit);
            found
        }
    }
}

/// Objects taken from the backend at once.
const BURST: usize = 64;

impl Inner {
    /// Looks at what is in the backend, and says how many that is.
    fn audit_backend(&self, seen: &mut [bool]) -> Result<usize, AuditError> {
        if self.backend.is_single() {
            return Ok(self.backend.len());
        }
        let mut all: Vec<NonNull<u8>> = Vec::with_capacity(self.capacity);
        let mut burst = [MaybeUninit::uninit(); BURST];
        let mut n = BURST;
        // A first-in first-out backend gives its objects back in their order, a stack its upper ones
        // first, each burst in the order in which it lies there.
        let fifo = matches!(self.backend, AnyBackend::Ring(_));
        while n > 0 && all.len() <= self.capacity {
            match self.backend.get_bulk(&mut burst[..n]) {
                Ok(()) => {
                    // SAFETY: written after success.
                    let taken = burst[..n].iter().map(|obj| unsafe { obj.assume_init() });
                    if fifo {
                        all.extend(taken);
                    } else {
                        all.extend(taken.rev());
                    }
                }
                Err(there) => n = there.min(n - 1),
            }
        }
        let found = self.mark(&all, seen);
        if !fifo {
            all.reverse();
        }
        all.chunks(BURST)
            .for_each(|burst| self.backend.put_bulk(burst));
        // Somebody may have looked while it was empty.
        wait::wake_all();
        found.map(|()| all.len())
    }

    fn mark(&self, free: &[NonNull<u8>], seen: &mut [bool]) -> Result<(), AuditError> {
        for object in free {
            let address = object.addr().get();
            let index = self
                .index_of(*object)
                .ok_or(AuditError::Foreign { address })?;
            if std::mem::replace(&mut seen[index], true) {
                return Err(AuditError::Twice { index });
            }
        }
        Ok(())
    }
}
