//! The same cells under criterion: trends of one variant over time, with its history.
//!
//! Criterion measures one variant after another, so for comparing variants use
//! `cargo xtask bench`, which pairs them. `cargo bench -p bench -- free-bulk/flat` picks
//! cells by their ids. Placements are taken in turn.

use std::time::Duration;

use bench::{CellSpec, Env, Profile};
use criterion::Criterion;
use criterion::measurement::{Measurement, ValueFormatter};

/// The cell's own value per unit, instead of wall time around a whole round.
struct PerUnit;

struct Plain;

impl ValueFormatter for Plain {
    fn scale_values(&self, _typical: f64, _values: &mut [f64]) -> &'static str {
        "(cell's unit)"
    }
    fn scale_throughputs(
        &self,
        _typical: f64,
        _per: &criterion::Throughput,
        _values: &mut [f64],
    ) -> &'static str {
        "(cell's unit)"
    }
    fn scale_for_machines(&self, _values: &mut [f64]) -> &'static str {
        "(cell's unit)"
    }
}

impl Measurement for PerUnit {
    type Intermediate = ();
    type Value = f64;
    fn start(&self) {}
    fn end(&self, (): ()) -> f64 {
        0.0
    }
    fn add(&self, a: &f64, b: &f64) -> f64 {
        a + b
    }
    fn zero(&self) -> f64 {
        0.0
    }
    fn to_f64(&self, value: &f64) -> f64 {
        *value
    }
    fn formatter(&self) -> &dyn ValueFormatter {
        &Plain
    }
}

fn main() {
    let profile = Profile::Full;
    let env = Env {
        cpus: bench::affinity::pick_two(),
        profile,
        ..Env::for_tests()
    };
    if let Some((cpu, _)) = env.cpus
        && let Err(reason) = bench::affinity::pin_to(cpu)
    {
        eprintln!("not pinned: {reason}");
    }
    let mut criterion = Criterion::default()
        .with_measurement(PerUnit)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
        .sample_size(20)
        .configure_from_args();
    for cell in bench::groups().into_iter().flat_map(|group| group.cells) {
        if cell.needs.cpus == 1 || env.cpus.is_some() {
            one_cell(&mut criterion, &cell, &env);
        }
    }
    criterion.final_summary();
}

/// Benches each variant of a cell, if a filter on the command line is about it.
fn one_cell(criterion: &mut Criterion<PerUnit>, cell: &CellSpec, env: &Env) {
    // Criterion filters too, but only after the cell was built.
    let filter = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    if filter.is_some_and(|text| !cell.id.contains(&text) && !text.contains(&cell.id)) {
        return;
    }
    let mut run = match (cell.build)(env) {
        Ok(run) => run,
        Err(skip) => return eprintln!("skipped {}: {skip}", cell.id),
    };
    let placements = run.placements().max(1);
    for (variant, name) in run.variants().into_iter().enumerate() {
        let mut turn = 0;
        criterion.bench_function(&format!("{}/{name}", cell.id), |bencher| {
            bencher.iter_custom(|rounds| {
                let value = |placement| run.round(variant, placement).map(|sample| sample.value);
                sum_of(rounds, placements, &mut turn, value)
            });
        });
    }
    if let Err(reason) = run.finish() {
        eprintln!("FAILED {}: {reason}", cell.id);
        std::process::exit(1);
    }
}

/// The values of `rounds` rounds together, placements in turn.
fn sum_of(
    rounds: u64,
    placements: usize,
    turn: &mut usize,
    mut value: impl FnMut(usize) -> Result<f64, String>,
) -> f64 {
    (0..rounds)
        .map(|_| {
            *turn = (*turn + 1) % placements;
            value(*turn).expect("the work of the cell is done")
        })
        .sum()
}
