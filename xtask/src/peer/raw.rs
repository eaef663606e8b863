//! The ceilings: equal frames written by nothing but a loop, to nobody, and to a kernel's program.

use std::os::fd::AsFd;
use std::time::Instant;

use driver_sim::checksum::Checksum;
use driver_sim::tap::Tap;
use tcp_output::connection::{Config, Connection, Events};
use tcp_output::policy::Reference;
use tcp_output::{Seq, Tcb, Time};

use super::link::{KERNEL, Link, OURS, drive, output};
use super::transfer::{self, Watch};
use super::{Trouble, kernel};

const ETHERNET: usize = 14;
const IP: usize = 20;
/// With timestamps.
const TCP: usize = 32;
const VIRTIO: usize = 10;

/// Bytes that a connection sends as any does, until the peer's window holds several frames.
const WARM: usize = 4 << 20;

/// An address that nobody has: the kernel takes the frame in and drops it at the IP layer.
const NOBODY: [u8; 6] = [0x02, 0, 0, 0, 0, 9];

/// A frame with `payload` bytes, of which only the sequence number changes.
pub(super) struct Frame {
    bytes: Vec<u8>,
    /// Bytes of virtio-net header; 0: the checksum is ours to make.
    virtio: usize,
    payload: usize,
    /// Sum of all that the TCP checksum covers but the sequence number.
    sum: Checksum,
}

impl Frame {
    /// As `tcb` would send it; with `mss`, to be cut to that by the kernel.
    fn new(tcb: &Tcb, now: Time, to: [u8; 6], payload: usize, mss: Option<u16>) -> Self {
        let mut bytes = mss.map_or(Vec::new(), virtio);
        let virtio = bytes.len();
        bytes.extend([&to[..], &OURS.1, &[8, 0]].concat());
        bytes.extend(ip(payload));
        let tcp = bytes.len();
        let (source, dest) = tcb.ends.ports();
        bytes.extend([source.to_be_bytes(), dest.to_be_bytes()].concat());
        bytes.extend([0; 4]);
        bytes.extend(tcb.rcv.nxt.0.to_be_bytes());
        bytes.extend([0x80, 0x10, 0xff, 0xff, 0, 0, 0, 0, 1, 1, 8, 10]);
        let clock = (now.0 as u32).wrapping_add(tcb.ts_offset);
        bytes.extend([clock.to_be_bytes(), tcb.ts_recent.to_be_bytes()].concat());
        let mut pseudo = Checksum::default();
        pseudo.add(&[OURS.0.octets(), KERNEL.0.octets()].concat());
        pseudo.add_u16(6);
        pseudo.add_u16((TCP + payload) as u16);
        let mut sum = pseudo;
        bytes.resize(bytes.len() + payload, 0x5a);
        sum.add(&bytes[tcp..]);
        if virtio > 0 {
            bytes[tcp + 16..tcp + 18].copy_from_slice(&pseudo.partial().to_be_bytes());
        }
        Frame {
            bytes,
            virtio,
            payload,
            sum,
        }
    }

    fn set_seq(&mut self, seq: Seq) {
        let tcp = self.virtio + ETHERNET + IP;
        let number = seq.0.to_be_bytes();
        self.bytes[tcp + 4..tcp + 8].copy_from_slice(&number);
        if self.virtio == 0 {
            let mut sum = self.sum;
            sum.add(&number);
            self.bytes[tcp + 16..tcp + 18].copy_from_slice(&sum.finish().to_be_bytes());
        }
    }

    fn write(&self, tap: &Tap) -> std::io::Result<()> {
        rustix::io::write(tap.as_fd(), &self.bytes)?;
        Ok(())
    }
}

