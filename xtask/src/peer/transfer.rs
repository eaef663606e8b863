//! One connection, one direction: bytes through our TCP and the kernel's, compared at the end.

use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tcp_output::connection::{Config, Connection, Events};
use tcp_output::{CopyPolicy, Endpoints, Seq, State};

use super::link::{KERNEL, Link, OURS, drive, output};
use super::{Trouble, kernel};

/// Bytes written to a connection at a time: a full TSO frame.
const CHUNK: usize = 65_536;

/// A transfer in which nothing moves for so long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a transfer came to.
pub(super) struct Moved {
    pub(super) seconds: f64,
    pub(super) equal: bool,
    /// Bytes that we sent again, `None` when the kernel was the sender.
    pub(super) sent_again: Option<u64>,
}

/// Gives up when nothing happens.
pub(super) struct Watch(Instant);

impl Watch {
    pub(super) fn new() -> Self {
        Watch(Instant::now())
    }

    pub(super) fn moved(&mut self) {
        self.0 = Instant::now();
    }

    pub(super) fn check(&self, state: State, bytes: usize) -> Result<(), Trouble> {
        match self.0.elapsed() < PATIENCE {
            true => Ok(()),
            false => Err(Trouble::Stuck { state, bytes }),
        }
    }
}

pub(super) fn ends(ours: u16, kernels: u16) -> Endpoints {
    Endpoints::V4 {
        source: OURS.0,
        dest: KERNEL.0,
        source_port: ours,
        dest_port: kernels,
    }
}

pub(super) fn iss() -> Seq {
    Seq(fastrand::u32(..))
}

/// A connection of ours to the kernel, and `data` through it.
pub(super) fn send(
    link: &mut Link,
    config: &Config,
    policy: impl CopyPolicy,
    data: &[u8],
) -> Result<Moved, Trouble> {
    // A byte too many would be noticed.
    let (port, sink) = kernel::sink(data.len() + 1)?;
    let ends = ends(fastrand::u16(20_000..60_000), port);
    let mut tcp = Connection::connect(ends, config, policy, iss(), link.now())?;
    let mut start = Instant::now();
    let mut written = 0;
    let mut watch = Watch::new();
    output(link, &mut tcp);
    while !matches!(tcp.state(), State::TimeWait | State::Closed) {
        let events = drive(link, &mut tcp);
        if events.contains(Events::CONNECTED) {
            start = Instant::now();
        }
        let before = written;
        written += write(&mut tcp, &data[written..], link);
        if written == data.len() {
            tcp.close();
        }
        let sent = output(link, &mut tcp);
        match events.is_empty() && sent == 0 && written == before {
            true => link.wait(tcp.next_timeout())?,
            false => watch.moved(),
        }
        watch.check(tcp.state(), written)?;
    }
    let received = joined(sink)?;
    Ok(Moved {
        seconds: (received.end - start).as_secs_f64(),
        equal: Sha256::digest(data) == Sha256::digest(&received.data),
        sent_again: Some(tcp.tcb().stats.rexmit_bytes),
    })
}

/// Writes a full frame's bytes, or the rest, once there is space for it.
pub(super) fn write<P: CopyPolicy>(tcp: &mut Connection<P>, rest: &[u8], link: &Link) -> usize {
    let chunk = &rest[..rest.len().min(CHUNK)];
    let space = usize::try_from(tcp.send_buffer().space()).unwrap_or(0);
    if chunk.is_empty() || space < chunk.len() || tcp.state() != State::Established {
        return 0;
    }
    tcp.write(chunk, link.set()).unwrap_or(0)
}

/// A connection of the kernel's to us, and `data` through it.
pub(super) fn receive(
    link: &mut Link,
    config: &Config,
    policy: impl CopyPolicy,
    data: &[u8],
) -> Result<Moved, Trouble> {
    let port = fastrand::u16(20_000..60_000);
    let source = kernel::source(SocketAddr::from((OURS.0, port)), data.to_vec());
    let mut received = vec![0xff; data.len() + 1];
    let mut tcp = accept(link, config, policy, port)?;
    let mut start = Instant::now();
    let (mut have, mut end, mut watch) = (0, start, Watch::new());
    output(link, &mut tcp);
    while tcp.state() != State::Closed {
        let events = drive(link, &mut tcp);
        if events.contains(Events::CONNECTED) {
            start = Instant::now();
        }
        let n = tcp.read(&mut received[have..]);
        if n > 0 {
            have += n;
            end = Instant::now();
        }
        if tcp.state() == State::CloseWait {
            tcp.close();
        }
        let sent = output(link, &mut tcp);
        match events.is_empty() && sent == 0 && n == 0 {
            true => link.wait(tcp.next_timeout())?,
            false => watch.moved(),
        }
        watch.check(tcp.state(), have)?;
    }
    joined(source)?;
    Ok(Moved {
        seconds: (end - start).as_secs_f64(),
        equal: Sha256::digest(data) == Sha256::digest(&received[..have]),
        sent_again: None,
    })
}

/// Waits for the kernel's SYN.
fn accept<P: CopyPolicy>(
    link: &mut Link,
    config: &Config,
    policy: P,
    port: u16,
) -> Result<Connection<P>, Trouble> {
    let watch = Watch::new();
    loop {
        while let Some((segment, _)) = link.next() {
            let Endpoints::V4 { dest_port, .. } = segment.ends else {
                continue;
            };
            if dest_port == port {
                return Ok(Connection::accept(
                    &segment,
                    config,
                    policy,
                    iss(),
                    link.now(),
                )?);
            }
        }
        link.wait(None)?;
        watch.check(State::Listen, 0)?;
    }
}

pub(super) fn joined<T>(thread: JoinHandle<std::io::Result<T>>) -> Result<T, Trouble> {
    Ok(thread.join().map_err(|_| Trouble::Thread)??)
}
