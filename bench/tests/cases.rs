//! Every cell that can run here does its work, by its own checks.

use std::collections::BTreeSet;

use bench::{Env, Profile};

#[test]
fn ids_are_unique_and_begin_with_their_group() {
    let mut seen = BTreeSet::new();
    for group in bench::groups() {
        assert!(!group.cells.is_empty(), "{} has no cells", group.name);
        for cell in group.cells {
            assert_eq!(cell.group, group.name, "{}", cell.id);
            assert_eq!(cell.id.split('/').next(), Some(cell.group), "{}", cell.id);
            assert!(
                seen.insert(cell.id.clone()),
                "two cells are called {}",
                cell.id
            );
        }
    }
}

#[test]
fn each_cell_does_its_work_in_every_variant() {
    let env = Env {
        cpus: bench::affinity::pick_two(),
        profile: Profile::Quick,
        ..Env::for_tests()
    };
    for cell in bench::groups().into_iter().flat_map(|group| group.cells) {
        let here = cell.needs.cpus == 1 || env.cpus.is_some();
        if !here || cell.needs.full_only {
            println!("skipped {}: {:?}", cell.id, cell.needs);
            continue;
        }
        // What it needs is there: a cell that is not built now is never measured.
        let mut run = (cell.build)(&env).unwrap_or_else(|skip| panic!("{}: {skip}", cell.id));
        let variants = run.variants();
        assert!(
            variants.contains(&cell.baseline),
            "{}: {variants:?}",
            cell.id
        );
        for (variant, name) in variants.iter().enumerate() {
            let placement = variant % run.placements();
            let sample = run
                .round(variant, placement)
                .unwrap_or_else(|e| panic!("{}, {name}: {e}", cell.id));
            assert!(
                sample.value.is_finite() && sample.value > 0.0,
                "{}, {name}: {}",
                cell.id,
                sample.value
            );
        }
        run.finish().unwrap_or_else(|e| panic!("{}: {e}", cell.id));
    }
}

#[test]
fn mempool_is_asked_at_these_points() {
    let group = bench::groups().into_iter().find(|g| g.name == "mempool");
    let group = group.expect("a group of that name");
    let mut ids: Vec<String> = Vec::new();
    for path in [
        "one/hot/get",
        "one/hot/put",
        "one/hot/pair",
        "one/spill/get",
        "one/spill/put",
        "one/spill/pair",
        "one/half/pair",
        "two/one-way",
        "four/own",
    ] {
        for burst in ["1", "8", "32", "64", "128", "256", "512", "random"] {
            ids.push(format!("mempool/{path}/burst={burst}"));
        }
    }
    let have: Vec<&String> = group.cells.iter().map(|cell| &cell.id).collect();
    assert_eq!(have, ids.iter().collect::<Vec<_>>());
    let apart = |id: &str| id.contains("/get/") || id.contains("/put/");
    for cell in &group.cells {
        let floor = cell.baseline == "floor";
        assert_eq!(floor, apart(&cell.id), "{}", cell.id);
        let one = cell.needs.cpus == 1;
        assert_eq!(one, cell.id.starts_with("mempool/one/"), "{}", cell.id);
    }
    let quick = group.cells.iter().filter(|cell| !cell.needs.full_only);
    assert_eq!(quick.count(), 18);
    assert_eq!(group.absent.is_empty(), cfg!(feature = "peers"));
}

#[test]
fn mempool_has_its_variants_and_in_a_build_with_peers_those_too() {
    let env = Env::for_tests();
    let own = [
        "ours",
        "ring",
        "lifo-nocache",
        "ring-nocache",
        "mutex-lifo",
        "mutex-lifo-cache512",
    ];
    let peers = [
        "glibc",
        "mimalloc",
        "bytes",
        "bytes-split",
        "crossbeam-queue",
        "lockfree-object-pool",
        "opool",
    ];
    let peers: &[&str] = if cfg!(feature = "peers") { &peers } else { &[] };
    let cells = bench::groups().into_iter().flat_map(|group| group.cells);
    for cell in cells.filter(|cell| cell.id.ends_with("/burst=32") && cell.group == "mempool") {
        let run = (cell.build)(&env).unwrap_or_else(|skip| panic!("{}: {skip}", cell.id));
        let mut want = own.to_vec();
        if cell.needs.cpus == 1 {
            want.push("floor");
        }
        if cell.id.starts_with("mempool/two/") {
            want.push("spsc-nocache");
        }
        if cell.baseline == "ours" {
            want.extend(peers);
        }
        assert_eq!(run.variants(), want, "{}", cell.id);
    }
}
