//! What is measured: a cell, its parameters, and the state that runs its rounds.
//!
//! A *case* is one question; a *cell* is that question at one parameter point, with
//! one named baseline and the variants that are held against it. A cell is described
//! by a [`CellSpec`], which costs nothing until [`CellSpec::build`] makes a
//! [`CellRun`] of it.

use std::fmt;
use std::path::PathBuf;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::clock::Clock;
use crate::report::Unmeasured;

/// The parameters of a cell, in the order in which its author names them.
///
/// Serialises as a JSON object. Two keys are read by the report itself: `shape` and
/// `burst`, by which a published figure finds the cells that it belongs to.
///
/// ```
/// let p = bench::Params::new().with("shape", "flat").with("burst", 32);
/// assert_eq!(p.get("burst"), Some(&32.into()));
/// assert_eq!(serde_json::to_string(&p).unwrap(), r#"{"shape":"flat","burst":32}"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params(pub Vec<(String, Value)>);

impl Params {
    /// No parameters yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more parameter at the end.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.push((key.to_owned(), value.into()));
        self
    }

    /// The value of `key`, if there is such a parameter.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }
}

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Params;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of parameters")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Params, A::Error> {
                let mut params = Params::new();
                while let Some(entry) = map.next_entry()? {
                    params.0.push(entry);
                }
                Ok(params)
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// A first answer within a minute.
    Quick,
    /// The answer that is quoted, about ten minutes.
    Full,
}

impl Profile {
    /// The name in the report: `quick` or `full`.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Quick => "quick",
            Profile::Full => "full",
        }
    }
}

/// What a cell needs from the machine and from the run, or else it is skipped, with
/// the reason said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// CPUs: 1, or 2 for a cell whose device runs on a core of its own.
    pub cpus: usize,
    /// Only in the full profile: too slow to build or to run for a quick answer.
    pub full_only: bool,
    /// More threads than CPUs, so that they are preempted in every round: that is measured, and no
    /// reason to throw a round away.
    pub crowded: bool,
}

impl Needs {
    /// One CPU, any profile.
    pub const ONE_CPU: Needs = Needs {
        cpus: 1,
        full_only: false,
        crowded: false,
    };
    /// Two CPUs, any profile.
    pub const TWO_CPUS: Needs = Needs {
        cpus: 2,
        full_only: false,
        crowded: false,
    };

    /// The same, with more threads than CPUs.
    #[must_use]
    pub const fn crowded(self) -> Needs {
        Needs {
            crowded: true,
            ..self
        }
    }

    /// The same, in the full profile only.
    #[must_use]
    pub const fn full_only(self) -> Needs {
        Needs {
            full_only: true,
            ..self
        }
    }
}

/// Why a cell was not measured, in words for the reader.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Skip(pub String);

impl Skip {
    /// A skip for `reason`.
    pub fn new(reason: impl Into<String>) -> Self {
        Skip(reason.into())
    }
}

/// What the run offers to its cells.
#[derive(Clone, Debug)]
pub struct Env {
    /// The CPU of the measuring thread (which the runner has already pinned to it) and
    /// the one for a second thread ([`crate::affinity::pin_to`]); `None` on one CPU.
    pub cpus: Option<(usize, usize)>,
    /// How much is measured.
    pub profile: Profile,
    /// Seed of everything random in the run: orders, shapes, bootstrap.
    pub seed: u64,
    /// Where the `pipeline` group writes what went over the wire, if asked to. The file
    /// exists and is empty; a cell writes it outside its timed part.
    pub pcap: Option<PathBuf>,
    /// The calibrated time stamp counter.
    pub clock: Clock,
}

impl Env {
    /// An environment for tests: no pinning, quick profile, fixed seed.
    pub fn for_tests() -> Self {
        Env {
            cpus: None,
            profile: Profile::Quick,
            seed: 1,
            pcap: None,
            clock: Clock::calibrate(),
        }
    }
}

/// How one count is brought together over the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduce {
    /// Operations: the mean over the rounds, so that a rare event is not lost.
    #[default]
    Mean,
    /// Times and sizes: the median over the rounds.
    Median,
}

/// Operation counts of one round, each *per unit of the cell* (per mbuf, per send, …).
///
/// ```
/// let c = bench::Counts::new().with("pool_gets", 0.5).with_median("sender_us", 3.1);
/// assert_eq!(c.iter().count(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts(Vec<(&'static str, f64, Reduce)>);

impl Counts {
    /// No counts.
    pub const fn new() -> Self {
        Counts(Vec::new())
    }

    /// With one more operation count; the report gives its mean over the rounds.
    #[must_use]
    pub fn with(mut self, name: &'static str, per_unit: f64) -> Self {
        self.0.push((name, per_unit, Reduce::Mean));
        self
    }

