//! What others offer for the same work, each through its own natural calls; one crate a file.
//!
//! None of them gets or gives back many at once: a burst is a loop. Variants have the crates' names.

mod allocators;
mod array_queue;
mod bytes;
mod linear;
mod opool;

use super::stores::Visit;

/// All of them.
pub(super) fn all(visit: &mut impl Visit) -> Result<(), String> {
    visit.shared::<allocators::Glibc>()?;
    visit.shared::<allocators::Mimalloc>()?;
    visit.shared::<bytes::WithCapacity>()?;
    visit.shared::<bytes::Split>()?;
    visit.shared::<array_queue::Freelist>()?;
    visit.shared::<linear::Linear>()?;
    visit.shared::<opool::Opool>()
}

/// One by one, for a lane whose items give themselves back when they are dropped, or that has no
/// call for many.
macro_rules! one_by_one {
    () => {
        #[inline(always)]
        fn get(&mut self, out: &mut [MaybeUninit<Self::Item>]) {
            for slot in out {
                slot.write(self.get_one());
            }
        }

        #[inline(always)]
        unsafe fn put(&mut self, items: &mut [MaybeUninit<Self::Item>]) {
            for item in items {
                // SAFETY: all are written, and count as moved out afterwards.
                unsafe { self.put_one(item.assume_init_read()) };
            }
        }
    };
}
use one_by_one;

/// Bytes that an item of a peer is a guard of.
type Buffer = Box<[u8; super::OBJECT]>;

fn buffer() -> Buffer {
    Box::new([0; super::OBJECT])
}
