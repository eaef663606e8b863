//! How many objects a call moves, and how many are out before they go back.

use super::CACHE;

/// Objects of one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Burst {
    /// One at a time, by the call for one.
    One,
    /// So many, by the call for many.
    Of(usize),
    /// From 1 to [`RANDOM_MOST`], in an order that is long and always the same.
    Random,
}

/// Objects of a random burst at most.
pub(super) const RANDOM_MOST: usize = 64;
/// Random sizes before they come again; a power of two.
const RANDOM_SIZES: usize = 4096;
/// Objects of a random burst on average, about.
const RANDOM_MEAN: usize = 32;

/// How [`Burst`] is known to the compiler: the number of a placed copy's kind.
pub(super) const ONE: u8 = 0;
/// See [`ONE`].
pub(super) const FIXED: u8 = 1;
/// See [`ONE`].
pub(super) const RANDOM: u8 = 2;

impl Burst {
    /// All that are measured.
    pub(super) const ALL: [Burst; 8] = [
        Burst::One,
        Burst::Of(8),
        Burst::Of(32),
        Burst::Of(64),
        Burst::Of(128),
        Burst::Of(256),
        Burst::Of(512),
        Burst::Random,
    ];

    pub(super) fn name(self) -> String {
        match self {
            Burst::One => "1".to_owned(),
            Burst::Of(n) => n.to_string(),
            Burst::Random => "random".to_owned(),
        }
    }

    /// Objects on average, about.
    pub(super) fn mean(self) -> usize {
        match self {
            Burst::One => 1,
            Burst::Of(n) => n,
            Burst::Random => RANDOM_MEAN,
        }
    }

    /// Objects at most.
    pub(super) fn most(self) -> usize {
        match self {
            Burst::Random => RANDOM_MOST,
            _ => self.mean(),
        }
    }
}

/// How much of the traffic a cache can serve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Regime {
    /// All of it.
    Hot,
    /// Four times as much is out as a cache holds.
    Spill,
    /// A burst more than half a cache goes out and comes back: a cache that is always brought back
    /// to one level goes to the backend each time.
    Half,
}

impl Regime {
    pub(super) fn name(self) -> &'static str {
        match self {
            Regime::Hot => "hot",
            Regime::Spill => "spill",
            Regime::Half => "half",
        }
    }

    /// Calls that get before as many give back.
    fn calls(self, burst: Burst) -> usize {
        let n = burst.mean();
        match self {
            // Random bursts vary: the most that these can be still fits into the cache.
            Regime::Hot if burst == Burst::Random => CACHE / 2 / RANDOM_MOST,
            Regime::Hot => (CACHE / 2 / n).max(1),
            Regime::Spill => 4 * CACHE / n,
            Regime::Half if n > CACHE / 2 => 1,
            Regime::Half => CACHE / 2 / n + 1,
        }
    }
}

/// Objects that are out at most, on one thread.
pub(super) const ROOM: usize = 4 * CACHE / RANDOM_MEAN * RANDOM_MOST;
/// Objects of a round on one thread, about.
const PER_ROUND: usize = 16 * 1024;

/// What a round does.
pub(super) struct Plan {
    burst: usize,
    /// Calls that get before as many give back.
    pub(super) calls: usize,
    /// How often that is done.
    pub(super) stretches: usize,
    sizes: Box<[usize; RANDOM_SIZES]>,
}

impl Plan {
    /// For one thread.
    pub(super) fn of(regime: Regime, burst: Burst) -> Self {
        let calls = regime.calls(burst);
        Self::new(burst, calls, PER_ROUND / (calls * burst.mean()))
    }

    /// For bursts that are given back one after another, about `objects` in all.
    pub(super) fn bursts(burst: Burst, objects: usize) -> Self {
        Self::new(burst, 1, objects / burst.mean())
    }

    fn new(burst: Burst, calls: usize, stretches: usize) -> Self {
        let mut rng = fastrand::Rng::with_seed(2304);
        let mut sizes = Box::new([0; RANDOM_SIZES]);
        sizes.fill_with(|| rng.usize(1..=RANDOM_MOST));
        Self {
            burst: burst.mean(),
            calls,
            stretches: stretches.max(1),
            sizes,
        }
    }

    /// Objects of call number `call`.
    #[inline(always)]
    pub(super) fn size<const HOW: u8>(&self, call: usize) -> usize {
        match HOW {
            ONE => 1,
            FIXED => self.burst,
            _ => self.sizes[call % RANDOM_SIZES],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regimes_take_out_what_their_names_say() {
        for burst in Burst::ALL {
            let most = |regime: Regime| regime.calls(burst) * burst.most();
            assert!(most(Regime::Hot) <= CACHE, "{burst:?}");
            assert!(most(Regime::Spill) <= ROOM, "{burst:?}");
            let mean = |regime: Regime| regime.calls(burst) * burst.mean();
            assert!(mean(Regime::Spill) >= 4 * CACHE - burst.most(), "{burst:?}");
            assert!(mean(Regime::Half) > CACHE / 2, "{burst:?}");
            assert!(mean(Regime::Half) <= CACHE, "{burst:?}");
        }
    }

    #[test]
    fn random_sizes_are_the_same_in_each_run_and_of_every_kind() {
        let [a, b] = [(); 2].map(|()| Plan::of(Regime::Hot, Burst::Random));
        assert_eq!(a.sizes, b.sizes);
        for n in 1..=RANDOM_MOST {
            assert!(a.sizes.contains(&n), "{n}");
        }
    }
}
