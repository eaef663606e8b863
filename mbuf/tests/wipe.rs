//! Storage that was asked to be wiped is, when the last holder lets go and not before.

mod common;

use common::uncached;
use mbuf::{
    BufferSet, ClusterPool, External, FreeStrategy, Mbuf, MbufPool, Packet, PrivateArea, Room,
    free_bulk_with,
};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The whole room or cluster of the next mbuf, as whoever had it before left it.
fn left_behind(mut m: Mbuf) -> Vec<u8> {
    m.set_lead(0).unwrap();
    let all = m.capacity();
    m.append(all).unwrap().to_vec()
}

/// One mbuf and one cluster: what is allocated next has been used before.
fn tiny() -> BufferSet {
    BufferSet::builder(4)
        .class(2048, 1)
        .configure(|b| b.cache(0))
        .build()
        .unwrap()
}

fn filled(mut m: Mbuf) -> Mbuf {
    let all = m.capacity();
    m.append(all).unwrap().fill(0xa5);
    m
}

#[test]
fn rooms_are_wiped_when_asked_and_else_are_not() {
    for how in FreeStrategy::ALL {
        for asked in [true, false] {
            let set = tiny();
            let head = filled(set.header().unwrap());
            let mut m = head;
            m.cat(filled(set.plain().unwrap()));
            if asked {
                assert!(m.wipe_on_free());
                assert!(m.segments().all(|s| s.is_wiped_on_free()));
            }
            // What is trimmed is still in the room.
            m.trim_front(200).unwrap();
            free_bulk_with(how, &mut [Some(m), Some(set.header().unwrap())]);
            let all: Vec<Mbuf> = (0..4).map(|_| set.plain().unwrap()).collect();
            let dirty = all.into_iter().flat_map(left_behind).any(|b| b != 0);
            assert_eq!(dirty, !asked, "{how}");
            assert!(set.is_full());
        }
    }
}

#[test]
fn a_wish_ends_with_the_mbuf() {
    let set = tiny();
    let mut m = set.header().unwrap();
    m.wipe_on_free();
    drop(m);
    for _ in 0..8 {
        let m = set.header_with(2048).unwrap();
        assert!(!m.first().is_wiped_on_free());
        drop(filled(m));
    }
    assert!(left_behind(set.header_with(2048).unwrap()).contains(&0xa5));
}

/// Three hold a cluster; the first asks. Whoever is last wipes it, by each way of freeing.
#[test]
fn fault_c7_a_wish_of_one_sharer_holds_for_the_cluster() {
    for how in FreeStrategy::ALL {
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
            let set = tiny();
            let mut a = filled(set.header_with(2048).unwrap());
            let b = a.ref_copy(0, 10, &set).unwrap();
            let c = b.ref_copy(5, 5, &set).unwrap();
            assert!(a.wipe_on_free());
            assert!(b.first().is_wiped_on_free(), "the wish is the cluster's");
            let mut all = [Some(a), Some(b), Some(c)];
            for (at, index) in order.into_iter().enumerate() {
                if let Some(m) = all.iter().flatten().next() {
                    assert_eq!(m.first().data()[0], 0xa5, "before {at} of {order:?}");
                }
                free_bulk_with(how, &mut all[index..=index]);
            }
            let m = set.header_with(2048).unwrap();
            assert!(!m.first().is_wiped_on_free());
            assert!(left_behind(m).iter().all(|&b| b == 0), "{how} {order:?}");
        }
    }
}

#[test]
fn a_wish_holds_for_storage_that_is_given_later() {
    let set = tiny();
    let mut m = set.header().unwrap();
    assert!(m.wipe_on_free());
    set.attach_cluster(&mut m, 2048).unwrap();
    assert!(m.first().is_wiped_on_free());
    drop(filled(m));
    assert!(
        left_behind(set.header_with(2048).unwrap())
            .iter()
            .all(|&b| b == 0)
    );
    // And is not lost with it.
    let mut m = set.header().unwrap();
    assert!(m.wipe_on_free());
    set.attach_cluster(&mut m, 2048).unwrap();
    assert!(m.detach());
    let m = filled(m);
    assert!(m.first().is_wiped_on_free());
    drop(m);
    let all: Vec<Mbuf> = (0..4).map(|_| set.plain().unwrap()).collect();
    assert!(all.into_iter().all(|m| !left_behind(m).contains(&0xa5)));
}

