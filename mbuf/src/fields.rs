//! Named fields and flags in the private area of mbufs, handed out by a registry, so that parts of a
//! program that know nothing of each other can each keep something on a packet.

use crate::handle::Mbuf;
use crate::packet::Packet;
use crate::plain_value::PlainValue;
use crate::private::{self, PrivateArea};
use parking_lot::Mutex;
use std::fmt;
use std::marker::PhantomData;

mod error;

pub use error::{FieldError, Place};

/// Registered flags that there are at most.
const FLAGS: u32 = u64::BITS;

/// A field that was registered: how to read and write it on any packet.
///
/// It is the place alone: on packets of pools whose area is smaller it reads as `None`, and on
/// those of another registry it is whatever lies there.
pub struct Field<T> {
    offset: usize,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Field<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Field<T> {}

impl<T> fmt::Debug for Field<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Field at {}", self.offset)
    }
}

impl<T: PlainValue> Field<T> {
    /// Bytes in front of it in the area.
    pub fn offset(self) -> usize {
        self.offset
    }

    /// The value; zeros until it is set; `None` when the packet's pool has no room for it.
    #[doc(alias = "RTE_MBUF_DYNFIELD")]
    #[inline]
    pub fn get<P: Packet + ?Sized>(self, packet: &P) -> Option<T> {
        let fields = private::view(packet)?.fields;
        fields
            .get(self.offset..self.offset + T::LEN)
            .map(T::read_from)
    }

    /// Sets the value; false when the packet's pool has no room for it.
    #[inline]
    pub fn set(self, packet: &mut Mbuf, value: T) -> bool {
        let fields = private::view_mut(packet).map(|area| area.fields);
        let room = fields.and_then(|f| f.get_mut(self.offset..self.offset + T::LEN));
        room.map(|room| value.write_to(room)).is_some()
    }
}

/// A flag that was registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldFlag(u32);

impl FieldFlag {
    /// Which of 64.
    pub fn bit(self) -> u32 {
        self.0
    }

    /// Whether it is set; false where there is no private area.
    #[inline]
    pub fn get<P: Packet + ?Sized>(self, packet: &P) -> bool {
        private::view(packet).is_some_and(|area| area.flags >> self.0 & 1 != 0)
    }

    /// Sets or clears it; false when the packet has no private area.
    #[inline]
    pub fn set(self, packet: &mut Mbuf, on: bool) -> bool {
        let Some(area) = private::view_mut(packet) else {
            return false;
        };
        area.head.flags = area.head.flags & !(1 << self.0) | u64::from(on) << self.0;
        true
    }
}

struct Entry {
    name: String,
    offset: usize,
    size: usize,
    align: usize,
}

#[derive(Default)]
struct Names {
    fields: Vec<Entry>,
    flags: Vec<(String, u32)>,
}

/// Who has which bytes and bits of the private area. Registered is for good.
///
/// ```
/// use mbuf::{BufferSet, FieldRegistry, PrivateArea};
/// let registry = FieldRegistry::new(PrivateArea { fields: 32, tags: 0 })?;
/// let set = BufferSet::standard_builder(64, 8)
///     .private(registry.area())
///     .build()?;
/// let hops = registry.field::<u16>("hops")?;
/// let seen = registry.flag("seen")?;
/// let mut m = set.header()?;
/// assert_eq!((hops.get(&m), seen.get(&m)), (Some(0), false));
/// assert!(hops.set(&mut m, 3) && seen.set(&mut m, true));
/// assert_eq!((hops.get(&m), seen.get(&m)), (Some(3), true));
/// println!("{registry}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FieldRegistry {
    area: PrivateArea,
    names: Mutex<Names>,
}

impl FieldRegistry {
    /// An empty registry for pools with this area.
    ///
    /// # Errors
    /// [`CreateError::Private`](crate::CreateError::Private) when the area is impossible.
    pub fn new(area: PrivateArea) -> Result<Self, crate::CreateError> {
        area.check()?;
        Ok(Self {
            area,
            names: Mutex::default(),
        })
    }

    /// The area, for a pool's builder.
    pub fn area(&self) -> PrivateArea {
        self.area
    }

    /// The field of this name, registered where it fits best if it is new.
    ///
    /// # Errors
    /// [`FieldError`].
    #[doc(alias = "rte_mbuf_dynfield_register")]
    pub fn field<T: PlainValue>(&self, name: &str) -> Result<Field<T>, FieldError> {
        self.typed(name, None)
    }

    /// The field of this name, registered at `offset` if it is new.
    ///
    /// # Errors
    /// [`FieldError`].
    #[doc(alias = "rte_mbuf_dynfield_register_offset")]
    pub fn field_at<T: PlainValue>(
        &self,
        name: &str,
        offset: usize,
    ) -> Result<Field<T>, FieldError> {
        self.typed(name, Some(offset))
    }

    fn typed<T: PlainValue>(
        &self,
        name: &str,
        offset: Option<usize>,
    ) -> Result<Field<T>, FieldError> {
        let (size, align) = (T::LEN, T::ALIGN);
        let place = Place {
            offset,
            size,
            align,
        };
        self.place(name, place).map(|offset| Field {
            offset,
            value: PhantomData,
        })
    }

