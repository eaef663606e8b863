//! Rendering of a report made by hand.

use super::*;
use bench::Params;
use bench::machine::Machine;
use bench::published;
use bench::report::Answer;

fn variant(name: &str, median: f64, ratio: f64, ci: [f64; 2], verdict: Verdict) -> VariantReport {
    VariantReport {
        name: name.to_owned(),
        median,
        ci95: [median, median],
        ratio,
        ratio_ci95: ci,
        verdict,
        counts: Default::default(),
    }
}

fn report() -> Report {
    let params = Params::new().with("shape", "flat").with("burst", 32);
    let cell = CellReport {
        kind: Kind::Cell,
        id: "free-bulk/flat/hot/burst=32".into(),
        group: "free-bulk".into(),
        theirs: published::for_cell("free-bulk", &params),
        params,
        unit: "ns/mbuf".into(),
        lower_is_better: true,
        baseline: "staged".into(),
        rounds: 42,
        disturbed: 3,
        partial: false,
        noisy: true,
        placements: 6,
        seconds: 0.3,
        variants: vec![
            variant("staged", 3.061, 1.0, [1.0, 1.0], Verdict::Baseline),
            variant("runs", 1.9, 0.62, [0.61, 0.64], Verdict::Faster),
            variant("floor", 0.0512, 0.02, [0.02, 0.02], Verdict::Faster),
        ],
    };
    let aa = |n: usize, verdict| CellReport {
        kind: Kind::Aa,
        id: format!("free-bulk/flat/hot/burst={n}/aa"),
        theirs: None,
        variants: vec![
            variant("staged", 3.061, 1.0, [1.0, 1.0], Verdict::Baseline),
            variant("staged'", 3.062, 1.002, [0.991, 1.013], verdict),
        ],
        ..cell.clone()
    };
    let skip = |id: &str| Unmeasured {
        id: id.into(),
        reason: "needs 2 CPUs, this run has 1".into(),
    };
    Report {
        schema: 1,
        created: "2026-01-01T00:00:00Z".into(),
        revision: "unknown".into(),
        profile: "quick".into(),
        seed: 7,
        machine: Machine {
            cpu: "A CPU".into(),
            cores: 2,
            kernel: "6.1".into(),
            tsc_hz: 2.3e9,
            huge_pages: "base 4 KiB".into(),
            rustc: "rustc 1.95.0".into(),
        },
        cells: vec![
            cell.clone(),
            aa(8, Verdict::NoDifference),
            aa(32, Verdict::Slower),
        ],
        skipped: vec![skip("drain/a"), skip("drain/b")],
        failed: vec![Unmeasured {
            id: "splice/a".into(),
            reason: "the pool is short of 1".into(),
        }],
        answers: vec![Answer {
            seed: "s".into(),
            sentence: "It holds here.".into(),
        }],
    }
}

#[test]
fn a_group_shows_variants_ratios_and_the_published_figures_as_theirs() {
    let text = render(
        &report(),
        &[
            ("free-bulk", "which way to free?"),
            ("drain", "never shown"),
        ],
    );
    println!("{text}");
    assert!(
        text.contains("free-bulk: which way to free? (ns/mbuf)") && !text.contains("never shown")
    );
    for part in [
        "flat/hot/burst=32",
        "42~",
        "3.06",
        "×0.62 [0.61, 0.64] +",
        "0.0512",
        "theirs",
        "2.05 → 1.50 ticks/call",
        "runs ×0.73",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
}

#[test]
fn a_a_cells_stand_apart_and_are_held_against_chance() {
    let text = render(&report(), &[("free-bulk", "?")]);
    assert!(
        text.contains("free-bulk/flat/hot/burst=8: staged against itself"),
        "{text}"
    );
    assert!(
        text.contains("1 of 2 intervals exclude 1, chance allows up to 1: as it should be"),
        "{text}"
    );
    assert!(text.contains("[0.991, 1.013]"), "{text}");
}

#[test]
fn answers_machine_and_everything_that_is_missing_are_said() {
    let text = render(&report(), &[]);
    assert!(text.contains("It holds here.\n"), "{text}");
    assert!(
        text.contains("A CPU, 2 CPUs, Linux 6.1, pages: base 4 KiB, TSC 2.300 GHz, rustc 1.95.0"),
        "{text}"
    );
    assert!(
        text.contains("42 to 42 rounds per cell, 3 preempted rounds thrown away, 1 noisy"),
        "{text}"
    );
    assert!(
        text.contains("skipped, needs 2 CPUs, this run has 1: drain/a, drain/b\n"),
        "{text}"
    );
    assert!(
        text.contains("FAILED, the pool is short of 1: splice/a\n"),
        "{text}"
    );
}

#[test]
fn cells_of_several_units_say_each_its_own() {
    let mut report = report();
    let other = CellReport {
        unit: "Gbit/s".into(),
        ..report.cells[0].clone()
    };
    report.cells.push(other);
    let text = render(&report, &[("free-bulk", "which way to free?")]);
    assert!(
        text.contains("which way to free?\n")
            && text.contains("ns/mbuf")
            && text.contains("Gbit/s"),
        "{text}"
    );
}
