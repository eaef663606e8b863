//! Memory that the caller brings.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::{assert_whole, give, take};
use mempool::{Builder, CreateError, MemoryKind, Pool, RawPool};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const PAGE: usize = 4096;
const CANARY: u8 = 0xA5;

#[repr(C, align(4096))]
#[derive(Clone, Copy)]
struct Page([u8; PAGE]);

/// Memory with a page of canaries on each side, freed when dropped.
struct Area {
    pages: NonNull<[Page]>,
    dropped: Arc<AtomicUsize>,
}

// SAFETY: memory that the area owns.
unsafe impl Send for Area {}
// SAFETY: shared, it gives no access.
unsafe impl Sync for Area {}

impl Area {
    fn new(bytes: usize) -> (Self, Arc<AtomicUsize>) {
        let pages = vec![Page([CANARY; PAGE]); bytes.div_ceil(PAGE) + 2].into_boxed_slice();
        let dropped = Arc::new(AtomicUsize::new(0));
        let area = Self {
            pages: NonNull::from(Box::leak(pages)),
            dropped: dropped.clone(),
        };
        (area, dropped)
    }

    /// Where the region begins: behind the first canaries.
    fn base(&self) -> NonNull<u8> {
        // SAFETY: there are at least two pages.
        unsafe { self.pages.cast::<u8>().add(PAGE) }
    }

    /// All bytes, canaries and all.
    ///
    /// # Safety
    /// Nobody writes to them meanwhile.
    unsafe fn bytes<'a>(pages: NonNull<[Page]>) -> &'a [u8] {
        // SAFETY: as the caller promises; initialised when made.
        unsafe { std::slice::from_raw_parts(pages.cast().as_ptr(), pages.len() * PAGE) }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        // SAFETY: leaked when made; nobody uses it any more.
        drop(unsafe { Box::from_raw(self.pages.as_ptr()) });
    }
}

/// `builder` with a region of `len` bytes between canaries.
fn within(builder: Builder, len: usize) -> (Builder, NonNull<[Page]>, Arc<AtomicUsize>) {
    let (area, dropped) = Area::new(len);
    let (base, pages) = (area.base(), area.pages);
    // SAFETY: the area lives until it is dropped, is initialised and nobody else's.
    (unsafe { builder.region(base, len, area) }, pages, dropped)
}

fn write_all(pool: &RawPool) {
    for object in take(pool, pool.capacity()).unwrap() {
        // SAFETY: just got.
        unsafe {
            object.write_bytes(0x11, pool.object_size());
            pool.pool_ref().put(object);
        }
    }
}

#[test]
fn fault_b5_an_element_lies_wholly_within_the_region() {
    let described = |n| RawPool::builder(3000).align(8).capacity(n).cache(0);
    let (builder, _, dropped) = within(described(4), 10_000);
    let error = builder.build().unwrap_err();
    assert!(matches!(
        error,
        CreateError::RegionTooSmall {
            bytes: 10_000,
            object_size: 3000,
            stride: 3000,
            asked: 4,
            holds: 3
        }
    ));
    assert_eq!(
        error.to_string(),
        "a region of 10000 bytes holds 3 objects of 3000 bytes, 3000 apart; 4 asked for"
    );
    assert_eq!(dropped.load(Ordering::Relaxed), 1);

    let (builder, pages, dropped) = within(described(3).zero_region(true), 10_000);
    let pool = builder.build().unwrap();
    write_all(&pool);
    assert_whole(&pool);
    let held = take(&pool, 3).unwrap();
    // SAFETY: nobody writes now, and all objects are ours.
    let bytes = unsafe { Area::bytes(pages) };
    let canary = |&byte: &u8| byte == CANARY;
    assert!(bytes[..PAGE].iter().all(canary));
    assert!(bytes[PAGE..PAGE + 9000].iter().all(|&byte| byte == 0x11));
    assert!(bytes[PAGE + 9000..].iter().all(canary));
    give(&pool, &held);
    drop(pool);
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}

#[test]
fn fault_b5_the_last_element_may_end_with_the_region() {
    for (len, holds) in [(0, 0), (99, 0), (100, 1), (227, 1), (228, 2), (256, 2)] {
        let (builder, _, _) = within(RawPool::builder(100).stride(128).capacity(9), len);
        let CreateError::RegionTooSmall { holds: found, .. } = builder.build().unwrap_err() else {
            panic!("too small");
        };
        assert_eq!(found, holds, "{len} bytes");
        if holds > 0 {
            let exact = RawPool::builder(100).stride(128).capacity(holds);
            let (builder, _, _) = within(exact, len);
            let pool = builder.build().unwrap();
            assert_eq!(pool.range().len(), (holds - 1) * 128 + 100);
            write_all(&pool);
        }
    }
}

#[test]
fn a_misaligned_region_is_an_error() {
    let (area, dropped) = Area::new(PAGE);
    // SAFETY: within the area.
    let base = unsafe { area.base().add(8) };
    // SAFETY: as for `within`.
    let builder = unsafe { RawPool::builder(8).capacity(1).region(base, 100, area) };
    let error = builder.build().unwrap_err();
    assert!(matches!(
        error,
        CreateError::RegionMisaligned { align: 64, address } if address == base.addr().get()
    ));
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}

