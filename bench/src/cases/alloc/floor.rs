//! The least that a pair must do for a packet: load the word that says that it may go back, store the
//! line that says that it is fresh, copy its pointer out and back. No pool, no strategy.

#![allow(unsafe_code)] // believes that every burst is flat, which it alone makes

use super::desk::Desk;
use super::ways::Way;
use mbuf::raw::{Raw, slots_of};
use mbuf::{AllocError, Mbuf, MbufPool};
use std::hint::black_box;
use std::mem::MaybeUninit;

/// Packets that the floor has: as many as a thread's cache holds.
const PACKETS: usize = super::CACHE;

/// A header's first line: the free word and the fields behind it.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u64; 8]);

/// Packets that are used from the end.
pub(super) struct Stack {
    /// The first `len` are packets that rest.
    packets: Box<[MaybeUninit<Mbuf>]>,
    len: usize,
    /// The first line of a fresh one.
    line: Line,
}

impl Stack {
    pub(super) fn new(pool: &MbufPool) -> Result<Self, AllocError> {
        let mut all: Vec<Option<Mbuf>> = (0..PACKETS).map(|_| None).collect();
        pool.header_bulk(&mut all)?;
        // SAFETY: slots are only read. The line is initialised, and nobody else has the packet.
        let line = unsafe {
            let first = slots_of(&mut all)[0].unwrap_unchecked();
            first.object().cast::<Line>().read()
        };
        Ok(Stack {
            packets: all.into_iter().flatten().map(MaybeUninit::new).collect(),
            len: PACKETS,
            line,
        })
    }

    /// Packets that are not here.
    pub(super) fn missing(&self) -> usize {
        PACKETS - self.len
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the first `len` are packets.
        unsafe { self.packets[..self.len].assume_init_drop() };
    }
}

/// Ends the process: a floor that met what it does not expect has corrupted a packet.
#[cold]
#[inline(never)]
fn wrong_shape() -> ! {
    std::process::abort()
}

/// Pointers from which on `memcpy` is called.
const CALL: usize = 16;

/// Copies `n` pointers.
///
/// # Safety
/// So many are readable at `from` and writable at `to`, which do not overlap.
#[inline(always)]
unsafe fn copy(from: *const Option<Raw>, to: *mut Option<Raw>, n: usize) {
    // SAFETY: by contract.
    unsafe {
        if n >= CALL {
            return to.copy_from_nonoverlapping(from, n);
        }
        for at in 0..n {
            to.add(at).write(from.add(at).read());
            // Keeps the loop from being turned into a call.
            black_box(());
        }
    }
}

/// The variant.
pub(super) struct Floor;

impl Way for Floor {
    const NAME: &'static str = "floor";

    #[inline(always)]
    fn get(desk: &mut Desk, call: usize) -> Result<(), AllocError> {
        let line = desk.stack.line;
        let n = desk.burst;
        if n > desk.stack.len {
            wrong_shape();
        }
        desk.stack.len -= n;
        // SAFETY: the packets above `len` are moved into slots, of which all are `None` and as many
        // as are moved. A packet of ours has a line of ours at its address.
        unsafe {
            let from = desk.stack.packets.as_ptr().add(desk.stack.len);
            let to = slots_of(desk.slots(call)).as_mut_ptr();
            copy(from.cast(), to, n);
            for at in 0..n {
                let packet = from.add(at).cast::<Raw>().read();
                packet.object().cast::<Line>().write(line);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn packets(desk: &Desk, call: usize) -> impl Iterator<Item = &Mbuf> {
        desk.packets(call)
    }

    #[inline(always)]
    fn put(desk: &mut Desk, call: usize) {
        let rests = desk.stack.line.0[0];
        let to = desk.stack.packets[desk.stack.len..].as_mut_ptr();
        let slots = desk.slots(call);
        let n = slots.len();
        // SAFETY: every slot holds a packet that came from the top of the stack, so that there is room.
        unsafe {
            let slots = slots_of(slots);
            let mut odd = 0;
            for slot in slots.iter() {
                odd |= slot.unwrap_unchecked().word() ^ rests;
            }
            copy(slots.as_ptr(), to.cast(), n);
            slots.fill(None);
            if odd != 0 {
                wrong_shape();
            }
        }
        desk.stack.len += n;
    }
}
