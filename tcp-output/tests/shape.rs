//! What a copy policy sees of a range of the send buffer.

use mbuf::{BufferSet, Packet};
use sockbuf::SockBuf;
use tcp_output::{SendPlan, Shape};

#[test]
fn a_shape_counts_pieces_shared_storage_and_capacity() {
    let set = BufferSet::standard(64, 16).unwrap();
    let mut sb = SockBuf::new(1 << 16);
    // 100 bytes inline, 1000 in a cluster, 500 of somebody's vector that is shared.
    let mut inline = set.header().unwrap();
    inline.append(100).unwrap();
    let mut clustered = set.header_with(2048).unwrap();
    clustered.append(1000).unwrap();
    let mut external = set.header().unwrap();
    external.attach(vec![7; 500]).unwrap();
    let other = external.ref_copy(0, 500, &set).unwrap();
    let room = inline.capacity();
    let cluster = clustered.capacity();
    for packet in [inline, clustered, external] {
        sb.append_stream(packet);
    }
    let shape = |off, len, limit| SendPlan::new(&sb, off, len, 40, true).shape(limit);
    let whole = Shape {
        pieces: 3,
        clusters: 2,
        shared: 1,
        capacity: room + cluster + 500,
        bytes: 1600,
    };
    assert_eq!(shape(0, 1600, 100), whole);
    assert_eq!(shape(0, 1600, 3), whole);
    let behind = Shape {
        pieces: 2,
        clusters: 2,
        shared: 1,
        capacity: cluster + 500,
        bytes: 1000,
    };
    assert_eq!(shape(200, 1000, 100), behind);
    assert_eq!(shape(0, 1600, 1).bytes, 100, "the limit came first");
    assert_eq!(shape(0, 0, 100), Shape::default());
    drop(other);
    assert_eq!(shape(1100, 500, 9).shared, 0);
}
