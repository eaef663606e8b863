//! Tags and named fields in the private area.

mod common;

use fastrand::Rng;
use mbuf::{
    BufferSet, CreateError, FieldError, FieldRegistry, MAX_TAG, Mbuf, MbufPool, NoRoom, Packet,
    Place, PrivateArea, Room, TagError, free_bulk,
};

fn set_with(fields: usize, tags: usize) -> BufferSet {
    BufferSet::bsd_builder(64, 8)
        .private(PrivateArea { fields, tags })
        .configure(|b| b.cache(0))
        .build()
        .unwrap()
}

fn ids(m: &impl Packet) -> Vec<u16> {
    m.tags().map(|tag| tag.id).collect()
}

/// Random additions and removals against a list, newest first.
#[test]
fn tags_are_those_of_a_model() {
    let set = set_with(24, 200);
    let mut rng = Rng::with_seed(80);
    for _ in 0..200 {
        let mut m = set.header().unwrap();
        m.append(144).unwrap().fill(0xee);
        let mut model: Vec<(u16, Vec<u8>)> = Vec::new();
        for _ in 0..60 {
            let id = rng.u16(0..40);
            let used = |model: &[(u16, Vec<u8>)]| -> usize {
                model
                    .iter()
                    .map(|(_, d)| 4 + d.len().next_multiple_of(4))
                    .sum()
            };
            match rng.u8(0..5) {
                0 => {
                    let at = model.iter().position(|&(i, _)| i == id);
                    assert_eq!(m.remove_tag(id), at.is_some());
                    at.map(|at| model.remove(at));
                }
                1 if rng.u8(..) < 20 => {
                    m.clear_tags();
                    model.clear();
                }
                _ => {
                    let data: Vec<u8> = (0..rng.usize(0..=40)).map(|_| rng.u8(..)).collect();
                    let asked = 4 + data.len().next_multiple_of(4);
                    let have = 200 - used(&model);
                    let expected = if asked > have {
                        Err(TagError::NoRoom(NoRoom { asked, have }))
                    } else {
                        model.insert(0, (id, data.clone()));
                        Ok(())
                    };
                    assert_eq!(m.add_tag(id, &data), expected);
                }
            }
            let tags: Vec<_> = m.tags().map(|t| (t.id, t.data.to_vec())).collect();
            assert_eq!(tags, model);
            let found = m.tag(id).map(|t| t.data.to_vec());
            assert_eq!(found, model.iter().find(|t| t.0 == id).map(|t| t.1.clone()));
        }
        assert_eq!(m.private(), [0; 24], "fields are no tags");
        assert!(m.to_vec() == [0xee; 144], "room is no private area");
    }
    assert!(set.is_full());
}

#[test]
fn bsd_tags_find_goes_on_behind_the_last_one_found() {
    let mut m = set_with(0, 64).header().unwrap();
    for (id, byte) in [(1, 10), (2, 20), (1, 11), (33, 30)] {
        m.add_tag(id, &[byte]).unwrap();
    }
    assert_eq!(ids(&m), [33, 1, 2, 1], "prepended");
    let mut from_there = m.tags();
    assert_eq!(from_there.find_id(1).unwrap().data, [11]);
    assert_eq!(from_there.find_id(1).unwrap().data, [10]);
    assert!(from_there.find_id(1).is_none());
    assert!(m.remove_tag(33), "1 shares its bit, and stays to be found");
    assert!(m.tag(1).is_some() && m.tag(33).is_none() && !m.remove_tag(33));
}

#[test]
fn bsd_tags_are_80_bytes_at_most_and_typed() {
    let mut m = set_with(0, 200).header().unwrap();
    let (len, max) = (81, MAX_TAG);
    assert_eq!(m.add_tag(1, &[0; 81]), Err(TagError::TooLong { len, max }));
    m.add_tag(1, &[5; 80]).unwrap();
    m.add_tag(2, &[]).unwrap();
    m.add_tag(3, &0x0102_0304u32.to_ne_bytes()).unwrap();
    assert_eq!(m.tag(1).unwrap().value(), Some([5u8; 80]));
    assert_eq!(m.tag(2).unwrap().value(), Some([0u8; 0]));
    assert_eq!(m.tag(3).unwrap().value(), Some(0x0102_0304u32));
    assert_eq!(m.tag(3).unwrap().value::<u64>(), None);
}

