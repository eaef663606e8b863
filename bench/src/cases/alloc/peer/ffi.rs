//! DPDK's pools, through the shim in C.

#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_uint};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};

#[repr(C)]
struct Mempool([u8; 0]);

unsafe extern "C" {
    fn bench_dpdk_ready() -> c_int;
    fn bench_dpdk_pool(
        name: *const c_char,
        mbufs: c_uint,
        cache: c_uint,
        room: u16,
    ) -> *mut Mempool;
    fn bench_dpdk_drop(pool: *mut Mempool);
    fn bench_dpdk_available(pool: *const Mempool) -> c_uint;
    fn bench_dpdk_element(pool: *const Mempool) -> c_uint;
    fn bench_dpdk_nothing(burst: *mut *mut u8, n: c_uint);
    fn bench_dpdk_alloc(pool: *mut Mempool, burst: *mut *mut u8, n: c_uint) -> c_int;
    fn bench_dpdk_free(burst: *mut *mut u8, n: c_uint);
    fn bench_dpdk_word(mbuf: *mut u8) -> u64;
    fn bench_dpdk_pairs(
        pool: *mut Mempool,
        burst: *mut *mut u8,
        n: c_uint,
        bursts: c_uint,
        mark: u64,
    ) -> c_int;
}

/// A pool of its packets, and an array for a burst of them. Of one thread: a cache is found by it.
pub(super) struct Pool {
    pool: NonNull<Mempool>,
    burst: Vec<*mut u8>,
    mbufs: u32,
}

impl Pool {
    /// Starts the library if need be, and makes a pool.
    ///
    /// # Errors
    /// What was not to be had.
    pub(super) fn new(mbufs: u32, cache: u32, room: u16, burst: usize) -> Result<Self, String> {
        static NAMES: AtomicUsize = AtomicUsize::new(0);
        let name = format!("bench{}", NAMES.fetch_add(1, Ordering::Relaxed));
        let name = CString::new(name).map_err(|e| e.to_string())?;
        // SAFETY: callable at any time; the name lives through the call.
        let pool = unsafe {
            match bench_dpdk_ready() {
                0 => bench_dpdk_pool(name.as_ptr(), mbufs, cache, room),
                error => return Err(format!("DPDK does not start: error {error}")),
            }
        };
        Ok(Pool {
            pool: NonNull::new(pool).ok_or("DPDK has no memory for a pool")?,
            burst: vec![ptr::null_mut(); burst],
            mbufs,
        })
    }

    /// Mbufs that are out.
    pub(super) fn missing(&self) -> usize {
        // SAFETY: the pool lives.
        (self.mbufs - unsafe { bench_dpdk_available(self.pool.as_ptr()) }) as usize
    }

    /// Bytes of an element.
    pub(super) fn element(&self) -> usize {
        // SAFETY: the pool lives.
        unsafe { bench_dpdk_element(self.pool.as_ptr()) as usize }
    }

    fn n(&self) -> c_uint {
        self.burst.len() as c_uint
    }

    /// Allocates a burst; false if there were too few.
    #[inline(always)]
    pub(super) fn alloc(&mut self) -> bool {
        // SAFETY: the array has so many entries, and nothing is in them that is owed.
        unsafe { bench_dpdk_alloc(self.pool.as_ptr(), self.burst.as_mut_ptr(), self.n()) == 0 }
    }

    /// Frees the burst.
    ///
    /// # Safety
    /// One has been allocated, and not freed since.
    #[inline(always)]
    pub(super) unsafe fn free(&mut self) {
        // SAFETY: by contract.
        unsafe { bench_dpdk_free(self.burst.as_mut_ptr(), self.n()) };
    }

    /// A call that does nothing.
    #[inline(always)]
    pub(super) fn nothing(&mut self) {
        // SAFETY: it does nothing.
        unsafe { bench_dpdk_nothing(self.burst.as_mut_ptr(), self.n()) };
    }

    /// Allocates, marks and frees `bursts` bursts; false if there were too few.
    #[inline(always)]
    pub(super) fn pairs(&mut self, bursts: usize, mark: u64) -> bool {
        let (pool, burst) = (self.pool.as_ptr(), self.burst.as_mut_ptr());
        // SAFETY: the array has so many entries; every burst is freed again.
        unsafe { bench_dpdk_pairs(pool, burst, self.n(), bursts as c_uint, mark) == 0 }
    }

    /// The marks of the burst.
    ///
    /// # Safety
    /// As for [`free`](Self::free).
    pub(super) unsafe fn marks(&self) -> Vec<u64> {
        // SAFETY: the packets are out.
        let marks = self.burst.iter().map(|&m| unsafe { bench_dpdk_word(m) });
        marks.collect()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: nothing of it is used any more.
        unsafe { bench_dpdk_drop(self.pool.as_ptr()) };
    }
}