/// Memory whose callback looks whether it is all zero.
fn watched(len: usize, writable: bool) -> (External, Arc<AtomicBool>) {
    let zero = Arc::new(AtomicBool::new(false));
    let memory = NonNull::from(Box::leak(vec![0xa5u8; len].into_boxed_slice()));
    let (address, found) = (memory.cast::<u8>().expose_provenance().get(), zero.clone());
    let free = move || {
        let start = std::ptr::with_exposed_provenance_mut::<u8>(address);
        // SAFETY: the box that was leaked above.
        let bytes = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, len)) };
        found.store(bytes.iter().all(|&b| b == 0), Ordering::Relaxed);
    };
    // SAFETY: ours until the callback.
    let external = unsafe {
        if writable {
            External::from_raw_parts_mut(memory.cast(), len, free)
        } else {
            External::from_raw_parts(memory.cast(), len, free)
        }
    };
    (external, zero)
}

#[test]
fn external_memory_is_wiped_before_its_owner_has_it_back_if_it_may_be_written() {
    for how in FreeStrategy::ALL {
        for (writable, asked) in [(true, true), (true, false), (false, true)] {
            let set = uncached();
            let (external, zero) = watched(1001, writable);
            let mut m = set.header().unwrap();
            m.attach(external).unwrap();
            let copy = m.ref_copy(1, 1, &set).unwrap();
            if asked {
                assert_eq!(m.wipe_on_free(), writable);
            }
            free_bulk_with(how, &mut [Some(m)]);
            assert_eq!(copy.to_vec(), [0xa5]);
            free_bulk_with(how, &mut [Some(copy)]);
            let wiped = zero.load(Ordering::Relaxed);
            assert_eq!(wiped, writable && asked, "{how}");
        }
    }
}

#[test]
fn pinned_rooms_are_wiped_in_the_callers_memory() {
    let room = mbuf::Room {
        header: 100,
        plain: 100,
        charge: 192,
    };
    let pool = MbufPool::pinned(room, 100, [vec![0; 100]], |b| b.capacity(1).cache(0)).unwrap();
    let clusters = ClusterPool::new(2048, |b| b.capacity(1).cache(0)).unwrap();
    for asked in [false, true] {
        let mut m = filled(pool.header().unwrap());
        m.trim_back(100).unwrap();
        if asked {
            m.wipe_on_free();
        }
        clusters.attach(&mut m).unwrap();
        drop(m);
        let dirty = left_behind(pool.header().unwrap()).contains(&0xa5);
        assert_eq!(dirty, !asked);
    }
}

#[test]
fn tags_are_wiped_with_the_room() {
    const SECRET: &[u8] = b"kept in a tag";
    for asked in [true, false] {
        let room = Room {
            header: 144,
            plain: 224,
            charge: 256,
        };
        let private = PrivateArea {
            fields: 8,
            tags: 64,
        };
        let pool = MbufPool::with_private(room, private, |b| b.capacity(1).cache(0)).unwrap();
        let mut m = pool.header().unwrap();
        m.add_tag(7, SECRET).unwrap();
        if asked {
            assert!(m.wipe_on_free());
        }
        drop(m);
        let object = pool.raw().get().unwrap();
        // SAFETY: just got; so large, and initialised.
        let bytes =
            unsafe { std::slice::from_raw_parts(object.as_ptr(), pool.raw().object_size()) };
        let found = bytes.windows(SECRET.len()).any(|window| window == SECRET);
        assert_eq!(found, !asked);
        // SAFETY: got above, and not written.
        unsafe { pool.raw().pool_ref().put(object) };
    }
}

/// Few mbufs and clusters of two classes: all can be looked through.
fn small() -> BufferSet {
    BufferSet::builder(16)
        .class(2048, 4)
        .class(4096, 4)
        .configure(|b| b.cache(0))
        .build()
        .unwrap()
}

/// Looks through all rooms and all clusters of a set of which nothing is out.
fn secret_is_left(set: &BufferSet) -> bool {
    assert!(set.is_full());
    let mut found = false;
    for class in [2048, 4096] {
        let all: Vec<Mbuf> = (0..4).map(|_| set.header_with(class).unwrap()).collect();
        found |= all.into_iter().any(|m| left_behind(m).contains(&0xa5));
    }
    let all: Vec<Mbuf> = (0..16).map(|_| set.plain().unwrap()).collect();
    found | all.into_iter().any(|m| left_behind(m).contains(&0xa5))
}

/// A chain of an inline segment, a cluster and another inline segment, 100 bytes each, nothing of it
/// shared but the cluster if `shared` says so.
fn chain(set: &BufferSet, shared: &mut Option<Mbuf>) -> Mbuf {
    let mut chain: Option<Mbuf> = None;
    for (at, capacity) in [100, 2048, 100].into_iter().enumerate() {
        let mut m = set.header_with(capacity).unwrap();
        m.append(100).unwrap().fill(0xa5);
        if at == 1 {
            *shared = Some(m.ref_copy(0, 100, set).unwrap());
        }
        match &mut chain {
            None => chain = Some(m),
            Some(chain) => chain.cat(m),
        }
    }
    chain.unwrap()
}

