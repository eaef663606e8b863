//! A pool on one screen.

#[path = "support/helpers.rs"]
mod helpers;

use helpers::{give, take};
use mempool::backend::{FailAt, Lifo};
use mempool::{BackendKind, RawPool};

#[test]
fn mp_16_the_layout_is_stable() {
    let memory = Box::leak(vec![0; 1 << 20].into_boxed_slice());
    let pool = RawPool::builder(2000)
        .name("packets")
        .align(1)
        .stride(2048)
        .capacity(100)
        .cache(20)
        .workers(4)
        .backend(BackendKind::Ring)
        .static_region(memory)
        .build()
        .unwrap();
    std::thread::spawn(move || {
        let mut held = take(&pool, 13).unwrap();
        give(&pool, &held.split_off(3));
        assert!(take(&pool, 200).is_err());
        let expected = "\
pool \"packets\"
  objects                100 of 2000 bytes, stride 2048, align 1
  memory              204752 bytes of a caller's region
  cache                   20 objects for each of 4 workers
  in use                   3
  cached                  10
  in backend              87 (\"ring\")
  backend gets             1 calls, 13 objects
  backend puts             0 calls, 0 objects
  failed gets              1
  cache hits               1
  cache misses             2
  high water              13";
        assert_eq!(pool.to_string(), expected);
        give(&pool, &held);
    })
    .join()
    .unwrap();
}

#[test]
fn hostile_names_stay_on_one_screen() {
    let (backend, _switch) = FailAt::new(Lifo::new(1 << 20));
    let pool = RawPool::builder(1)
        .name(&"wide\n\u{1b}[2J\"".repeat(50))
        .custom_backend(Box::new(backend))
        .capacity(1 << 20)
        .build()
        .unwrap();
    let shown = pool.to_string();
    assert!(shown.lines().count() <= 24);
    assert!(
        shown.lines().all(|line| line.chars().count() <= 100),
        "{shown}"
    );
    assert!(!shown.contains('\u{1b}') && shown.starts_with("pool \"wide\\n"));
    assert!(shown.contains("FailAt"), "{shown}");
}

#[test]
fn a_typed_pool_prints_as_the_pool_below() {
    let pool = mempool::Pool::build(|b| b.name("typed").capacity(4), |index| index).unwrap();
    assert_eq!(pool.to_string(), pool.raw().to_string());
    assert!(pool.to_string().starts_with("pool \"typed\""));
}