/// Flags "sum it", TSO for IPv4, and where the headers and the checksum are.
fn virtio(mss: u16) -> Vec<u8> {
    let mut header = vec![1, 1];
    let headers = (ETHERNET + IP + TCP) as u16;
    for n in [headers, mss, (ETHERNET + IP) as u16, 16] {
        header.extend(n.to_ne_bytes());
    }
    debug_assert_eq!(header.len(), VIRTIO);
    header
}

fn ip(payload: usize) -> [u8; IP] {
    let mut ip = [0; IP];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&((IP + TCP + payload) as u16).to_be_bytes());
    ip[6..10].copy_from_slice(&[0x40, 0, 64, 6]);
    ip[12..16].copy_from_slice(&OURS.0.octets());
    ip[16..20].copy_from_slice(&KERNEL.0.octets());
    let mut sum = Checksum::default();
    sum.add(&ip);
    ip[10..12].copy_from_slice(&sum.finish().to_be_bytes());
    ip
}

/// Seconds that the two ceilings take for so many bytes.
pub(super) struct Ceilings {
    /// The kernel takes the frames and drops them: the device alone.
    pub(super) device: f64,
    /// A program of the kernel's receives them: what a sender that costs nothing would reach.
    pub(super) received: f64,
}

/// Writes frames of `payload` bytes until `bytes` are through, rounded up to frames.
pub(super) fn measure(
    link: &mut Link,
    config: &Config,
    bytes: usize,
    payload: usize,
) -> Result<Ceilings, Trouble> {
    let count = bytes.div_ceil(payload);
    let share = bytes as f64 / (count * payload) as f64;
    let (port, sink) = kernel::sink(WARM + count * payload)?;
    let ends = transfer::ends(fastrand::u16(20_000..60_000), port);
    let mut tcp = Connection::connect(ends, config, Reference, transfer::iss(), link.now())?;
    let watch = Watch::new();
    output(link, &mut tcp);
    let mut warm = &[0x5a; WARM][..];
    while !warm.is_empty() || !tcp.send_buffer().is_empty() {
        let events = drive(link, &mut tcp);
        let n = transfer::write(&mut tcp, warm, link);
        warm = &warm[n..];
        if output(link, &mut tcp) == 0 && n == 0 && events == Events::empty() {
            link.wait(tcp.next_timeout())?;
        }
        watch.check(tcp.state(), WARM - warm.len())?;
    }
    let mss = config.tso.then_some(tcp.tcb().max_segment() as u16);
    let frame = Frame::new(tcp.tcb(), link.now(), NOBODY, payload, mss);
    let start = Instant::now();
    for _ in 0..count {
        frame.write(link.tap())?;
    }
    let device = start.elapsed().as_secs_f64();
    let mut frame = Frame::new(tcp.tcb(), link.now(), KERNEL.1, payload, mss);
    let start = Instant::now();
    fill(link, tcp.tcb(), &mut frame, count)?;
    let received = transfer::joined(sink)?;
    Ok(Ceilings {
        device: device * share,
        received: (received.end - start).as_secs_f64() * share,
    })
}

/// Keeps the peer's window full until all is acknowledged.
fn fill(link: &mut Link, tcb: &Tcb, frame: &mut Frame, count: usize) -> Result<(), Trouble> {
    let (mut una, mut nxt, mut window) = (tcb.send.nxt, tcb.send.nxt, tcb.wnd as usize);
    let mut left = count;
    let mut watch = Watch::new();
    while left > 0 || una != nxt {
        while left > 0 && (nxt - una) as usize + frame.payload <= window {
            frame.set_seq(nxt);
            frame.write(link.tap())?;
            nxt += frame.payload as u32;
            left -= 1;
        }
        match link.next() {
            Some((segment, _)) if segment.ends.reversed() == tcb.ends => {
                una = una.max(segment.ack);
                window = usize::from(segment.window) << tcb.wnd_scale;
                watch.moved();
            }
            Some(_) => {}
            None => link.wait(None)?,
        }
        watch.check(tcb.state, (count - left) * frame.payload)?;
    }
    Ok(())
}
