//! The runner on synthetic cells whose truth is known, and the JSON that comes of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bench::report::{Kind, Report, SCHEMA, Verdict};
use bench::runner::{self, Settings, Watch};
use bench::{CellRun, CellSpec, Counts, Env, Needs, Params, Profile, Sample, Skip};
use fastrand::Rng;

/// Calls seen by a synthetic cell: (variant, placement).
type Calls = Arc<Mutex<Vec<(usize, usize)>>>;

/// Answers with `truth[variant]` and some noise.
struct Synthetic {
    truth: Vec<f64>,
    noise: f64,
    fails_at: Option<usize>,
    calls: Calls,
    rng: Rng,
    broken_at_end: bool,
}

impl CellRun for Synthetic {
    fn variants(&self) -> Vec<&'static str> {
        ["staged", "runs", "direct"][..self.truth.len()].to_vec()
    }
    fn placements(&self) -> usize {
        3
    }
    fn round(&mut self, variant: usize, placement: usize) -> Result<Sample, String> {
        let mut calls = self.calls.lock().expect("one thread");
        calls.push((variant, placement));
        if Some(calls.len()) == self.fails_at {
            return Err("two objects are missing".to_owned());
        }
        let value = self.truth[variant] * (1.0 + self.noise * (self.rng.f64() - 0.5));
        Ok(Sample::new(value).with_counts(
            Counts::new()
                .with("pool_gets", 0.25)
                .with_median("sender_us", 3.0),
        ))
    }
    fn finish(&mut self) -> Result<(), String> {
        if self.broken_at_end {
            Err("the pool is short of 1".to_owned())
        } else {
            Ok(())
        }
    }
}

fn settings() -> Settings {
    Settings {
        budget: Duration::from_secs(600),
        min_rounds: 30,
        max_rounds: 30,
        resamples: 200,
        aa_every: 1000,
    }
}

fn spec(id: &str, build: impl Fn() -> Result<Synthetic, Skip> + Send + Sync + 'static) -> CellSpec {
    CellSpec {
        id: id.to_owned(),
        group: "synthetic",
        params: Params::new().with("shape", "flat").with("burst", 32),
        unit: "ns/mbuf",
        lower_is_better: true,
        baseline: "staged",
        needs: Needs::ONE_CPU,
        build: Box::new(move |_: &Env| build().map(|s| Box::new(s) as Box<dyn CellRun>)),
    }
}

fn synthetic(truth: &[f64], noise: f64, calls: &Calls) -> Synthetic {
    Synthetic {
        truth: truth.to_vec(),
        noise,
        fails_at: None,
        calls: calls.clone(),
        rng: Rng::with_seed(3),
        broken_at_end: false,
    }
}

fn calls() -> Calls {
    Calls::default()
}

#[test]
fn ratios_verdicts_and_counts_come_out() {
    let cell = spec("synthetic/a", || {
        Ok(synthetic(&[2.0, 1.5, 2.0], 0.02, &calls()))
    });
    let outcome = runner::run(&[cell], &Env::for_tests(), &settings(), &mut ());
    let [cell, aa] = outcome.cells.as_slice() else {
        panic!("{outcome:?}")
    };
    let runs = cell.variant("runs").expect("measured");
    assert!(
        (runs.ratio - 0.75).abs() < 0.01 && runs.verdict == Verdict::Faster,
        "{runs:?}"
    );
    assert_eq!(
        cell.variant("direct").expect("measured").verdict,
        Verdict::NoDifference
    );
    assert_eq!(
        cell.variant("staged").expect("measured").verdict,
        Verdict::Baseline
    );
    assert_eq!(
        (runs.counts["pool_gets"], runs.counts["sender_us"]),
        (0.25, 3.0)
    );
    assert_eq!((cell.placements, cell.partial), (3, false));
    assert_eq!((aa.kind, aa.id.as_str()), (Kind::Aa, "synthetic/a/aa"));
    assert_eq!(
        aa.variants
            .iter()
            .map(|v| v.name.as_str())
            .collect::<Vec<_>>(),
        ["staged", "staged'"]
    );
    assert!(!aa.excludes_one());
}

