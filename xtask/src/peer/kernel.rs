//! The kernel's side: threads that send and receive through its own TCP.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::link::KERNEL;

/// What a sink received, and when it had all of it.
pub(super) struct Received {
    pub(super) data: Vec<u8>,
    pub(super) end: Instant,
}

/// Accepts one connection and reads up to its end, or until it has `most` bytes.
pub(super) fn sink(most: usize) -> io::Result<(u16, JoinHandle<io::Result<Received>>)> {
    let listener = TcpListener::bind((KERNEL.0, 0))?;
    let port = listener.local_addr()?.port();
    // Written once, so that no page is new to the measurement.
    let mut data = vec![0xff; most];
    let thread = thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        let (mut have, mut end) = (0, Instant::now());
        while have < data.len() {
            match stream.read(&mut data[have..])? {
                0 => break,
                n => have += n,
            }
            end = Instant::now();
        }
        data.truncate(have);
        Ok(Received { data, end })
    });
    Ok((port, thread))
}

/// Connects to `to`, writes `data`, and waits for the other side's end.
pub(super) fn source(to: SocketAddr, data: Vec<u8>) -> JoinHandle<io::Result<()>> {
    thread::spawn(move || {
        let mut stream = TcpStream::connect(to)?;
        stream.write_all(&data)?;
        stream.shutdown(std::net::Shutdown::Write)?;
        stream.read(&mut [0]).map(drop)
    })
}
