//! smoltcp over our pool: both ends of a TCP connection on a loopback device whose packets are
//! mbufs. An echo of some KB comes back unchanged, and all buffers are back at the end.
//!
//! `cargo run -p mbuf --features smoltcp --example smoltcp`

use mbuf::{BufferSet, LifeEvent, Mbuf, Packet, PacketQueue};
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

const MTU: usize = 1500;
const PORT: u16 = 7;
const BYTES: usize = 24_000;

/// What is sent comes in again.
struct Loopback {
    set: BufferSet,
    wire: PacketQueue,
}

struct Rx(Mbuf);

struct Tx<'a>(&'a Loopback, Mbuf);

impl phy::RxToken for Rx {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        self.0.note(LifeEvent::Received);
        read(self.0.first().data())
    }
}

impl phy::TxToken for Tx<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(mut self, len: usize, write: F) -> R {
        let bytes = self
            .1
            .append(len)
            .expect("no packet is longer than the MTU");
        bytes.fill(0);
        let result = write(bytes);
        self.1.note(LifeEvent::Posted);
        self.0.wire.enqueue(self.1);
        result
    }
}

impl Device for Loopback {
    type RxToken<'a> = Rx;
    type TxToken<'a> = Tx<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Rx, Tx<'_>)> {
        // The answer's buffer first: without one the packet stays where it is.
        let answer = self.set.header_with(MTU).ok()?;
        let packet = self.wire.dequeue()?;
        Some((Rx(packet), Tx(self, answer)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Tx<'_>> {
        let packet = self.set.header_with(MTU).ok()?;
        Some(Tx(self, packet))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        capabilities
    }
}

fn socket() -> Socket<'static> {
    let buffer = || SocketBuffer::new(vec![0; 4096]);
    Socket::new(buffer(), buffer())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let set = BufferSet::builder(256).class(2048, 128).build()?;
    let mut device = Loopback {
        set: set.clone(),
        wire: PacketQueue::new(64),
    };
    let address = IpAddress::v4(127, 0, 0, 1);
    let config = Config::new(HardwareAddress::Ip);
    let mut interface = Interface::new(config, &mut device, Instant::ZERO);
    interface.update_ip_addrs(|all| {
        all.push(IpCidr::new(address, 8))
            .expect("the first address");
    });

    let mut sockets = SocketSet::new(Vec::new());
    let (server, client) = (sockets.add(socket()), sockets.add(socket()));
    sockets.get_mut::<Socket>(server).listen(PORT)?;
    let connecting = sockets.get_mut::<Socket>(client);
    connecting.connect(interface.context(), (address, PORT), 49152)?;

    let sent: Vec<u8> = (0..BYTES).map(|at| (at * 7 % 251) as u8).collect();
    let (mut posted, mut echoed) = (0, Vec::new());
    let mut now = Instant::ZERO;
    while echoed.len() < BYTES {
        interface.poll(now, &mut device, &mut sockets);
        let server = sockets.get_mut::<Socket>(server);
        while server.can_recv() && server.can_send() {
            let room = server.send_capacity() - server.send_queue();
            let heard = server.recv(|data| {
                let n = data.len().min(room);
                (n, data[..n].to_vec())
            })?;
            server.send_slice(&heard)?;
        }
        let client = sockets.get_mut::<Socket>(client);
        if client.can_send() {
            posted += client.send_slice(&sent[posted..])?;
        }
        if client.can_recv() {
            client.recv(|data| {
                echoed.extend_from_slice(data);
                (data.len(), ())
            })?;
        }
        now += Duration::from_millis(1);
        assert!(now < Instant::from_millis(60_000), "the echo has stopped");
    }
    assert_eq!(echoed, sent);
    println!(
        "{BYTES} bytes echoed in {now} of model time; {}",
        device.wire
    );
    drop((device, sockets, interface));
    assert!(set.is_full(), "a buffer is missing");
    Ok(())
}
