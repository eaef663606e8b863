//! A pool on one screen.

use crate::arena::MemoryKind;
use crate::backend::AnyBackend;
use crate::pool::RawPool;
use crate::stats::PoolStats;
use std::fmt::{Display, Formatter, Result};

/// Characters of a name that are shown.
const LONGEST_NAME: usize = 60;

/// What is counted: a heading and the figures, one line each.
type Line = (&'static str, fn(&PoolStats) -> (u64, Option<u64>));
const COUNTERS: &[Line] = &[
    ("backend gets", |s| {
        (s.backend_gets, Some(s.backend_objects_got))
    }),
    ("backend puts", |s| {
        (s.backend_puts, Some(s.backend_objects_put))
    }),
    ("failed gets", |s| (s.failed_gets, None)),
    ("cache hits", |s| (s.hits, None)),
    ("cache misses", |s| (s.misses, None)),
    ("high water", |s| (s.high_water as u64, None)),
];

/// The pool on one screen: what it is, where its objects are, what was counted. For people; lines and
/// their order stay, new ones may be added at the end.
///
/// ```
/// let pool = mempool::RawPool::builder(2048).name("packets").build()?;
/// assert!(pool.to_string().starts_with("pool \"packets\"\n"));
/// # Ok::<(), mempool::CreateError>(())
/// ```
impl Display for RawPool {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let stats = self.stats();
        let inner = self.inner();
        writeln!(f, "pool {}", Quoted(self.name()))?;
        let (objects, size) = (stats.capacity, self.object_size());
        let (stride, align) = (self.stride(), self.align());
        line(f, "objects", objects)?;
        writeln!(f, " of {size} bytes, stride {stride}, align {align}")?;
        line(f, "memory", self.range().len())?;
        writeln!(f, " bytes of {}", kind(self.memory_kind()))?;
        line(f, "cache", inner.cache_size)?;
        let workers = inner.slots_end / size_of::<crate::cache::Slot>();
        writeln!(f, " objects for each of {workers} workers")?;
        line(f, "in use", stats.in_use)?;
        writeln!(f)?;
        line(f, "cached", stats.cached)?;
        writeln!(f)?;
        let resting = stats.capacity.saturating_sub(stats.in_use + stats.cached);
        line(f, "in backend", resting)?;
        write!(f, " ({})", Quoted(backend(&inner.backend)))?;
        for (heading, read) in COUNTERS {
            let (count, objects) = read(&stats);
            writeln!(f)?;
            line(f, heading, count)?;
            if let Some(objects) = objects {
                write!(f, " calls, {objects} objects")?;
            }
        }
        Ok(())
    }
}

/// A heading and the line's first figure.
fn line(f: &mut Formatter<'_>, heading: &str, figure: impl Display) -> Result {
    write!(f, "  {heading:<14}{figure:>12}")
}

fn kind(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::HugePages => "reserved huge pages",
        MemoryKind::TransparentHugePages => "transparent huge pages",
        MemoryKind::Pages => "ordinary pages",
        MemoryKind::Heap => "the heap",
        MemoryKind::Region => "a caller's region",
    }
}

fn backend(backend: &AnyBackend) -> &str {
    match backend {
        AnyBackend::Lifo(_) => "lifo",
        AnyBackend::Ring(_) => "ring",
        AnyBackend::Spsc(_) => "spsc",
        AnyBackend::Custom(own) => own.name(),
    }
}

/// A name in quotes, on one line, shortened to [`LONGEST_NAME`] characters.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut shown = self.0.escape_debug();
        write!(f, "\"")?;
        for char in shown.by_ref().take(LONGEST_NAME) {
            write!(f, "{char}")?;
        }
        let rest = if shown.next().is_some() { "…" } else { "" };
        write!(f, "{rest}\"")
    }
}
