//! Named fields and flags: where they are registered, and what they reach.

use mbuf::{BufferSet, FieldError, FieldRegistry, Mbuf, Packet, Place, PrivateArea};

fn with_area(fields: usize, tags: usize) -> BufferSet {
    BufferSet::bsd_builder(8, 1)
        .private(PrivateArea { fields, tags })
        .build()
        .unwrap()
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
    assert!(two.offset().is_multiple_of(2) && two.offset() != one.offset());
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
        with_area(56, 64),
        with_area(0, 64),
        BufferSet::bsd(8, 1).unwrap(),
    ] {
        let mut m: Mbuf = set.header().unwrap();
        assert_eq!(far.get(&m), None);
        assert!(!far.set(&mut m, u64::MAX));
        let has_area = flag.set(&mut m, true);
        assert_eq!(flag.get(&m), has_area);
        assert!(m.tags().next().is_none() && m.private().iter().all(|&b| b == 0));
    }
}
