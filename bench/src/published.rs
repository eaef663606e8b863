//! Figures of others, for standing beside ours: what the authors of the two seeds published,
//! what libraries of others took for like work, and what BSD's rules make of a send buffer.
//!
//! They are theirs: other machines, other code, other definitions. Nothing here is
//! computed from them but the ratio of the two numbers.

use serde::{Deserialize, Serialize};

use crate::cell::Params;

/// One pair of figures: before a change and after it, or of one library and of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Always `theirs`: not measured here.
    pub source: String,
    /// Our name for what they changed from, or the first library.
    pub baseline: String,
    /// Our name for what they changed to, or the second library.
    pub variant: String,
    /// Their figure before the change, or the first one's.
    pub before: f64,
    /// Their figure after the change, or the second one's.
    pub after: f64,
    /// The unit of both.
    pub unit: String,
}

impl Published {
    /// After over before.
    pub fn ratio(&self) -> f64 {
        self.after / self.before
    }

    fn new(baseline: &str, variant: &str, before: f64, after: f64, unit: &str) -> Self {
        Published {
            source: "theirs".to_owned(),
            baseline: baseline.to_owned(),
            variant: variant.to_owned(),
            before,
            after,
            unit: unit.to_owned(),
        }
    }
}

/// Bulk free without a temporary array: burst, ticks per call before and after.
const FREE_BULK: [(u64, f64, f64); 4] = [
    (32, 2.05, 1.50),
    (64, 5.16, 4.52),
    (128, 11.16, 6.90),
    (256, 26.46, 19.73),
];

/// The figures that the author of "bulk free without a temporary array" published, by
/// burst: 32, 64, 128, 256.
fn free_bulk() -> Vec<(u64, Published)> {
    FREE_BULK
        .iter()
        .map(|&(burst, before, after)| {
            (
                burst,
                Published::new("staged", "runs", before, after, "ticks/call"),
            )
        })
        .collect()
}

/// The figure that the author of "TCP output copies data" published, for spliced TCP.
fn splice() -> Published {
    Published::new("reference", "threshold5", 55.0, 70.0, "Gbit/s")
}

/// Freeing a burst of 32 or 128 by DPDK 26.11's bulk free and by fd.io VPP's, ns per mbuf, by the
/// shape of pairs of ours; allocation is not in it.
const LIBRARIES: [(&str, u64, f64, f64); 8] = [
    ("shared4", 32, 5.9, 10.0),
    ("shared4", 128, 6.1, 10.3),
    ("chain2", 32, 5.5, 9.9),
    ("chain2", 128, 6.1, 9.9),
    ("chain8", 32, 7.7, 9.6),
    ("chain8", 128, 24.0, 9.6),
    ("two-pools", 32, 5.2, 17.7),
    ("two-pools", 128, 5.1, 17.7),
];

fn libraries(shape: &str, burst: u64) -> Option<Published> {
    let found = LIBRARIES
        .iter()
        .find(|&&(of, at, ..)| of == shape && at == burst);
    found.map(|&(_, _, dpdk, vpp)| {
        Published::new("dpdk-26.11", "vpp", dpdk, vpp, "ns/mbuf, free alone")
    })
}

/// What a send buffer of 64 KB with a storage limit of 512 KB takes in BSD by writes of one size before the
/// writer has to wait, and what is charged for it: computed from its rules of placing and merging,
/// not measured. Write size, bytes, charge. Of 9000 bytes, as many whole writes as fit.
const BSD_WRITES: [(u64, u32, u32); 11] = [
    (1, 16377, 524_288),
    (16, 32768, 524_288),
    (100, 65500, 167_680),
    (145, 33060, 525_312),
    (200, 45600, 525_312),
    (512, 65536, 294_912),
    (1448, 65160, 103_680),
    (2048, 65536, 73_728),
    (9000, 63000, 67_200),
    (16384, 65536, 66_560),
    (65536, 65536, 65_792),
];