#[test]
fn every_round_runs_every_variant_once_at_one_placement_in_changing_order() {
    let seen = calls();
    let mine = seen.clone();
    let cell = spec("synthetic/order", move || {
        Ok(synthetic(&[1.0, 1.0, 1.0], 0.1, &mine))
    });
    let settings = Settings {
        aa_every: 1,
        ..settings()
    };
    runner::run(&[cell], &Env::for_tests(), &settings, &mut ());
    let calls = seen.lock().expect("not poisoned");
    let (warm, rounds) = calls.split_at(9);
    assert_eq!(warm.len(), 9, "three variants at three placements");
    let mut orders = std::collections::BTreeSet::new();
    let mut per_placement = [0_usize; 3];
    for round in rounds.chunks(4) {
        let mut variants: Vec<usize> = round.iter().map(|c| c.0).collect();
        orders.insert(variants.clone());
        variants.sort_unstable();
        assert_eq!(
            variants,
            [0, 0, 1, 2],
            "the baseline twice for the A/A cell"
        );
        assert!(
            round.iter().all(|c| c.1 == round[0].1),
            "one placement a round"
        );
        per_placement[round[0].1] += 1;
    }
    assert!(orders.len() > 5, "{orders:?}");
    let (least, most) = (per_placement.iter().min(), per_placement.iter().max());
    assert!(
        most.zip(least).is_some_and(|(m, l)| m - l <= 1),
        "{per_placement:?}"
    );
}

#[derive(Default)]
struct Loud(Vec<String>);
impl Watch for Loud {
    fn failed(&mut self, id: &str, reason: &str) {
        self.0.push(format!("{id}: {reason}"));
    }
}

#[test]
fn a_cell_that_did_not_do_its_work_is_failed_and_not_quoted() {
    let missing = spec("synthetic/missing", || {
        Ok(Synthetic {
            fails_at: Some(20),
            ..synthetic(&[1.0, 1.0], 0.0, &calls())
        })
    });
    let short = spec("synthetic/short", || {
        Ok(Synthetic {
            broken_at_end: true,
            ..synthetic(&[1.0, 1.0], 0.0, &calls())
        })
    });
    let panics = spec("synthetic/panics", || panic!("no such pool"));
    let nothing = spec("synthetic/zero", || {
        Ok(synthetic(&[1.0, 0.0], 0.0, &calls()))
    });
    let mut loud = Loud::default();
    let outcome = runner::run(
        &[missing, short, panics, nothing],
        &Env::for_tests(),
        &settings(),
        &mut loud,
    );
    assert!(outcome.cells.is_empty());
    assert_eq!(
        loud.0,
        [
            "synthetic/missing: two objects are missing",
            "synthetic/short: the pool is short of 1",
            "synthetic/panics: panicked: no such pool",
            "synthetic/zero: a round gave the value 0",
        ]
    );
    assert_eq!(outcome.failed.len(), 4);
}

#[test]
fn what_cannot_run_is_skipped_with_its_reason() {
    let two = CellSpec {
        needs: Needs::TWO_CPUS,
        ..spec("synthetic/two", || Ok(synthetic(&[1.0], 0.0, &calls())))
    };
    let slow = CellSpec {
        needs: Needs::ONE_CPU.full_only(),
        ..spec("synthetic/slow", || Ok(synthetic(&[1.0], 0.0, &calls())))
    };
    let unable = spec("synthetic/unable", || Err(Skip::new("no huge pages here")));
    let outcome = runner::run(
        &[two, slow, unable],
        &Env::for_tests(),
        &settings(),
        &mut (),
    );
    let reasons: Vec<&str> = outcome.skipped.iter().map(|s| s.reason.as_str()).collect();
    assert_eq!(
        reasons,
        [
            "needs 2 CPUs, this run has 1",
            "left to the full profile: too slow for a quick run",
            "no huge pages here"
        ]
    );
    let late = spec("synthetic/late", || Ok(synthetic(&[1.0], 0.0, &calls())));
    let spent = Settings {
        budget: Duration::ZERO,
        ..settings()
    };
    let outcome = runner::run(&[late], &Env::for_tests(), &spent, &mut ());
    assert!(
        outcome.skipped[0]
            .reason
            .contains("were over before its turn"),
        "{outcome:?}"
    );
}