#[test]
fn a_wish_goes_along_when_an_edit_moves_the_bytes() {
    type Edit = fn(Mbuf, &BufferSet) -> Vec<Mbuf>;
    let edits: [(&str, Edit); 10] = [
        ("make_writable", |mut m, set| {
            m.make_writable(set).unwrap();
            vec![m]
        }),
        ("make_contiguous", |mut m, set| {
            m.make_contiguous(299, set).unwrap();
            vec![m]
        }),
        ("defrag", |mut m, set| {
            m.defrag(set).unwrap();
            vec![m]
        }),
        ("linearize", |mut m, _| {
            let _ = m.linearize();
            vec![m]
        }),
        ("pulldown of what is shared", |mut m, set| {
            m.pulldown(150, 20, set).unwrap();
            vec![m]
        }),
        ("pulldown of a whole shared one", |mut m, set| {
            m.pulldown(100, 50, set).unwrap();
            vec![m]
        }),
        ("pulldown across", |mut m, set| {
            m.pulldown(90, 200, set).unwrap();
            vec![m]
        }),
        ("split within the inline one", |mut m, set| {
            let rest = m.split(50, set).unwrap();
            vec![rest, m]
        }),
        ("write_at", |mut m, set| {
            m.write_at(120, &[0; 1000], set).unwrap();
            vec![m]
        }),
        ("make_space", |mut m, set| {
            m.make_space(50, 1900, set).unwrap().fill(0);
            vec![m]
        }),
    ];
    for (name, edit) in edits {
        for shared in [true, false] {
            for asked in [true, false] {
                let (set, mut sharer) = (small(), None);
                let mut m = chain(&set, &mut sharer);
                if !shared {
                    sharer = None;
                }
                if asked {
                    assert!(m.wipe_on_free());
                }
                let parts = edit(m, &set);
                drop((parts, sharer));
                assert_eq!(secret_is_left(&set), !asked, "{name}, shared {shared}");
            }
        }
    }
}

/// What is copied out of the packet behind into ours: ours is to be wiped then.
#[test]
fn a_wish_goes_along_with_bytes_that_are_packed_into_another_packet() {
    for asked in [true, false] {
        let set = small();
        let mut m = set.header().unwrap();
        let mut tail = set.header().unwrap();
        tail.append(50).unwrap().fill(0xa5);
        if asked {
            tail.wipe_on_free();
        }
        m.cat_packed(tail);
        assert_eq!(m.nsegs(), 1);
        drop(m);
        assert_eq!(secret_is_left(&set), !asked);
    }
}

/// Tags go to another mbuf when one comes in front, or the packet is cut.
#[test]
fn a_wish_goes_along_with_tags_and_fields_that_an_edit_moves() {
    const SECRET: &[u8] = b"kept in a tag";
    type Edit = fn(&mut Mbuf, &BufferSet) -> Option<Mbuf>;
    let edits: [(&str, Edit); 4] = [
        ("prepend_with", |m, set| {
            m.prepend_with(200, set).unwrap();
            None
        }),
        ("split at the start", |m, set| m.split(0, set).ok()),
        ("split between", |m, set| m.split(100, set).ok()),
        ("split at the end", |m, set| m.split(200, set).ok()),
    ];
    for (name, edit) in edits {
        for asked in [true, false] {
            let area = PrivateArea {
                fields: 16,
                tags: 64,
            };
            let set = BufferSet::builder(4).private(area);
            let set = set.configure(|b| b.cache(0)).build().unwrap();
            let mut m = set.header().unwrap();
            m.append(100).unwrap();
            m.add_tag(7, SECRET).unwrap();
            m.private_mut()[..SECRET.len()].copy_from_slice(SECRET);
            if asked {
                m.wipe_on_free();
            }
            let mut behind = set.header().unwrap();
            behind.append(100).unwrap();
            m.cat(behind);
            let cut = edit(&mut m, &set);
            drop((m, cut));
            let pool = set.mbuf_pool().raw();
            let objects: Vec<_> = (0..4).map(|_| pool.get().unwrap()).collect();
            let found = objects.iter().any(|object| {
                // SAFETY: just got; so large, and initialised.
                let bytes =
                    unsafe { std::slice::from_raw_parts(object.as_ptr(), pool.object_size()) };
                bytes.windows(SECRET.len()).any(|window| window == SECRET)
            });
            assert_eq!(found, !asked, "{name}");
            // SAFETY: got above, and not written.
            unsafe { pool.pool_ref().put_bulk(&objects) };
        }
    }
}
