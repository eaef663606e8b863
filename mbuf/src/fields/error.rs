//! What can go wrong with a registration, and where fields lie.

use std::fmt;
use thiserror::Error;

/// A field or flag could not be registered; nothing was.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FieldError {
    /// The name is there with another size, alignment or place.
    #[error("field {name} is registered with {have}, asked for {asked}")]
    Differs {
        /// The name.
        name: String,
        /// How it is registered.
        have: Place,
        /// What was asked for.
        asked: Place,
    },
    /// No free room of that size and alignment.
    #[error("no room for {size} bytes aligned to {align}, {free} bytes are free")]
    NoRoom {
        /// Bytes asked for.
        size: usize,
        /// Alignment asked for.
        align: usize,
        /// Bytes that no field has.
        free: usize,
    },
    /// The place asked for is another field's, not aligned, or outside.
    #[error("{asked} cannot be had in an area of {len} bytes")]
    Unavailable {
        /// What was asked for.
        asked: Place,
        /// Bytes of the area.
        len: usize,
    },
    /// Alignments are powers of two up to 8, and fields have a byte at least.
    #[error("field of {size} bytes aligned to {align}")]
    Malformed {
        /// Bytes asked for.
        size: usize,
        /// Alignment asked for.
        align: usize,
    },
    /// The flag's bit is another flag's, all are, or there is no such bit.
    #[error("no free flag bit at {asked:?} of 0 to {last}")]
    NoBit {
        /// The bit asked for; `None` for any.
        asked: Option<u32>,
        /// The last that there is.
        last: u32,
    },
}

/// Where a field lies in the area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Bytes in front of it; `None` where it does not matter.
    pub offset: Option<usize>,
    /// Bytes that it takes.
    pub size: usize,
    /// What its offset is a multiple of.
    pub align: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes aligned to {}", self.size, self.align)?;
        match self.offset {
            Some(offset) => write!(f, " at {offset}"),
            None => Ok(()),
        }
    }
}
