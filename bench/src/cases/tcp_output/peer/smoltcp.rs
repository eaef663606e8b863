//! smoltcp: two sockets on one interface and a loopback device, its own or one whose packets are
//! used again.

use super::super::pair::{BUFFER, CHUNK, Seen};
use super::super::wire::Mover;
use crate::cell::Skip;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, Device, DeviceCapabilities, Loopback, Medium};
use smoltcp::phy::{Checksum, ChecksumCapabilities};
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::cell::RefCell;
use std::collections::VecDeque;

/// Polls without a byte read after which a transfer has stopped.
const PATIENCE: usize = 10_000;

/// The length of packets, and whether checksums are made and verified.
#[derive(Clone, Copy)]
struct Limits {
    mtu: usize,
    sums: bool,
}

impl Limits {
    fn capabilities(self) -> DeviceCapabilities {
        let mut all = DeviceCapabilities::default();
        all.medium = Medium::Ip;
        all.max_transmission_unit = self.mtu;
        all.checksum = ChecksumCapabilities::ignored();
        if self.sums {
            (all.checksum.ipv4, all.checksum.tcp) = (Checksum::Both, Checksum::Both);
        }
        all
    }
}

/// smoltcp's own device, which allocates and clears each packet.
pub(super) struct Stock {
    inner: Loopback,
    limits: Limits,
}

impl Stock {
    pub(super) fn new(mtu: usize, sums: bool) -> Stock {
        Stock {
            inner: Loopback::new(Medium::Ip),
            limits: Limits { mtu, sums },
        }
    }
}

impl Device for Stock {
    type RxToken<'a> = <Loopback as Device>::RxToken<'a>;
    type TxToken<'a> = <Loopback as Device>::TxToken<'a>;

    fn receive(&mut self, now: Instant) -> Option<(Self::RxToken<'_>, Self::TxToken<'_>)> {
        self.inner.receive(now)
    }

    fn transmit(&mut self, now: Instant) -> Option<Self::TxToken<'_>> {
        self.inner.transmit(now)
    }

    fn capabilities(&self) -> DeviceCapabilities {
        self.limits.capabilities()
    }
}

/// A packet, and how much of it is used.
type Packet = (Box<[u8]>, usize);

/// The same, but packets are neither allocated nor cleared: the best that can be had.
pub(super) struct Recycled {
    wire: RefCell<VecDeque<Packet>>,
    spare: RefCell<Vec<Box<[u8]>>>,
    limits: Limits,
}

impl Recycled {
    pub(super) fn new(mtu: usize, sums: bool) -> Recycled {
        Recycled {
            wire: RefCell::default(),
            spare: RefCell::default(),
            limits: Limits { mtu, sums },
        }
    }
}

pub(super) struct Rx<'a>(&'a Recycled, Packet);
pub(super) struct Tx<'a>(&'a Recycled);

impl phy::RxToken for Rx<'_> {
    #[inline]
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        let Rx(device, (bytes, len)) = self;
        let result = read(&bytes[..len]);
        device.spare.borrow_mut().push(bytes);
        result
    }
}

impl phy::TxToken for Tx<'_> {
    #[inline]
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let Tx(device) = self;
        let spare = device.spare.borrow_mut().pop();
        let mut bytes = spare.unwrap_or_else(|| vec![0; device.limits.mtu].into());
        let result = write(&mut bytes[..len]);
        device.wire.borrow_mut().push_back((bytes, len));
        result
    }
}

impl Device for Recycled {
    type RxToken<'a> = Rx<'a>;
    type TxToken<'a> = Tx<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Rx<'_>, Tx<'_>)> {
        let packet = self.wire.borrow_mut().pop_front()?;
        Some((Rx(self, packet), Tx(self)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Tx<'_>> {
        Some(Tx(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        self.limits.capabilities()
    }
}

/// An interface with two sockets that are connected with each other.
pub(super) struct Stack<D> {
    device: D,
    interface: Interface,
    sockets: SocketSet<'static>,
    client: SocketHandle,
    server: SocketHandle,
    now: Instant,
}

fn socket() -> Socket<'static> {
    let buffer = || SocketBuffer::new(vec![0; BUFFER]);
    Socket::new(buffer(), buffer())
}

impl<D: Device> Stack<D> {
    pub(super) fn new(mut device: D) -> Result<Self, Skip> {
        let address = IpAddress::v4(127, 0, 0, 1);
        let config = Config::new(HardwareAddress::Ip);
        let mut interface = Interface::new(config, &mut device, Instant::ZERO);
        interface.update_ip_addrs(|all| {
            // There is room for the first.
            let _ = all.push(IpCidr::new(address, 8));
        });
        let mut sockets = SocketSet::new(Vec::new());
        let (server, client) = (sockets.add(socket()), sockets.add(socket()));
        let text = |e: &dyn std::fmt::Display| Skip::new(e.to_string());
        sockets
            .get_mut::<Socket>(server)
            .listen(443)
            .map_err(|e| text(&e))?;
        sockets
            .get_mut::<Socket>(client)
            .connect(interface.context(), (address, 443), 40_001)
            .map_err(|e| text(&e))?;
        Ok(Stack {
            device,
            interface,
            sockets,
            client,
            server,
            now: Instant::ZERO,
        })
    }
}

impl<D: Device> Mover for Stack<D> {
    fn transfer(&mut self, from: &[u8], to: &mut [u8]) -> Result<(), String> {
        let (mut written, mut read, mut idle) = (0, 0, 0);
        while read < to.len() {
            let before = (written, read);
            let client = self.sockets.get_mut::<Socket>(self.client);
            let end = from.len().min(written + CHUNK);
            if written < end && client.can_send() {
                let sent = client.send_slice(&from[written..end]);
                written += sent.map_err(|e| e.to_string())?;
            }
            self.interface
                .poll(self.now, &mut self.device, &mut self.sockets);
            let server = self.sockets.get_mut::<Socket>(self.server);
            if server.can_recv() {
                let got = server.recv_slice(&mut to[read..]);
                read += got.map_err(|e| e.to_string())?;
            }
            idle = if before == (written, read) {
                idle + 1
            } else {
                0
            };
            if idle > 2 {
                self.wait(idle)?;
            }
        }
        Ok(())
    }

    fn seen(&self) -> Option<Seen> {
        None
    }

    fn end(&mut self) -> Result<(), String> {
        Ok(())
    }
}

impl<D: Device> Stack<D> {
    /// Nothing moves: until the next timer.
    #[cold]
    fn wait(&mut self, idle: usize) -> Result<(), String> {
        if idle > PATIENCE {
            return Err("stopped".to_owned());
        }
        let delay = self.interface.poll_delay(self.now, &self.sockets);
        self.now += delay.unwrap_or(Duration::from_millis(1));
        Ok(())
    }
}