#[test]
fn a_rate_is_better_when_higher() {
    let cell = CellSpec {
        lower_is_better: false,
        unit: "Gbit/s",
        ..spec("synthetic/rate", || {
            Ok(synthetic(&[50.0, 70.0], 0.01, &calls()))
        })
    };
    let outcome = runner::run(&[cell], &Env::for_tests(), &settings(), &mut ());
    let runs = outcome.cells[0].variant("runs").expect("measured");
    assert!(
        runs.verdict == Verdict::Faster && (runs.ratio - 1.4).abs() < 0.02,
        "{runs:?}"
    );
}

#[test]
fn the_json_has_the_fields_of_schema_1() {
    let cell = spec("synthetic/json", || {
        Ok(synthetic(&[2.0, 1.5], 0.02, &calls()))
    });
    let env = Env::for_tests();
    let outcome = runner::run(&[cell], &env, &settings(), &mut ());
    let report = Report {
        schema: SCHEMA,
        created: "2026-01-01T00:00:00Z".to_owned(),
        revision: "unknown".to_owned(),
        profile: Profile::Quick.name().to_owned(),
        seed: env.seed,
        machine: bench::machine::Machine::read(&env.clock),
        answers: bench::verdict::answers(&outcome.cells),
        cells: outcome.cells,
        skipped: outcome.skipped,
        failed: outcome.failed,
    };
    let text = report.to_json().expect("finite numbers");
    let json: serde_json::Value = serde_json::from_str(&text).expect("valid");
    let has = |value: &serde_json::Value, keys: &[&str]| {
        for key in keys {
            assert!(value.get(key).is_some(), "{key} is missing in {value}");
        }
    };
    has(
        &json,
        &[
            "schema", "created", "revision", "profile", "machine", "cells", "skipped",
        ],
    );
    has(
        &json["machine"],
        &["cpu", "cores", "kernel", "tsc_hz", "huge_pages", "rustc"],
    );
    let fields = [
        "id",
        "kind",
        "group",
        "params",
        "unit",
        "lower_is_better",
        "baseline",
        "rounds",
        "noisy",
        "partial",
    ];
    has(&json["cells"][0], &fields);
    has(&json["cells"][0], &["placements", "variants", "disturbed"]);
    let fields = [
        "name",
        "median",
        "ci95",
        "ratio",
        "ratio_ci95",
        "verdict",
        "counts",
    ];
    has(&json["cells"][0]["variants"][1], &fields);
    assert_eq!(json["schema"], 1);
    assert_eq!(json["cells"][0]["kind"], "cell");
    assert_eq!(json["cells"][1]["kind"], "aa");
    assert_eq!(
        json["cells"][0]["params"],
        serde_json::json!({ "shape": "flat", "burst": 32 })
    );
    assert_eq!(
        serde_json::from_str::<Report>(&text).expect("reads back"),
        report
    );
}

#[test]
fn a_machine_too_noisy_to_tell_is_said_to_be() {
    let cell = spec("synthetic/noisy", || {
        Ok(synthetic(&[1.0, 1.0], 1.9, &calls()))
    });
    let outcome = runner::run(&[cell], &Env::for_tests(), &settings(), &mut ());
    let cell = &outcome.cells[0];
    assert!(cell.noisy, "{cell:?}");
    assert_ne!(
        cell.variant("runs").expect("measured").verdict,
        Verdict::NoDifference
    );
}
