//! What callers may say about the pools below, and what they cannot talk them into.

use mbuf::{BufferSet, ClusterPool, CreateError, Mbuf, MbufPool, Packet, Room, free_bulk};
use mempool::RawPool;

const ROOM: Room = Room {
    header: 65,
    plain: 65,
    charge: 192,
};

/// The builder that comes back from `configure` may be any: too small, hardly aligned.
#[test]
fn a_foreign_builder_changes_neither_size_nor_alignment_of_mbufs() {
    let foreign = || RawPool::builder(1).align(1).spread(false).capacity(16);
    let pools = [
        MbufPool::new(ROOM, |_| foreign()).unwrap(),
        MbufPool::new(ROOM, |b| b.align(1).capacity(16)).unwrap(),
    ];
    for pool in pools {
        assert!(pool.raw().object_size() >= 128 + 65);
        assert_eq!(pool.raw().stride() % 64, 0);
        let mut all: [Option<Mbuf>; 16] = [const { None }; 16];
        pool.header_bulk(&mut all).unwrap();
        for (fill, m) in all.iter_mut().flatten().enumerate() {
            m.append(65).unwrap().fill(fill as u8);
        }
        for (fill, m) in all.iter().flatten().enumerate() {
            assert_eq!(m.to_vec(), [fill as u8; 65]);
        }
        free_bulk(&mut all);
        assert!(pool.raw().is_full());
    }
}

#[test]
fn a_foreign_builder_changes_neither_size_nor_alignment_of_clusters() {
    let mbufs = MbufPool::new(ROOM, |b| b.capacity(4)).unwrap();
    let clusters = ClusterPool::new(2050, |_| RawPool::builder(8).align(8).capacity(4)).unwrap();
    assert!(clusters.raw().object_size() >= 2050 + 64);
    assert_eq!(clusters.raw().stride() % 64, 0);
    let mut all: Vec<_> = (0..4).map(|_| mbufs.header().unwrap()).collect();
    for (fill, m) in all.iter_mut().enumerate() {
        clusters.attach(m).unwrap();
        m.append(2050).unwrap().fill(fill as u8);
    }
    for (fill, m) in all.iter().enumerate() {
        assert_eq!(m.to_vec(), [fill as u8; 2050]);
    }
}

#[test]
fn rooms_and_charges_of_no_bytes_or_too_many_are_refused() {
    let most = 1 << 30;
    for asked in [0, most + 1, usize::MAX] {
        let rooms = [
            Room {
                header: asked,
                ..ROOM
            },
            Room {
                plain: asked,
                ..ROOM
            },
            Room {
                charge: asked,
                ..ROOM
            },
        ];
        for room in rooms {
            let error = BufferSet::builder(8).room(room).build().err().unwrap();
            assert!(
                matches!(error, CreateError::Room { asked: n, max } if n == asked && max == most),
                "{room:?}: {error}"
            );
        }
        let error = ClusterPool::new(asked, |b| b).err().unwrap();
        assert!(matches!(error, CreateError::Room { .. }), "{error}");
    }
}
