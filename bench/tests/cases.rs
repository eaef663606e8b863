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

fn group(name: &str) -> bench::Group {
    let group = bench::groups().into_iter().find(|g| g.name == name);
    group.expect("a group of that name")
}

/// The ids of the cells that this build has of DPDK.
fn beside_dpdk(group: &str) -> Vec<String> {
    let bursts = if cfg!(feature = "dpdk") {
        vec![32, 64, 128, 256]
    } else {
        vec![]
    };
    let ids = bursts.iter();
    ids.map(|burst| format!("{group}/flat/dpdk/burst={burst}"))
        .collect()
}

#[test]
fn alloc_is_asked_at_these_points() {
    let mut ids = Vec::new();
    for question in ["alone", "pair"] {
        ids.extend([1, 8, 32, 64, 128, 256].map(|n| format!("alloc/flat/{question}/burst={n}")));
    }
    for shape in ["shared4", "chain2", "chain8", "two-pools"] {
        ids.extend([8, 32, 128, 256].map(|n| format!("alloc/{shape}/pair/burst={n}")));
    }
    ids.extend(beside_dpdk("alloc"));
    let group = group("alloc");
    let have: Vec<&String> = group.cells.iter().map(|cell| &cell.id).collect();
    assert_eq!(have, ids.iter().collect::<Vec<_>>());
    assert_eq!(group.absent.is_empty(), cfg!(feature = "dpdk"));
    let env = Env::for_tests();
    for cell in group.cells.iter().filter(|c| c.id.ends_with("=32")) {
        let run = (cell.build)(&env).unwrap_or_else(|skip| panic!("{}: {skip}", cell.id));
        let want: &[&str] = match cell.baseline {
            "floor" if cell.id.contains("alone") => &["ours", "plain", "floor"],
            "floor" => &["ours", "plain", "runs", "staged", "floor"],
            "staged" => &["staged", "runs", "ours", "floor"],
            dpdk => &[dpdk, "ours", "plain"],
        };
        assert_eq!(run.variants(), want, "{}", cell.id);
    }
}

