//! Steps that edit one packet.

use super::{Live, Source, World};
use mbuf::{EditError, NoRoom, Packet, Segment};

impl World<'_> {
    pub(super) fn edit(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        match src.below(19) {
            0 => self.prepend(i, src),
            1 => self.append(i, src),
            2 => self.trim(i, src),
            3 => self.overwrite(i, src),
            4 | 5 => self.make_contiguous(i, src),
            6 | 7 => self.pulldown(i, src),
            8 | 9 => self.write_at(i, src),
            10 | 11 => self.make_space(i, src),
            12 => self.make_writable(i, src),
            13 => self.one_segment(i, src),
            14 => self.prepend_with(i, src),
            15 => self.append_with(i, src),
            16 => self.zero(i),
            17 => self.header(i, src),
            _ => self.beyond(i, src),
        }
    }

    fn prepend(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        let live = &mut self.live[i];
        let bytes = src.some_bytes();
        let why = no_room(live.m.first(), bytes.len(), live.m.first().headroom());
        match live.m.prepend(bytes.len()) {
            Ok(room) => {
                room.copy_from_slice(&bytes);
                live.bytes.splice(0..0, bytes);
            }
            Err(e) => assert_eq!(e, why),
        }
        "prepend"
    }

    fn append(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        let live = &mut self.live[i];
        let bytes = src.some_bytes();
        let last = live.m.segments().last().expect("there is one");
        let why = no_room(last, bytes.len(), last.tailroom());
        match live.m.append(bytes.len()) {
            Ok(room) => {
                room.copy_from_slice(&bytes);
                live.bytes.extend(bytes);
            }
            Err(e) => assert_eq!(e, why),
        }
        "append"
    }

    fn prepend_with(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        let bytes = src.some_bytes();
        let done = self.attempt(i, |m, set| {
            m.prepend_with(bytes.len(), set)?.copy_from_slice(&bytes);
            Ok(())
        });
        if done {
            self.live[i].bytes.splice(0..0, bytes);
        }
        "prepend_with"
    }

    fn append_with(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        let bytes = src.some_bytes();
        let done = self.attempt(i, |m, set| {
            m.append_with(bytes.len(), set)?.copy_from_slice(&bytes);
            Ok(())
        });
        if done {
            self.live[i].bytes.extend(bytes);
        }
        "append_with"
    }

    fn trim(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        let n = src.up_to(self.live[i].bytes.len().min(400));
        let front = src.one_in(2);
        let live = &mut self.live[i];
        if front {
            live.m.trim_front(n).expect("as many are there");
            live.bytes.drain(..n);
        } else {
            live.m.trim_back(n).expect("as many are there");
            live.bytes.truncate(live.bytes.len() - n);
        }
        "trim"
    }

    /// Writes the first segment where it may be written.
    fn overwrite(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        let live = &mut self.live[i];
        let shared = live.m.first().is_shared();
        let bytes = src.bytes(live.m.first().len());
        match live.m.data_mut() {
            Some(data) => {
                assert!(!shared);
                data.copy_from_slice(&bytes);
                live.bytes[..bytes.len()].copy_from_slice(&bytes);
            }
            None => assert!(shared),
        }
        "data_mut"
    }

    fn make_contiguous(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        let n = src.up_to(self.live[i].bytes.len());
        if src.one_in(4) {
            let Live { m, bytes, .. } = self.live.swap_remove(i);
            let (user, offload) = (m.user(), m.offload());
            match m.pullup(n, self.set) {
                Ok(m) => {
                    assert!(m.first().len() >= n);
                    self.live.push(Live {
                        m,
                        bytes,
                        user,
                        offload,
                    });
                }
                Err(_) => self.short = true,
            }
            return "pullup";
        }
        let done = self.attempt(i, |m, set| m.make_contiguous(n, set));
        assert!(!done || self.live[i].m.first().len() >= n);
        "make_contiguous"
    }

    fn pulldown(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        let (off, len) = src.range(self.live[i].bytes.len());
        let now = self.live[i].bytes[off..off + len].to_vec();
        let new = src.bytes(len);
        let before = self.live[i].m.pieces(0, off).map(places);
        let before = before.expect("in range");
        let done = self.attempt(i, |m, set| {
            let found = m.pulldown(off, len, set)?;
            assert!(found == now, "not the bytes that were asked for");
            found.copy_from_slice(&new);
            Ok(())
        });
        if done {
            let live = &mut self.live[i];
            live.bytes[off..off + len].copy_from_slice(&new);
            let now = live.m.pieces(0, off).map(places).expect("in range");
            assert_eq!(now, before, "bytes before the range moved");
        }
        "pulldown"
    }

    fn write_at(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        let have = self.live[i].bytes.len();
        let gap = src.byte() as usize;
        let off = src.up_to(have + gap);
        let bytes = src.some_bytes();
        let done = self.attempt(i, |m, set| m.write_at(off, &bytes, set));
        if done {
            let model = &mut self.live[i].bytes;
            model.resize(have.max(off + bytes.len()), 0);
            model[off..off + bytes.len()].copy_from_slice(&bytes);
        }
        "write_at"
    }

    fn make_space(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        let skip = src.up_to(self.live[i].bytes.len());
        let bytes = src.some_bytes();
        let done = self.attempt(i, |m, set| {
            m.make_space(skip, bytes.len(), set)?
                .copy_from_slice(&bytes);
            Ok(())
        });
        if done {
            self.live[i].bytes.splice(skip..skip, bytes);
        }
        "make_space"
    }

    fn make_writable(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        if src.one_in(2) {
            let done = self.attempt(i, |m, set| m.make_writable(set).map_err(EditError::from));
            assert!(!done || self.live[i].m.is_writable());
            return "make_writable";
        }
        let (off, len) = src.range(self.live[i].bytes.len());
        let done = self.attempt(i, |m, set| m.make_range_writable(off, len, set));
        if done {
            let m = &self.live[i].m;
            let mut at = 0;
            for seg in m.segments() {
                let (start, end) = (at, at + seg.len());
                at = end;
                let touched = start.max(off) < end.min(off + len);
                assert!(!touched || !seg.is_shared());
            }
        }
        "make_range_writable"
    }

    fn one_segment(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        if src.one_in(2) {
            let done = self.attempt(i, |m, set| m.defrag(set).map_err(EditError::from));
            assert!(!done || self.live[i].m.nsegs() == 1);
            return "defrag";
        }
        let m = &mut self.live[i].m;
        let asked = m.pkt_len() - m.first().len();
        let fits = asked <= m.first().tailroom();
        let why = no_room(m.first(), asked, m.first().tailroom());
        let before = super::shape(m);
        match m.linearize() {
            Ok(()) => assert!(fits && m.nsegs() == 1),
            Err(e) => assert!(!fits && e == why && super::shape(m) == before),
        }
        "linearize"
    }

    fn zero(&mut self, i: usize) -> &'static str {
        let live = &mut self.live[i];
        let (mut at, mut shared) = (0, 0);
        for seg in live.m.segments() {
            let end = at + seg.len();
            if seg.is_shared() {
                shared += 1;
            } else {
                live.bytes[at..end].fill(0);
            }
            at = end;
        }
        assert_eq!(live.m.zero(), shared);
        "zero"
    }

    fn header(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        let j = src.below(self.live.len());
        if i == j {
            let live = &mut self.live[i];
            live.m.reset_header();
            (live.user, live.offload) = (0, Default::default());
            return "reset_header";
        }
        let mut to = self.live.swap_remove(i.max(j));
        let from = &mut self.live[i.min(j)];
        (to.user, to.offload) = (from.user, from.offload);
        if src.one_in(2) {
            to.m.copy_header_from(&from.m);
        } else {
            to.m.move_header_from(&mut from.m);
            (from.user, from.offload) = (0, Default::default());
        }
        self.live.push(to);
        "copy or move header"
    }

    /// Ranges that reach past the end, by one or by so much that sums wrap.
    fn beyond(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        let have = self.live[i].bytes.len();
        let far = [have + 1, usize::MAX, usize::MAX - have, 1 << 32][src.below(4)];
        let off = src.up_to(have);
        let over = far.max(have - off + 1);
        self.refused(i, |m, set| m.make_contiguous(far, set));
        self.refused(i, |m, set| m.pulldown(off, over, set).map(drop));
        self.refused(i, |m, set| m.pulldown(far, 0, set).map(drop));
        self.refused(i, |m, set| m.make_space(far, 1, set).map(drop));
        self.refused(i, |m, set| m.make_range_writable(off, over, set));
        self.refused(i, |m, set| m.split(far, set));
        self.refused(i, |m, set| m.write_at(usize::MAX, &[1], set));
        self.refused(i, |m, _| m.trim_front(far).map_err(EditError::from));
        self.refused(i, |m, _| m.trim_back(far).map_err(EditError::from));
        self.refused(i, |m, _| m.locate(far).map(drop).map_err(EditError::from));
        self.refused(i, |m, _| {
            m.pieces(off, over).map(drop).map_err(EditError::from)
        });
        "ranges beyond the end"
    }
}

/// Addresses of the pieces.
fn places(pieces: mbuf::ByteSlices<'_>) -> Vec<(usize, usize)> {
    pieces.map(|p| (p.as_ptr() as usize, p.len())).collect()
}

/// What a refusal of `asked` bytes in `seg` must say, which has room for `have`.
fn no_room(seg: Segment<'_>, asked: usize, have: usize) -> NoRoom {
    match seg.is_writable() {
        true => NoRoom::TooSmall { asked, have },
        false => NoRoom::ReadOnly {
            asked,
            refs: seg.storage_refs(),
        },
    }
}
