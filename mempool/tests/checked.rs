//! Checked mode: misuse of the unsafe layer is reported, with object, pool and place.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::{assert_whole, give, take};
use mempool::{AuditError, CHECKED, End, RawPool};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Mutex;

fn pool(size: usize) -> RawPool {
    let builder = RawPool::builder(size).name("suspects").capacity(8).cache(4);
    builder.build().unwrap()
}

/// The message and the place of the panic that `act` ends in.
fn panic_of(act: impl FnOnce()) -> (String, String) {
    static PLACE: Mutex<String> = Mutex::new(String::new());
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(|info| {
        *PLACE.lock().unwrap() = info.location().unwrap().file().to_string();
    }));
    let result = catch_unwind(AssertUnwindSafe(act));
    std::panic::set_hook(before);
    let message = *result.unwrap_err().downcast::<String>().unwrap();
    (message, PLACE.lock().unwrap().clone())
}

fn assert_reported(act: impl FnOnce(), words: &[&str]) {
    let (message, place) = panic_of(act);
    for word in words {
        assert!(message.contains(word), "{word} is not in: {message}");
    }
    assert!(message.contains("\"suspects\""), "{message}");
    assert!(place.ends_with("checked.rs"), "reported at {place}");
    assert!(place.contains("tests"), "reported at {place}");
}

/// Every way to put an object.
#[derive(Debug, Clone, Copy)]
enum Way {
    Put,
    PutBulk,
    TryPut,
    Near,
    Push,
    PushSlice,
    Advance,
}

const WAYS: [Way; 7] = [
    Way::Put,
    Way::PutBulk,
    Way::TryPut,
    Way::Near,
    Way::Push,
    Way::PushSlice,
    Way::Advance,
];

fn put(way: Way, pool: &RawPool, obj: NonNull<u8>) {
    let name = pool.pool_ref();
    // SAFETY: what is put may be wrong; that is tested, and found before any harm is done.
    unsafe {
        match way {
            Way::Put => name.put(obj),
            Way::PutBulk => name.put_bulk(&[obj]),
            Way::TryPut => assert!(name.try_put(obj)),
            Way::Near => assert!(name.near_cache().unwrap().try_push(obj)),
            Way::Push => name.open_put().push(obj),
            Way::PushSlice => name.open_put().push_slice(&[obj]),
            Way::Advance => {
                let mut cursor = name.open_put();
                cursor.spare(1).unwrap().write(obj);
                cursor.advance(1);
            }
        }
    }
}

#[test]
fn a_double_put_is_found_by_every_way() {
    if !CHECKED {
        return println!("SKIPPED: this build is not checked (feature `checked`)");
    }
    for way in WAYS {
        let pool = pool(40);
        let held = take(&pool, 2).unwrap();
        give(&pool, &held);
        println!("{way:?}");
        assert_reported(|| put(way, &pool, held[0]), &["put twice"]);
        assert_whole(&pool);
        // Also when it left the cache of this thread long ago.
        pool.flush_thread_cache();
        let obj = pool.get().unwrap();
        let free = pool.objects_for_test(obj);
        assert_reported(|| put(way, &pool, free), &["put twice"]);
        give(&pool, &[obj]);
        assert_whole(&pool);
    }
}

#[test]
fn a_foreign_object_is_found_by_every_way() {
    if !CHECKED {
        return println!("SKIPPED: this build is not checked (feature `checked`)");
    }
    for way in WAYS {
        let (pool, other) = (pool(40), pool(40));
        let warm = pool.get().unwrap();
        give(&pool, &[warm]);
        let obj = other.get().unwrap();
        println!("{way:?}");
        assert_reported(|| put(way, &pool, obj), &["no object of it"]);
        give(&other, &[obj]);
        // Not its first byte.
        let obj = pool.get().unwrap();
        // SAFETY: within the object.
        let inside = unsafe { obj.add(8) };
        assert_reported(|| put(way, &pool, inside), &["no object of it"]);
        give(&pool, &[obj]);
        assert_whole(&pool);
        assert_whole(&other);
    }
}

#[test]
#[cfg_attr(asan, ignore = "the address sanitizer reports the write itself")]
fn writes_past_either_end_are_found() {
    if !CHECKED {
        return println!("SKIPPED: this build is not checked (feature `checked`)");
    }
    for size in [1, 7, 64, 100, 2048] {
        let pool = pool(size);
        let held = take(&pool, 3).unwrap();
        // SAFETY: guards lie there, in checked mode.
        let (past, before) = unsafe { (held[0].add(size), held[1].sub(1)) };
        for (byte, obj, words, end) in [
            (past, held[0], "past the end", End::Past),
            (before, held[1], "before the start", End::Before),
        ] {
            // SAFETY: as above.
            let was = unsafe { byte.replace(1) };
            let index = pool.contains(obj).unwrap();
            assert_eq!(pool.audit(), Err(AuditError::Damaged { index, end }));
            assert_reported(
                || put(Way::Put, &pool, obj),
                &[words, &format!("object {index} ")],
            );
            assert_eq!(pool.in_use(), 3, "it was not put");
            // SAFETY: as above.
            unsafe { byte.write(was) };
        }
        give(&pool, &held);
        assert_whole(&pool);
    }
}

#[test]
fn objects_are_as_large_as_asked_in_any_mode() {
    for size in [1, 48, 49, 64, 2048] {
        let pool = pool(size);
        let held = take(&pool, 8).unwrap();
        for (mark, &obj) in held.iter().enumerate() {
            // SAFETY: the object is ours, and has so many bytes.
            unsafe { obj.write_bytes(mark as u8, size) };
        }
        for (mark, &obj) in held.iter().enumerate() {
            // SAFETY: as above.
            let bytes = unsafe { std::slice::from_raw_parts(obj.as_ptr(), size) };
            assert!(bytes.iter().all(|&byte| byte == mark as u8));
        }
        give(&pool, &held);
        pool.audit().unwrap();
        assert_whole(&pool);
    }
}

trait Free {
    /// Some object that is in the backend, `held` being out.
    fn objects_for_test(&self, held: NonNull<u8>) -> NonNull<u8>;
}

impl Free for RawPool {
    fn objects_for_test(&self, held: NonNull<u8>) -> NonNull<u8> {
        self.flush_thread_cache();
        let mut objects = (0..self.capacity()).filter_map(|index| self.object(index));
        objects.find(|&object| object != held).unwrap()
    }
}
