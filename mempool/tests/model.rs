//! Random calls by one thread against a set: no object twice, counts exact at every step.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::{assert_whole, give, take};
use mempool::{BackendKind, RawPool};
use std::collections::HashSet;
use std::ptr::NonNull;

struct Model {
    pool: RawPool,
    held: Vec<NonNull<u8>>,
    set: HashSet<NonNull<u8>>,
}

impl Model {
    fn take(&mut self, n: usize) {
        match take(&self.pool, n) {
            Ok(objs) => {
                for obj in objs {
                    assert!(self.set.insert(obj), "handed out twice");
                    assert!(self.pool.contains(obj).is_some());
                    self.held.push(obj);
                }
            }
            Err(error) => {
                assert_eq!(error.asked, n);
                assert_eq!(error.available, self.pool.capacity() - self.held.len());
                assert!(error.available < n);
            }
        }
    }

    /// Takes `n` random objects out of the model.
    fn pick(&mut self, n: usize, rng: &mut fastrand::Rng) -> Vec<NonNull<u8>> {
        let n = n.min(self.held.len());
        let objs: Vec<_> = (0..n)
            .map(|_| self.held.swap_remove(rng.usize(..self.held.len())))
            .collect();
        for obj in &objs {
            assert!(self.set.remove(obj));
        }
        objs
    }

    fn push(&mut self, n: usize, rng: &mut fastrand::Rng) {
        let objs = self.pick(n, rng);
        // SAFETY: the pool lives; the objects were held and are given up.
        unsafe {
            let mut cursor = self.pool.pool_ref().open_put();
            for obj in objs {
                cursor.push(obj);
            }
        }
    }
}

fn run(kind: BackendKind, cache: usize, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let pool = RawPool::builder(16)
        .capacity(150)
        .cache(cache)
        .backend(kind)
        .build()
        .unwrap();
    let mut model = Model {
        pool,
        held: Vec::new(),
        set: HashSet::new(),
    };
    let steps = if cfg!(miri) { 200 } else { 5000 };
    for _ in 0..steps {
        let max = [2, 10, 40, 160][rng.usize(..4)];
        let n = rng.usize(..max);
        match rng.u8(..10) {
            0..4 => model.take(n),
            4..7 => {
                let objs = model.pick(n, &mut rng);
                give(&model.pool, &objs);
            }
            7..9 => model.push(n, &mut rng),
            _ => model.pool.flush_thread_cache(),
        }
        assert_eq!(model.pool.in_use(), model.held.len());
        assert_eq!(model.pool.available(), 150 - model.held.len());
        assert!(model.pool.cached() <= cache);
    }
    give(&model.pool, &model.held);
    assert_whole(&model.pool);
}

#[test]
fn random_calls_keep_every_object_exactly_once() {
    for kind in [BackendKind::Lifo, BackendKind::Ring] {
        for (seed, cache) in [0, 1, 2, 5, 32, 150].into_iter().enumerate() {
            run(kind, cache, seed as u64);
        }
    }
}
