//! Sockets under an executor of a dozen lines.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use mbuf::Packet;
use sockbuf::{ReceiveFlags, RecordSocket, SendFlags, Side, Socket, SocketError};

use crate::common::{pools, received};
use crate::sockets::{numbered, socket, unsent};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

async fn send_all(socket: &Socket, bytes: &[u8]) -> Result<(), SocketError> {
    let mut sent = 0;
    while sent < bytes.len() {
        sent += poll_fn(|cx| socket.poll_send(cx, &bytes[sent..], SendFlags::empty())).await?;
    }
    Ok(())
}

async fn receive_all(socket: &Socket) -> Result<Vec<u8>, SocketError> {
    let mut got = Vec::new();
    let mut room = [0; 700];
    loop {
        match poll_fn(|cx| socket.poll_receive(cx, &mut room, ReceiveFlags::empty())).await? {
            0 => return Ok(got),
            n => got.extend(&room[..n]),
        }
    }
}

#[test]
fn sb_poll_moves_a_stream_through_a_small_buffer() {
    let set = pools();
    let (socket, end) = socket(&set, 1000, 1000);
    let user = thread::spawn({
        let socket = socket.clone();
        move || {
            block_on(send_all(&socket, &numbered(50_000))).expect("sent");
            block_on(receive_all(&socket)).expect("received")
        }
    });
    let mut got = Vec::new();
    while got.len() < 50_000 {
        let bytes = unsent(&end);
        end.acknowledge(bytes.len()).expect("all of it");
        got.extend(bytes);
    }
    for part in got.chunks(333) {
        while end.receive_space() < 333 {
            thread::yield_now();
        }
        end.append(received(&set, part, 0));
    }
    end.peer_closed();
    assert_eq!(user.join().expect("user"), numbered(50_000));
    assert!(set.is_full());
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A waker is told once for however many polls, and again only after another one.
#[test]
fn sb_poll_tells_a_waker_once() {
    let set = pools();
    let (socket, end) = socket(&set, 100, 1000);
    let counts = [(); 3].map(|()| Arc::new(Count(AtomicUsize::new(0))));
    let wakers = counts.clone().map(Waker::from);
    let told = || {
        counts
            .each_ref()
            .map(|count| count.0.load(Ordering::Relaxed))
    };
    let poll = |waker| {
        let mut cx = Context::from_waker(waker);
        socket.poll_readable(&mut cx)
    };
    for waker in [&wakers[0], &wakers[0], &wakers[1], &wakers[2], &wakers[1]] {
        assert_eq!(poll(waker), Poll::Pending);
    }
    end.append(received(&set, b"a", 0));
    end.append(received(&set, b"b", 0));
    assert_eq!((told(), socket.waits().reader_wakes), ([1, 1, 1], 1));
    assert_eq!(poll(&wakers[0]), Poll::Ready(()));
    socket
        .receive(&mut [0; 10], ReceiveFlags::empty())
        .expect("data");
    assert_eq!(poll(&wakers[2]), Poll::Pending);
    end.peer_closed();
    assert_eq!(told(), [1, 1, 2]);
    assert_eq!(poll(&wakers[2]), Poll::Ready(()), "the end is to be read");
}

#[test]
fn sb_poll_writable_is_space_a_shutdown_or_an_error() {
    let (socket, end) = socket(&pools(), 3000, 0);
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&count));
    let mut cx = Context::from_waker(&waker);
    assert_eq!(socket.poll_writable(&mut cx), Poll::Ready(()));
    socket.send(&[0; 3000], SendFlags::empty()).expect("space");
    assert_eq!(socket.poll_writable(&mut cx), Poll::Pending);
    end.acknowledge(2047).expect("sent");
    assert_eq!(count.0.load(Ordering::Relaxed), 0, "one below the mark");
    end.acknowledge(1).expect("sent");
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    assert_eq!(socket.poll_writable(&mut cx), Poll::Ready(()));
    socket.send(&[0; 2048], SendFlags::empty()).expect("space");
    assert_eq!(socket.poll_writable(&mut cx), Poll::Pending);
    end.report(SocketError::Reset);
    assert_eq!(count.0.load(Ordering::Relaxed), 2);
    assert_eq!(socket.poll_writable(&mut cx), Poll::Ready(()));
    let sent = socket.poll_send(&mut cx, b"a", SendFlags::empty());
    assert_eq!(sent, Poll::Ready(Err(SocketError::Reset)));
}

/// A task waits for its turn too, while a thread is in the middle of its send.
#[test]
fn sb_poll_waits_for_its_turn() {
    let (socket, end) = socket(&pools(), 1000, 0);
    let writer = thread::spawn({
        let socket = socket.clone();
        move || socket.send(&[1; 1500], SendFlags::empty())
    });
    crate::sockets::until(|| socket.waits().writers == 1);
    let task = thread::spawn({
        let socket = socket.clone();
        move || block_on(send_all(&socket, &[2; 300]))
    });
    thread::yield_now();
    end.acknowledge(1000).expect("full");
    assert_eq!(writer.join().expect("writer"), Ok(1500));
    assert_eq!(task.join().expect("task"), Ok(()));
    assert_eq!(unsent(&end), [vec![1; 500], vec![2; 300]].concat());
}

#[test]
fn sb_poll_of_records() {
    let set = pools();
    let sides = (Side::sending(100), Side::receiving(100));
    let socket = RecordSocket::new(&set, sides, ());
    let end = socket.protocol_end();
    end.connected();
    let user = thread::spawn({
        let socket = socket.clone();
        move || {
            for n in 0..10 {
                let sent = poll_fn(|cx| socket.poll_send(cx, &[n; 60], SendFlags::empty()));
                assert_eq!(block_on(sent), Ok(60));
            }
            block_on(poll_fn(|cx| {
                socket.poll_receive_record(cx, ReceiveFlags::empty())
            }))
        }
    });
    for n in 0..10 {
        crate::sockets::until(|| end.with_send(|rb| !rb.is_empty()));
        let sent = end.with_send(|rb| rb.take_record()).expect("one");
        assert_eq!(sent.data.expect("data").to_vec(), [n; 60]);
    }
    end.append(received(&set, b"answer", 0));
    let record = user.join().expect("user").expect("received");
    let data = record.and_then(|record| record.data).expect("data");
    assert_eq!(data.to_vec(), b"answer");
}
