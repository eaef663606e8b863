//! Another owner of the clusters lets go in the middle of an edit: before each of its allocations.

use mbuf::{BufferSet, EditError, Mbuf, Packet};
use mempool::backend::{Backend, Lifo};
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

thread_local! {
    /// Gets to go until what is beside is dropped.
    static LATER: RefCell<Option<(u64, Mbuf)>> = const { RefCell::new(None) };
}

struct LetsGo(Lifo);

// SAFETY: forwards to a backend that keeps the contract.
unsafe impl Backend for LetsGo {
    fn put_bulk(&self, objs: &[NonNull<u8>]) {
        self.0.put_bulk(objs);
    }

    fn get_bulk(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<(), usize> {
        let now = LATER.with_borrow_mut(|later| match later {
            Some((0, _)) => later.take(),
            Some((gets, _)) => {
                *gets -= 1;
                None
            }
            None => None,
        });
        drop(now);
        self.0.get_bulk(out)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

const LEN: usize = 1500;

/// Three segments of 500 bytes in clusters of which the last is large, and a packet that shares them.
fn shared(set: &BufferSet) -> (Mbuf, Mbuf) {
    let mut m: Option<Mbuf> = None;
    for (byte, class) in [(1, 2048), (2, 4096), (3, 65_536)] {
        let mut seg = set.header_with(class).unwrap();
        seg.append(500).unwrap().fill(byte);
        match &mut m {
            None => m = Some(seg),
            Some(m) => m.cat(seg),
        }
    }
    let m = m.unwrap();
    let sharer = m.clone_packet(set).unwrap();
    (m, sharer)
}

fn nines(room: &mut [u8]) {
    room.fill(9);
}

#[test]
fn an_edit_goes_right_whenever_another_owner_lets_go() {
    type Operation = fn(&mut Mbuf, &BufferSet) -> Result<(), EditError>;
    let fill = |at, n| {
        move |mut bytes: Vec<u8>| {
            bytes.resize(bytes.len().max(at + n), 0);
            bytes[at..at + n].fill(9);
            bytes
        }
    };
    let gap = |at, n| {
        move |mut bytes: Vec<u8>| {
            bytes.splice(at..at, std::iter::repeat_n(9, n));
            bytes
        }
    };
    type Model = Box<dyn Fn(Vec<u8>) -> Vec<u8>>;
    let same: fn() -> Model = || Box::new(|bytes| bytes);
    let operations: [(&str, Operation, Model); 11] = [
        (
            "write_at all",
            |m, set| m.write_at(0, &[9; 9000], set),
            Box::new(fill(0, 9000)),
        ),
        (
            "write_at the end",
            |m, set| m.write_at(1490, &[9; 9000], set),
            Box::new(fill(1490, 9000)),
        ),
        (
            "write_at beyond",
            |m, set| m.write_at(1600, &[9; 9000], set),
            Box::new(fill(1600, 9000)),
        ),
        (
            "pulldown within",
            |m, set| m.pulldown(600, 100, set).map(nines),
            Box::new(fill(600, 100)),
        ),
        (
            "pulldown across",
            |m, set| m.pulldown(400, 900, set).map(nines),
            Box::new(fill(400, 900)),
        ),
        (
            "make_space",
            |m, set| m.make_space(700, 300, set).map(nines),
            Box::new(gap(700, 300)),
        ),
        (
            "prepend_with",
            |m, set| m.prepend_with(300, set).map(nines).map_err(EditError::from),
            Box::new(gap(0, 300)),
        ),
        (
            "append_with",
            |m, set| m.append_with(300, set).map(nines).map_err(EditError::from),
            Box::new(gap(LEN, 300)),
        ),
        (
            "make_writable",
            |m, set| m.make_writable(set).map_err(EditError::from),
            same(),
        ),
        (
            "make_contiguous",
            |m, set| m.make_contiguous(1100, set),
            same(),
        ),
        (
            "defrag",
            |m, set| m.defrag(set).map_err(EditError::from),
            same(),
        ),
    ];
    for (name, operation, model) in operations {
        for gets in 0.. {
            let set = BufferSet::bsd_builder(32, 32)
                .configure(|b| b.cache(0).custom_backend(Box::new(LetsGo(Lifo::new(32)))))
                .build()
                .unwrap();
            let (mut m, sharer) = shared(&set);
            let want = model(m.to_vec());
            LATER.set(Some((gets, sharer)));
            operation(&mut m, &set).unwrap();
            let over = LATER.take();
            m.check().unwrap();
            assert!(m.to_vec() == want, "{name}, let go at {gets}");
            if let Some((_, sharer)) = &over {
                assert!(
                    sharer.pkt_len() == LEN
                        && sharer.to_vec().chunks(500).all(|c| c == [c[0]; 500])
                );
            }
            drop(m);
            let done = over.is_some();
            drop(over);
            assert!(set.is_full());
            if done {
                println!("{name}: {gets} places");
                break;
            }
        }
    }
}
