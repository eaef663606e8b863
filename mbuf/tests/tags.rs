//! Tags, and the private area that they and named fields lie in.

mod common;

use fastrand::Rng;
use mbuf::{
    BufferSet, CreateError, FieldRegistry, MAX_TAG, MbufPool, NoRoom, Packet, PrivateArea, Room,
    TagError, free_bulk,
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
                        Err(TagError::NoRoom(NoRoom::TooSmall { asked, have }))
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
    let error = TagError::NoRoom(NoRoom::TooSmall {
        asked: 20,
        have: 16,
    });
    assert_eq!(to.copy_tags_from(&from), Err(error));
    assert_eq!(to.tag(9).unwrap().data, b"kept");
    for set in [none, BufferSet::bsd(8, 1).unwrap()] {
        let mut to = set.header().unwrap();
        let error = TagError::NoRoom(NoRoom::TooSmall { asked: 20, have: 0 });
        assert_eq!(to.copy_tags_from(&from), Err(error));
        let error = TagError::NoRoom(NoRoom::TooSmall { asked: 4, have: 0 });
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
fn bsd_dup_hdr_move_hdr_all_that_is_said_goes_along() {
    let registry = FieldRegistry::new(PrivateArea {
        fields: 16,
        tags: 32,
    })
    .unwrap();
    let (near, far) = (
        registry.field_at::<u64>("near", 0).unwrap(),
        registry.field_at::<u64>("far", 8).unwrap(),
    );
    let flag = registry.flag("flag").unwrap();
    let (own, small, none) = (
        set_with(16, 32),
        set_with(8, 8),
        BufferSet::bsd(8, 1).unwrap(),
    );
    let mut from = own.header().unwrap();
    from.append(9).unwrap();
    from.set_vlan(Some(5));
    from.set_timestamp(Some(6));
    near.set(&mut from, 1);
    far.set(&mut from, 2);
    flag.set(&mut from, true);
    from.add_tag(7, b"tag to go").unwrap();
    for (set, values, tags) in [
        (&own, (Some(1), Some(2), true), vec![7]),
        (&small, (Some(1), None, true), vec![]),
        (&none, (None, None, false), vec![]),
    ] {
        let mut to = set.header().unwrap();
        let _ = to.add_tag(1, b"old");
        near.set(&mut to, 99);
        to.set_priority(Some(1));
        to.copy_header_from(&from);
        assert_eq!((near.get(&to), far.get(&to), flag.get(&to)), values);
        assert_eq!((ids(&to), to.priority(), to.vlan()), (tags, None, Some(5)));
        assert_eq!((to.pkt_len(), to.timestamp()), (0, Some(6)));
    }
    let copy = from.deep_copy(0, &own).unwrap();
    assert_eq!(
        (ids(&copy), copy.vlan(), far.get(&copy)),
        (vec![7], Some(5), Some(2))
    );
    let mut to = own.header().unwrap();
    to.move_header_from(&mut from);
    assert_eq!((ids(&to), to.vlan()), (vec![7], Some(5)));
    assert_eq!(
        (ids(&from), from.vlan(), far.get(&from)),
        (vec![], None, Some(0))
    );
    to.copy_header_from(&from);
    assert_eq!(
        (ids(&to), to.vlan(), near.get(&to)),
        (vec![], None, Some(0))
    );
    from.append(140 - 9).unwrap();
    let _ = from.add_tag(3, b"head");
    let longer = from.prepend_with(100, &own);
    let _ = longer.unwrap();
    assert_eq!(ids(&from), [3], "a new head takes its tags along");
}
