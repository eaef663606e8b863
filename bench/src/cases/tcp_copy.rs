//! `tcp-copy`: what a send costs when its payload is referenced, copied, or either by the threshold
//! of the "tcp output copy data" proposal.
//!
//! A send is timed from `output` through the NIC, the device that reads every descriptor, and
//! completion's free, to the free of the send buffer on its acknowledgment: see
//! [`super::send_path`]. 12 send buffers of a shape are filled outside of the timed part. Storage
//! has BSD's sizes, so that the threshold decides as it would there.

mod shape;

use super::send_path::{self, Drain, Metric, Plan, limit_name, nic_config};
use crate::cell::{CellSpec, Group, Params};
use driver_sim::ReadMode;
use mbuf::FreeStrategy;
use shape::{Sends, Shape};
use std::rc::Rc;

/// The cells of the group.
pub(crate) fn group() -> Group {
    let mut cells = Vec::new();
    for shape in Shape::ALL {
        for limit in [None, Some(8), Some(32)] {
            cells.extend(Drain::BOTH.map(|drain| cell(shape, limit, drain, ReadMode::Descriptors)));
        }
    }
    let all = |drain| cell(Shape::Many45, None, drain, ReadMode::Checksum);
    cells.extend(Drain::BOTH.map(all));
    Group {
        name: "tcp-copy",
        question: "What does a TCP send cost when its payload is referenced, and when it is copied?",
        cells,
        absent: Vec::new(),
    }
}

fn cell(shape: Shape, limit: Option<usize>, drain: Drain, read: ReadMode) -> CellSpec {
    let all = read == ReadMode::Checksum;
    let (read_id, read_name) = if all {
        ("/read=all", "all")
    } else {
        ("", "descriptors")
    };
    CellSpec {
        id: format!(
            "tcp-copy/{}/limit={}/drain={}{read_id}",
            shape.name(),
            limit_name(limit),
            drain.name()
        ),
        group: "tcp-copy",
        params: Params::new()
            .with("shape", shape.name())
            .with("limit", limit_name(limit))
            .with("drain", drain.name())
            .with("read", read_name),
        unit: "µs/send",
        lower_is_better: true,
        baseline: "reference",
        needs: drain.needs(),
        build: Box::new(move |env| {
            let plan = Plan {
                metric: Metric::MicrosPerSend,
                passes: shape.passes(),
                strategy: FreeStrategy::Direct,
            };
            let set = shape.set().map_err(|e| crate::Skip::new(e.to_string()))?;
            let input = Rc::new(Sends::new(shape));
            send_path::build(plan, input, set, nic_config(limit), (drain, read), env)
        }),
    }
}
