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
