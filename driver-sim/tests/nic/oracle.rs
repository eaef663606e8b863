//! TCP packets with offload requests, and what must come out of the hardware for them, made with
//! another crate's header code.

use etherparse::{IpNumber, Ipv4Header, Ipv6Header, TcpHeader};
use mbuf::{OffloadFlags, TxOffload};

/// A TCP packet to be sent.
#[derive(Debug, Clone)]
pub struct Ask {
    pub v6: bool,
    /// Segment size; 0: no TSO, checksums only.
    pub mss: u16,
    pub options: usize,
    pub seq: u32,
    pub id: u16,
    pub fin: bool,
    pub psh: bool,
    pub cwr: bool,
    pub ports: (u16, u16),
}

impl Default for Ask {
    fn default() -> Self {
        Ask {
            v6: false,
            mss: 1448,
            options: 12,
            seq: 1000,
            id: 7,
            fin: false,
            psh: true,
            cwr: false,
            ports: (4000, 80),
        }
    }
}

impl Ask {
    fn ipv4(&self, payload: usize) -> Ipv4Header {
        let mut ip = Ipv4Header::new(0, 64, IpNumber::TCP, [10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
        ip.identification = self.id;
        ip.dont_fragment = true;
        ip.set_payload_len(payload).unwrap();
        ip
    }

    fn ipv6(&self, payload: usize) -> Ipv6Header {
        Ipv6Header {
            payload_length: payload as u16,
            next_header: IpNumber::TCP,
            hop_limit: 64,
            source: [1; 16],
            destination: [2; 16],
            ..Ipv6Header::default()
        }
    }

    fn tcp(&self) -> TcpHeader {
        let mut tcp = TcpHeader::new(self.ports.0, self.ports.1, self.seq, 512);
        tcp.ack = true;
        tcp.acknowledgment_number = 99;
        (tcp.fin, tcp.psh, tcp.cwr) = (self.fin, self.psh, self.cwr);
        // No-operations: any bytes do, but these are valid everywhere.
        tcp.set_options_raw(&vec![1; self.options]).unwrap();
        tcp
    }

    fn bytes(&self, tcp: &TcpHeader, id_step: u16, payload: &[u8], sums: bool) -> Vec<u8> {
        let mut tcp = tcp.clone();
        let length = tcp.header_len() + payload.len();
        let mut out = if self.v6 {
            let ip = self.ipv6(length);
            if sums {
                tcp.checksum = tcp.calc_checksum_ipv6(&ip, payload).unwrap();
            }
            ip.to_bytes().to_vec()
        } else {
            let mut ip = self.ipv4(length);
            ip.identification = ip.identification.wrapping_add(id_step);
            if sums {
                ip.header_checksum = ip.calc_header_checksum();
                tcp.checksum = tcp.calc_checksum_ipv4(&ip, payload).unwrap();
            }
            ip.to_bytes().to_vec()
        };
        out.extend_from_slice(&tcp.to_bytes());
        out.extend_from_slice(payload);
        out
    }

    /// What must be on the wire.
    pub fn frames(&self, payload: &[u8]) -> Vec<Vec<u8>> {
        let mss = match self.mss {
            0 => payload.len().max(1),
            n => usize::from(n),
        };
        let count = payload.len().div_ceil(mss).max(1);
        (0..count)
            .map(|i| {
                let part = &payload[i * mss..payload.len().min((i + 1) * mss)];
                let mut tcp = self.tcp();
                tcp.sequence_number = self.seq.wrapping_add((i * mss) as u32);
                tcp.fin &= i + 1 == count;
                tcp.psh &= i + 1 == count;
                tcp.cwr &= i == 0;
                self.bytes(&tcp, i as u16, part, true)
            })
            .collect()
    }

    pub fn header_len(&self) -> usize {
        self.l3_len() + 20 + self.options
    }

    fn l3_len(&self) -> usize {
        if self.v6 { 40 } else { 20 }
    }
}

/// The packet as a stack hands it to the driver: seed in the TCP checksum field, no IP sum.
pub fn tcp_packet(ask: &Ask, payload: &[u8]) -> (Vec<u8>, TxOffload) {
    let mut tcp = ask.tcp();
    let length = match ask.mss {
        0 => tcp.header_len() + payload.len(),
        _ => 0,
    };
    tcp.checksum = seed(ask, length);
    let version = match ask.v6 {
        true => OffloadFlags::IPV6,
        false => OffloadFlags::IPV4 | OffloadFlags::IPV4_CSUM,
    };
    let tso = match ask.mss {
        0 => OffloadFlags::empty(),
        _ => OffloadFlags::TSO,
    };
    let offload = TxOffload {
        flags: version | tso | OffloadFlags::TCP_CSUM,
        l2_len: 0,
        l3_len: ask.l3_len() as u16,
        l4_len: tcp.header_len_u16(),
        tso_mss: ask.mss,
    };
    (ask.bytes(&tcp, 0, payload, false), offload)
}

/// Pseudo-header sum by the definition, 16 bits at a time.
fn seed(ask: &Ask, length: usize) -> u16 {
    let addresses = match ask.v6 {
        true => [[1u8; 16], [2; 16]].concat(),
        false => vec![10, 0, 0, 1, 10, 0, 0, 2],
    };
    let mut sum = 6 + length as u32;
    for pair in addresses.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair[1]]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