    /// As [`field`](Self::field), of any size: where it lies in
    /// [`Mbuf::private_mut`](crate::Mbuf::private_mut).
    ///
    /// # Errors
    /// [`FieldError`].
    pub fn place(&self, name: &str, asked: Place) -> Result<usize, FieldError> {
        let Place {
            offset,
            size,
            align,
        } = asked;
        if size == 0 || !align.is_power_of_two() || align > 8 {
            return Err(FieldError::Malformed { size, align });
        }
        let mut names = self.names.lock();
        if let Some(entry) = names.fields.iter().find(|e| e.name == name) {
            return entry.agrees(asked);
        }
        let free = free_runs(&names.fields, self.area.fields);
        let offset = match offset {
            None => best_fit(&free, size, align)?,
            Some(at) if at % align == 0 && contains(&free, at, size) => at,
            Some(_) => {
                let len = self.area.fields;
                return Err(FieldError::Unavailable { asked, len });
            }
        };
        names.fields.push(Entry {
            name: name.to_owned(),
            offset,
            size,
            align,
        });
        names.fields.sort_unstable_by_key(|e| e.offset);
        Ok(offset)
    }

    /// Where the field of this name lies; `None` when there is none.
    #[doc(alias = "rte_mbuf_dynfield_lookup")]
    pub fn lookup(&self, name: &str) -> Option<Place> {
        let names = self.names.lock();
        names
            .fields
            .iter()
            .find(|e| e.name == name)
            .map(Entry::place)
    }

    /// The flag of this name, registered at the first free bit if it is new.
    ///
    /// # Errors
    /// [`FieldError::NoBit`].
    #[doc(alias = "rte_mbuf_dynflag_register")]
    pub fn flag(&self, name: &str) -> Result<FieldFlag, FieldError> {
        self.flag_bit(name, None)
    }

    /// The flag of this name, registered at `bit` if it is new.
    ///
    /// # Errors
    /// [`FieldError::NoBit`], also when the name has another bit.
    #[doc(alias = "rte_mbuf_dynflag_register_bitnum")]
    pub fn flag_at(&self, name: &str, bit: u32) -> Result<FieldFlag, FieldError> {
        self.flag_bit(name, Some(bit))
    }

    fn flag_bit(&self, name: &str, asked: Option<u32>) -> Result<FieldFlag, FieldError> {
        let last = FLAGS - 1;
        let mut names = self.names.lock();
        let known = names.flags.iter().find(|(n, _)| n == name);
        if let Some(&(_, bit)) = known {
            return match asked {
                Some(other) if other != bit => Err(FieldError::NoBit { asked, last }),
                _ => Ok(FieldFlag(bit)),
            };
        }
        let taken = names
            .flags
            .iter()
            .fold(0u64, |all, (_, bit)| all | 1 << bit);
        let bit = asked.unwrap_or(taken.trailing_ones());
        if bit > last || taken >> bit & 1 != 0 {
            return Err(FieldError::NoBit { asked, last });
        }
        names.flags.push((name.to_owned(), bit));
        Ok(FieldFlag(bit))
    }

    /// The flag of this name; `None` when there is none.
    #[doc(alias = "rte_mbuf_dynflag_lookup")]
    pub fn lookup_flag(&self, name: &str) -> Option<FieldFlag> {
        let names = self.names.lock();
        let known = names.flags.iter().find(|(n, _)| n == name);
        known.map(|&(_, bit)| FieldFlag(bit))
    }
}

impl Entry {
    fn place(&self) -> Place {
        Place {
            offset: Some(self.offset),
            size: self.size,
            align: self.align,
        }
    }

    fn agrees(&self, asked: Place) -> Result<usize, FieldError> {
        let have = self.place();
        let offset = asked.offset.or(have.offset);
        if have == (Place { offset, ..asked }) {
            return Ok(self.offset);
        }
        Err(FieldError::Differs {
            name: self.name.clone(),
            have,
            asked,
        })
    }
}

/// What no field has, as start and length; `fields` are sorted by offset.
fn free_runs(fields: &[Entry], len: usize) -> Vec<(usize, usize)> {
    let mut free = Vec::new();
    let mut at = 0;
    for entry in fields {
        free.push((at, entry.offset - at));
        at = entry.offset + entry.size;
    }
    free.push((at, len - at));
    free.retain(|&(_, len)| len > 0);
    free
}

fn contains(free: &[(usize, usize)], at: usize, size: usize) -> bool {
    free.iter()
        .any(|&(start, len)| at >= start && at - start <= len && len - (at - start) >= size)
}

/// The aligned place in the shortest free run that holds the field.
fn best_fit(free: &[(usize, usize)], size: usize, align: usize) -> Result<usize, FieldError> {
    let fits = free.iter().filter_map(|&(start, len)| {
        let at = start.next_multiple_of(align);
        let room = len.checked_sub(at - start)?;
        (size <= room).then_some((len, at))
    });
    let total = free.iter().map(|&(_, len)| len).sum();
    fits.min().map(|(_, at)| at).ok_or(FieldError::NoRoom {
        size,
        align,
        free: total,
    })
}

impl fmt::Display for FieldRegistry {
    /// One line per field and flag.
    #[doc(alias = "rte_mbuf_dyn_dump")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names.lock();
        writeln!(f, "{} bytes for fields", self.area.fields)?;
        for entry in &names.fields {
            writeln!(f, "  field {}: {}", entry.name, entry.place())?;
        }
        for (name, bit) in &names.flags {
            writeln!(f, "  flag {name}: bit {bit}")?;
        }
        Ok(())
    }
}
