//! Steps that read a packet, copy it, cut it, join it with another, or pass it on.

use super::{Live, Source, World};
use mbuf::{CopyError, Mbuf, Packet, ReadError};

impl World<'_> {
    pub(super) fn copy(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        match src.below(12) {
            0 => self.ref_copy(i, src),
            1 => self.byte_copy(i, src),
            2 => self.read(i, src),
            3 => self.split(i, src),
            4 => self.split_first(i),
            5 | 6 => self.join(i, src),
            7 => self.freeze(i, src),
            8 => self.thaw(src),
            9 => self.queue(i, src),
            10 => self.queue_cut(src),
            _ => {
                drop(self.live.swap_remove(i));
                "drop"
            }
        }
    }

    /// Keeps a copy of `[off, off + len)` of packet `i`, if it could be made.
    fn keep(&mut self, i: usize, off: usize, len: usize, copy: Result<Mbuf, CopyError>) {
        let from = &self.live[i];
        match copy {
            Ok(m) => {
                let copy = Live::new(m, from.bytes[off..off + len].to_vec());
                if off == 0 {
                    assert_eq!((copy.user, copy.offload), (from.user, from.offload));
                }
                if self.live.len() < 2 * super::PACKETS {
                    self.live.push(copy);
                }
            }
            Err(CopyError::Alloc(_)) => self.short = true,
            Err(e) => panic!("a range within the packet was refused: {e}"),
        }
    }

    fn ref_copy(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        let all = self.live[i].bytes.len();
        let whole = src.one_in(3);
        let (off, len) = if whole { (0, all) } else { src.range(all) };
        let m = &self.live[i].m;
        let copy = match whole {
            true => m.clone_packet(self.set),
            false => m.ref_copy(off, len, self.set),
        };
        self.keep(i, off, len, copy);
        "ref_copy"
    }

    fn byte_copy(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        let all = self.live[i].bytes.len();
        let (off, len) = src.range(all);
        let lead = src.below(200);
        let m = &self.live[i].m;
        let (off, len, copy) = match src.below(3) {
            0 => (0, all, m.deep_copy(lead, self.set)),
            1 => (off, all - off, m.byte_copy_from(off, lead, self.set)),
            _ => (off, len, m.byte_copy(off, len, lead, self.set)),
        };
        if let Ok(copy) = &copy {
            assert_eq!((copy.nsegs(), copy.first().headroom()), (1, lead));
        }
        self.keep(i, off, len, copy);
        assert!(self.live[i].m.byte_copy_from(all + 1, 0, self.set).is_err());
        "byte_copy"
    }

    fn read(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        let Live { m, bytes, .. } = &self.live[i];
        let (off, len) = src.range(bytes.len());
        let want = &bytes[off..off + len];
        let mut out = vec![0; len];
        m.copy_to(off, &mut out).expect("in range");
        assert!(out == want);
        let mut scratch = vec![0xaa; src.up_to(len)];
        let room = scratch.len();
        match m.read(off, len, &mut scratch) {
            Ok(got) => assert!(got == want),
            Err(ReadError::Scratch(e)) => {
                assert_eq!(
                    e,
                    mbuf::NoRoom::TooSmall {
                        asked: len,
                        have: room
                    }
                );
            }
            Err(e) => panic!("a range within the packet was refused: {e}"),
        }
        let pieces: Vec<&[u8]> = m.pieces(off, len).expect("in range").collect();
        assert!(pieces.concat() == want && pieces.iter().all(|p| !p.is_empty()));
        let (seg, at) = m.locate(off).expect("in range");
        match bytes.get(off) {
            Some(byte) => assert_eq!(seg.data()[at], *byte),
            None => assert!(at == seg.len() && seg.next().is_none()),
        }
        "read"
    }

    fn split(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        let at = src.up_to(self.live[i].bytes.len());
        let mut tail = None;
        let done = self.attempt(i, |m, set| {
            tail = Some(m.split(at, set)?);
            Ok(())
        });
        if let Some(tail) = tail.filter(|_| done) {
            let live = &mut self.live[i];
            let tail = Live::new(tail, live.bytes.split_off(at));
            assert_eq!((tail.user, tail.offload), (live.user, live.offload));
            self.live.push(tail);
        }
        "split"
    }

    fn split_first(&mut self, i: usize) -> &'static str {
        let Live {
            m,
            mut bytes,
            user,
            offload,
        } = self.live.swap_remove(i);
        let (first, rest) = m.split_first();
        let behind = bytes.split_off(first.pkt_len());
        match rest {
            Some(rest) => self.live.push(Live::new(rest, behind)),
            None => assert!(behind.is_empty()),
        }
        self.live.push(Live {
            m: first,
            bytes,
            user,
            offload,
        });
        "split_first"
    }

    fn join(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        let tail = self.live.swap_remove(i);
        let packed = src.one_in(2);
        if self.live.is_empty() {
            return "drop";
        }
        let j = src.below(self.live.len());
        let live = &mut self.live[j];
        live.bytes.extend(tail.bytes);
        if packed {
            live.m.cat_packed(tail.m);
        } else {
            live.m.cat(tail.m);
        }
        "cat"
    }

    /// Gives up exclusive ownership; sometimes there are two owners then.
    fn freeze(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        let Live { m, bytes, .. } = self.live.swap_remove(i);
        let shared = m.into_shared();
        if src.one_in(2) {
            let copy = shared.clone_packet(self.set);
            if let Ok(copy) = copy {
                self.live.push(Live::new(copy, bytes.clone()));
            }
        }
        self.frozen.push((shared, bytes));
        if self.frozen.len() > super::PACKETS {
            drop(self.frozen.remove(0));
        }
        "into_shared"
    }

    fn thaw(&mut self, src: &mut Source<'_>) -> &'static str {
        if self.frozen.is_empty() {
            return "nothing";
        }
        let (shared, bytes) = self.frozen.swap_remove(src.below(self.frozen.len()));
        let second = shared.clone();
        let shared = shared.try_into_unique().expect_err("two owners");
        drop(second);
        let m = shared.try_into_unique().expect("one owner");
        self.live.push(Live::new(m, bytes));
        "try_into_unique"
    }

    fn queue(&mut self, i: usize, src: &mut Source<'_>) -> &'static str {
        if src.one_in(2) {
            let bytes = src.some_bytes();
            let n = self.chain.append_bytes(&bytes);
            self.chain_bytes.extend(&bytes[..n]);
            return "append_bytes";
        }
        let Live { m, bytes, .. } = self.live.swap_remove(i);
        self.chain.push_back(m);
        self.chain_bytes.extend(bytes);
        "push_back"
    }

    fn queue_cut(&mut self, src: &mut Source<'_>) -> &'static str {
        let n = src.up_to(self.chain_bytes.len());
        let (moved, taken) = match src.below(3) {
            0 => (self.chain.cut(n).expect("in range"), None),
            1 => (self.chain.take_whole(n), Some(())),
            _ => {
                let copy = self.chain.ref_copy(0, n, self.set);
                if let Ok(copy) = copy {
                    let bytes = self.chain_bytes[..n].to_vec();
                    self.live.push(Live::new(copy, bytes));
                }
                return "ref_copy of the queue";
            }
        };
        match (moved, taken) {
            (Some(m), Some(())) => {
                let bytes = self.chain_bytes.drain(..m.pkt_len()).collect();
                self.live.push(Live::new(m, bytes));
            }
            (gone, None) => {
                self.chain_bytes.drain(..n);
                assert!(gone.is_none_or(|g| g.check().is_ok()));
            }
            (None, Some(())) => {}
        }
        "cut"
    }
}