#[test]
fn bsd_dup_hdr_tags_are_copied_all_or_none() {
    let (large, small, none) = (set_with(0, 64), set_with(0, 16), set_with(8, 0));
    let mut from = large.header().unwrap();
    from.add_tag(1, &[1; 8]).unwrap();
    from.add_tag(2, &[2; 3]).unwrap();
    let mut to = large.header().unwrap();
    to.add_tag(9, b"gone").unwrap();
    to.copy_tags_from(&from).unwrap();
    assert_eq!((ids(&to), ids(&from)), (vec![2, 1], vec![2, 1]));
    assert!(to.tag(9).is_none());
    let mut to = small.header().unwrap();
    to.add_tag(9, b"kept").unwrap();
    let error = TagError::NoRoom(NoRoom {
        asked: 20,
        have: 16,
    });
    assert_eq!(to.copy_tags_from(&from), Err(error));
    assert_eq!(to.tag(9).unwrap().data, b"kept");
    for set in [none, BufferSet::bsd(8, 1).unwrap()] {
        let mut to = set.header().unwrap();
        let error = TagError::NoRoom(NoRoom { asked: 20, have: 0 });
        assert_eq!(to.copy_tags_from(&from), Err(error));
        let error = TagError::NoRoom(NoRoom { asked: 4, have: 0 });
        assert_eq!(to.add_tag(1, &[]), Err(error));
        assert_eq!(to.copy_tags_from(&set.header().unwrap()), Ok(()));
        assert!(ids(&to).is_empty() && !to.remove_tag(1));
    }
    from.copy_tags_from(&small.header().unwrap()).unwrap();
    assert!(ids(&from).is_empty(), "none replace all");
}

/// Tags and fields need nothing of free: the mbuf is plain, and the next packet sees none of them.
#[test]
fn tags_and_fields_end_with_their_packet() {
    let registry = FieldRegistry::new(PrivateArea {
        fields: 16,
        tags: 32,
    })
    .unwrap();
    let field = registry.field::<u64>("field").unwrap();
    let flag = registry.flag("flag").unwrap();
    let set = BufferSet::bsd_builder(1, 1)
        .private(registry.area())
        .configure(|b| b.cache(0))
        .build()
        .unwrap();
    for round in 0..6 {
        let mut m = set.header().unwrap();
        assert!(ids(&m).is_empty() && m.private() == [0; 16]);
        assert_eq!((field.get(&m), flag.get(&m)), (Some(0), false));
        m.add_tag(1, b"secret").unwrap();
        assert!(field.set(&mut m, u64::MAX) && flag.set(&mut m, true));
        assert_eq!(m.check_fresh(set.mbuf_pool()), Ok(()), "still rests");
        match round % 3 {
            0 => drop(m),
            1 => free_bulk(&mut [Some(m)]),
            _ => drop((m.into_shared(), ())),
        }
        assert!(set.is_full());
    }
}

#[test]
fn dpdk_b2_private_areas_are_multiples_of_eight_and_limited() {
    let room = Room {
        header: 100,
        plain: 60,
        charge: 256,
    };
    for bad in [1, 7, 12, 1025, 1032, usize::MAX] {
        for private in [
            PrivateArea {
                fields: bad,
                tags: 0,
            },
            PrivateArea {
                fields: 0,
                tags: bad,
            },
        ] {
            let made = MbufPool::with_private(room, private, |b| b.capacity(4));
            let error = made.err().unwrap();
            assert!(
                matches!(error, CreateError::Private { asked, max: 1024 } if asked == bad),
                "{error}"
            );
            assert!(FieldRegistry::new(private).is_err());
        }
    }
    for (fields, tags) in [(0, 0), (8, 0), (0, 8), (1024, 1024)] {
        let private = PrivateArea { fields, tags };
        let pool = MbufPool::with_private(room, private, |b| b.capacity(4)).unwrap();
        let mut m = pool.header().unwrap();
        assert_eq!((m.private().len(), m.capacity()), (fields, 100));
        assert_eq!(m.first().data().as_ptr() as usize % 8, 0);
        assert!(pool.raw().object_size() >= 128 + private.len() + 100);
        m.append(100).unwrap().fill(1);
        m.private_mut().fill(2);
        assert!(m.to_vec() == [1; 100] && m.private().iter().all(|&b| b == 2));
    }
}

#[test]
fn packets_of_all_kinds_work_behind_a_private_area() {
    let set = set_with(40, 40);
    let mut rng = Rng::with_seed(7);
    for _ in 0..300 {
        let mut keep = Vec::new();
        let (mut m, model) = common::random_packet(&mut rng, &set, 6, &mut keep);
        m.private_mut().fill(0xaa);
        m.add_tag(3, &[0xbb; 20]).unwrap();
        common::assert_is(&m, &model);
        let copy = m.ref_copy(0, m.pkt_len(), &set).unwrap();
        common::assert_is(&copy, &model);
    }
    assert!(set.is_full());
}

