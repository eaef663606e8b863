//! The fuzzer's driver from a seeded generator: no panic, every rule kept, every buffer back.

mod driver;

use fastrand::Rng;

/// Says which run it was when one fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.0);
        }
    }
}

#[test]
fn whatever_the_bytes_say_no_rule_breaks() {
    let set = driver::pools();
    let mut tally = driver::Tally::default();
    for seed in 0..2000 {
        let _seed = Seed(seed);
        let mut rng = Rng::with_seed(seed);
        let decisions: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(6000).collect();
        driver::run(&set, &decisions, &mut tally);
    }
    println!("{tally:#?}");
    assert!(tally.sent > 1000 && tally.received > 1000 && tally.ended > 50 && tally.short > 10);
}
