//! What a connection sends, and when, in scenarios that read like traces: `tests/data/traces`.

#[path = "common/alone.rs"]
mod alone;
mod common;
#[path = "common/trace.rs"]
mod trace;

/// Runs each scenario of a file, and says which of them do not hold.
fn all_hold(text: &str, least: usize) {
    let scenarios = trace::scenarios(text);
    assert!(scenarios.len() >= least, "{} scenarios", scenarios.len());
    let holds = |(name, words, lines): &(&str, &str, &str)| {
        let run = || trace::run(name, words, lines);
        std::panic::catch_unwind(run).is_ok()
    };
    let failed: Vec<_> = scenarios
        .iter()
        .filter(|scenario| !holds(scenario))
        .map(|s| s.0)
        .collect();
    assert!(failed.is_empty(), "do not hold: {failed:?}");
}

#[test]
fn opening() {
    all_hold(include_str!("data/traces/opening.txt"), 12);
}

#[test]
fn sending() {
    all_hold(include_str!("data/traces/sending.txt"), 17);
}

#[test]
fn receiving() {
    all_hold(include_str!("data/traces/receiving.txt"), 12);
}

#[test]
fn closing() {
    all_hold(include_str!("data/traces/closing.txt"), 13);
}