#[test]
fn dpdk_b34_fields_and_flags_are_registered() {
    let registry = FieldRegistry::new(PrivateArea {
        fields: 40,
        tags: 0,
    })
    .unwrap();
    let one = registry.field::<u8>("one").unwrap();
    assert_eq!(registry.field::<u8>("one").unwrap().offset(), one.offset());
    let two = registry.field::<u16>("two").unwrap();
    assert!(two.offset() % 2 == 0 && two.offset() != one.offset());
    let three = registry.field_at::<u16>("three", 20).unwrap();
    assert_eq!(three.offset(), 20);
    assert_eq!(registry.field_at::<u16>("three", 20).unwrap().offset(), 20);

    let size = 256;
    let asked = |offset, size, align| Place {
        offset,
        size,
        align,
    };
    let free = 40 - 5;
    assert_eq!(
        registry.place("fail", asked(None, size, 1)),
        Err(FieldError::NoRoom {
            size,
            align: 1,
            free
        })
    );
    let (size, align) = (usize::MAX, 8);
    assert_eq!(
        registry.place("fail", asked(None, size, align)),
        Err(FieldError::NoRoom { size, align, free })
    );
    for (size, align) in [(1, 3), (0, 1), (1, 16), (1, 0)] {
        let malformed = Err(FieldError::Malformed { size, align });
        assert_eq!(registry.place("fail", asked(None, size, align)), malformed);
    }
    for (offset, size, align) in [
        (20, 1, 1),
        (21, 1, 1),
        (19, 2, 1),
        (39, 2, 1),
        (usize::MAX, 1, 1),
        (23, 2, 2),
    ] {
        let asked = asked(Some(offset), size, align);
        let unavailable = FieldError::Unavailable { asked, len: 40 };
        assert_eq!(registry.place("fail", asked), Err(unavailable));
    }
    for other in [asked(None, 2, 1), asked(None, 4, 2), asked(Some(22), 2, 2)] {
        let error = registry.place("three", other).unwrap_err();
        assert!(matches!(error, FieldError::Differs { .. }), "{error}");
    }
    assert_eq!(registry.lookup("fail"), None, "nothing was registered");
    assert_eq!(registry.lookup("three"), Some(asked(Some(20), 2, 2)));

    let first = registry.flag("first").unwrap();
    assert_eq!(registry.flag("first").unwrap(), first);
    let second = registry.flag("second").unwrap();
    assert_ne!(first, second);
    let third = registry.flag_at("third", 63).unwrap();
    assert_eq!(third.bit(), 63);
    for (name, bit) in [("fourth", 63), ("fourth", 64), ("third", 62)] {
        let error = FieldError::NoBit {
            asked: Some(bit),
            last: 63,
        };
        assert_eq!(registry.flag_at(name, bit), Err(error));
    }
    assert_eq!(
        (
            registry.lookup_flag("third"),
            registry.lookup_flag("fourth")
        ),
        (Some(third), None)
    );

    let set = BufferSet::bsd_builder(8, 1)
        .private(registry.area())
        .build()
        .unwrap();
    let mut m = set.header().unwrap();
    assert!(one.set(&mut m, 0x55) && two.set(&mut m, 0x1234) && three.set(&mut m, 0x5678));
    assert!(second.set(&mut m, true) && third.set(&mut m, true) && third.set(&mut m, false));
    let values = (one.get(&m), two.get(&m), three.get(&m));
    assert_eq!(values, (Some(0x55), Some(0x1234), Some(0x5678)));
    assert_eq!(
        (first.get(&m), second.get(&m), third.get(&m)),
        (false, true, false)
    );
    let dump = registry.to_string();
    for line in [
        "field three: 2 bytes aligned to 2 at 20",
        "flag third: bit 63",
    ] {
        assert!(dump.contains(line), "{dump}");
    }
}

#[test]
fn dpdk_b18_fields_go_where_they_fit_best() {
    let registry = FieldRegistry::new(PrivateArea {
        fields: 32,
        tags: 0,
    })
    .unwrap();
    registry.field_at::<u32>("middle", 4).unwrap();
    registry.field_at::<u8>("late", 12).unwrap();
    // Free: 0..4, 8..12, 13..32.
    assert_eq!(registry.field::<u64>("long").unwrap().offset(), 16);
    // Free: 0..4, 8..12, 13..16, 24..32.
    assert_eq!(registry.field::<u8>("byte").unwrap().offset(), 13);
    assert_eq!(registry.field::<u16>("pair").unwrap().offset(), 14);
    assert_eq!(registry.field::<u32>("word").unwrap().offset(), 0);
    for bit in 0..64 {
        assert_eq!(registry.flag(&format!("f{bit}")).unwrap().bit(), bit);
    }
    let full = FieldError::NoBit {
        asked: None,
        last: 63,
    };
    assert_eq!(registry.flag("one more"), Err(full));
}

/// A place is a place: on a packet of another pool it is there or not, and never outside.
#[test]
fn fields_of_another_registry_stay_in_the_area() {
    let registry = FieldRegistry::new(PrivateArea {
        fields: 64,
        tags: 0,
    })
    .unwrap();
    let far = registry.field_at::<u64>("far", 56).unwrap();
    let flag = registry.flag("flag").unwrap();
    for set in [
        set_with(56, 64),
        set_with(0, 64),
        BufferSet::bsd(8, 1).unwrap(),
    ] {
        let mut m: Mbuf = set.header().unwrap();
        assert_eq!(far.get(&m), None);
        assert!(!far.set(&mut m, u64::MAX));
        let has_area = flag.set(&mut m, true);
        assert_eq!(flag.get(&m), has_area);
        assert!(ids(&m).is_empty() && m.private().iter().all(|&b| b == 0));
    }
}
