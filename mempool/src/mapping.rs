//! What the kernel says of the memory that a pool lies in: the process's own memory map.

use crate::pool::RawPool;
use std::io::{self, BufRead};
use std::ops::Range;

/// The mappings that hold a pool's objects, as the kernel describes them at that moment.
///
/// Figures are of whole mappings. A pool's own memory is a mapping of its own; a caller's
/// [`region`](crate::Builder::region) may be part of a larger one: compare [`bytes`](Self::bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Mapping {
    /// Bytes of the mappings.
    pub bytes: usize,
    /// Bytes of the kernel's page: the smallest, if mappings differ. Of 2 MB if the pages are reserved
    /// huge ones; transparent huge pages do not show here.
    pub page_size: usize,
    /// Bytes that are in memory, of whatever page size.
    pub resident: usize,
    /// Bytes of these that lie in transparent huge pages.
    pub transparent_huge: usize,
    /// Bytes of these that lie in reserved huge pages.
    pub reserved_huge: usize,
}

impl RawPool {
    /// What the pool's memory really is, while [`memory_kind`](Self::memory_kind) is what was asked
    /// for and granted. Reads the memory map of the whole process: takes its time.
    ///
    /// ```
    /// let pool = mempool::RawPool::builder(4096).prefault(true).build()?;
    /// match pool.mapping() {
    ///     Ok(mapping) => assert!(mapping.resident >= 1024 * 4096),
    ///     Err(error) => println!("nothing known: {error}"),
    /// }
    /// # Ok::<(), mempool::CreateError>(())
    /// ```
    ///
    /// # Errors
    /// That of reading the map; [`Unsupported`](io::ErrorKind::Unsupported) where there is none (it is
    /// Linux's), [`NotFound`](io::ErrorKind::NotFound) if the pool is not in it, and
    /// [`InvalidData`](io::ErrorKind::InvalidData) if it cannot be understood.
    #[doc(alias = "smaps")]
    pub fn mapping(&self) -> io::Result<Mapping> {
        let range = self.range();
        let start = range.addr().get();
        look_up(start..start + range.len())
    }
}

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
fn look_up(wanted: Range<usize>) -> io::Result<Mapping> {
    let map = std::fs::File::open("/proc/self/smaps")?;
    sum(io::BufReader::new(map), wanted)
}

#[cfg(not(all(target_os = "linux", not(miri), not(loom))))]
fn look_up(_wanted: Range<usize>) -> io::Result<Mapping> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Sums up the mappings in `map`, in the format of `smaps`, that meet `wanted`.
#[cfg_attr(
    not(all(target_os = "linux", not(miri), not(loom))),
    allow(dead_code, reason = "Linux's format; its tests run everywhere")
)]
fn sum(map: impl BufRead, wanted: Range<usize>) -> io::Result<Mapping> {
    let mut found: Option<Mapping> = None;
    let mut inside = false;
    // Bytes, since names of files need not be text.
    for line in map.split(b'\n') {
        let line = line?;
        let mut words = line
            .split(u8::is_ascii_whitespace)
            .filter(|w| !w.is_empty());
        let Some(first) = words.next() else { continue };
        if let Some(range) = addresses(first) {
            inside = range.start < wanted.end && wanted.start < range.end;
            if inside {
                found.get_or_insert_default().bytes += range.len();
            }
        } else if inside && let Some(mapping) = &mut found {
            mapping.add(first, words.next())?;
        }
    }
    found.ok_or_else(|| io::ErrorKind::NotFound.into())
}

impl Mapping {
    /// Takes in one figure, if it is one of ours.
    #[allow(dead_code, reason = "as for `sum`")]
    fn add(&mut self, key: &[u8], kilobytes: Option<&[u8]>) -> io::Result<()> {
        let sums: &mut [&mut usize] = match key {
            b"KernelPageSize:" => {
                let page = bytes(kilobytes)?;
                self.page_size = match self.page_size {
                    0 => page,
                    smallest => smallest.min(page),
                };
                return Ok(());
            }
            b"Rss:" => &mut [&mut self.resident],
            b"AnonHugePages:" | b"ShmemPmdMapped:" | b"FilePmdMapped:" => {
                &mut [&mut self.transparent_huge]
            }
            // Reserved huge pages are not in the resident size.
            b"Private_Hugetlb:" | b"Shared_Hugetlb:" => {
                &mut [&mut self.reserved_huge, &mut self.resident]
            }
            _ => return Ok(()),
        };
        let figure = bytes(kilobytes)?;
        for sum in sums {
            **sum = sum.saturating_add(figure);
        }
        Ok(())
    }
}

