//! `cargo xtask peer`: our TCP against the kernel's, over a TAP device in a network namespace.
//!
//! The program starts itself again inside of a new namespace, which lives as long as that process:
//! however it ends, interface, addresses and routes are gone. There, threads are the kernel's
//! programs, and the main thread drives our connection.

mod kernel;
mod link;
mod raw;
mod transfer;

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::process::{Command, Stdio};

use driver_sim::tap::{OpenError, Tap, TapConfig};
use mbuf::BufferSet;
use tcp_output::connection::{AcceptError, Config};
use tcp_output::policy::{Copy, Reference, Threshold};
use tcp_output::{BadSegmentSize, ChecksumMode, CopyPolicy, MAX_PACKET, State};
use thiserror::Error;

use crate::Failure;
use crate::flags::{PeerFlags, Policy};
use crate::output;

use link::{KERNEL, Link};
use transfer::Moved;

const NAME: &str = "peer0";

/// With loss, one in so many bytes is transferred.
const LOSSY_PART: usize = 16;

/// Why a transfer did not come to its end.
#[derive(Debug, Error)]
enum Trouble {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the system: {0}")]
    Io(#[from] io::Error),
    #[error("'{command}' failed: {says}")]
    Command { command: String, says: String },
    #[error(transparent)]
    Size(#[from] BadSegmentSize),
    #[error(transparent)]
    Accept(#[from] AcceptError),
    #[error("nothing moves: state {state:?} after {bytes} bytes")]
    Stuck { state: State, bytes: usize },
    #[error("the kernel's side panicked")]
    Thread,
    #[error("no memory for buffers: {0}")]
    Memory(#[from] mbuf::CreateError),
    #[error("what arrived is not what was sent")]
    Digest,
}

/// Runs the command.
pub(crate) fn run(flags: &PeerFlags) -> Result<(), Failure> {
    if flags.inside {
        return inside(flags).map_err(|trouble| Failure::Run(trouble.to_string()));
    }
    if let Some(reason) = missing() {
        return Err(Failure::Missing(reason));
    }
    let failed =
        |error: io::Error| Failure::Run(format!("cannot start within a namespace: {error}"));
    let mut command = Command::new("unshare");
    command
        .arg("--net")
        .arg(std::env::current_exe().map_err(failed)?)
        .args(std::env::args_os().skip(1))
        .arg("--inside");
    match command.status().map_err(failed)? {
        status if status.success() => Ok(()),
        // It has said why.
        status => Err(Failure::Run(format!("inside of the namespace: {status}"))),
    }
}

/// What keeps the command from running here, and how to get it.
fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root, for a network namespace and a TAP device: sudo, or a container with CAP_NET_ADMIN and CAP_SYS_ADMIN".to_owned());
    }
    if let Err(error) = File::options().read(true).write(true).open("/dev/net/tun") {
        return Some(format!(
            "needs /dev/net/tun ({error}): modprobe tun; in a container, --device /dev/net/tun"
        ));
    }
    for (program, package) in [("ip", "iproute2"), ("unshare", "util-linux")] {
        let mut command = Command::new(program);
        command
            .arg("-V")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if command.status().is_err() {
            return Some(format!(
                "needs the program '{program}': apt-get install {package}"
            ));
        }
    }
    let mut command = Command::new("unshare");
    command.args(["--net", "true"]).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => None,
        _ => Some("may make no network namespace: needs CAP_SYS_ADMIN".to_owned()),
    }
}

/// All transfers, in the namespace.
fn inside(flags: &PeerFlags) -> Result<(), Trouble> {
    // Should the command that made the namespace be killed, nobody waits for us.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(io::Error::from)?;
    let config = config(flags);
    let mut link = link(flags, config.checksum)?;
    let data = pattern(flags.bytes);
    let payload = frame_payload(&config);
    let raw = raw::measure(&mut link, &config, flags.bytes, payload)?;
    output::print(&format!(
        "raw writer, frames with {payload} bytes of payload: {:.2} Gbit/s to nobody, {:.2} Gbit/s to a kernel's program\n",
        gbits(flags.bytes, raw.device),
        gbits(flags.bytes, raw.received),
    ));
    let mut equal = true;
    for loss in [0.0, flags.loss] {
        // Recovery takes its time: fewer bytes.
        let data = match loss > 0.0 {
            true => &data[..data.len().div_ceil(LOSSY_PART)],
            false => &data[..],
        };
        link.set_loss(loss);
        let sent = transfer::send(&mut link, &config, policy(flags), data)?;
        let ceiling = (loss == 0.0).then_some(raw.received);
        equal &= report("to the kernel", &link, data.len(), &sent, ceiling);
        link.set_loss(loss);
        let received = transfer::receive(&mut link, &config, policy(flags), data)?;
        equal &= report("from the kernel", &link, data.len(), &received, None);
        if flags.loss == 0.0 {
            break;
        }
    }
    match equal {
        true => Ok(()),
        false => Err(Trouble::Digest),
    }
}

/// How our connections are: large windows; the rest as the device is.
fn config(flags: &PeerFlags) -> Config {
    Config {
        send_buffer: 1 << 20,
        receive_buffer: 1 << 20,
        tso: !flags.plain,
        checksum: match flags.plain {
            true => ChecksumMode::Software,
            false => ChecksumMode::default(),
        },
        timestamp_offset: fastrand::u32(..),
        ..Config::default()
    }
}

/// The device, up and with the kernel's addresses.
fn link(flags: &PeerFlags, checksum: ChecksumMode) -> Result<Link, Trouble> {
    let tap = Tap::open(&TapConfig {
        name: NAME.to_owned(),
        offload: !flags.plain,
        ..TapConfig::default()
    })?;
    let mac = KERNEL.1.map(|byte| format!("{byte:02x}")).join(":");
    let network = format!("{}/24", KERNEL.0);
    ip(&["link", "set", "dev", NAME, "address", &mac])?;
    ip(&["addr", "add", &network, "dev", NAME])?;
    ip(&["link", "set", "dev", NAME, "up"])?;
    Ok(Link::new(tap, BufferSet::standard(16_384, 1024)?, checksum))
}

fn ip(arguments: &[&str]) -> Result<(), Trouble> {
    let output = Command::new("ip").args(arguments).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(Trouble::Command {
        command: format!("ip {}", arguments.join(" ")),
        says: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

fn policy(flags: &PeerFlags) -> Box<dyn CopyPolicy> {
    match flags.policy {
        Policy::Reference => Box::new(Reference),
        Policy::Copy => Box::new(Copy),
        Policy::Threshold => Box::new(Threshold { factor: 5 }),
    }
}

/// Bytes that repeat nowhere near.
fn pattern(len: usize) -> Vec<u8> {
    let mut data = vec![0; len];
    fastrand::Rng::with_seed(len as u64).fill(&mut data);
    data
}

/// Payload of one frame: full segments, as many as a TSO frame holds.
fn frame_payload(config: &Config) -> usize {
    let segment = config.max_segment as usize - 12;
    match config.tso {
        true => (MAX_PACKET - 14 - 52) / segment * segment,
        false => segment,
    }
}

fn gbits(bytes: usize, seconds: f64) -> f64 {
    bytes as f64 * 8.0 / seconds / 1e9
}

/// One line; says whether the digests are equal.
fn report(direction: &str, link: &Link, bytes: usize, moved: &Moved, ceiling: Option<f64>) -> bool {
    let mut line = format!(
        "{direction}, {} % loss: {:.2} Gbit/s",
        link.loss_percent,
        gbits(bytes, moved.seconds),
    );
    if let Some(ceiling) = ceiling {
        let _ = write!(
            line,
            " ({:.2} of the raw writer to a program)",
            ceiling / moved.seconds
        );
    }
    if link.lost > 0 {
        let _ = write!(line, ", {} frames lost", link.lost);
    }
    if let Some(again) = moved.sent_again.filter(|&bytes| bytes > 0) {
        let _ = write!(line, ", {again} bytes sent again");
    }
    let verdict = match moved.equal {
        true => "SHA-256 equal",
        false => "SHA-256 DIFFERENT",
    };
    output::print(&format!("{line}, {verdict}\n"));
    moved.equal
}