#[test]
fn strides_are_exact_or_an_error() {
    let build = |size, align, stride| {
        let builder = RawPool::builder(size).align(align).stride(stride);
        builder.capacity(2).build().map(|pool| pool.stride())
    };
    assert_eq!(build(2000, 64, 2048).unwrap(), 2048);
    assert_eq!(build(4096, 4096, 4096).unwrap(), 4096);
    for (size, align, stride) in [(2049, 1, 2048), (10, 64, 32), (10, 64, 96), (1, 1, 0)] {
        let error = build(size, align, stride).unwrap_err();
        assert!(
            matches!(error, CreateError::BadStride { stride: s, align: a, object_size: o }
                if (s, a, o) == (stride, align, size)),
            "{error}"
        );
    }
    assert!(matches!(
        build(1, 1, usize::MAX).unwrap_err(),
        CreateError::TooLarge { .. }
    ));
}

#[test]
fn places_in_the_region_and_addresses_are_one_another() {
    let chunks = RawPool::builder(2000).stride(2048).capacity(8);
    let (builder, _, _) = within(chunks, 8 * 2048);
    let pool = builder.build().unwrap();
    assert_eq!(pool.memory_kind(), MemoryKind::Region);
    for (index, object) in pool.objects().enumerate() {
        for within in [0, 256, 1999] {
            let byte = object.map_addr(|addr| addr.saturating_add(within));
            let place = index * 2048 + within;
            assert_eq!(pool.offset_of(byte), Some(place));
            assert_eq!(pool.object_at(place), Some(object));
            assert_eq!(pool.contains(byte), Some(index));
        }
        // What lies between two objects is nobody's.
        let gap = object.map_addr(|addr| addr.saturating_add(2000));
        assert_eq!(pool.offset_of(gap), None);
        assert_eq!(pool.object_at(index * 2048 + 2000), None);
    }
    assert_eq!(pool.object_at(8 * 2048), None);
    assert_eq!(pool.object_at(usize::MAX), None);
    let before = pool.object(0).unwrap();
    let before = before.map_addr(|addr| (addr.get() - 1).try_into().unwrap());
    assert_eq!(pool.offset_of(before), None);
}

#[test]
fn content_stays_unless_zeroing_is_asked_for() {
    let first_bytes = |zero, prefault| {
        let builder = RawPool::builder(5000).stride(6000).align(8).capacity(2);
        let builder = builder.zero_region(zero).prefault(prefault);
        let (builder, pages, _) = within(builder, 12_000);
        let mut seen = Vec::new();
        let pool = builder.build_with(|object, _| {
            // SAFETY: ours here; initialised by `Area`.
            seen.push(unsafe { (object.read(), object.add(4999).read()) });
        });
        // SAFETY: nobody writes now.
        let bytes = unsafe { Area::bytes(pages) };
        assert!(bytes[PAGE + 11_000..].iter().all(|&byte| byte == CANARY));
        drop(pool.unwrap());
        seen
    };
    for prefault in [false, true] {
        assert_eq!(first_bytes(false, prefault), [(CANARY, CANARY); 2]);
        assert_eq!(first_bytes(true, prefault), [(0, 0); 2]);
    }
}

/// Looks, when it is dropped, whether its memory's owner was dropped before.
struct Value {
    owner_dropped: Arc<AtomicUsize>,
    in_time: Arc<AtomicUsize>,
}

impl Drop for Value {
    fn drop(&mut self) {
        if self.owner_dropped.load(Ordering::Relaxed) == 0 {
            self.in_time.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn the_owner_is_dropped_after_the_last_object() {
    let in_time = Arc::new(AtomicUsize::new(0));
    let mut owner_dropped = None;
    let (area, dropped) = Area::new(PAGE);
    let pool = Pool::build(
        |b| {
            owner_dropped = Some(dropped.clone());
            let base = area.base();
            // SAFETY: as for `within`.
            unsafe { b.capacity(4).cache(2).region(base, PAGE, area) }
        },
        |_| Value {
            owner_dropped: dropped.clone(),
            in_time: in_time.clone(),
        },
    );
    let pool = pool.unwrap();
    let held = pool.get().unwrap();
    drop(pool);
    assert_eq!(dropped.load(Ordering::Relaxed), 0);
    std::thread::spawn(move || drop(held)).join().unwrap();
    let counts = (
        dropped.load(Ordering::Relaxed),
        in_time.load(Ordering::Relaxed),
    );
    assert_eq!(counts, (1, 4));
}

#[test]
fn the_owner_is_dropped_when_building_fails_late() {
    let (builder, _, dropped) = within(RawPool::builder(64).capacity(4), PAGE);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        builder.build_with(|_, index| assert!(index < 2)).is_ok()
    }));
    assert!(result.is_err());
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}

#[test]
fn a_typed_pool_in_a_static_region_is_aligned_or_refused() {
    #[repr(align(32))]
    struct Wide([u8; 32]);

    let pages = Box::leak(Box::new([Page([1; PAGE]); 2]));
    let (first, second) = pages.split_at_mut(1);
    let build = |memory| {
        Pool::build(
            |b| b.align(1).capacity(8).static_region(memory),
            |_| Wide([7; 32]),
        )
    };
    let pool = build(&mut first[0].0[..]).unwrap();
    let value = pool.get().unwrap();
    assert_eq!(value.0, [7; 32]);
    assert_eq!(std::ptr::from_ref(&*value).addr() % 32, 0);
    let error = build(&mut second[0].0[8..]).unwrap_err();
    assert!(matches!(
        error,
        CreateError::RegionMisaligned { align: 32, .. }
    ));
}

fn is_send_and_sync<T: Send + Sync>() {}

#[test]
fn builders_go_to_other_threads_with_their_region() {
    is_send_and_sync::<Builder>();
}