    /// With one more time or size; the report gives its median over the rounds.
    #[must_use]
    pub fn with_median(mut self, name: &'static str, value: f64) -> Self {
        self.0.push((name, value, Reduce::Median));
        self
    }

    /// The counts, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64, Reduce)> + '_ {
        self.0.iter().copied()
    }
}

/// What one round of one variant gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The measured value in the cell's unit; finite and above zero.
    pub value: f64,
    /// What was done, per unit.
    pub counts: Counts,
}

impl Sample {
    /// A sample without counts.
    pub fn new(value: f64) -> Self {
        Sample {
            value,
            counts: Counts::new(),
        }
    }

    /// The same with counts.
    #[must_use]
    pub fn with_counts(mut self, counts: Counts) -> Self {
        self.counts = counts;
        self
    }
}

/// The state of one cell: built just before it runs, dropped right after.
///
/// A round of a few hundred microseconds to a few milliseconds is best: long enough
/// that the clock does not matter, short enough that it is seldom preempted.
pub trait CellRun {
    /// The names of the variants, the baseline among them.
    fn variants(&self) -> Vec<&'static str>;

    /// How many code placements each variant exists in, 1 or more; see
    /// [`crate::placement`].
    fn placements(&self) -> usize;

    /// Runs one round of one variant at one placement. It takes its own time stamps,
    /// so that preparation stays outside, and checks its own work outside the timed
    /// part.
    ///
    /// # Errors
    /// A plain reason when the work was not done; the whole cell is then reported as
    /// failed and nothing of it is quoted.
    fn round(&mut self, variant: usize, placement: usize) -> Result<Sample, String>;

    /// Called once after the last round: pools full again, digests equal.
    ///
    /// # Errors
    /// A plain reason when something is not as it must be.
    fn finish(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// Makes the state of a cell.
pub type Build = Box<dyn Fn(&Env) -> Result<Box<dyn CellRun>, Skip> + Send + Sync>;

/// One cell: a question at one parameter point.
///
/// ```
/// use bench::{CellRun, CellSpec, Needs, Params, Sample};
///
/// struct Sums(Vec<u64>);
/// impl CellRun for Sums {
///     fn variants(&self) -> Vec<&'static str> { vec!["loop", "iter"] }
///     fn placements(&self) -> usize { 1 }
///     fn round(&mut self, variant: usize, _placement: usize) -> Result<Sample, String> {
///         let at = std::time::Instant::now();
///         let sum = if variant == 0 { self.0.iter().fold(0, |a, b| a + b) } else { self.0.iter().sum() };
///         let ns = at.elapsed().as_nanos() as f64;
///         if sum != 10 { return Err(format!("sum {sum} instead of 10")); }
///         Ok(Sample::new(ns.max(1.0) / 4.0))
///     }
/// }
/// let cell = CellSpec {
///     id: "sums/n=4".into(), group: "sums", params: Params::new().with("n", 4),
///     unit: "ns/number", lower_is_better: true, baseline: "loop", needs: Needs::ONE_CPU,
///     build: Box::new(|_env| Ok(Box::new(Sums(vec![1, 2, 3, 4])))),
/// };
/// assert_eq!(cell.id, "sums/n=4");
/// ```
pub struct CellSpec {
    /// Name, unique over all groups: `group/shape/heat/burst=32`.
    pub id: String,
    /// The group, the first part of the id.
    pub group: &'static str,
    /// The parameter point.
    pub params: Params,
    /// Unit of [`Sample::value`]: `ns/mbuf`, `µs/send`, `Gbit/s`.
    pub unit: &'static str,
    /// `true` for times, `false` for rates.
    pub lower_is_better: bool,
    /// The variant that the others are held against.
    pub baseline: &'static str,
    /// What the cell needs.
    pub needs: Needs,
    /// Makes the state; may say that it cannot be run here.
    pub build: Build,
}

impl fmt::Debug for CellSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CellSpec")
            .field("id", &self.id)
            .field("unit", &self.unit)
            .field("baseline", &self.baseline)
            .field("needs", &self.needs)
            .finish_non_exhaustive()
    }
}

/// The cells of one group.
#[derive(Debug)]
pub struct Group {
    /// The fixed name: `mempool`, `free-bulk`, `alloc`, `sockbuf`, `tcp-copy`, `splice`, `drain`, `pipeline`,
    /// `tcp-output`.
    pub name: &'static str,
    /// The question in one line, printed above the group's table.
    pub question: &'static str,
    /// The cells, in the order in which they are shown.
    pub cells: Vec<CellSpec>,
    /// What this build leaves out of them, and how to get it.
    pub absent: Vec<Unmeasured>,
}
