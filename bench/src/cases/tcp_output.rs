//! `tcp-output`: what a decision costs, a segment, a frame, and a byte through a whole connection.
//!
//! *Decide* and *build* are measured alone; *wire* has two connections in one thread, with a wire
//! between them that may lose packets; *peer* puts another stack beside them.

mod build;
mod decide;
mod pair;
#[cfg(feature = "peers")]
mod peer;
mod shape;
mod wire;

use crate::cell::{Build, CellSpec, Group, Needs, Params};
use crate::report::Unmeasured;
use tcp_output::{Endpoints, Seq, Tcb, TcbFlags, Time};

use decide::Question;
use shape::Shape;

/// Loss on the wire, in thousandths.
const LOSSES: [u32; 4] = [0, 1, 10, 50];

/// The moment of everything that is timed alone.
const NOW: Time = Time(1_000);

/// The cells of the group.
pub(crate) fn group() -> Group {
    let mut cells: Vec<CellSpec> = Question::ALL.map(decide_cell).into();
    cells.extend(Shape::ALL.map(build_cell));
    cells.extend(LOSSES.map(wire_cell));
    let absent = beside_peers(&mut cells);
    Group {
        name: "tcp-output",
        question: "What does TCP take to decide, to build, and to move a byte?",
        cells,
        absent,
    }
}

#[cfg(feature = "peers")]
fn beside_peers(cells: &mut Vec<CellSpec>) -> Vec<Unmeasured> {
    cells.extend(peer::cells());
    Vec::new()
}

/// See above.
#[cfg(not(feature = "peers"))]
fn beside_peers(_: &mut Vec<CellSpec>) -> Vec<Unmeasured> {
    vec![Unmeasured {
        id: "tcp-output: peers".to_owned(),
        reason: "not in this build: cargo xtask-peers bench".to_owned(),
    }]
}

/// Nanoseconds of `what`, against a floor.
fn timed(id: String, params: Params, unit: &'static str, build: Build) -> CellSpec {
    CellSpec {
        id,
        group: "tcp-output",
        params,
        unit,
        lower_is_better: true,
        baseline: "floor",
        needs: Needs::ONE_CPU,
        build,
    }
}

fn decide_cell(question: Question) -> CellSpec {
    timed(
        format!("tcp-output/decide/{}", question.name()),
        Params::new().with("decide", question.name()),
        "ns/decision",
        Box::new(move |env| Ok(decide::build(question, env))),
    )
}

fn build_cell(shape: Shape) -> CellSpec {
    let (step, unit) = match shape.is_frame() {
        true => ("frame", "ns/frame"),
        false => ("build", "ns/segment"),
    };
    let cell = timed(
        format!("tcp-output/{step}/{}", shape.name()),
        Params::new().with(step, shape.name()),
        unit,
        Box::new(move |env| build::build(shape, env)),
    );
    CellSpec {
        baseline: if shape.is_frame() {
            "reference"
        } else {
            "floor"
        },
        ..cell
    }
}

fn wire_cell(loss: u32) -> CellSpec {
    let percent = f64::from(loss) / 10.0;
    CellSpec {
        id: format!("tcp-output/wire/loss={percent}"),
        group: "tcp-output",
        params: Params::new().with("loss", percent),
        unit: "Gbit/s",
        lower_is_better: false,
        baseline: "reference",
        needs: Needs::ONE_CPU,
        build: Box::new(move |env| wire::build(loss, env)),
    }
}

/// Who talks to whom.
fn ends() -> Endpoints {
    Endpoints::V4 {
        source: [192, 0, 2, 1].into(),
        dest: [198, 51, 100, 7].into(),
        source_port: 40_001,
        dest_port: 443,
    }
}

/// A connection that stands, with timestamps and open windows, at an idle moment.
///
/// # Errors
/// When the segment size cannot be.
fn tcb() -> Result<Tcb, String> {
    let flags = TcbFlags::TIMESTAMPS | TcbFlags::SACK | TcbFlags::NODELAY;
    let mut tcb = Tcb::new(ends(), 1460, flags, Seq(1), Seq(1)).map_err(|e| e.to_string())?;
    (tcb.wnd, tcb.max_wnd, tcb.send.cwnd) = (1 << 20, 1 << 20, 1 << 20);
    tcb.rcv.last = NOW;
    // The peer knows of our window.
    (tcb.rcv.space, tcb.rcv.hiwat) = (1 << 16, 1 << 16);
    tcb.rcv.adv = tcb.rcv.nxt + 65_535;
    Ok(tcb)
}
