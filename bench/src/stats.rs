//! Medians, spread, and the interval of a median over placements and rounds.
//!
//! The interval comes from a hierarchical bootstrap: placements are drawn first, then
//! rounds within them, so that an effect that lives in one placement of the code widens
//! the interval instead of passing for a result.

use fastrand::Rng;

/// The median; `NaN` of nothing.
///
/// ```
/// assert_eq!(bench::stats::median(&[3.0, 1.0, 2.0]), 2.0);
/// assert_eq!(bench::stats::median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
/// ```
pub fn median(values: &[f64]) -> f64 {
    median_in_place(&mut values.to_vec())
}

/// The median of values whose order may be changed.
fn median_in_place(values: &mut [f64]) -> f64 {
    let n = values.len();
    if n == 0 {
        return f64::NAN;
    }
    let (below, &mut upper, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    if n % 2 == 1 {
        return upper;
    }
    let lower = below
        .iter()
        .copied()
        .max_by(f64::total_cmp)
        .unwrap_or(upper);
    (lower + upper) / 2.0
}

/// The median absolute deviation from the median, not scaled; `NaN` of nothing.
pub fn mad(values: &[f64]) -> f64 {
    let middle = median(values);
    median(
        &values
            .iter()
            .map(|v| (v - middle).abs())
            .collect::<Vec<_>>(),
    )
}

/// The arithmetic mean; `NaN` of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The `p`-th percentile, 0 to 100, between order statistics by a straight line; `NaN`
/// of nothing.
///
/// ```
/// assert_eq!(bench::stats::percentile(&[10.0, 20.0, 30.0, 40.0, 50.0], 25.0), 20.0);
/// ```
pub fn percentile(values: &[f64], p: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    if sorted.is_empty() {
        return f64::NAN;
    }
    let at = (p.clamp(0.0, 100.0) / 100.0) * (sorted.len() - 1) as f64;
    let below = at.floor() as usize;
    let above = at.ceil() as usize;
    sorted[below] + (sorted[above] - sorted[below]) * (at - below as f64)
}

/// The 95 % interval of the median of all `strata` together; one stratum holds the
/// rounds of one placement. `resamples` draws; values must be above zero.
///
/// Of `k` placements `k - 1` are drawn each time (Rao and Wu's correction: drawing `k`
/// understates what placements contribute by `(k - 1) / k`), then as many rounds within
/// each as it has. As few placements say little about their own spread, the interval is
/// widened by Student's factor, for as many degrees of freedom as the placements' share
/// of the whole spread leaves (Satterthwaite). With one placement it is the plain
/// bootstrap over rounds.
///
/// ```
/// use bench::stats::interval;
/// let quiet = vec![vec![1.00, 1.01, 0.99, 1.00, 1.02, 0.98]; 4];
/// let [lo, hi] = interval(&quiet, 500, &mut fastrand::Rng::with_seed(7));
/// assert!(lo < 1.0 && 1.0 < hi && hi - lo < 0.03);
/// ```
pub fn interval(strata: &[Vec<f64>], resamples: usize, rng: &mut Rng) -> [f64; 2] {
    let strata: Vec<&[f64]> = strata
        .iter()
        .map(Vec::as_slice)
        .filter(|s| !s.is_empty())
        .collect();
    let all: Vec<f64> = strata.iter().copied().flatten().copied().collect();
    if all.is_empty() || resamples == 0 {
        return [f64::NAN; 2];
    }
    let draws = strata.len().saturating_sub(1).max(1);
    let mut drawn: Vec<f64> = Vec::with_capacity(all.len() + strata.len());
    let medians: Vec<f64> = (0..resamples)
        .map(|_| {
            drawn.clear();
            for _ in 0..draws {
                let stratum = strata[rng.usize(..strata.len())];
                drawn.extend((0..stratum.len()).map(|_| stratum[rng.usize(..stratum.len())]));
            }
            median_in_place(&mut drawn)
        })
        .collect();
    let centre = median(&all);
    let factor = widening(&strata);
    let widen = |bound: f64| centre * (bound / centre).powf(factor);
    [
        widen(percentile(&medians, 2.5)),
        widen(percentile(&medians, 97.5)),
    ]
}

/// Student's 97.5 % quantile over the normal one, for the degrees of freedom that the
/// strata leave.
fn widening(strata: &[&[f64]]) -> f64 {
    const NORMAL: f64 = 1.959_964;
    let k = strata.len() as f64;
    if strata.len() < 2 {
        return 1.0;
    }
    let logs: Vec<Vec<f64>> = strata
        .iter()
        .map(|s| s.iter().map(|v| v.ln()).collect())
        .collect();
    let middles: Vec<f64> = logs.iter().map(|s| median(s)).collect();
    let centre = mean(&middles);
    let between = middles.iter().map(|m| (m - centre).powi(2)).sum::<f64>() / (k - 1.0);
    // Variance of a median of n normal values: about 1.57 s²/n, with s from the MAD.
    let within = logs
        .iter()
        .map(|s| std::f64::consts::FRAC_PI_2 * (1.4826 * mad(s)).powi(2) / s.len() as f64)
        .sum::<f64>()
        / k;
    if between <= within {
        return 1.0;
    }
    let share = 1.0 - within / between;
    student_975((k - 1.0) / (share * share)) / NORMAL
}

/// The 97.5 % quantile of Student's distribution with `df` degrees of freedom, 1 or
/// more: exact for 1 and 2, Cornish and Fisher's expansion above (0.2 % off at 3).
fn student_975(df: f64) -> f64 {
    const Z: f64 = 1.959_964;
    if df < 1.5 {
        return 12.706_2;
    }
    if df < 2.5 {
        return 4.302_65;
    }
    let (z3, z5, z7, z9) = (Z.powi(3), Z.powi(5), Z.powi(7), Z.powi(9));
    let g1 = (z3 + Z) / 4.0;
    let g2 = (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / 96.0;
    let g3 = (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * Z) / 384.0;
    let g4 = (79.0 * z9 + 776.0 * z7 + 1482.0 * z5 - 1920.0 * z3 - 945.0 * Z) / 92160.0;
    Z + g1 / df + g2 / df.powi(2) + g3 / df.powi(3) + g4 / df.powi(4)
}

/// Of `cells` A/A cells, how many intervals at 95 % may exclude 1 by chance: the most
/// that a fair set stays at or under with probability 0.95.
///
/// ```
/// assert_eq!(bench::stats::chance_allows(0), 0);
/// assert_eq!(bench::stats::chance_allows(1), 0);
/// assert_eq!(bench::stats::chance_allows(20), 3);
/// ```
pub fn chance_allows(cells: usize) -> usize {
    let (p, q) = (0.05_f64, 0.95_f64);
    let mut probability = q.powi(i32::try_from(cells).unwrap_or(i32::MAX));
    let mut sum = probability;
    let mut allowed = 0;
    while sum < 0.95 - 1e-12 && allowed < cells {
        probability *= (cells - allowed) as f64 / (allowed + 1) as f64 * p / q;
        sum += probability;
        allowed += 1;
    }
    allowed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middle_and_spread_of_known_numbers() {
        let v = [9.0, 1.0, 5.0, 3.0, 7.0];
        assert_eq!((median(&v), mad(&v), mean(&v)), (5.0, 2.0, 5.0));
        assert_eq!(
            (
                percentile(&v, 0.0),
                percentile(&v, 100.0),
                percentile(&v, 62.5)
            ),
            (1.0, 9.0, 6.0)
        );
        assert!(median(&[]).is_nan() && percentile(&[], 50.0).is_nan());
    }

    #[test]
    fn students_quantiles_agree_with_the_tables() {
        for (df, table) in [
            (1.0, 12.706),
            (2.0, 4.303),
            (3.0, 3.182),
            (5.0, 2.571),
            (10.0, 2.228),
            (60.0, 2.000),
        ] {
            let ours = student_975(df);
            assert!(
                (ours / table - 1.0).abs() < 0.003,
                "df {df}: {ours} for {table}"
            );
        }
    }

    #[test]
    fn chance_is_the_binomial_quantile() {
        assert_eq!([5, 14, 28, 60, 100].map(chance_allows), [1, 2, 3, 6, 9]);
    }
}