/// The range that a mapping's first line begins with.
#[allow(dead_code, reason = "as for `sum`")]
fn addresses(word: &[u8]) -> Option<Range<usize>> {
    let (start, end) = std::str::from_utf8(word).ok()?.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some(address(start)?..address(end)?)
}

#[allow(dead_code, reason = "as for `sum`")]
fn bytes(kilobytes: Option<&[u8]>) -> io::Result<usize> {
    let text = kilobytes.and_then(|word| std::str::from_utf8(word).ok());
    text.and_then(|text| text.parse::<usize>().ok()?.checked_mul(1024))
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SAMPLE: &[u8] = b"\
00400000-00402000 r-xp 00000000 08:01 1234                    /usr/bin/a-b\xff 10-20
Size:                  8 kB
KernelPageSize:        4 kB
MMUPageSize:           4 kB
Rss:                   8 kB
AnonHugePages:         0 kB
VmFlags: rd ex mr mw me
7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Size:               4096 kB
KernelPageSize:        4 kB
Rss:                3072 kB
Pss:                3072 kB
AnonHugePages:      2048 kB
ShmemPmdMapped:        0 kB
FilePmdMapped:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:       0 kB
THPeligible:           1
VmFlags: rd wr mr mw me ac hg
7f0000400000-7f0000800000 rw-p 00000000 00:0f 77              /anon_hugepage (deleted)
Size:               4096 kB
KernelPageSize:     2048 kB
Rss:                   0 kB
AnonHugePages:         0 kB
Private_Hugetlb:    2048 kB
VmFlags: rd wr mr mw me de ht
";

    fn mapping(wanted: Range<usize>) -> io::Result<Mapping> {
        sum(SAMPLE, wanted)
    }

    #[test]
    fn transparent_and_reserved_pages_are_told_apart() {
        let transparent = mapping(0x7f00_0000_1000..0x7f00_0000_2000).unwrap();
        let expected = Mapping {
            bytes: 4 << 20,
            page_size: 4096,
            resident: 3 << 20,
            transparent_huge: 2 << 20,
            reserved_huge: 0,
        };
        assert_eq!(transparent, expected);
        let reserved = mapping(0x7f00_0040_0000..0x7f00_0040_0001).unwrap();
        let expected = Mapping {
            bytes: 4 << 20,
            page_size: 2 << 20,
            resident: 2 << 20,
            transparent_huge: 0,
            reserved_huge: 2 << 20,
        };
        assert_eq!(reserved, expected);
    }

    #[test]
    fn ranges_over_several_mappings_are_summed_up() {
        let both = mapping(0x7f00_003f_ffff..0x7f00_0040_0001).unwrap();
        assert_eq!((both.bytes, both.page_size), (8 << 20, 4096));
        assert_eq!(both.resident, 5 << 20);
        // An end is not inside.
        assert_eq!(mapping(0x40_1fff..0x7f00_0000_0000).unwrap().bytes, 8 << 10);
    }

    #[test]
    fn what_is_not_there_or_no_number_is_an_error() {
        let kind = |result: io::Result<Mapping>| result.unwrap_err().kind();
        assert_eq!(kind(mapping(0x50_0000..0x50_1000)), io::ErrorKind::NotFound);
        assert_eq!(kind(sum(&b""[..], 0..1)), io::ErrorKind::NotFound);
        for text in ["0-1000 rw-p\nRss: x kB\n", "0-1000 rw-p\nRss:\n"] {
            assert_eq!(kind(sum(text.as_bytes(), 0..1)), io::ErrorKind::InvalidData);
        }
    }
}