/// Their bytes, and the charge for them: the ratio is what is charged for a byte.
fn bsd_writes(size: u64) -> Option<Published> {
    let found = BSD_WRITES.iter().find(|&&(of, ..)| of == size);
    found.map(|&(_, bytes, charge)| {
        Published::new("taken", "charged", bytes.into(), charge.into(), "bytes")
    })
}

/// The published figures for a cell of `group` at `params`, if there are any: flat bursts
/// of their sizes, pairs that libraries were measured at, writes of their sizes, and spliced TCP.
pub fn for_cell(group: &str, params: &Params) -> Option<Published> {
    match group {
        "free-bulk" => {
            let is = |key: &str, value: &str| params.get(key).is_some_and(|v| v == value);
            let flat = is("shape", "flat") && !is("heat", "dpdk");
            let burst = params.get("burst").and_then(|b| b.as_u64())?;
            flat.then(|| free_bulk().into_iter().find(|(b, _)| *b == burst))
                .flatten()
                .map(|(_, p)| p)
        }
        "alloc" => {
            let shape = params.get("shape")?.as_str()?;
            libraries(shape, params.get("burst")?.as_u64()?)
        }
        "sockbuf" => {
            let write = params.get("question")? == "write";
            let size = params.get("size")?.as_u64()?;
            write.then(|| bsd_writes(size)).flatten()
        }
        // Measured with drivers that free packets one by one.
        "splice" => (params.get("free")?.as_str()? == "each").then(splice),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_savings_are_12_to_38_per_cent() {
        let saved: Vec<i64> = free_bulk()
            .iter()
            .map(|(_, p)| ((1.0 - p.ratio()) * 100.0).round() as i64)
            .collect();
        assert_eq!(saved, [27, 12, 38, 25]);
        assert!((splice().ratio() - 1.27).abs() < 0.005);
    }

    #[test]
    fn bsd_charges_whole_mbufs_and_clusters_and_holds_down_no_more_than_one_too_many() {
        const LIMIT: u32 = 8 * 65536;
        for (size, bytes, charge) in BSD_WRITES {
            assert!(bytes <= 65536, "{size}");
            // Space is asked for in bytes and charged in storage: the last write may go beyond.
            assert!(charge < LIMIT + 2304, "{size}");
        }
        let per_byte = |size| bsd_writes(size).map(|p| (p.ratio() * 10.0).round() / 10.0);
        let some = [100, 145, 1448, 2048, 9000, 16384].map(per_byte);
        assert_eq!(some, [2.6, 15.9, 1.6, 1.1, 1.1, 1.0].map(Some));
    }

    #[test]
    fn they_stand_only_beside_cells_of_their_shape() {
        let at = |shape: &str, burst: u64| {
            for_cell(
                "free-bulk",
                &Params::new().with("shape", shape).with("burst", burst),
            )
        };
        assert_eq!(at("flat", 64).map(|p| p.before), Some(5.16));
        assert_eq!(at("flat", 8), None);
        assert_eq!(at("chains2", 64), None);
        let pair = |shape: &str, burst: u64| {
            for_cell(
                "alloc",
                &Params::new().with("shape", shape).with("burst", burst),
            )
        };
        assert_eq!(pair("two-pools", 32).map(|p| p.after), Some(17.7));
        assert!(pair("flat", 32).is_none() && pair("chain2", 8).is_none());
        let splice = |free: &str| for_cell("splice", &Params::new().with("free", free));
        assert!(splice("each").is_some() && splice("runs").is_none());
        let sockbuf = |question: &str, size: u64| {
            let params = Params::new().with("question", question);
            for_cell("sockbuf", &params.with("size", size))
        };
        assert_eq!(sockbuf("write", 145).map(|p| p.before), Some(33060.0));
        assert!(sockbuf("write", 144).is_none() && sockbuf("drop", 145).is_none());
        assert_eq!(for_cell("drain", &Params::new()), None);
    }
}
