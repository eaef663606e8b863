//! The interval on synthetic rounds whose truth is known.

use bench::stats::{interval, median};
use fastrand::Rng;

/// A normal deviate (Box and Muller).
fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (std::f64::consts::TAU * rng.f64()).cos()
}

/// Ratios of `rounds` rounds in each of `k` placements: the truth, a log-normal effect of
/// the placement, log-normal noise of the round, and one round in 20 far off.
fn ratios(
    truth: f64,
    k: usize,
    rounds: usize,
    placed: f64,
    noise: f64,
    rng: &mut Rng,
) -> Vec<Vec<f64>> {
    (0..k)
        .map(|_| {
            let here = truth * (placed * normal(rng)).exp();
            (0..rounds)
                .map(|_| {
                    let spike = if rng.usize(..20) == 0 { 3.0 } else { 1.0 };
                    here * (spike * noise * normal(rng)).exp()
                })
                .collect()
        })
        .collect()
}

/// The share of `cells` whose interval lies wholly on one side of 1.
fn excluded(truth: f64, rounds: usize, placed: f64, noise: f64, seed: u64) -> f64 {
    const CELLS: usize = 600;
    let mut rng = Rng::with_seed(seed);
    let hits = (0..CELLS)
        .filter(|_| {
            let [lo, hi] = interval(
                &ratios(truth, 6, rounds, placed, noise, &mut rng),
                300,
                &mut rng,
            );
            hi < 1.0 || lo > 1.0
        })
        .count();
    hits as f64 / CELLS as f64
}

#[test]
fn a_variant_against_itself_comes_out_as_one() {
    for (rounds, seed) in [(5, 1), (10, 2), (35, 3)] {
        let share = excluded(1.0, rounds, 0.0, 0.05, seed);
        println!("A/A, {rounds} rounds in each placement: {share}");
        assert!(
            share <= 0.065,
            "{rounds} rounds: {share} of the intervals exclude 1"
        );
    }
}

#[test]
fn placements_alone_rarely_pass_for_an_effect() {
    for (placed, seed) in [(0.02, 4), (0.10, 5), (0.30, 6)] {
        let share = excluded(1.0, 10, placed, 0.03, seed);
        println!("placement effect of {placed}: {share}");
        assert!(
            share <= 0.08,
            "placement effect {placed}: {share} of the intervals exclude 1"
        );
    }
}

#[test]
fn five_per_cent_are_seen() {
    let share = excluded(0.95, 10, 0.005, 0.04, 7);
    println!("5 % effect: {share}");
    assert!(
        share >= 0.95,
        "a 5 % effect is seen in {share} of the cells only"
    );
}

#[test]
fn placement_noise_widens_the_interval_that_rounds_alone_would_give() {
    let mut rng = Rng::with_seed(8);
    let (mut fake, mut wider) = (0, 0);
    for _ in 0..200 {
        let strata = ratios(1.0, 6, 20, 0.10, 0.02, &mut rng);
        let [lo, hi] = interval(&strata, 300, &mut rng);
        let [flat_lo, flat_hi] = interval(&[strata.concat()], 300, &mut rng);
        fake += usize::from(flat_lo > 1.0 || flat_hi < 1.0);
        wider += usize::from(hi / lo > flat_hi / flat_lo);
    }
    assert!(
        fake > 60,
        "the noise was to fake effects for a bootstrap over rounds: {fake}"
    );
    assert!(wider >= 195, "wider in {wider} of 200");
}

#[test]
fn the_interval_holds_its_median_and_repeats_with_its_seed() {
    let strata = ratios(0.7, 4, 12, 0.05, 0.05, &mut Rng::with_seed(9));
    let one = interval(&strata, 400, &mut Rng::with_seed(10));
    let two = interval(&strata, 400, &mut Rng::with_seed(10));
    assert_eq!(one, two);
    let middle = median(&strata.concat());
    assert!(
        one[0] <= middle && middle <= one[1],
        "{middle} outside of {one:?}"
    );
}