#[test]
fn free_bulk_has_a_floor_where_one_can_be_written_and_plain_where_bursts_are_flat() {
    let group = group("free-bulk");
    let env = Env {
        cpus: bench::affinity::pick_two(),
        ..Env::for_tests()
    };
    let dpdk = beside_dpdk("free-bulk");
    for cell in group.cells.iter().filter(|c| c.id.ends_with("=32")) {
        if cell.needs.cpus > 1 && env.cpus.is_none() || dpdk.contains(&cell.id) {
            continue;
        }
        let run = (cell.build)(&env).unwrap_or_else(|skip| panic!("{}: {skip}", cell.id));
        let mut want = vec!["each", "staged", "runs", "direct"];
        let bare = ["one-cluster", "external", "mixed", "crowd"];
        if !bare.iter().any(|shape| cell.id.contains(shape)) {
            want.push("floor");
        }
        let mut have = run.variants();
        if cell.id.contains("/flat/") {
            want.push("plain");
        }
        want.sort_unstable();
        have.sort_unstable();
        assert_eq!(have, want, "{}", cell.id);
    }
    let ids: BTreeSet<&str> = group.cells.iter().map(|cell| cell.id.as_str()).collect();
    for shape in ["clones", "one-cluster", "external", "mixed"] {
        assert!(ids.contains(format!("free-bulk/{shape}/hot/burst=256").as_str()));
    }
    for id in &dpdk {
        assert!(ids.contains(id.as_str()), "{id}");
    }
    assert!(ids.contains("free-bulk/crowd/threads=4/burst=32"));
    assert_eq!(group.absent.is_empty(), cfg!(feature = "dpdk"));
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

#[test]
fn tcp_output_is_asked_at_these_points() {
    let group = group("tcp-output");
    let mut ids: Vec<&str> = vec![
        "decide/nothing",
        "decide/data",
        "build/ack",
        "build/inline20",
        "build/referenced1448",
        "build/copied1448",
        "frame/many45",
        "frame/one64k",
        "wire/loss=0",
        "wire/loss=0.1",
        "wire/loss=1",
        "wire/loss=5",
    ];
    if cfg!(feature = "peers") {
        ids.extend([
            "peer/mtu=1500/sums=software",
            "peer/mtu=65535/sums=software",
            "peer/mtu=1500/sums=none",
            "peer/mtu=65535/sums=none",
        ]);
    }
    let have: Vec<&str> = group
        .cells
        .iter()
        .filter_map(|cell| cell.id.strip_prefix("tcp-output/"))
        .collect();
    assert_eq!(have, ids);
    assert_eq!(group.absent.is_empty(), cfg!(feature = "peers"));
    let env = Env::for_tests();
    let policies = ["reference", "copy", "threshold5"];
    let ours = ["ours", "ours-copy", "ours-received"];
    for cell in &group.cells {
        let run = (cell.build)(&env).unwrap_or_else(|skip| panic!("{}: {skip}", cell.id));
        let mut want = match cell.id.split('/').nth(1) {
            Some("frame" | "wire") => policies.to_vec(),
            Some("peer") => ours.to_vec(),
            _ => vec!["ours"],
        };
        if cell.id.ends_with("sums=none") {
            want.push("ours-tso");
        }
        match cell.id.split('/').nth(1) {
            Some("wire") => {}
            Some("peer") => want.extend(["smoltcp", "smoltcp-loopback"]),
            _ => want.push("floor"),
        }
        assert_eq!(run.variants(), want, "{}", cell.id);
    }
}

#[test]
fn what_is_lost_on_the_wire_is_sent_again() {
    let env = Env::for_tests();
    for cell in group("tcp-output").cells {
        let Some(loss) = cell.params.get("loss").and_then(|loss| loss.as_f64()) else {
            continue;
        };
        let mut run = (cell.build)(&env).unwrap_or_else(|skip| panic!("{}: {skip}", cell.id));
        let sample = run
            .round(0, 0)
            .unwrap_or_else(|e| panic!("{}: {e}", cell.id));
        let count = |name: &str| {
            let found = sample.counts.iter().find(|(n, ..)| *n == name);
            found.map(|(_, per_mb, _)| per_mb).expect("counted")
        };
        // 725 packets of data there, as many acknowledgments or fewer back.
        assert!(count("packets") > 690.0, "{}", cell.id);
        assert_eq!(count("resent") > 0.0, count("lost") > 0.0, "{}", cell.id);
        assert_eq!(
            count("lost") > 0.0,
            loss > 0.1,
            "{}: of 725 and more",
            cell.id
        );
    }
}

#[test]
fn sockbuf_is_asked_at_these_points() {
    let group = group("sockbuf");
    let mut ids = Vec::new();
    for len in [1448, 100] {
        ids.extend(["alone", "pair"].map(|how| format!("sockbuf/append/{how}/len={len}")));
    }
    ids.extend([1, 45].map(|n| format!("sockbuf/drop/mbufs={n}")));
    for question in ["next", "again"] {
        ids.extend([10, 100, 1000, 10_000].map(|n| format!("sockbuf/find/{question}/mbufs={n}")));
    }
    ids.extend([1024, 65160].map(|n| format!("sockbuf/copy-out/read={n}")));
    ids.push("sockbuf/splice/pass=65536".to_owned());
    let sizes = [1, 16, 100, 145, 200, 512, 1448, 2048, 9000, 16384, 65536];
    ids.extend(sizes.map(|n| format!("sockbuf/write/size={n}")));
    let have: Vec<&String> = group.cells.iter().map(|cell| &cell.id).collect();
    assert_eq!(have, ids.iter().collect::<Vec<_>>());
}

#[test]
fn sockbuf_has_its_variants_and_a_second_round_finds_all_in_its_place() {
    let env = Env::for_tests();
    for cell in group("sockbuf").cells {
        let mut run = (cell.build)(&env).unwrap_or_else(|skip| panic!("{}: {skip}", cell.id));
        let want: &[&str] = match cell.id.split('/').nth(1) {
            Some("append") => &["stream", "packed", "floor"],
            Some("drop") => &["ours", "cut", "floor"],
            Some("find") => &["ours", "walk", "floor"],
            Some("splice") => &["ours", "copy", "floor"],
            _ => &["ours", "floor"],
        };
        assert_eq!(run.variants(), want, "{}", cell.id);
        for variant in (0..want.len()).chain(0..want.len()) {
            let sample = run.round(variant, 0);
            sample.unwrap_or_else(|e| panic!("{}, {}: {e}", cell.id, want[variant]));
        }
        run.finish().unwrap_or_else(|e| panic!("{}: {e}", cell.id));
    }
}

#[test]
fn sockbuf_says_what_storage_bytes_hold_down() {
    let env = Env::for_tests();
    let count = |id: &str, variant: usize, name: &str| -> f64 {
        let cells = group("sockbuf").cells;
        let cell = cells.iter().find(|cell| cell.id == id).expect("a cell");
        let mut run = (cell.build)(&env).unwrap_or_else(|skip| panic!("{id}: {skip}"));
        let sample = run.round(variant, 0);
        let counts = sample.unwrap_or_else(|e| panic!("{id}: {e}")).counts;
        let found = counts.iter().find(|(have, ..)| *have == name);
        found.map(|(_, value, _)| value).expect("a count")
    };
    let small = "sockbuf/append/alone/len=100";
    assert_eq!(count(small, 0, "charge_per_byte"), 23.04, "linked");
    assert_eq!(
        count(small, 1, "charge_per_byte"),
        2304.0 * 3.0 / 4500.0,
        "packed"
    );
    for size in [1, 145, 200, 9000, 65536] {
        let id = format!("sockbuf/write/size={size}");
        assert_eq!(count(&id, 0, "bytes"), 65536.0);
        let per_byte = count(&id, 0, "charge_per_byte");
        assert!((1.0..1.15).contains(&per_byte), "{id}: {per_byte}");
    }
}
